//! Opens a folder of either kind.

use ggml_format::ByteSource;

use crate::folder::Folder;
use crate::hf::{self, HfError, OpenOptions, Opened};
use crate::mlc::{self, MlcError};

/// A folder that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A folder of Hugging Face.
    #[error(transparent)]
    Hf(#[from] HfError),
    /// A folder of MLC.
    #[error(transparent)]
    Mlc(#[from] MlcError),
}

/// Opens a folder of MLC, which has `mlc-chat-config.json`, or of Hugging Face.
///
/// # Errors
/// As [`mlc::open`] and [`hf::open`].
pub async fn open<S: ByteSource>(
    folder: Folder<S>,
    options: &OpenOptions,
) -> Result<Opened<S>, CheckpointError> {
    if mlc::is_mlc(folder.names()) {
        return Ok(mlc::open(folder, options).await?);
    }
    Ok(hf::open(folder, options).await?)
}
