//! `chaski perplexity`: how well a model predicts a text.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::json;

use crate::load::{self, Loaded};
use crate::options::{self, EngineArgs, Ignored};
use crate::run::read_text;
use crate::ui::Ui;

pub(crate) const LONG: &str = "\
Measures how well a model predicts a text: the exponential of the mean surprise, lower is better.

The text is cut into windows of -c tokens that do not overlap, and the second half of each is scored, as llama.cpp's \
tool of this name does.";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// GGUF file; the built-in model without it
    #[arg(value_name = "MODEL")]
    first: Option<PathBuf>,
    /// GGUF file, in place of MODEL
    #[arg(short, long, value_name = "FILE", conflicts_with = "first")]
    model: Option<PathBuf>,
    /// File with the text; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Score so many windows at most
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    chunks: Option<i64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    ignored: Ignored,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    args.ignored.notes().iter().for_each(|n| ui.note(n));
    let text = read_text(&args.file)?;
    let source = options::source(args.first.as_ref().or(args.model.as_ref()));
    let mut engine_args = args.engine.clone();
    if engine_args.ctx_size == 0 {
        // The windows of llama.cpp's tool.
        let trained = pollster::block_on(source.open())?.config().n_ctx_train;
        engine_args.ctx_size = trained.clamp(2, 512);
    }
    let Loaded { mut engine, .. } = load::load(source, &engine_args, ui)?;
    let n_ctx = engine.runner().n_ctx() as usize;
    let limit = args.chunks.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    let bar = ui.bar(0, "[{bar:30}] {pos}/{len} windows, PPL {msg}, {eta} left");
    let (tokenizer, runner) = engine.parts();
    let result =
        pollster::block_on(chaski::perplexity(runner, tokenizer, &text, n_ctx, limit, |done, all, value| {
            bar.set_length(all as u64);
            bar.set_message(format!("{value:.4}"));
            bar.set_position(done as u64);
        }));
    bar.finish_and_clear();
    let p = result?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let object = json!({
            "ppl": p.value, "error": p.error, "tokens": p.n_token, "chunks": p.n_chunk, "n_ctx": n_ctx,
            "model": engine.info().file, "device": engine.device().name,
        });
        writeln!(out, "{object}")?;
    } else {
        writeln!(out, "PPL = {:.4} +/- {:.5}", p.value, p.error)?;
    }
    Ok(())
}
