//! Golden data outside of the tree, and tokenizers of folders.

#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::path::{Path, PathBuf};

use chaski_checkpoint::{Folder, TokenizerFiles, TokenizerKeys};
use chaski_text::Tokenizer;
use ggml_format::{Gguf, GgufWriter, MemorySource};
use serde_json::Value;

/// A folder of golden data: `$CHASKI_TEST_DATA/name`, by default `../shared/data/name` beside the repository. Says that the
/// test is skipped if it is missing.
pub(crate) fn data(name: &str) -> Option<PathBuf> {
    let base = std::env::var_os("CHASKI_TEST_DATA").map(PathBuf::from);
    let base = base.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let found = Some(base.join(name)).filter(|path| path.exists());
    if found.is_none() {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        say(&format!("SKIPPED {test}: for want of {name} (set CHASKI_TEST_DATA)"));
    }
    found
}

/// A file's bytes.
pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The value of a JSON file.
pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&read(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The files of a folder that describe its tokenizer.
pub(crate) fn tokenizer_files(folder: &Path) -> TokenizerFiles {
    let mut files = TokenizerFiles::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if TokenizerFiles::wants(&name) {
            files.insert(&name, read(&path)).unwrap();
        }
    }
    files
}

/// The tokenizer that a GGUF file with these keys has.
pub(crate) fn tokenizer(keys: &TokenizerKeys) -> Tokenizer {
    let mut writer = GgufWriter::new();
    for (key, value) in &keys.entries {
        writer.set_value(key, value.as_value()).unwrap();
    }
    let bytes = writer.begin(Vec::new()).unwrap().finish().unwrap();
    let n_byte = bytes.len() as u64;
    Tokenizer::from_metadata(Gguf::parse(bytes.into(), n_byte).unwrap().metadata()).unwrap()
}

/// Prints a line past the test harness, which captures only what macros print.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    writeln!(std::io::stderr(), "{line}").expect("stderr can be written");
}

/// The files of a folder.
pub(crate) fn folder(path: &Path) -> Folder<MemorySource> {
    let entries = std::fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let files = entries.map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, MemorySource::new(path.display().to_string(), read(&path)))
    });
    Folder::new(path.display().to_string(), files)
}
