//! Prints the ids of texts by the tokenizer of a folder: a JSON text a line on stdin, a JSON list a line on stdout.
//!
//! `tests/tokenizers/compare.py FOLDER` compares them with those of the package `tokenizers`.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;

use chaski_checkpoint::{TokenizerFiles, TokenizerKeys, TokenizerOptions};
use chaski_text::{AddSpecial, ParseSpecial, Tokenizer};
use ggml_format::{Gguf, GgufWriter};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("expected a folder")?;
    let mut files = TokenizerFiles::new();
    for entry in std::fs::read_dir(Path::new(&folder))? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if let Some(name) = name.to_str().filter(|name| TokenizerFiles::wants(name)) {
            files.insert(name, std::fs::read(path)?)?;
        }
    }
    let keys = TokenizerKeys::read(&files, TokenizerOptions::default())?;
    writeln!(std::io::stderr(), "{:?} {:?}", keys.pre, keys.notes)?;
    let mut writer = GgufWriter::new();
    for (key, value) in &keys.entries {
        writer.set_value(key, value.as_value())?;
    }
    let header = writer.begin(Vec::new())?.finish()?;
    let n_byte = header.len() as u64;
    let tokenizer = Tokenizer::from_metadata(Gguf::parse(header.into(), n_byte)?.metadata())?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line?)?;
        writeln!(
            out,
            "{}",
            serde_json::to_string(&tokenizer.encode(&text, AddSpecial::No, ParseSpecial::Yes)?)?
        )?;
    }
    Ok(())
}
