//! Checkpoints that are folders: config.json with safetensors, and MLC's.

use std::collections::HashSet;

use super::split::{Split, parts};
use super::{Form, Selection};
use crate::error::HubError;
use crate::name::HubName;
use crate::tree::TreeFile;

/// Selects the files of a checkpoint.
///
/// # Errors
/// [`HubError::NoModel`], [`HubError::MissingPart`].
pub(super) fn select(name: &HubName, tree: &[TreeFile]) -> Result<Selection, HubError> {
    let has = |path: &str| tree.iter().any(|file| file.path == path);
    let is_weights: Box<dyn Fn(&str) -> bool> = if has("mlc-chat-config.json") {
        Box::new(|path| path.starts_with("params_shard_") && path.ends_with(".bin"))
    } else if has("config.json") && has("model.safetensors.index.json") {
        // The index may name its files in any way, such as `model.safetensors-00001-of-00014.safetensors`.
        let is_other = |path: &str| path.starts_with("consolidated") || path.starts_with("adapter_model");
        Box::new(move |path| path.ends_with(".safetensors") && !is_other(path))
    } else if has("config.json") && has("model.safetensors") {
        Box::new(|path| path == "model.safetensors")
    } else {
        return Err(HubError::NoModel { name: name.to_string(), n_file: tree.len() });
    };
    let is_needed =
        |path: &str| !path.contains('/') && (is_weights(path) || is_description(path)) || is_template(path);
    let files: Vec<usize> = (0..tree.len()).filter(|i| is_needed(&tree[*i].path)).collect();
    if !files.iter().any(|i| is_weights(&tree[*i].path)) {
        return Err(HubError::NoModel { name: name.to_string(), n_file: tree.len() });
    }
    // Each split set once.
    let mut sets = HashSet::new();
    for i in files.iter().filter(|i| is_weights(&tree[**i].path)) {
        if Split::of(&tree[*i].path).is_some_and(|split| sets.insert((split.stem, split.n_part))) {
            parts(*i, tree)?;
        }
    }
    let form = if has("mlc-chat-config.json") { Form::Mlc } else { Form::Checkpoint };
    Ok(Selection { form, files })
}

/// Configuration and tokenizer, at the top of a repository.
fn is_description(path: &str) -> bool {
    path.ends_with(".json")
        || path.ends_with(".jinja")
        || matches!(path, "tokenizer.model" | "merges.txt" | "vocab.txt" | "tekken.json" | "spiece.model")
}

fn is_template(path: &str) -> bool {
    path.strip_prefix("additional_chat_templates/")
        .is_some_and(|name| name.ends_with(".jinja") && !name.contains('/'))
}
