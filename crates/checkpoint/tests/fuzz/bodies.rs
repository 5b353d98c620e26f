//! Bodies of the fuzz targets: any bytes give a result or an error. `random.rs` drives them, too.

use chaski_checkpoint::hf::{HfError, OpenOptions, Opened, open};
use chaski_checkpoint::mlc::MlcError;
use chaski_checkpoint::safetensors::{ShardIndex, read_header};
use chaski_checkpoint::{Folder, TokenizerFiles, TokenizerKeys, TokenizerOptions, mlc};
use chaski_text::{AddSpecial, ChatTemplates, ParseSpecial, RenderSpecial, Tokenizer};
use ggml_format::{ByteSource, Gguf, GgufWriter, MemorySource};

/// The files that a text has, with zero bytes between them.
const NAMES: [&str; 4] = ["tokenizer.json", "tokenizer_config.json", "config.json", "added_tokens.json"];

/// The files of a tokenizer: after a zero byte `tokenizer.model`, else the files of [`NAMES`].
pub(crate) fn folder_tokenizer(bytes: &[u8]) {
    let mut files = TokenizerFiles::new();
    let mut insert =
        |name: &str, content: &[u8]| files.insert(name, content.to_vec()).expect("inputs are small");
    match bytes.strip_prefix(b"\0") {
        Some(model) => insert("tokenizer.model", model),
        None => {
            NAMES.iter().zip(bytes.split(|byte| *byte == 0)).for_each(|(name, content)| insert(name, content))
        }
    }
    // A number in a file must not be the size of an allocation; this one is.
    let options = TokenizerOptions { n_vocab: Some(1 << 10), ..TokenizerOptions::default() };
    let keys = TokenizerKeys::read(&files, TokenizerOptions::default());
    let keys = keys.or_else(|_| TokenizerKeys::read(&files, options));
    let Ok(keys) = keys else { return };
    let mut writer = GgufWriter::new();
    for (key, value) in &keys.entries {
        writer.set_value(key, value.as_value()).expect("keys differ");
    }
    let header =
        writer.begin(Vec::new()).expect("memory can be written").finish().expect("there are no tensors");
    let n_byte = header.len() as u64;
    let gguf = Gguf::parse(header.into(), n_byte).expect("our own file can be read");
    let _ = ChatTemplates::from_metadata(gguf.metadata()).get(true);
    let Ok(tokenizer) = Tokenizer::from_metadata(gguf.metadata()) else { return };
    let text = "It's 12 o'clock\n\n  <|end|> e\u{301}\u{fb01} ▁";
    if let Ok(ids) = tokenizer.encode(text, AddSpecial::Yes, ParseSpecial::Yes) {
        assert!(ids.iter().all(|id| (*id as usize) < tokenizer.n_vocab()));
        tokenizer.decode(&ids, RenderSpecial::Yes);
    }
}

/// Opens a folder of MLC: configuration, index, and the bytes of its only shard, with zero bytes between them.
pub(crate) fn open_mlc(bytes: &[u8]) -> Result<Opened<MemorySource>, MlcError> {
    const TOKENIZER: &str = r#"{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model": {"vocab": {"a": 0}, "merges": ["a a"]}}"#;
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let mut part = || parts.next().unwrap_or_default();
    let names = ["mlc-chat-config.json", "tensor-cache.json", "params_shard_0.bin"];
    let files =
        names.map(|name| (name, part())).into_iter().chain([("tokenizer.json", TOKENIZER.as_bytes())]);
    let files = files.map(|(name, bytes)| (name.to_owned(), MemorySource::new(name, bytes.to_vec())));
    let options = OpenOptions { allow_unproven: true, ..OpenOptions::default() };
    pollster::block_on(mlc::open(Folder::new("folder", files), &options))
}

/// Opens a folder of MLC and reads its beginning.
pub(crate) fn mlc(bytes: &[u8]) {
    let Ok(opened) = open_mlc(bytes) else { return };
    let mut piece = vec![0; opened.source.len().min(1 << 20) as usize];
    let _ = pollster::block_on(opened.source.read_at(0, &mut piece));
    Gguf::parse(opened.source.head().to_vec().into(), opened.source.len())
        .expect("our own header can be read");
}

/// The tokenizer of checkpoints that are fuzzed: a few tokens.
const TOKENIZER: &str = r#"{
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "model": {"type": "BPE", "vocab": {"h": 0, "i": 1, "hi": 2}, "merges": ["h i"]}
}"#;

/// A safetensors file; or after a zero byte config.json and, behind another one, the file of its weights.
pub(crate) fn safetensors(bytes: &[u8]) {
    let Some(parts) = bytes.strip_prefix(b"\0") else {
        if let Ok(header) = pollster::block_on(read_header(&MemorySource::new("a file", bytes.to_vec()))) {
            let n_byte: u64 = header.tensors.iter().map(|t| t.n_byte).sum();
            assert!(n_byte < bytes.len() as u64);
        }
        let _ = ShardIndex::parse(bytes);
        return;
    };
    let Ok(opened) = folder_of(parts) else { return };
    // Tensors are made of the file's bytes; a configuration cannot make them larger than some times these.
    let file = opened.source;
    let n_byte = file.len().min(1 << 20) as usize;
    let mut head = vec![0; n_byte];
    let whole = pollster::block_on(file.read_at(0, &mut head));
    let mut tail = vec![0; n_byte / 2];
    let part = pollster::block_on(file.read_at((n_byte - tail.len()) as u64, &mut tail));
    if whole.is_ok() && part.is_ok() {
        assert!(head[n_byte - tail.len()..] == tail);
    }
}

/// A folder of config.json and, behind a zero byte, the file of its weights.
pub(crate) fn folder_of(parts: &[u8]) -> Result<Opened<MemorySource>, HfError> {
    let at = parts.iter().position(|&byte| byte == 0).unwrap_or(parts.len());
    let (config, weights) = (&parts[..at], parts.get(at + 1..).unwrap_or_default());
    let files =
        [("config.json", config), ("model.safetensors", weights), ("tokenizer.json", TOKENIZER.as_bytes())];
    let source = |(name, bytes): (&str, &[u8])| (name.to_owned(), MemorySource::new(name, bytes.to_vec()));
    let options = OpenOptions { allow_unproven: true, ..OpenOptions::default() };
    pollster::block_on(open(Folder::new("folder", files.map(source)), &options))
}
