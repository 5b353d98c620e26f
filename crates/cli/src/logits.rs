//! `chaski logits`: the logits after every token, to compare engines.

use std::io::{BufWriter, IsTerminal as _, Write};
use std::path::PathBuf;

use chaski::Engine;
use serde_json::json;

use crate::failure::Usage;
use crate::input::file_or_stdin;
use crate::load::{self, Loaded};
use crate::options::{EngineArgs, ModelArg};
use crate::output::{files_of_model, try_to_write, write_file};
use crate::progress::Unit;
use crate::ui::Ui;

pub(crate) const LONG: &str = "\
Runs token ids and writes the logits after each: one row of vocabulary size per token, as little-endian \
32-bit floats.

--chunk N runs N tokens at once, on a GPU at most 64 (1 takes the kernels of decoding); --kv f32 is exact.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) model: ModelArg,
    /// Token ids, separated by commas or spaces
    #[arg(long, value_name = "IDS")]
    tokens: Option<String>,
    /// File with token ids, separated by commas, spaces or newlines [default: stdin]
    #[arg(long, value_name = "FILE", conflicts_with = "tokens")]
    tokens_file: Option<PathBuf>,
    /// Write the floats to this file
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["json", "text"])]
    out: Option<PathBuf>,
    /// Print one JSON array per token
    #[arg(long, conflicts_with = "text")]
    json: bool,
    /// Print one line of numbers per token
    #[arg(long)]
    text: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let tokens = tokens(args)?;
    let to_terminal = args.out.is_none() && !args.json && !args.text && std::io::stdout().is_terminal();
    if to_terminal {
        return Err(
            Usage("raw floats cannot go to a terminal: use --out FILE, --text or --json".into()).into()
        );
    }
    let mut inputs = files_of_model(args.model.path());
    inputs.extend(args.tokens_file.clone());
    inputs.extend(args.engine.lora.files());
    if let Some(path) = &args.out {
        try_to_write(path, &inputs)?;
    }
    let source = args.model.source();
    let mut engine_args = args.engine.clone();
    if engine_args.ctx_size == 0 {
        let n = u32::try_from(tokens.len())?;
        let trained = pollster::block_on(source.open())?.config().n_ctx_train.clamp(1, 4096);
        engine_args.ctx_size = trained.max(n);
    }
    let Loaded { mut engine, .. } = load::load(source, &engine_args, ui)?;
    let Some(path) = &args.out else {
        return write_all(&mut engine, &tokens, args, ui, BufWriter::new(std::io::stdout().lock())).map(drop);
    };
    write_file(path, &inputs, |out| write_all(&mut engine, &tokens, args, ui, out))
}

/// Runs the tokens, writes a row for each and returns the output.
fn write_all<W: Write>(
    engine: &mut Engine,
    tokens: &[u32],
    args: &Args,
    ui: &Ui,
    mut out: W,
) -> anyhow::Result<W> {
    let runner = engine.runner();
    let n_vocab = runner.n_vocab() as usize;
    let progress = ui.progress("logits", Unit::Tokens, tokens.len() as u64);
    let mut n_row = 0;
    for part in tokens.chunks(args.engine.chunk as usize) {
        let logits = pollster::block_on(runner.eval_all(part, part.len()))?;
        for row in logits.chunks_exact(n_vocab) {
            write_row(&mut out, row, args)?;
            n_row += 1;
        }
        progress.add(part.len() as u64);
    }
    out.flush()?;
    progress.finish();
    ui.detail(&format!("{n_row} rows of {n_vocab} logits"));
    Ok(out)
}

fn write_row(out: &mut impl Write, row: &[f32], args: &Args) -> std::io::Result<()> {
    if args.json {
        return writeln!(out, "{}", json!(row));
    }
    if args.text {
        let numbers: Vec<String> = row.iter().map(f32::to_string).collect();
        return writeln!(out, "{}", numbers.join(" "));
    }
    let bytes: Vec<u8> = row.iter().flat_map(|v| v.to_le_bytes()).collect();
    out.write_all(&bytes)
}

fn tokens(args: &Args) -> anyhow::Result<Vec<u32>> {
    let missing = "no token ids: give --tokens or --tokens-file, or pipe them";
    let text = match &args.tokens {
        Some(text) => text.clone(),
        None => file_or_stdin(args.tokens_file.as_deref(), missing)?,
    };
    let separators = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']');
    let words = text.split(separators).filter(|w| !w.is_empty());
    let ids: Result<Vec<u32>, _> =
        words.map(|w| w.parse().map_err(|_| Usage(format!("`{w}` is not a token id")))).collect();
    let ids = ids?;
    if ids.is_empty() {
        return Err(Usage("no token ids given".into()).into());
    }
    Ok(ids)
}
