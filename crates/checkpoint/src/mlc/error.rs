//! Errors of folders of MLC.

use crate::folder::FolderError;
use crate::hf::{ConfigError, HfError};
use crate::recipe::RecipeError;
use crate::tokenizer::TokenizerFileError;

/// A folder of MLC that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum MlcError {
    #[error("`{file}`: expected JSON of the converter of MLC")]
    Json {
        file: &'static str,
        #[source]
        source: serde_json::Error,
    },
    #[error("`{file}`: expected {expected}, found {found}")]
    Value { file: &'static str, expected: String, found: String },
    #[error("mlc-chat-config.json: quantization `{found}`: {advice} (known: {known})")]
    Quantization { found: String, advice: &'static str, known: String },
    #[error(
        "mlc-chat-config.json: {what} was never compared with the original, so results may be wrong; `chaski convert --allow-unproven` makes a GGUF file of it"
    )]
    Unproven { what: String },
    #[error("mlc-chat-config.json: tensor_parallel_shards is {found}: take the folder for one device")]
    Shards { found: u64 },
    #[error("`{file}`: expected {expected} bytes, found {found}; download it again")]
    FileSize { file: String, expected: u64, found: u64 },
    #[error("`{file}`: expected the MD5 hash {expected}, found {found}; download it again")]
    Hash { file: String, expected: String, found: String },
    #[error("tensor `{tensor}`: expected {expected}, found {found}")]
    Tensor { tensor: String, expected: String, found: String },
    #[error("tensor `{tensor}`: cannot be made")]
    Recipe {
        tensor: String,
        #[source]
        source: RecipeError,
    },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Model(#[from] HfError),
    #[error("in the tokenizer")]
    Tokenizer(#[from] TokenizerFileError),
}
