//! `model.safetensors.index.json`: the file of each tensor of a set.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::SafetensorsError;
use super::header::MAX_TENSOR;
use crate::folder::is_plain_name;

/// The files of a set, and the tensors of each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardIndex {
    /// File name to names of tensors.
    pub files: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Deserialize)]
struct RawIndex {
    weight_map: BTreeMap<String, String>,
}

impl ShardIndex {
    /// Parses the index.
    ///
    /// # Errors
    /// For damaged JSON, and names of files that are not plain.
    pub fn parse(json: &[u8]) -> Result<ShardIndex, SafetensorsError> {
        let raw: RawIndex = serde_json::from_slice(json).map_err(SafetensorsError::Json)?;
        if raw.weight_map.len() > MAX_TENSOR {
            return Err(SafetensorsError::TooMany { found: raw.weight_map.len() });
        }
        let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (tensor, file) in raw.weight_map {
            if !file.ends_with(".safetensors") || !is_plain_name(&file) {
                return Err(SafetensorsError::FileName { tensor, found: file });
            }
            files.entry(file).or_default().insert(tensor);
        }
        Ok(ShardIndex { files })
    }

    /// Fails unless the index names exactly these tensors of a file.
    ///
    /// # Errors
    /// [`SafetensorsError::NotInFile`], [`SafetensorsError::NotInIndex`]
    pub fn check<'n>(
        &self,
        file: &str,
        found: impl Iterator<Item = &'n str>,
    ) -> Result<(), SafetensorsError> {
        let none = BTreeSet::new();
        let expected = self.files.get(file).unwrap_or(&none);
        let found: BTreeSet<&str> = found.collect();
        if let Some(tensor) = expected.iter().find(|name| !found.contains(name.as_str())) {
            return Err(SafetensorsError::NotInFile { tensor: tensor.clone() });
        }
        match found.into_iter().find(|name| !expected.contains(*name)) {
            Some(tensor) => Err(SafetensorsError::NotInIndex { tensor: tensor.to_owned() }),
            None => Ok(()),
        }
    }
}
