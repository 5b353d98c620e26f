//! Opens a folder of either kind.

use ggml_format::ByteSource;

use crate::folder::Folder;
use crate::hf::{self, HfError, OpenOptions, Opened};
use crate::mlc::{self, MlcError};
use crate::tokenizer::TokenizerFiles;

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

/// True for a file that is read when its folder is opened. `path` is relative to the folder, with `/`; `is_mlc` is true for a
/// folder of MLC, whose index names its files of weights.
pub fn wants(path: &str, is_mlc: bool) -> bool {
    let is_weights = path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json");
    let is_mlc_file = mlc::is_file(path) || is_mlc && path.ends_with(".bin");
    TokenizerFiles::wants(path) || !path.contains('/') && (is_weights || is_mlc_file)
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

#[cfg(test)]
mod tests {
    use super::wants;

    #[test]
    fn files_of_models_are_wanted() {
        let (hf, mlc) = (|path| wants(path, false), |path| wants(path, true));
        for path in ["config.json", "model-1.safetensors", "model.safetensors.index.json", "tokenizer.model"]
        {
            assert!(hf(path) && mlc(path), "{path}");
        }
        assert!(
            hf("additional_chat_templates/tool.jinja")
                && hf("mlc-chat-config.json")
                && hf("ndarray-cache.json")
        );
        assert!(mlc("params_shard_0.bin") && !hf("pytorch_model.bin"));
        for path in
            ["README.md", "model.gguf", "original/model.safetensors", "additional_chat_templates/a.txt"]
        {
            assert!(!hf(path) && !mlc(path), "{path}");
        }
    }
}
