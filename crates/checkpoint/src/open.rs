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

/// True for a file that is read whole when its folder is opened: configurations, tokenizers, and indexes of the files
/// with weights, whose names [`weight_files`] gives. `path` is relative to the folder, with `/`.
pub fn wants(path: &str) -> bool {
    let is_index = !path.contains('/') && path.ends_with(".safetensors.index.json");
    TokenizerFiles::wants(path) || is_index || path == hf::HF_QUANT_CONFIG || mlc::is_file(path)
}

/// Names of the files with weights that a folder needs besides those that [`wants`] names. They need not be there:
/// opening the folder says what is missing.
///
/// # Errors
/// For a damaged index.
pub async fn weight_files<S: ByteSource>(folder: &Folder<S>) -> Result<Vec<String>, CheckpointError> {
    if mlc::is_mlc(folder.names()) {
        return Ok(mlc::weight_files(folder).await?);
    }
    Ok(hf::weight_files(folder).await.map_err(HfError::from)?)
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
    use ggml_format::MemorySource;

    use super::{Folder, wants, weight_files};

    #[test]
    fn files_of_models_are_wanted() {
        for path in [
            "config.json",
            "model.safetensors.index.json",
            "tokenizer.model",
            "hf_quant_config.json",
            "additional_chat_templates/tool.jinja",
            "mlc-chat-config.json",
            "ndarray-cache.json",
        ] {
            assert!(wants(path), "{path}");
        }
        for path in [
            "README.md",
            "model.gguf",
            "model.safetensors",
            "params_shard_0.bin",
            "original/model.safetensors.index.json",
            "additional_chat_templates/a.txt",
        ] {
            assert!(!wants(path), "{path}");
        }
    }

    #[test]
    fn weights_are_in_the_files_that_an_index_names() {
        let names = |files: &[(&str, &str)], others: &[&str]| {
            let file = |(name, text): &(&str, &str)| {
                ((*name).to_owned(), MemorySource::new(*name, text.as_bytes().to_vec()))
            };
            let others = others.iter().map(|name| (*name).to_owned()).collect();
            let folder = Folder::new("a", files.iter().map(file)).beside(others);
            pollster::block_on(weight_files(&folder)).map_err(|e| e.to_string())
        };
        let index = r#"{"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "b.safetensors"}}"#;
        let index = ("model.safetensors.index.json", index);
        assert_eq!(names(&[index], &["model.safetensors"]).unwrap(), ["a.safetensors", "b.safetensors"]);
        assert_eq!(names(&[], &["model.safetensors", "b.safetensors"]).unwrap(), ["model.safetensors"]);
        assert!(names(&[], &["b.safetensors"]).unwrap().is_empty());
        assert!(names(&[(index.0, "{")], &[]).is_err());
        let cache =
            r#"{"records": [{"dataPath": "p_0.bin", "format": "raw-shard", "nbytes": 1, "records": []}]}"#;
        let mlc = ("mlc-chat-config.json", "{}");
        assert_eq!(names(&[mlc, ("tensor-cache.json", cache)], &["pytorch_model.bin"]).unwrap(), ["p_0.bin"]);
        assert!(names(&[mlc], &["pytorch_model.bin"]).unwrap().is_empty());
    }
}
