//! Bodies of the fuzz targets: any bytes give a result or an error. `random.rs` drives them, too.

use chaski_checkpoint::{TokenizerFiles, TokenizerKeys, TokenizerOptions};
use chaski_text::{AddSpecial, ChatTemplates, ParseSpecial, RenderSpecial, Tokenizer};
use ggml_format::{Gguf, GgufWriter};

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
