//! The tensors of a checkpoint by name, plain or quantised, and which of them were taken.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use ggml_format::ByteSource;

use super::part::Part;
use super::scheme::{Scheme, SchemeError};
use super::source::WeightSource;
use crate::folder::{Folder, FolderError};
use crate::recipe::{Recipe, RecipeError, View};
use crate::safetensors::{Dtype, SafetensorsError, ShardIndex, TensorEntry, read_header};

/// The only file of weights.
const SINGLE: &str = "model.safetensors";
/// The index of several files.
const INDEX: &str = "model.safetensors.index.json";

/// Weights that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum WeightsError {
    #[error("`{folder}`: expected {SINGLE} or {INDEX}, found neither{}", hint(.found))]
    NoWeights { folder: String, found: Vec<String> },
    #[error("in `{file}`")]
    File {
        file: String,
        #[source]
        source: SafetensorsError,
    },
    #[error("tensor `{tensor}`: cannot be read")]
    Tensor {
        tensor: String,
        #[source]
        source: RecipeError,
    },
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// Advice for the files that a folder has instead.
fn hint(found: &[String]) -> &'static str {
    let has = |end: &str| found.iter().any(|name| name.ends_with(end));
    if has("consolidated.safetensors") {
        "; consolidated.safetensors has names of its own, take the files of transformers"
    } else if has(".bin") || has(".pt") || has(".pth") {
        "; pickles can run code and are never read, convert them to safetensors with a program that you trust"
    } else {
        ""
    }
}

/// A tensor of a file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    file: usize,
    tensor: TensorEntry,
}

impl Entry {
    pub(super) fn shape(&self) -> &[u64] {
        &self.tensor.shape
    }

    pub(super) fn dtype(&self) -> Dtype {
        self.tensor.dtype
    }

    /// Rows of the last dimension.
    pub(super) fn view(&self) -> View {
        View::of(self.file, &self.tensor)
    }
}

/// All tensors of a checkpoint.
#[derive(Debug)]
pub(super) struct Weights {
    tensors: BTreeMap<String, Entry>,
    taken: BTreeSet<String>,
    scheme: Scheme,
}

impl Weights {
    /// Reads the headers of all files.
    pub(super) async fn read<S: ByteSource>(
        folder: &Folder<S>,
        scheme: Scheme,
    ) -> Result<Weights, WeightsError> {
        let index = folder.try_read(INDEX).await?;
        let located = |file: &str| {
            let file = file.to_owned();
            |source| WeightsError::File { file, source }
        };
        let index = index.map(|json| ShardIndex::parse(&json)).transpose().map_err(located(INDEX))?;
        let files: Vec<&str> = match &index {
            Some(index) => index.files.keys().map(String::as_str).collect(),
            None if folder.file(SINGLE).is_some() => vec![SINGLE],
            None => {
                let (folder, found) = (folder.name().to_owned(), folder.names().map(str::to_owned).collect());
                return Err(WeightsError::NoWeights { folder, found });
            }
        };
        let mut tensors = BTreeMap::new();
        for file in files {
            let missing = || FolderError::Missing { folder: folder.name().to_owned(), file: file.to_owned() };
            let number = folder.position(file).ok_or_else(missing)?;
            let source = folder.file(file).ok_or_else(missing)?;
            let header = read_header(source).await.map_err(located(file))?;
            if let Some(index) = &index {
                index.check(file, header.tensors.iter().map(|t| t.name.as_str())).map_err(located(file))?;
            }
            // Names are unique: an index names one file for each.
            tensors.extend(
                header
                    .tensors
                    .into_iter()
                    .map(|tensor| (tensor.name.clone(), Entry { file: number, tensor })),
            );
        }
        Ok(Weights { tensors, taken: BTreeSet::new(), scheme })
    }

    /// A tensor, without taking it.
    pub(super) fn find(&self, name: &str) -> Option<&Entry> {
        self.tensors.get(name)
    }

    /// Takes a tensor.
    pub(super) fn take(&mut self, name: &str) -> Option<Entry> {
        let entry = self.tensors.get(name)?.clone();
        self.taken.insert(name.to_owned());
        Some(entry)
    }

    /// Takes a weight by its name, in whichever tensors it is stored.
    pub(super) fn part(&mut self, name: &str) -> Result<Option<Part>, WeightsError> {
        if let Some(module) = name.strip_suffix(".weight")
            && let Some(part) = self.scheme.clone().part(self, module)?
        {
            return Ok(Some(part));
        }
        if let Some(part) = self.scheme.clone().experts(self, name)? {
            return Ok(Some(part));
        }
        let Some(entry) = self.take(name) else { return Ok(None) };
        let recipe = Recipe::plain(entry.view())
            .map_err(|source| WeightsError::Tensor { tensor: name.to_owned(), source })?;
        let shape = if entry.shape().is_empty() { vec![1] } else { entry.shape().to_vec() };
        Ok(Some(Part { shape, recipe }))
    }

    /// The type of the first matrix whose elements are weights.
    pub(super) fn dtype(&self) -> Option<Dtype> {
        let mut matrices: Vec<&Entry> = self.tensors.values().filter(|e| e.shape().len() > 1).collect();
        matrices.sort_by_key(|e| (e.file, e.tensor.offset));
        matrices.into_iter().map(Entry::dtype).find(|dtype| dtype.ggml().is_some())
    }
}

impl WeightSource for Weights {
    fn part(&mut self, name: &str) -> Result<Option<Part>, Box<dyn Error + Send + Sync>> {
        Ok(Weights::part(self, name)?)
    }

    fn left(&self) -> Vec<&str> {
        self.tensors.keys().filter(|name| !self.taken.contains(*name)).map(String::as_str).collect()
    }
}
