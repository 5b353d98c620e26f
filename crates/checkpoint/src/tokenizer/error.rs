//! Errors of reading the tokenizer of a folder.

/// A failure to make GGUF metadata of a tokenizer's files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TokenizerFileError {
    #[error("`{file}`: expected at most {max} bytes, found {n_byte}")]
    TooLarge { file: String, n_byte: usize, max: usize },
    #[error("`{file}` is not JSON of the expected form")]
    Json {
        file: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("`{file}` is not a SentencePiece model: at byte {offset}: {what}")]
    SentencePiece { file: String, offset: usize, what: &'static str },
    #[error("the folder has no tokenizer: expected tokenizer.json or tokenizer.model")]
    Missing,
    #[error("`{file}`: {what} is not supported; {advice}")]
    Unsupported { file: String, what: String, advice: &'static str },
    #[error("`{file}`: the vocabulary is a list: expected texts with ids, as BPE has them")]
    VocabularyKind { file: String },
    #[error("`{file}`: token {text:?} has the id {id}, expected less than {max}")]
    TokenId { file: String, text: String, id: u64, max: usize },
    #[error("`{file}`: tokens {first:?} and {second:?} have the same id {id}")]
    SameId { file: String, id: usize, first: String, second: String },
    #[error("vocabulary of {found} tokens: expected 1 to {max}")]
    VocabularySize { found: u64, max: usize },
    #[error(
        "{name:?} is not a pre-tokenizer that is known; expected a value of `tokenizer.ggml.pre` such as \"qwen2\""
    )]
    UnknownPre { name: String },
    #[error("`tokenizer.json`: its way to split texts into words is not known; name a known pre-tokenizer")]
    PreTokenizer {
        #[source]
        source: chaski_text::TokenizerError,
    },
}
