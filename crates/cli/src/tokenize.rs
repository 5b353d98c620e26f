//! `chaski tokenize`: text to token ids.

use std::io::Write as _;
use std::path::PathBuf;

use chaski::text::{AddSpecial, ParseSpecial, RenderSpecial};
use serde_json::{Value, json};

use crate::failure::Usage;
use crate::input::{ModelAndText, file_or_stdin, note_file_name};
use crate::options;
use crate::ui::Ui;

pub(crate) const LONG: &str = "\
Prints the token ids of a text.

  chaski tokenize MODEL TEXT     the tokens of TEXT
  chaski tokenize MODEL < FILE   the tokens of the file
  chaski tokenize -p TEXT        with the vocabulary of the built-in model";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) words: ModelAndText,
    /// The text, instead of TEXT
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// File with the text; `-` is stdin
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

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let (model, text) = args.words.split()?;
    text.iter().for_each(|text| note_file_name(text, ui));
    let text = match (text, &args.prompt, &args.file) {
        (Some(text), None, None) => text,
        (None, Some(text), None) => text.clone(),
        (None, None, file) => file_or_stdin(file.as_deref(), "no text: give TEXT, -p or -f, or pipe it")?,
        _ => return Err(Usage("two texts given".into()).into()),
    };
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
