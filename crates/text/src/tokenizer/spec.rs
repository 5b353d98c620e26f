//! The input of a tokenizer: the `tokenizer.ggml.*` metadata as plain data.

use ggml_format::{GgufError, Metadata};

/// The vocabulary and flags of a tokenizer, as given in a GGUF file.
///
/// Every field has the meaning of the metadata key in its description (prefix `tokenizer.ggml.`); `None` and
/// empty lists mean that the key is missing. Ids outside the vocabulary are ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenizerSpec {
    /// `model`: `llama` (SPM), `gpt2` (byte-level BPE), `gemma4`, `bert`, `t5` (Unigram), `test`, `none`, ...
    pub model: String,
    /// `pre`: name of the rule that splits text into words before BPE.
    pub pre: Option<String>,
    /// `tokenizer.chaski.pre_expressions`: the rule itself in place of its name, as expressions in the syntax of
    /// Hugging Face's `tokenizer.json`; each splits what the one before left. No other engine knows this key.
    pub pre_expressions: Vec<String>,
    /// `tokenizer.chaski.ignore_merges`: a word that is itself a token is not merged from its bytes, whatever the rule
    /// says.
    pub ignore_merges: Option<bool>,
    /// `tokenizer.chaski.normalizer`: the form of Unicode that texts are brought into (`nfc`, `nfd`, `nfkc` or `nfkd`);
    /// BPE only.
    pub normalizer: Option<String>,
    /// `tokenizer.chaski.eog_token_ids`: tokens that end a generation, besides `eos` and those known by their texts.
    pub eog: Vec<u32>,
    /// `general.name`: needed for Phi-3, because nothing else in the file tells how it treats white space.
    pub name: Option<String>,
    /// `tokens`: the text of each token; the index is the id.
    pub tokens: Vec<String>,
    /// Number of ids if `tokens` is empty (a file without a vocabulary, `<arch>.vocab_size`).
    pub n_vocab: Option<u32>,
    /// `scores`: merge priority of each token (SPM), higher first; log probability (Unigram).
    pub scores: Vec<f32>,
    /// `token_type`: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    pub token_types: Vec<i32>,
    /// `merges`: pairs `left right`; the index is the rank (BPE).
    pub merges: Vec<String>,
    /// `bos_token_id`: begin of sequence.
    pub bos: Option<u32>,
    /// `eos_token_id`: end of sequence.
    pub eos: Option<u32>,
    /// `eot_token_id`: end of turn.
    pub eot: Option<u32>,
    /// `eom_token_id`: end of message.
    pub eom: Option<u32>,
    /// `unknown_token_id`.
    pub unk: Option<u32>,
    /// `cls_token_id`: the token before a text in BERT vocabularies; BOS if missing.
    pub cls: Option<u32>,
    /// `seperator_token_id` (sic).
    pub sep: Option<u32>,
    /// `fim_pre_token_id`, ...: the fill-in-the-middle tokens.
    pub fim: FimTokens,
    /// `add_bos_token`: add `bos` before a text.
    pub add_bos: Option<bool>,
    /// `add_eos_token`: add `eos` after a text.
    pub add_eos: Option<bool>,
    /// `add_sep_token`: add `sep` after a text (BERT).
    pub add_sep: Option<bool>,
    /// `add_space_prefix`: treat a text as if it began with a space (SPM, Unigram).
    pub add_space_prefix: Option<bool>,
    /// `remove_extra_whitespaces`: runs of spaces count as one (Unigram).
    pub remove_extra_whitespaces: Option<bool>,
    /// `precompiled_charsmap`: SentencePiece's table of replacements (Unigram).
    pub precompiled_charsmap: Vec<u8>,
    /// `suppress_tokens`: ids that are never sampled.
    pub suppress: Vec<i32>,
}

