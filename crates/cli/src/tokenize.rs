//! `chaski tokenize`: text to token ids.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use chaski::text::{AddSpecial, ParseSpecial, RenderSpecial};
use serde_json::{Value, json};

use crate::failure::Usage;
use crate::options;
use crate::run::read_text;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// GGUF file and text; a single argument is a text for the built-in model. Without TEXT, or with `-`, stdin is read
    #[arg(value_names = ["MODEL", "TEXT"], num_args = 0..=2)]
    words: Vec<String>,
    /// GGUF file, instead of MODEL
    #[arg(short, long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// File with the text
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the text of each token beside its id
    #[arg(long)]
    pieces: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Do not add BOS and EOS tokens
    #[arg(long)]
    no_bos: bool,
    /// Treat special tokens in the text as plain text
    #[arg(long)]
    no_special: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let (model, text) = model_and_text(args)?;
    let model = pollster::block_on(options::source(model.as_deref()).open())?;
    let tokenizer = model.tokenizer();
    let add = if args.no_bos { AddSpecial::No } else { AddSpecial::Yes };
    let parse = if args.no_special { ParseSpecial::No } else { ParseSpecial::Yes };
    let ids = tokenizer.encode(&text, add, parse).map_err(chaski::errors::ModelError::from)?;
    let piece =
        |id: u32| String::from_utf8_lossy(&tokenizer.token_bytes(id, RenderSpecial::Yes)).into_owned();
    let mut out = std::io::stdout().lock();
    match (args.json, args.pieces) {
        (true, false) => writeln!(out, "{}", json!(ids))?,
        (true, true) => {
            let all: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "piece": piece(*id) })).collect();
            writeln!(out, "{}", Value::Array(all))?;
        }
        (false, true) => {
            for id in ids {
                writeln!(out, "{id:>8}  {:?}", piece(id))?;
            }
        }
        (false, false) => {
            let words: Vec<String> = ids.iter().map(u32::to_string).collect();
            writeln!(out, "{}", words.join(" "))?;
        }
    }
    Ok(())
}

fn model_and_text(args: &Args) -> anyhow::Result<(Option<PathBuf>, String)> {
    let (model, text) = match (&args.model, &args.file, &args.words[..]) {
        (Some(_), _, [_, _, ..]) => return Err(Usage("the model is given twice".into()).into()),
        (Some(_), Some(_), [_]) | (None, Some(_), [_, _, ..]) => {
            return Err(Usage("two texts given, one of them with -f".into()).into());
        }
        (Some(m), _, words) => (Some(m.clone()), words.first()),
        (None, Some(_), words) => (words.first().map(PathBuf::from), None),
        (None, None, [text]) => (None, Some(text)),
        (None, None, words) => (words.first().map(PathBuf::from), words.get(1)),
    };
    let text = match (text, &args.file) {
        (Some(t), _) if t != "-" => t.clone(),
        (_, Some(path)) => read_text(path)?,
        (None, None) if std::io::stdin().is_terminal() => {
            return Err(Usage("no text: give TEXT or -f FILE, or pipe it".into()).into());
        }
        _ => read_text(Path::new("-"))?,
    };
    Ok((model, text))
}
