//! Tokenizers: text to token ids and back, from the vocabulary in a GGUF file.
//!
//! [`Tokenizer::from_spec`] selects the algorithm by `tokenizer.ggml.model`. All algorithms first split off
//! special tokens ([`ParseSpecial`]), then convert the text between them to ids.

mod bpe;
mod bytes;
mod charsmap;
mod error;
mod expression;
mod limit;
mod pre;
mod spec;
mod special;
mod spm;
mod unicode_form;
mod unigram;
mod vocab;
mod vocabulary;
mod word_piece;
mod words;

use std::borrow::Cow;
use std::ops::Range;
#[cfg(feature = "constraint")]
use std::sync::OnceLock;

use chaski_jinja::Rendered;

pub use bytes::byte_to_char;
pub use error::TokenizerError;
pub use expression::{MAX_PRE_EXPRESSION_BYTES, MAX_PRE_EXPRESSIONS};
pub use limit::Within;
pub use pre::{is_pre_tokenizer, pre_tokenizer_name};
pub use spec::{FimTokens, TokenizerSpec};
pub use vocab::TokenKind;

#[cfg(feature = "constraint")]
use crate::vocab_trie::VocabTrie;
use bpe::{Bpe, Gemma4, Merges};
use pre::PreTokenizer;
use special::{Fragment, SpecialTokens};
use spm::Spm;
use unicode_form::Form;
use unigram::Unigram;
use vocab::{SpecialIds, Vocab};
use word_piece::WordPiece;

/// Controls whether the model's special tokens are added to a text (BOS at the start, EOS at the end).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddSpecial {
    /// No tokens are added.
    No,
    /// BOS and EOS are added if the model's metadata requires them.
    Yes,
}

/// Controls whether the text of a control token, such as `<|im_end|>`, is parsed as that token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseSpecial {
    /// It is plain text: right for user input.
    No,
    /// It is the token: right for the output of a chat template.
    Yes,
}

/// Controls whether control tokens are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderSpecial {
    /// Control and unknown tokens render as nothing.
    No,
    /// They render as their text.
    Yes,
}

/// Converts text to token ids and ids to bytes.
///
/// ```
/// use chaski_text::{AddSpecial, ParseSpecial, RenderSpecial, Tokenizer, TokenizerSpec};
///
/// let tokens = ["<unk>", "<s>", "</s>", "▁", "h", "i", "hi", "▁hi"];
/// let tokenizer = Tokenizer::from_spec(TokenizerSpec {
///     model: "llama".into(),
///     tokens: tokens.map(String::from).to_vec(),
///     scores: vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, -2.0],
///     token_types: vec![2, 3, 3, 1, 1, 1, 1, 1],
///     ..TokenizerSpec::default()
/// })?;
/// let ids = tokenizer.encode("hi", AddSpecial::Yes, ParseSpecial::No)?;
/// assert_eq!(ids, [1, 7]);
/// assert_eq!(tokenizer.decode(&ids, RenderSpecial::No), b"hi");
/// # Ok::<(), chaski_text::TokenizerError>(())
/// ```
#[derive(Debug)]
pub struct Tokenizer {
    vocab: Vocab,
    special: SpecialTokens,
    model: Model,
    add_bos: bool,
    /// The token after a text: EOS, or the separator in BERT vocabularies.
    end: Option<u32>,
    /// Tokens after the first text of a pair.
    between: Vec<u32>,
    /// The token after a pair.
    end_of_pair: Option<u32>,
    suppress: Vec<u32>,
    /// Bytes of a text that one token represents at most; `None` where it may be any number.
    n_byte_per_token: Option<usize>,
    /// The vocabulary in the form that constrained output needs, built on first use.
    #[cfg(feature = "constraint")]
    pub(crate) vocab_trie: OnceLock<VocabTrie>,
}

#[derive(Debug)]
enum Model {
    Spm(Spm),
    Bpe(Bpe),
    Gemma4(Gemma4),
    WordPiece(WordPiece),
    Unigram(Unigram),
    /// Ids only, with their texts if they have some; the name comes from the metadata.
    None {
        name: String,
        spelling: Spelling,
    },
}

impl Model {
    fn spelling(&self) -> Spelling {
        match self {
            Model::None { spelling, .. } => *spelling,
            Model::Bpe(_) => Spelling::Escaped,
            Model::Spm(_) | Model::Gemma4(_) | Model::WordPiece(_) | Model::Unigram(_) => Spelling::Spaced,
        }
    }
}

/// The spelling of bytes in the texts of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// As they are.
    Plain,
    /// Every byte is a character.
    Escaped,
    /// `▁` is a space, `<0xAB>` a byte.
    Spaced,
}

/// Values of `tokenizer.ggml.model` that [`Tokenizer::from_spec`] supports.
const KNOWN: &str = "llama, gpt2, gemma4, bert, t5, test, none";