impl TokenizerSpec {
    /// Reads the metadata of a GGUF file.
    ///
    /// # Errors
    ///
    /// `tokenizer.ggml.model` is missing, or a key has another type.
    pub fn from_metadata(metadata: &Metadata) -> Result<TokenizerSpec, GgufError> {
        let merges = metadata.opt_strings(TokenizerSpec::MERGES)?.into_iter().flatten();
        let merges = merges.map(str::to_owned).collect();
        Ok(TokenizerSpec { merges, ..TokenizerSpec::without_merges(metadata)? })
    }

    /// The key of the merges. There may be half a million, so [`Tokenizer`](super::Tokenizer) reads them in
    /// place.
    pub(super) const MERGES: &str = "tokenizer.ggml.merges";

    /// Everything else.
    pub(super) fn without_merges(metadata: &Metadata) -> Result<TokenizerSpec, GgufError> {
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let text = |key: &str| Ok(metadata.opt_str(key)?.map(str::to_owned));
        let strings = |name: &str| -> Result<Vec<String>, GgufError> {
            let strings = metadata.opt_strings(&key(name))?;
            Ok(strings.into_iter().flatten().map(str::to_owned).collect())
        };
        // Some files use -1 for a missing id.
        let id = |name: &str| -> Result<Option<u32>, GgufError> {
            let id = metadata.opt_i64(&key(&format!("{name}_token_id")))?;
            Ok(id.and_then(|id| u32::try_from(id).ok()))
        };
        let flag = |name: &str| metadata.opt_bool(&key(name));
        // Signed or unsigned bytes, depending on the converter.
        let charsmap: Option<Vec<i32>> = metadata.opt_vec(&key("precompiled_charsmap"))?;
        let ours = |name: &str| format!("tokenizer.chaski.{name}");
        let expressions = metadata.opt_strings(&ours("pre_expressions"))?.into_iter().flatten();
        let arch = metadata.opt_str("general.architecture")?.unwrap_or_default();
        Ok(TokenizerSpec {
            model: metadata.str("tokenizer.ggml.model")?.to_owned(),
            pre: text("tokenizer.ggml.pre")?,
            pre_expressions: expressions.map(str::to_owned).collect(),
            ignore_merges: metadata.opt_bool(&ours("ignore_merges"))?,
            normalizer: text(&ours("normalizer"))?,
            eog: metadata.opt_vec(&ours("eog_token_ids"))?.unwrap_or_default(),
            name: text("general.name")?,
            tokens: strings("tokens")?,
            n_vocab: metadata.opt_u32(&format!("{arch}.vocab_size"))?,
            scores: metadata.opt_vec(&key("scores"))?.unwrap_or_default(),
            token_types: metadata.opt_vec(&key("token_type"))?.unwrap_or_default(),
            merges: Vec::new(),
            bos: id("bos")?,
            eos: id("eos")?,
            eot: id("eot")?,
            eom: id("eom")?,
            unk: id("unknown")?,
            cls: id("cls")?,
            sep: id("seperator")?,
            fim: FimTokens {
                prefix: id("fim_pre")?,
                suffix: id("fim_suf")?,
                middle: id("fim_mid")?,
                pad: id("fim_pad")?,
                repo: id("fim_rep")?,
                sep: id("fim_sep")?,
            },
            add_bos: flag("add_bos_token")?,
            add_eos: flag("add_eos_token")?,
            add_sep: flag("add_sep_token")?,
            add_space_prefix: flag("add_space_prefix")?,
            remove_extra_whitespaces: flag("remove_extra_whitespaces")?,
            precompiled_charsmap: charsmap.into_iter().flatten().map(|byte| byte as u8).collect(),
            suppress: metadata.opt_vec(&key("suppress_tokens"))?.unwrap_or_default(),
        })
    }
}

/// Ids of the fill-in-the-middle tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FimTokens {
    /// Precedes the text before the gap.
    pub prefix: Option<u32>,
    /// Precedes the text after the gap.
    pub suffix: Option<u32>,
    /// Starts the generation of the gap's text.
    pub middle: Option<u32>,
    /// Padding; ends generation.
    pub pad: Option<u32>,
    /// Precedes the repository name; ends generation.
    pub repo: Option<u32>,
    /// Separator between files; ends generation.
    pub sep: Option<u32>,
}
