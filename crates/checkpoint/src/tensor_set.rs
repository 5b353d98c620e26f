//! The tensors of a folder's files by name, and which of them were taken.

use std::collections::{BTreeMap, BTreeSet};

use crate::recipe::View;
use crate::safetensors::{Dtype, TensorEntry};

/// A tensor and the number of its file in the folder.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) file: usize,
    pub(crate) tensor: TensorEntry,
}

impl Entry {
    pub(crate) fn shape(&self) -> &[u64] {
        &self.tensor.shape
    }

    pub(crate) fn dtype(&self) -> Dtype {
        self.tensor.dtype
    }

    /// Rows of the last dimension.
    pub(crate) fn view(&self) -> View {
        View::of(self.file, &self.tensor)
    }
}

/// Tensors by name.
#[derive(Debug, Default)]
pub(crate) struct TensorSet {
    tensors: BTreeMap<String, Entry>,
    taken: BTreeSet<String>,
}

impl TensorSet {
    /// Adds a tensor; false if there was one with the name.
    pub(crate) fn insert(&mut self, name: String, entry: Entry) -> bool {
        self.tensors.insert(name, entry).is_none()
    }

    /// A tensor, without taking it.
    pub(crate) fn find(&self, name: &str) -> Option<&Entry> {
        self.tensors.get(name)
    }

    /// Takes a tensor.
    pub(crate) fn take(&mut self, name: &str) -> Option<Entry> {
        let entry = self.tensors.get(name)?.clone();
        self.taken.insert(name.to_owned());
        Some(entry)
    }

    /// All tensors, in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.tensors.values()
    }

    /// Names that were not taken.
    pub(crate) fn left(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().filter(|name| !self.taken.contains(*name)).map(String::as_str)
    }
}
