//! `chaski perplexity`: perplexity of a model on a text.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::json;

use crate::input::file_or_stdin;
use crate::load::{self, Loaded};
use crate::options::{Chunks, EngineArgs, ModelArg};
use crate::progress::Unit;
use crate::ui::Ui;

pub(crate) const LONG: &str = "\
Measures perplexity: the exponential of the mean negative log-likelihood, lower is better.

The text is split into non-overlapping windows of -c tokens, and the second half of each is scored, as in \
llama-perplexity.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) model: ModelArg,
    /// File with the text [default: stdin]
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Maximum number of windows; below 0: all
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "-1")]
    chunks: Chunks,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let text = file_or_stdin(args.file.as_deref(), "no text: give -f FILE, or pipe it")?;
    let source = args.model.source();
    let mut engine_args = args.engine.clone();
    if engine_args.ctx_size == 0 {
        // The windows of llama-perplexity.
        let trained = pollster::block_on(source.open())?.config().n_ctx_train;
        engine_args.ctx_size = trained.clamp(2, 512);
    }
    let Loaded { mut engine, .. } = load::load(source, &engine_args, ui)?;
    let n_ctx = engine.runner().n_ctx() as usize;
    let progress = ui.progress("perplexity", Unit::Windows, 0);
    let (tokenizer, runner) = engine.parts();
    let result = pollster::block_on(chaski::tools::perplexity(
        runner,
        tokenizer,
        &text,
        n_ctx,
        args.chunks.0,
        |done, all, value| {
            progress.set(done as u64, all as u64);
            if let Some(value) = value {
                progress.message(format!("PPL {value:.4}"));
            }
        },
    ));
    let p = result?;
    progress.finish();
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
