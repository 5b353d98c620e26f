//! ollama's folder: manifests that name blobs.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cache::{CachedFile, CachedModel, CachedRevision, Place};
use crate::digest::Digest;
use crate::error::HubError;
use crate::name::OllamaName;

/// Prefix of the types of layers.
const PREFIX: &str = "application/vnd.ollama.image.";
/// Most bytes of a manifest, of parameters or of a system prompt.
const MOST: u64 = 4 << 20;

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    #[serde(rename = "mediaType")]
    media_type: String,
    digest: String,
    #[serde(default)]
    size: u64,
}

/// A model of ollama.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaModel {
    /// The GGUF file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub n_byte: u64,
    /// The vision part.
    pub projector: Option<PathBuf>,
    /// The system prompt.
    pub system: Option<String>,
    /// Default options of generation, by ollama's names.
    pub params: Option<serde_json::Value>,
}

/// Finds a model in the first of the folders that has it.
///
/// # Errors
/// [`HubError::NotInOllama`], [`HubError::Manifest`].
pub(crate) fn find(name: &OllamaName, folders: &[PathBuf]) -> Result<OllamaModel, HubError> {
    for folder in folders {
        let path =
            name.manifest().iter().fold(folder.join("manifests"), |path, part| path.join(file_name(part)));
        if path.is_file() {
            return model(folder, &path);
        }
    }
    Err(HubError::NotInOllama { name: name.to_string(), folders: folders.to_vec() })
}

/// Colons are no part of names on Windows.
fn file_name(part: &str) -> String {
    if cfg!(windows) { part.replace(':', "%3A") } else { part.to_owned() }
}

fn model(folder: &Path, path: &Path) -> Result<OllamaModel, HubError> {
    let wrong = |reason| HubError::Manifest { path: path.to_owned(), reason };
    let manifest: Manifest = read_json(path).ok_or_else(|| wrong("it is no manifest in JSON"))?;
    let of_kind = |kind: &str| {
        let layer = manifest.layers.iter().find(|layer| layer.media_type.strip_prefix(PREFIX) == Some(kind));
        layer.map(|layer| {
            Ok((
                blob(folder, layer).ok_or_else(|| wrong("a digest is not `sha256:` and 64 hex digits"))?,
                layer,
            ))
        })
    };
    if of_kind("tensor").is_some() || of_kind("json").is_some() {
        return Err(wrong(
            "it is in ollama's form of single tensors rather than a GGUF file, which cannot be read",
        ));
    }
    let (path, layer) = of_kind("model")
        .ok_or_else(|| wrong("it has no model of its own, as those that run elsewhere"))??;
    if !path.is_file() {
        return Err(wrong("the file of the model is missing; `ollama pull` fetches it"));
    }
    let system = of_kind("system")
        .transpose()?
        .and_then(|(path, _)| read(&path))
        .and_then(|b| String::from_utf8(b).ok());
    let params = of_kind("params").transpose()?.and_then(|(path, _)| read_json(&path));
    let projector = of_kind("projector").transpose()?.map(|(path, _)| path);
    Ok(OllamaModel { path, n_byte: layer.size, projector, system, params })
}

/// The file of a layer.
fn blob(folder: &Path, layer: &Layer) -> Option<PathBuf> {
    match Digest::of_digits(layer.digest.strip_prefix("sha256:")?)? {
        Digest::Sha256(digits) => Some(folder.join("blobs").join(format!("sha256-{digits}"))),
        Digest::Git(_) => None,
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    (std::fs::metadata(path).ok()?.len() <= MOST).then(|| std::fs::read(path).ok()).flatten()
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&read(path)?).ok()
}

/// All models of a folder whose manifests can be used.
pub(crate) fn list(folder: &Path) -> Vec<CachedModel> {
    let manifests = folder.join("manifests");
    let paths = crate::cache::files_below(&manifests);
    let entry = |path: String| {
        let parts: Vec<&str> = path.split('/').collect();
        let [host, namespace, name, tag] = parts[..] else { return None };
        let name = OllamaName::parse(&format!("{host}/{namespace}/{name}:{tag}")).ok()?;
        let model = model(folder, &manifests.join(&path)).ok()?;
        let found = std::fs::metadata(&model.path).ok()?;
        let file = CachedFile {
            path: model.path.file_name()?.to_str()?.to_owned(),
            size: found.len(),
            modified: found.modified().ok(),
            real: model.path,
            n_user: 1,
        };
        let revision = CachedRevision { commit: String::new(), refs: Vec::new(), files: vec![file] };
        Some(CachedModel {
            name: name.to_string(),
            folder: folder.to_owned(),
            place: Place::Ollama,
            n_byte: found.len(),
            revisions: vec![revision],
            n_part: 0,
        })
    };
    paths.into_iter().filter_map(entry).collect()
}
