//! Tokenizers and chat templates of Hugging Face folders as the `tokenizer.*` keys of a GGUF file.
//!
//! [`TokenizerKeys::read`] is a function of the contents of some files. Byte-level BPE (`tokenizer.json`) becomes the
//! model `gpt2`, SentencePiece with merges (`tokenizer.model`, or `tokenizer.json` with byte fallback) the model
//! `llama`. Whatever would change the ids of a text is honoured, or it is an error; [`TokenizerKeys::notes`] has the
//! rest.

mod bpe_vocabulary;
mod byte_level;
mod error;
mod files;
mod pre;
mod sentence_piece;
mod special;
mod spm;
mod templates;
mod tokenizer_json;
mod vocabulary;

use chaski_text::is_pre_tokenizer;
use ggml_format::OwnedValue;
use serde_json::Value;

pub use error::TokenizerFileError;
pub use files::TokenizerFiles;
pub use pre::PreTokenizer;

use special::{Configs, Special};
use tokenizer_json::TokenizerJson;
use vocabulary::Vocabulary;

/// The caller's part in reading a tokenizer.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenizerOptions<'a> {
    /// Number of ids: rows of the embedding. By default `vocab_size` of `config.json`.
    pub n_vocab: Option<u64>,
    /// A value for `tokenizer.ggml.pre`, instead of the rule that the files describe.
    pub pre: Option<&'a str>,
}

/// The metadata of a tokenizer.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenizerKeys {
    /// Keys with values, in the order of llama.cpp's converter.
    pub entries: Vec<(String, OwnedValue)>,
    /// The rule that splits texts into words.
    pub pre: PreTokenizer,
    /// Facts that a user should know, as sentences without a full stop.
    pub notes: Vec<String>,
}

impl TokenizerKeys {
    /// Reads the tokenizer of a folder.
    ///
    /// # Errors
    ///
    /// Damaged files, kinds of tokenizers and steps that GGUF files cannot describe: see [`TokenizerFileError`].
    ///
    /// # Examples
    ///
    /// ```
    /// use chaski_checkpoint::{TokenizerFiles, TokenizerKeys, TokenizerOptions};
    ///
    /// let json = r#"{
    ///     "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    ///     "model": {"type": "BPE", "vocab": {"h": 0, "i": 1, "hi": 2}, "merges": ["h i"]}
    /// }"#;
    /// let mut files = TokenizerFiles::new();
    /// files.insert("tokenizer.json", json.into())?;
    /// let keys = TokenizerKeys::read(&files, TokenizerOptions::default())?;
    /// let pre = keys.entries.iter().find(|(key, _)| key == "tokenizer.ggml.pre").unwrap();
    /// assert_eq!(pre.1, "gpt-2".into());
    /// # Ok::<(), chaski_checkpoint::TokenizerFileError>(())
    /// ```
    pub fn read(
        files: &TokenizerFiles,
        options: TokenizerOptions<'_>,
    ) -> Result<TokenizerKeys, TokenizerFileError> {
        if let Some(name) = options.pre.filter(|name| !is_pre_tokenizer(name)) {
            return Err(TokenizerFileError::UnknownPre { name: name.to_owned() });
        }
        let configs = Configs::read(files)?;
        let json: Option<TokenizerJson> = files.typed(tokenizer_json::FILE)?;
        let found = match (json, files.bytes(sentence_piece::FILE)) {
            (Some(json), _) if json.is_byte_level() => byte_level::read(json, &configs, options)?,
            (json, Some(model)) => spm::of_model(model, json, files, &configs, options)?,
            (Some(json), None) => spm::of_json(json, &configs, options)?,
            (None, None) => return Err(TokenizerFileError::Missing),
        };
        found.keys(templates::entries(files, &configs.tokenizer)?)
    }
}

/// A tokenizer of any kind, before it becomes keys.
struct Found {
    model: &'static str,
    pre: PreTokenizer,
    vocabulary: Vocabulary,
    merges: Vec<String>,
    special: Special,
    ignore_merges: bool,
    /// The form of Unicode that texts are brought into.
    form: Option<&'static str>,
    add_space_prefix: Option<bool>,
    notes: Vec<String>,
}

impl Found {
    /// The keys, with those of the templates.
    fn keys(self, templates: Vec<(String, OwnedValue)>) -> Result<TokenizerKeys, TokenizerFileError> {
        let mut entries: Vec<(String, OwnedValue)> = Vec::new();
        let mut ggml =
            |name: &str, value: OwnedValue| entries.push((format!("tokenizer.ggml.{name}"), value));
        ggml("model", self.model.into());
        match &self.pre {
            PreTokenizer::NotNeeded => ggml("pre", "default".into()),
            PreTokenizer::Requested(name) | PreTokenizer::KnownVocabulary(name) => {
                ggml("pre", name.as_str().into())
            }
            PreTokenizer::SameExpressions { name, .. } => ggml("pre", (*name).into()),
            PreTokenizer::Expressions(_) => {}
        }
        let kinds = self.vocabulary.kind_numbers();
        ggml("tokens", self.vocabulary.tokens.into());
        if !self.vocabulary.scores.is_empty() {
            ggml("scores", self.vocabulary.scores.into());
        }
        ggml("token_type", kinds.into());
        if !self.merges.is_empty() {
            ggml("merges", self.merges.into());
        }
        for (name, id) in self.special.named() {
            ggml(&format!("{name}_token_id"), id.into());
        }
        let flags = [
            ("add_bos_token", self.special.add_bos),
            ("add_eos_token", self.special.add_eos),
            ("add_space_prefix", self.add_space_prefix),
        ];
        for (name, flag) in flags {
            flag.into_iter().for_each(|flag| ggml(name, flag.into()));
        }
        let mut ours =
            |name: &str, value: OwnedValue| entries.push((format!("tokenizer.chaski.{name}"), value));
        if let PreTokenizer::Expressions(expressions) = &self.pre {
            ours("pre_expressions", expressions.as_slice().into());
        }
        let same_words = matches!(self.pre, PreTokenizer::SameExpressions { same_words: true, .. });
        if self.model == byte_level::MODEL && !same_words && !matches!(self.pre, PreTokenizer::Requested(_)) {
            ours("ignore_merges", self.ignore_merges.into());
        }
        self.form.into_iter().for_each(|form| ours("normalizer", form.into()));
        if !self.special.more_ends.is_empty() {
            ours("eog_token_ids", self.special.more_ends.into());
        }
        entries.extend(templates);
        let mut notes = self.notes;
        notes.extend(self.special.notes);
        if self.vocabulary.n_left_out > 0 {
            let n = self.vocabulary.n_left_out;
            notes.push(format!(
                "{n} tokens of the vocabulary are left out, because the model has no rows for them"
            ));
        }
        Ok(TokenizerKeys { entries, pre: self.pre, notes })
    }
}

/// Number of ids: the caller's, else the model's, else one more than the largest.
fn n_vocab(options: TokenizerOptions<'_>, configs: &Configs, largest: Option<u64>) -> u64 {
    let of_model = || configs.model("vocab_size").and_then(Value::as_u64);
    let of_tokens = || largest.map_or(0, |id| id.saturating_add(1));
    options.n_vocab.or_else(of_model).unwrap_or_else(of_tokens)
}
