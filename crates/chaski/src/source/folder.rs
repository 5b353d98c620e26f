//! Folders as models.

use std::path::Path;

pub use chaski_checkpoint::Types;
pub use chaski_checkpoint::hf::{HF_ARCHS, HfArch, OpenOptions, Opened, Proof};
use chaski_checkpoint::{Folder, TokenizerFiles};
use ggml_format::SourceError;

use super::FileSource;
use crate::error::Error;

/// Files that tell such a folder: those of Hugging Face and of MLC.
const CONFIGS: [&str; 2] = ["config.json", "mlc-chat-config.json"];

/// True for a folder of Hugging Face or of MLC.
pub fn is_checkpoint(path: &Path) -> bool {
    path.is_dir() && CONFIGS.iter().any(|name| path.join(name).is_file())
}

/// Opens a folder: the files of the model in it, and its chat templates with names.
///
/// # Errors
/// [`Error::Source`], [`Error::Checkpoint`]
pub async fn open(path: &Path, options: &OpenOptions) -> Result<Opened<FileSource>, Error> {
    let name = path.display().to_string();
    let failed = |source| Error::Checkpoint { folder: name.clone(), source: Box::new(source) };
    let folder = small_files(path)?;
    let weights = chaski_checkpoint::weight_files(&folder).await.map_err(failed)?;
    let folder = with_weights(folder, path, weights)?;
    let opened = chaski_checkpoint::open(folder, options).await.map_err(failed)?;
    for note in &opened.notes {
        tracing::warn!("`{name}`: {note}");
    }
    Ok(opened)
}

/// The files that are read whole; of others only the names.
fn small_files(path: &Path) -> Result<Folder<FileSource>, Error> {
    let mut names = list(path)?;
    for folder in TokenizerFiles::FOLDERS {
        if path.join(folder).is_dir() {
            let inner = list(&path.join(folder))?;
            names.extend(inner.into_iter().map(|name| format!("{folder}/{name}")));
        }
    }
    names.sort();
    let (wanted, others): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| chaski_checkpoint::wants(name));
    let files = wanted.into_iter().map(|name| file(path, name)).collect::<Result<Vec<_>, Error>>()?;
    Ok(Folder::new(path.display().to_string(), files).beside(others))
}

/// The same with the files of weights that are there.
fn with_weights(
    folder: Folder<FileSource>,
    path: &Path,
    weights: Vec<String>,
) -> Result<Folder<FileSource>, Error> {
    let here = weights.into_iter().filter(|name| path.join(name).is_file());
    let files = here.map(|name| file(path, name)).collect::<Result<Vec<_>, Error>>()?;
    Ok(folder.with(files))
}

/// A file of a folder.
fn file(path: &Path, name: String) -> Result<(String, FileSource), Error> {
    let source = FileSource::open(&path.join(&name))?;
    Ok((name, source))
}

/// The names of the files of a folder, without those of its folders.
fn list(path: &Path) -> Result<Vec<String>, Error> {
    let io = |source| Error::Source(SourceError::Io { name: path.display().to_string(), source });
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io)? {
        let entry = entry.map_err(io)?;
        // Links are followed: the cache of the hub is made of them.
        let is_file = std::fs::metadata(entry.path()).is_ok_and(|meta| meta.is_file());
        if let (true, Ok(name)) = (is_file, entry.file_name().into_string()) {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the files that are opened in a folder of these files.
    fn opened(files: &[(&str, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = dir.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let folder = small_files(dir.path()).unwrap();
        let weights = pollster::block_on(chaski_checkpoint::weight_files(&folder)).unwrap();
        let folder = with_weights(folder, dir.path(), weights).unwrap();
        folder.names().map(str::to_owned).collect()
    }

    #[test]
    fn files_of_the_model_are_opened_and_others_are_not() {
        let mut files = vec![
            ("README.md", ""),
            ("additional_chat_templates/notes.txt", ""),
            ("additional_chat_templates/tool.jinja", ""),
            ("config.json", ""),
            ("model.safetensors", ""),
            ("adapter_model.safetensors", ""),
            ("original/params.json", ""),
            ("pytorch_model.bin", ""),
            ("params_shard_0.bin", ""),
            ("tokenizer.json", ""),
        ];
        let small = ["additional_chat_templates/tool.jinja", "config.json", "tokenizer.json"];
        assert_eq!(opened(&files), [&small[..], &["model.safetensors"]].concat());
        // The index says which files, one of which is missing here.
        let index = r#"{"weight_map": {"x": "x-1.safetensors", "y": "x-2.safetensors"}}"#;
        files.extend([("model.safetensors.index.json", index), ("x-1.safetensors", "")]);
        let small = [&small[..2], &["model.safetensors.index.json", "tokenizer.json"]].concat();
        assert_eq!(opened(&files), [&small[..], &["x-1.safetensors"]].concat());
        let record =
            r#"{"dataPath": "params_shard_0.bin", "format": "raw-shard", "nbytes": 0, "records": []}"#;
        let cache = format!(r#"{{"records": [{record}]}}"#);
        files.extend([("mlc-chat-config.json", "{}"), ("tensor-cache.json", cache.as_str())]);
        let of_mlc = opened(&files);
        assert!(of_mlc.last().unwrap() == "params_shard_0.bin", "{of_mlc:?}");
        assert!(!of_mlc.iter().any(|name| name == "pytorch_model.bin" || name.ends_with(".safetensors")));
    }
}
