//! The vocabulary: texts, kinds and special ids, with the rules that complete incomplete files.

use std::collections::BTreeSet;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::{FimTokens, TokenizerError, TokenizerSpec};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// Represents text that the vocabulary cannot encode.
    Unknown,
    /// Controls the model (begin, end, roles); renders as nothing and is never parsed from plain text.
    Control,
    /// Added by the model's author; matched in any text and rendered verbatim.
    UserDefined,
    /// A reserved id; renders as nothing.
    Unused,
    /// One byte, written `<0xAB>`.
    Byte,
}

impl TokenKind {
    /// All, by their numbers.
    pub(super) const ALL: [TokenKind; 6] = [
        TokenKind::Normal,
        TokenKind::Unknown,
        TokenKind::Control,
        TokenKind::UserDefined,
        TokenKind::Unused,
        TokenKind::Byte,
    ];

    fn from_ggml(kind: i32) -> TokenKind {
        match kind {
            2 => TokenKind::Unknown,
            3 => TokenKind::Control,
            4 => TokenKind::UserDefined,
            5 => TokenKind::Unused,
            6 => TokenKind::Byte,
            _ => TokenKind::Normal,
        }
    }

    /// True if the token is split off a text before the rest is tokenized.
    pub(super) fn is_special(self) -> bool {
        matches!(self, TokenKind::Control | TokenKind::UserDefined | TokenKind::Unknown)
    }
}

/// Ids that a file may omit, with the defaults of the kind of tokenizer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpecialIds {
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) eot: Option<u32>,
    pub(super) eom: Option<u32>,
    pub(super) unk: Option<u32>,
    pub(super) sep: Option<u32>,
    pub(super) fim: FimTokens,
}

/// Texts and kinds by id, ids by text, and the tokens that end a generation.
#[derive(Debug)]
pub(super) struct Vocab {
    tokens: IndexSet<Box<str>, FxBuildHasher>,
    kinds: Vec<TokenKind>,
    n_vocab: u32,
    pub(super) ids: SpecialIds,
    eog: BTreeSet<u32>,
    /// Control tokens that are rendered, for which they count as user-defined.
    shown: BTreeSet<u32>,
}

/// Maximum size of a vocabulary: keeps ids away from the sentinels used in merging.
const MAX_TOKENS: usize = 1 << 30;

/// Texts of tokens that end a generation, regardless of the metadata.
const EOG_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Texts that mark the end of a turn, in order of preference.
const EOT_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
];

const EOM_TEXTS: &[&str] = &["<|eom_id|>"];

const FIM_PREFIX_TEXTS: &[&str] = &[
    "<|fim_prefix|>",
    "<fim-prefix>",
    "<fim_prefix>",
    "<｜fim▁begin｜>",
    "<PRE>",
    "▁<PRE>",
    "<|code_prefix|>",
    "<|prefix|>",
];
const FIM_SUFFIX_TEXTS: &[&str] = &[
    "<|fim_suffix|>",
    "<fim-suffix>",
    "<fim_suffix>",
    "<｜fim▁hole｜>",
    "<SUF>",
    "▁<SUF>",
    "<|code_suffix|>",
    "<|suffix|>",
];
const FIM_MIDDLE_TEXTS: &[&str] = &[
    "<|fim_middle|>",
    "<fim-middle>",
    "<fim_middle>",
    "<｜fim▁end｜>",
    "<MID>",
    "▁<MID>",
    "<|code_middle|>",
    "<|middle|>",
];
const FIM_PAD_TEXTS: &[&str] = &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"];
const FIM_REPO_TEXTS: &[&str] =
    &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<repo_name>"];
const FIM_SEP_TEXTS: &[&str] = &["<|file_sep|>"];

