//! `chaski embed`: text embeddings.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use chaski::embedding::{EmbedOptions, Embedding, Pooling, VectorNorm};
use serde_json::json;

use crate::failure::Usage;
use crate::input::{ModelAndText, file_or_stdin, note_file_name, read_text};
use crate::load::{self, Loaded};
use crate::options::{self, EngineArgs};
use crate::progress::Unit;
use crate::ui::Ui;

pub(crate) const LONG: &str = "\
Prints embeddings, by default one line of numbers per text.

  chaski embed MODEL TEXT     the embedding of TEXT
  chaski embed MODEL < FILE   one embedding per line of the file

The pooling type comes from the model file, or from --pooling if the file has none. Embeddings are normalized \
to unit length unless --embd-normalize changes that.";

/// Texts that an encoder runs together.
const TOGETHER: usize = 64;

/// Output format.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One line of numbers per embedding
    #[default]
    Raw,
    /// One array of arrays
    Array,
    /// An object in the format of the OpenAI API
    Json,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) words: ModelAndText,
    /// Another text; may be repeated
    #[arg(short, long, value_name = "TEXT")]
    prompt: Vec<String>,
    /// File with more texts, one per line; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Separator of the texts in the file and in each argument, instead of line breaks
    #[arg(long, value_name = "TEXT", default_value = "\n", hide_default_value = true)]
    embd_separator: String,
    /// Pooling type: none, mean, cls, last, or rank for the scores of a classifier [default: from the model file]
    #[arg(long, value_name = "WAY")]
    pooling: Option<Pooling>,
    /// Normalization: -1 none, 0 largest absolute value (scaled to 32760), 1 L1 norm, 2 L2 norm, p any other p-norm
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "2", value_parser = norm)]
    embd_normalize: VectorNorm,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    embd_output_format: Format,
    #[command(flatten)]
    engine: EngineArgs,
}

fn norm(text: &str) -> Result<VectorNorm, String> {
    let n = text.parse().map_err(|_| "expected an integer")?;
    VectorNorm::from_number(n).ok_or_else(|| "expected -1 or more".into())
}

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let (model, text) = args.words.split()?;
    text.iter().for_each(|text| note_file_name(text, ui));
    let piped = match &args.file {
        Some(file) => Some(read_text(file)?),
        None if text.is_none() && args.prompt.is_empty() => {
            Some(file_or_stdin(None, "no text: give TEXT, -p or -f, or pipe it")?)
        }
        None => None,
    };
    let separated =
        text.iter().chain(&args.prompt).chain(&piped).flat_map(|t| match args.embd_separator.as_str() {
            "" => vec![t.as_str()],
            between => t.split(between).collect(),
        });
    let texts: Vec<&str> = separated.map(|t| t.trim_end_matches('\r')).filter(|t| !t.is_empty()).collect();
    if texts.is_empty() {
        return Err(Usage("no text to embed".into()).into());
    }
    let Loaded { mut engine, .. } = load::load(options::source(model.as_deref()), &args.engine, ui)?;
    let options = EmbedOptions { pooling: args.pooling, norm: args.embd_normalize };
    let progress = ui.progress("embed", Unit::Texts, texts.len() as u64);
    let mut all: Vec<Embedding> = Vec::new();
    // An encoder runs several at once.
    let at_once = if engine.model().arch().is_encoder { TOGETHER } else { 1 };
    for part in texts.chunks(at_once) {
        all.extend(pollster::block_on(engine.embed(part, &options))?);
        progress.add(part.len() as u64);
    }
    progress.finish();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let vectors = || all.iter().flat_map(|e| &e.vectors);
    match args.embd_output_format {
        Format::Raw => {
            for v in vectors() {
                let numbers: Vec<String> = v.iter().map(f32::to_string).collect();
                writeln!(out, "{}", numbers.join(" "))?;
            }
        }
        Format::Array => writeln!(out, "{}", json!(vectors().collect::<Vec<_>>()))?,
        Format::Json => {
            let n_token: usize = all.iter().map(|e| e.n_token).sum();
            let data: Vec<_> = vectors()
                .enumerate()
                .map(|(i, v)| json!({ "object": "embedding", "index": i, "embedding": v }))
                .collect();
            let usage = json!({ "prompt_tokens": n_token, "total_tokens": n_token });
            let model = engine.info().file;
            writeln!(out, "{}", json!({ "object": "list", "model": model, "data": data, "usage": usage }))?;
        }
    }
    Ok(out.flush()?)
}