impl Tokenizer {
    /// Builds the tokenizer described by GGUF metadata.
    ///
    /// # Errors
    ///
    /// [`TokenizerError::Metadata`], and the errors of [`Tokenizer::from_spec`].
    pub fn from_metadata(metadata: &ggml_format::Metadata) -> Result<Tokenizer, TokenizerError> {
        let wrong = |e| TokenizerError::Metadata { source: Box::new(e) };
        let spec = TokenizerSpec::without_merges(metadata).map_err(wrong)?;
        match metadata.opt_strings(TokenizerSpec::MERGES).map_err(wrong)? {
            Some(merges) => Tokenizer::build(spec, merges),
            None => Tokenizer::build(spec, [].into_iter()),
        }
    }

    /// Builds the tokenizer that `spec.model` specifies.
    ///
    /// # Errors
    ///
    /// Unknown kinds or pre-tokenizers, lists of the wrong length, duplicate tokens, malformed merges: see
    /// [`TokenizerError`].
    pub fn from_spec(mut spec: TokenizerSpec) -> Result<Tokenizer, TokenizerError> {
        let merges = std::mem::take(&mut spec.merges);
        Tokenizer::build(spec, merges.iter().map(String::as_str))
    }

    /// Builds a tokenizer from `spec`, without its merges, and from `merges`.
    fn build<'m>(
        mut spec: TokenizerSpec,
        merges: impl Iterator<Item = &'m str>,
    ) -> Result<Tokenizer, TokenizerError> {
        let defaults = match spec.model.as_str() {
            "llama" => SpecialIds { bos: Some(1), eos: Some(2), unk: Some(0), ..SpecialIds::default() },
            "gpt2" => {
                let has_bos = PreTokenizer::has_bos(spec.pre.as_deref());
                SpecialIds { bos: has_bos.then_some(11), eos: Some(11), ..SpecialIds::default() }
            }
            "bert" => {
                let (bos, unk, sep) = (Some(101), Some(100), Some(102));
                SpecialIds { bos, unk, sep, ..SpecialIds::default() }
            }
            "t5" => SpecialIds { eos: Some(1), unk: Some(2), ..SpecialIds::default() },
            _ => SpecialIds::default(),
        };
        let vocab = Vocab::new(&mut spec, defaults)?;
        let (model, add_bos) = match spec.model.as_str() {
            "llama" => {
                if !spec.scores.is_empty() && spec.scores.len() != vocab.n_text() as usize {
                    return Err(TokenizerError::Length {
                        key: "tokenizer.ggml.scores",
                        expected: vocab.n_text() as usize,
                        found: spec.scores.len(),
                    });
                }
                (Model::Spm(Spm::new(&vocab, spec.scores, spec.add_space_prefix.unwrap_or(true))), true)
            }
            "gpt2" => {
                let pre = pre_tokenizer(&spec)?;
                let (add_bos, form) = (pre.add_bos(), form(spec.normalizer.as_deref())?);
                (Model::Bpe(Bpe { pre, form, merges: Merges::new(&vocab, merges)? }), add_bos)
            }
            "gemma4" => {
                spec.add_bos = Some(true);
                (Model::Gemma4(Gemma4::new(&vocab, Merges::new(&vocab, merges)?)), true)
            }
            "bert" => {
                let unk = vocab
                    .ids
                    .unk
                    .ok_or(TokenizerError::Missing { key: "tokenizer.ggml.unknown_token_id" })?;
                (Model::WordPiece(WordPiece::new(&vocab, unk)), true)
            }
            "t5" => (Model::Unigram(Unigram::new(&vocab, &mut spec)?), false),
            "test" | "none" => (Model::None { name: spec.model, spelling: Spelling::Plain }, false),
            _ => return Err(TokenizerError::UnsupportedModel { model: spec.model, known: KNOWN }),
        };
        let is_phi3 = spec.name.is_some_and(|name| {
            let name = name.to_ascii_lowercase();
            name.contains("phi-3") || name.contains("phi3")
        });
        let special = SpecialTokens::new(&vocab, is_phi3.then_some(phi3_strips_right));
        let adds_eos = spec.add_eos.unwrap_or(matches!(model, Model::Unigram(_)));
        let adds_sep = spec.add_sep.unwrap_or(matches!(model, Model::WordPiece(_)));
        let end_of_pair = vocab.ids.eos.or(vocab.ids.sep).filter(|_| adds_eos);
        let suppress = spec.suppress.iter().filter_map(|&id| u32::try_from(id).ok());
        Ok(Tokenizer {
            special,
            add_bos: spec.add_bos.unwrap_or(add_bos) && vocab.ids.bos.is_some(),
            end: match model {
                Model::WordPiece(_) => vocab.ids.sep.filter(|_| adds_sep),
                _ => vocab.ids.eos.filter(|_| adds_eos),
            },
            between: end_of_pair.into_iter().chain(vocab.ids.sep.filter(|_| adds_sep)).collect(),
            end_of_pair,
            n_byte_per_token: limit::n_byte_per_token(&model, &vocab),
            model,
            suppress: suppress.filter(|&id| id < vocab.n_vocab()).collect(),
            vocab,
            #[cfg(feature = "constraint")]
            vocab_trie: OnceLock::new(),
        })
    }

    /// Converts `text` to ids.
    ///
    /// # Errors
    ///
    /// [`TokenizerError::NoText`] if the model has no text vocabulary.
    ///
    /// # Source
    ///
    /// llama.cpp `llama_tokenize`; the ids are identical, except that the pre-tokenizers `tekken` and
    /// `gpt-4o` follow the model's authors for letters outside ASCII.
    pub fn encode(
        &self,
        text: &str,
        add: AddSpecial,
        parse: ParseSpecial,
    ) -> Result<Vec<u32>, TokenizerError> {
        self.within(usize::MAX).encode(text, add, parse)
    }

    /// Converts a pair of texts to ids, as rerankers read a query and a document: BOS, the first text, EOS, the
    /// separator, the second text, EOS; of these tokens, those that the file says. Control tokens in the texts are
    /// plain text.
    ///
    /// # Errors
    ///
    /// As [`Self::encode`].
    ///
    /// # Source
    ///
    /// llama.cpp's server, for rerankers without a template: after a pair in a BERT vocabulary there is no separator.
    pub fn encode_pair(&self, first: &str, second: &str) -> Result<Vec<u32>, TokenizerError> {
        self.within(usize::MAX).encode_pair(first, second)
    }

    /// Converts a prompt of a chat template to ids. Control tokens are those of the template: in data, such as
    /// messages, their texts are plain text ([`ChatTemplate::render_traced`]). Otherwise the ids are those of
    /// [`Self::encode`].
    ///
    /// # Errors
    ///
    /// As [`Self::encode`].
    ///
    /// [`ChatTemplate::render_traced`]: crate::ChatTemplate::render_traced
    pub fn encode_traced(&self, prompt: &Rendered, add: AddSpecial) -> Result<Vec<u32>, TokenizerError> {
        self.within(usize::MAX).encode_traced(prompt, add)
    }

    fn encode_parts(
        &self,
        text: &str,
        add: AddSpecial,
        parse: ParseSpecial,
        data: &[Range<usize>],
        limit: usize,
    ) -> Result<Vec<u32>, TokenizerError> {
        if let Model::None { name, .. } = &self.model {
            return Err(TokenizerError::NoText { model: name.clone() });
        }
        self.check_length(text, limit)?;
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        if add == AddSpecial::Yes && self.add_bos {
            ids.extend(self.vocab.ids.bos);
        }
        let mut after_special = true;
        for fragment in self.special.split(text, parse, data) {
            match fragment {
                Fragment::Token(id) => ids.push(id),
                Fragment::Text(text) => match &self.model {
                    Model::Spm(spm) => spm.encode(&self.vocab, text, after_special, &mut ids),
                    Model::Bpe(bpe) => bpe.encode(&self.vocab, text, &mut ids),
                    Model::Gemma4(gemma) => gemma.encode(&self.vocab, text, &mut ids),
                    Model::WordPiece(words) => words.encode(&self.vocab, text, &mut ids),
                    Model::Unigram(unigram) => unigram.encode(&self.vocab, text, limit, &mut ids)?,
                    Model::None { .. } => unreachable!("returned above"),
                },
            }
            after_special = matches!(fragment, Fragment::Token(_));
        }
        if add == AddSpecial::Yes {
            ids.extend(self.end);
        }
        Ok(ids)
    }

    /// The concatenated bytes of `ids`; they need not be UTF-8, because a token can end inside a character.
    ///
    /// If the tokenizer adds a space before each text ([`Tokenizer::adds_space_prefix`]), the first space is
    /// removed again.
    pub fn decode(&self, ids: &[u32], render: RenderSpecial) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 * ids.len());
        for &id in ids {
            bytes.extend_from_slice(&self.token_bytes(id, render));
        }
        if self.adds_space_prefix() && bytes.first() == Some(&b' ') {
            bytes.remove(0);
        }
        bytes
    }

    /// [`Tokenizer::decode`] as text; invalid UTF-8 becomes U+FFFD.
    pub fn decode_lossy(&self, ids: &[u32], render: RenderSpecial) -> String {
        match String::from_utf8(self.decode(ids, render)) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }

    /// The bytes of one token; empty for an id outside the vocabulary.
    pub fn token_bytes(&self, id: u32, render: RenderSpecial) -> Cow<'_, [u8]> {
        let (Some(text), Some(kind)) = (self.vocab.text(id), self.vocab.kind(id)) else {
            return Cow::Borrowed(&[]);
        };
        let raw = || Cow::Borrowed(text.as_bytes());
        match (kind, self.model.spelling()) {
            (TokenKind::UserDefined, _) => raw(),
            (TokenKind::Control | TokenKind::Unknown, _) if render == RenderSpecial::Yes => raw(),
            (TokenKind::Control | TokenKind::Unknown | TokenKind::Unused, _) => Cow::Borrowed(&[]),
            (_, Spelling::Plain) => raw(),
            (_, Spelling::Escaped) => {
                let mut bytes = Vec::with_capacity(text.len());
                bytes::unescape(text, &mut bytes);
                Cow::Owned(bytes)
            }
            (TokenKind::Byte, _) => match vocab::parse_byte(text) {
                Some(byte) => Cow::Owned(vec![byte]),
                None => raw(),
            },
            (TokenKind::Normal, _) => {
                if text.contains('▁') {
                    Cow::Owned(text.replace('▁', " ").into_bytes())
                } else {
                    raw()
                }
            }
        }
    }

    /// The text of a token in the vocabulary, `None` for an id outside it.
    pub fn token_text(&self, id: u32) -> Option<&str> {
        self.vocab.text(id)
    }

    /// The id of the token with this text in the vocabulary.
    pub fn token_id(&self, text: &str) -> Option<u32> {
        self.vocab.id(text)
    }

    /// The kind of the token, `None` for an id outside the vocabulary.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.vocab.kind(id)
    }

    /// Number of ids; all ids are smaller.
    pub fn n_vocab(&self) -> usize {
        self.vocab.n_vocab() as usize
    }

    /// True if texts can be encoded; false for a model that has only ids.
    pub fn has_text(&self) -> bool {
        !matches!(self.model, Model::None { .. })
    }

    /// True if `id` ends a generation.
    pub fn is_eog(&self, id: u32) -> bool {
        self.vocab.is_eog(id)
    }

    /// All ids that end a generation, ascending.
    pub fn eog_ids(&self) -> Vec<u32> {
        self.vocab.eog().collect()
    }

    /// Begin of sequence.
    pub fn bos(&self) -> Option<u32> {
        self.vocab.ids.bos
    }

    /// End of sequence.
    pub fn eos(&self) -> Option<u32> {
        self.vocab.ids.eos
    }

    /// End of turn.
    pub fn eot(&self) -> Option<u32> {
        self.vocab.ids.eot
    }

    /// The fill-in-the-middle tokens, from the metadata or recognised by their texts.
    pub fn fim(&self) -> FimTokens {
        self.vocab.ids.fim
    }

    /// True if [`AddSpecial::Yes`] adds BOS before a text.
    pub fn adds_bos(&self) -> bool {
        self.add_bos
    }

    /// True if [`AddSpecial::Yes`] adds EOS (in BERT vocabularies, the separator) after a text.
    pub fn adds_eos(&self) -> bool {
        self.end.is_some()
    }

    /// True if a text is encoded as if it began with a space, which decoding removes again.
    pub fn adds_space_prefix(&self) -> bool {
        match &self.model {
            Model::Spm(spm) => spm.add_space_prefix,
            Model::Unigram(unigram) => unigram.add_space_prefix,
            Model::WordPiece(_) => true,
            Model::Bpe(_) | Model::Gemma4(_) | Model::None { .. } => false,
        }
    }

    /// Ids that are never sampled.
    pub fn suppressed(&self) -> &[u32] {
        &self.suppress
    }
}

/// The rule that splits texts into words: the model's own expressions, or one of the table.
fn pre_tokenizer(spec: &TokenizerSpec) -> Result<PreTokenizer, TokenizerError> {
    let mut pre = match spec.pre_expressions.is_empty() {
        true => PreTokenizer::new(spec.pre.as_deref())?,
        false => PreTokenizer::of_expressions(&spec.pre_expressions)?,
    };
    if let Some(ignore_merges) = spec.ignore_merges {
        pre.set_ignore_merges(ignore_merges);
    }
    Ok(pre)
}

/// The form of Unicode called `name`.
fn form(name: Option<&str>) -> Result<Option<Form>, TokenizerError> {
    let Some(name) = name else { return Ok(None) };
    let unknown = || TokenizerError::UnknownNormalizer { normalizer: name.to_owned(), known: Form::KNOWN };
    Form::named(name).ok_or_else(unknown).map(Some)
}

/// Phi-3: white space after a special token is removed, except after the three that frame a text.
fn phi3_strips_right(text: &str) -> bool {
    !matches!(text, "<unk>" | "<s>" | "<|endoftext|>")
}