/// Tokens that structure an answer (gpt-oss); they are always rendered, so that the caller can parse them.
const HARMONY_TEXTS: &[&str] = &["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

impl Vocab {
    /// Takes the texts and kinds from `spec`; `defaults` are the ids for this kind of tokenizer.
    pub(super) fn new(spec: &mut TokenizerSpec, defaults: SpecialIds) -> Result<Vocab, TokenizerError> {
        let n_token = spec.tokens.len();
        if n_token > MAX_TOKENS {
            return Err(TokenizerError::TooManyTokens { n_token, max: MAX_TOKENS });
        }
        if !spec.token_types.is_empty() && spec.token_types.len() != n_token {
            let found = spec.token_types.len();
            return Err(TokenizerError::Length {
                key: "tokenizer.ggml.token_type",
                expected: n_token,
                found,
            });
        }
        let mut tokens = IndexSet::with_capacity_and_hasher(n_token, FxBuildHasher);
        for (id, text) in std::mem::take(&mut spec.tokens).into_iter().enumerate() {
            let text = if text.is_empty() { format!("[EMPTY_{id}]") } else { text };
            let (first, is_new) = tokens.insert_full(text.into_boxed_str());
            if !is_new {
                return Err(TokenizerError::DuplicateToken {
                    text: tokens[first].to_string(),
                    first,
                    second: id,
                });
            }
        }
        let mut kinds: Vec<TokenKind> =
            spec.token_types.iter().map(|&kind| TokenKind::from_ggml(kind)).collect();
        kinds.resize(n_token, TokenKind::Normal);

        let n_vocab = if n_token == 0 { spec.n_vocab.unwrap_or(0) } else { n_token as u32 };
        let mut vocab =
            Vocab { tokens, kinds, n_vocab, ids: defaults, eog: BTreeSet::new(), shown: BTreeSet::new() };
        vocab.set_ids(spec, defaults);
        vocab.set_eog();
        vocab.eog.extend(spec.eog.iter().filter(|&&id| id < n_vocab));
        Ok(vocab)
    }

    /// A vocabulary of `n_vocab` ids with these texts, if any, and these tokens that end a generation; `None` if they
    /// do not fit together.
    pub(super) fn given(
        n_vocab: u32,
        texts: Vec<Box<str>>,
        kinds: Vec<TokenKind>,
        ends: Vec<u32>,
    ) -> Option<Vocab> {
        let n_text = texts.len();
        let tokens: IndexSet<_, _> = texts.into_iter().collect();
        let fits = n_text == tokens.len() && (n_text == 0 || n_text == n_vocab as usize);
        fits.then(|| Vocab {
            tokens,
            kinds,
            n_vocab,
            ids: SpecialIds::default(),
            eog: ends.into_iter().collect(),
            shown: BTreeSet::new(),
        })
    }

    /// Sets the ids given in the file; tokens that are recognised by their texts instead become control
    /// tokens.
    fn set_ids(&mut self, spec: &TokenizerSpec, defaults: SpecialIds) {
        let n_vocab = self.n_vocab;
        let known = |id: Option<u32>| id.filter(|&id| id < n_vocab);
        let mut guess = |id: Option<u32>, texts: &[&str]| {
            known(id).or_else(|| {
                let found = texts.iter().find_map(|text| self.id(text))?;
                self.kinds[found as usize] = TokenKind::Control;
                Some(found)
            })
        };
        self.ids = SpecialIds {
            bos: known(spec.bos).or(known(spec.cls)).or(known(defaults.bos)),
            eos: known(spec.eos).or(known(defaults.eos)),
            unk: known(spec.unk).or(known(defaults.unk)),
            sep: known(spec.sep).or(known(defaults.sep)),
            eot: guess(spec.eot, EOT_TEXTS),
            eom: guess(spec.eom, EOM_TEXTS),
            fim: FimTokens {
                prefix: guess(spec.fim.prefix, FIM_PREFIX_TEXTS),
                suffix: guess(spec.fim.suffix, FIM_SUFFIX_TEXTS),
                middle: guess(spec.fim.middle, FIM_MIDDLE_TEXTS),
                pad: guess(spec.fim.pad, FIM_PAD_TEXTS),
                repo: guess(spec.fim.repo, FIM_REPO_TEXTS),
                sep: guess(spec.fim.sep, FIM_SEP_TEXTS),
            },
        };
    }

    /// Collects the ids that end a generation, by number and by text.
    fn set_eog(&mut self) {
        let ids = self.ids;
        let by_id = [ids.eos, ids.eot, ids.eom, ids.fim.pad, ids.fim.repo, ids.fim.sep];
        self.eog.extend(by_id.into_iter().flatten());
        for text in EOG_TEXTS {
            if let Some(id) = self.id(text) {
                self.eog.insert(id);
                self.kinds[id as usize] = TokenKind::Control;
            }
        }
        for text in HARMONY_TEXTS {
            if let Some(id) = self.id(text) {
                self.show(id);
            }
        }
        // gpt-oss and Solar Open: `<|end|>` only closes one part, and the answer continues after it.
        let has = |text: &str| self.id(text).is_some();
        let calls = has("<|call|>") || has("<|calls|>");
        if calls
            && (has("<|return|>") || has("<|flush|>"))
            && let Some(end) = self.id("<|end|>")
        {
            self.eog.remove(&end);
            self.show(end);
        }
        // gemma 4: `</s>` is an HTML tag there, not an end.
        if self.id("<|tool_response>").is_some()
            && let Some(id) = self.id("</s>")
        {
            self.eog.remove(&id);
            self.kinds[id as usize] = TokenKind::Normal;
        }
    }

    pub(super) fn n_vocab(&self) -> u32 {
        self.n_vocab
    }

    /// Number of tokens with a text: all, or none in a file without a vocabulary.
    pub(super) fn n_text(&self) -> u32 {
        self.tokens.len() as u32
    }

    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.tokens.get_index_of(text).map(|id| id as u32)
    }

    /// The texts of all tokens.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().map(|text| &**text)
    }

    pub(super) fn text(&self, id: u32) -> Option<&str> {
        self.tokens.get_index(id as usize).map(|text| &**text)
    }

    pub(super) fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    /// True if the token is part of any text that has its name, also of messages: user-defined, and no mark of a turn.
    pub(super) fn is_in_text(&self, id: u32) -> bool {
        self.kind(id) == Some(TokenKind::UserDefined) && !self.shown.contains(&id)
    }

    /// Has a control token rendered.
    fn show(&mut self, id: u32) {
        self.kinds[id as usize] = TokenKind::UserDefined;
        self.shown.insert(id);
    }

    pub(super) fn is_eog(&self, id: u32) -> bool {
        self.eog.contains(&id)
    }

    pub(super) fn eog(&self) -> impl Iterator<Item = u32> + '_ {
        self.eog.iter().copied()
    }

    /// Appends one token per byte of `text`. Bytes without a token are dropped.
    pub(super) fn push_bytes(&self, text: &str, out: &mut Vec<u32>) {
        out.extend(text.bytes().filter_map(|byte| self.byte(byte)));
    }

    /// The token of a byte: `<0xAB>`, or the token with just this byte.
    pub(super) fn byte(&self, byte: u8) -> Option<u32> {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let name = [b'<', b'0', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)], b'>'];
        let name = std::str::from_utf8(&name).expect("ASCII");
        let plain = [byte];
        let plain = std::str::from_utf8(&plain).ok();
        self.id(name).or_else(|| plain.and_then(|plain| self.id(plain)))
    }
}

/// Parses the byte of a token such as `<0xAB>`.
pub(super) fn parse_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}
