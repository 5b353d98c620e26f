//! Golden data, and tokenizers of folders.

#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::path::{Path, PathBuf};

use chaski_checkpoint::{Folder, TokenizerFiles, TokenizerKeys};
use chaski_text::Tokenizer;
use ggml_format::{Gguf, GgufWriter, MemorySource};
use serde_json::Value;

/// A folder of golden data: `$CHASKI_TEST_DATA/name`, by default `../shared/data/name` beside the repository. Says that
/// the test is skipped if it is missing.
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

/// A file or folder of fixtures/weights.
pub(crate) fn weights(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/weights").join(name)
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

/// A tokenizer of one token.
pub(crate) const TOKENIZER: &str = r#"{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model": {"vocab": {"a": 0}, "merges": ["a a"]}}"#;

/// A tensor of a made file: name, type, shape, bytes.
pub(crate) type Tensor = (String, &'static str, Vec<u64>, Vec<u8>);

/// A file of safetensors.
pub(crate) fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, dtype, shape, bytes) in tensors {
        let end = data.len() + bytes.len();
        header.insert(
            name.clone(),
            serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [data.len(), end]}),
        );
        data.extend(bytes);
    }
    let header = serde_json::to_vec(&header).unwrap();
    [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat()
}

/// A checkpoint of `fixtures/classes` by its path: its configuration, and its tensors with zeros in them.
pub(crate) fn class(path: &Path) -> (Value, Vec<Tensor>) {
    let case = json(path);
    let tensor = |(name, shape): (&String, &Value)| {
        let shape: Vec<u64> = shape.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        let n_byte = shape.iter().product::<u64>() as usize * 2;
        (name.clone(), "BF16", shape, vec![0; n_byte])
    };
    let tensors = case["tensors"].as_object().unwrap().iter().map(tensor).collect();
    (case["config"].clone(), tensors)
}

/// The folder of these checkpoints.
pub(crate) fn classes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/classes")
}

/// A folder in memory.
pub(crate) type Files = Folder<MemorySource>;

/// A folder of a configuration and a file of weights, with a tokenizer of one token.
pub(crate) fn made(config: &Value, weights: Vec<u8>) -> Files {
    let files = [
        ("config.json", config.to_string().into_bytes()),
        ("model.safetensors", weights),
        ("tokenizer.json", TOKENIZER.as_bytes().to_vec()),
    ];
    Folder::new("model", files.map(|(name, bytes)| (name.to_owned(), MemorySource::new(name, bytes))))
}

/// The message of an error and those of its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |e| e.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
