//! Folders of MLC, as web-llm loads them: `mlc-chat-config.json`, `tensor-cache.json` and its shards.
//!
//! The tensors of such a folder are those of transformers, some of them fused, in formats of 3, 4 or 8 bits. Here they
//! get their names and rows back (`Weights`), and the rules of [`HF_ARCHS`](crate::hf::HF_ARCHS) make a GGUF file of
//! them. Four bits in groups of 32 are exactly q4_0: (q - 7) s = ((q + 1) - 8) s.

mod chat_config;
mod error;
mod format;
mod index;
mod names;
mod template;
mod verify;
mod weights;

use std::collections::BTreeSet;

use ggml_format::{ByteSource, OwnedValue, Value};

pub use error::MlcError;
pub(crate) use index::weight_files;
pub use verify::verify;

use chat_config::ChatConfig;
use weights::Weights;

use crate::folder::Folder;
use crate::hf::{self, Config, HfError, OpenOptions, Opened};
use crate::tokenizer::{TokenizerFiles, TokenizerKeys, TokenizerOptions};
use crate::virtual_gguf::VirtualGguf;

/// True for the names of a folder of MLC.
pub fn is_mlc<'n>(mut names: impl Iterator<Item = &'n str>) -> bool {
    names.any(|name| name == chat_config::FILE)
}

/// True for the name of a configuration or an index.
pub(crate) fn is_file(name: &str) -> bool {
    name == chat_config::FILE || index::NAMES.contains(&name)
}

/// Opens a folder: reads its configuration, the tokenizer and the index of the weights. Sizes of files are compared
/// with the index, hashes by [`verify`] only: they take as long as reading all weights.
///
/// # Errors
/// For families and formats that are not known, damaged files, and tensors that are missing or that no rule takes.
pub async fn open<S: ByteSource>(folder: Folder<S>, options: &OpenOptions) -> Result<Opened<S>, MlcError> {
    let chat = ChatConfig::parse(&folder.read(chat_config::FILE).await?)?;
    let ChatConfig { family, format, .. } = chat;
    for (what, is_proven) in [(family.class, family.is_proven), (format.name, format.is_proven)] {
        if !is_proven && !options.allow_unproven {
            return Err(MlcError::Unproven { what: what.to_owned() });
        }
    }
    let config = Config::of(chat.config.clone())?;
    let (arch, config) = hf::prepare(config, options)?;
    let mut weights = Weights::new(index::tensors(&folder).await?, family, format.kind, &config)?;
    let mut gguf = hf::model(arch, &config, &mut weights, folder.name())?;
    let mut notes = Vec::new();
    if format.is_converted() {
        notes.push(format!(
            "weights in {} are converted: no type of GGUF holds them as they are",
            format.name
        ));
    }
    let tokenizer = TokenizerOptions { n_vocab: hf::n_vocab(&gguf), pre: options.pre.as_deref() };
    notes.extend(add_tokenizer(&mut gguf, &folder, &chat, tokenizer).await?);
    hf::set_types(&mut gguf, arch, &config, options, weights.dtype())?;
    let name = folder.name().to_owned();
    let source = gguf.finish(name, folder.into_sources()).map_err(HfError::from)?;
    Ok(Opened { source, class: arch.class, notes })
}

/// Adds the keys of tokenizer and chat template; gives notes.
async fn add_tokenizer<S: ByteSource>(
    gguf: &mut VirtualGguf,
    folder: &Folder<S>,
    chat: &ChatConfig,
    options: TokenizerOptions<'_>,
) -> Result<Vec<String>, MlcError> {
    let files = TokenizerFiles::of(folder, chat.config.clone()).await?;
    let TokenizerKeys { mut entries, mut notes, .. } = TokenizerKeys::read(&files, options)?;
    let texts = texts(&entries);
    let (ends, others) = template::ends(&chat.conversation, &texts);
    add_ends(&mut entries, ends);
    let unknown = template::unknown_ids(&chat.conversation, &texts);
    if !unknown.is_empty() {
        notes.push(format!(
            "mlc-chat-config.json: conv_template: the tokenizer has no tokens {}, so they are left out",
            unknown.join(", ")
        ));
    }
    if !others.is_empty() {
        notes.push(format!(
            "mlc-chat-config.json: answers do not end at the texts {others:?}, which are no tokens"
        ));
    }
    const TEMPLATE: &str = "tokenizer.chat_template";
    if !entries.iter().any(|(key, _)| key == TEMPLATE) {
        match template::jinja(&chat.conversation, &texts) {
            Some(jinja) => entries.push((TEMPLATE.to_owned(), jinja.into())),
            None => notes.push(
                "mlc-chat-config.json: the folder has no chat template but perhaps a name, so that the model completes texts only"
                    .to_owned(),
            ),
        }
    }
    gguf.keys.extend(entries);
    Ok(notes)
}

/// Adds tokens that end an answer to those that are known.
fn add_ends(entries: &mut Vec<(String, OwnedValue)>, mut ends: Vec<u32>) {
    const KEY: &str = "tokenizer.chaski.eog_token_ids";
    if let Some(i) = entries.iter().position(|(key, _)| key == KEY)
        && let Value::Array(known) = entries.remove(i).1.as_value()
    {
        ends.splice(0..0, known.to_vec::<u32>().unwrap_or_default());
    }
    let mut seen = BTreeSet::new();
    ends.retain(|id| seen.insert(*id));
    if !ends.is_empty() {
        entries.push((KEY.to_owned(), ends.into()));
    }
}

/// The texts of all tokens.
fn texts(entries: &[(String, OwnedValue)]) -> Vec<String> {
    let tokens = entries.iter().find(|(key, _)| key == "tokenizer.ggml.tokens");
    match tokens.map(|(_, value)| value.as_value()) {
        Some(Value::Array(list)) => {
            list.strings().map(|list| list.map(str::to_owned).collect()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}
