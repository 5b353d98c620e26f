//! The files of a folder that describe its tokenizer.

use std::collections::BTreeMap;

use ggml_format::ByteSource;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::TokenizerFileError;
use crate::folder::{Folder, FolderError, MAX_SMALL_FILE};
use crate::python_json;

/// Size limit of a file, in bytes: the largest in use have 35 MB.
const MAX_BYTES: usize = MAX_SMALL_FILE as usize;

/// The configuration of the model, which says something about special tokens.
const CONFIG: &str = "config.json";

/// Files at the top of a folder.
const NAMES: &[&str] = &[
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    CONFIG,
    "generation_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
];

/// The folder of templates with names, and their extension.
const TEMPLATES: (&str, &str) = ("additional_chat_templates/", ".jinja");

/// The contents of the files that describe a tokenizer, by path. All but one of `tokenizer.json` and `tokenizer.model`
/// may be missing.
#[derive(Clone, Debug, Default)]
pub struct TokenizerFiles {
    files: BTreeMap<String, Vec<u8>>,
    /// `config.json`, where it was parsed before.
    config: Option<Value>,
}

impl TokenizerFiles {
    /// Folders within the folder that have such files.
    pub const FOLDERS: [&str; 1] = ["additional_chat_templates"];

    /// No files.
    pub fn new() -> TokenizerFiles {
        TokenizerFiles::default()
    }

    /// Reads the files of a folder, which has the same limit of sizes, but for the configuration.
    pub(crate) async fn of<S: ByteSource>(
        folder: &Folder<S>,
        config: Value,
    ) -> Result<TokenizerFiles, FolderError> {
        let mut files = BTreeMap::new();
        for name in folder.names().filter(|name| *name != CONFIG && TokenizerFiles::wants(name)) {
            files.insert(name.to_owned(), folder.read(name).await?);
        }
        Ok(TokenizerFiles { files, config: Some(config) })
    }

    /// True for a file that is worth reading. `path` is relative to the folder, with `/`.
    pub fn wants(path: &str) -> bool {
        NAMES.contains(&path) || template_name(path).is_some()
    }

    /// Adds the content of a file; files that are not wanted have no effect.
    ///
    /// # Errors
    ///
    /// [`TokenizerFileError::TooLarge`].
    pub fn insert(&mut self, path: &str, content: Vec<u8>) -> Result<(), TokenizerFileError> {
        if content.len() > MAX_BYTES {
            let (file, n_byte) = (path.to_owned(), content.len());
            return Err(TokenizerFileError::TooLarge { file, n_byte, max: MAX_BYTES });
        }
        if path == CONFIG {
            self.config = None;
        }
        self.files.insert(path.to_owned(), content);
        Ok(())
    }

    pub(super) fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// The value of a JSON file in Python's dialect; [`Value::Null`] if the file is missing.
    pub(super) fn json(&self, path: &str) -> Result<Value, TokenizerFileError> {
        if let Some(config) = self.config.as_ref().filter(|_| path == CONFIG) {
            return Ok(config.clone());
        }
        let Some(bytes) = self.bytes(path) else { return Ok(Value::Null) };
        let wrong = |source| TokenizerFileError::Json { file: path.to_owned(), source };
        python_json::parse(bytes).map_err(wrong)
    }

    /// A JSON file as a `T`, if there is one.
    pub(super) fn typed<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, TokenizerFileError> {
        let Some(bytes) = self.bytes(path) else { return Ok(None) };
        let wrong = |source| TokenizerFileError::Json { file: path.to_owned(), source };
        serde_json::from_slice(bytes).map(Some).map_err(wrong)
    }

    /// The templates with names: name and source.
    pub(super) fn named_templates(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().filter_map(|(path, content)| Some((template_name(path)?, content.as_slice())))
    }
}

/// The name of a template by its path.
fn template_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix(TEMPLATES.0)?.strip_suffix(TEMPLATES.1)?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}
