//! Importance matrices: the magnitude of the activations that each matrix column sees, measured on a text.
//!
//! The damage done by an error in a weight grows with the square of the activation it is multiplied with, so
//! quantisers weigh errors by the mean squares of the activations. llama.cpp's `llama-imatrix` writes them as
//! GGUF, and earlier wrote them in a format of its own; both are read here.

mod gguf_file;
mod legacy;

use std::collections::BTreeMap;

use crate::gguf::{GgufError, HeaderBytes, WriteError};

/// A file that is not an importance matrix, or one that does not fit a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ImatrixError {
    #[error("the file starts like a GGUF file but cannot be read as one")]
    Gguf(#[from] GgufError),
    #[error("key `general.type`: expected `imatrix`, found {}", .found.as_deref().unwrap_or("no such key"))]
    NotImatrix { found: Option<String> },
    #[error("expected the sums of at least one tensor, found none")]
    Empty,
    #[error("tensor `{tensor}`: expected f32, found {found}")]
    Type { tensor: String, found: crate::types::GgmlType },
    #[error("entry `{entry}`: expected a tensor `{entry}{missing}`, found none")]
    Missing { entry: String, missing: &'static str },
    #[error("entry `{entry}`: expected sums for each of {n_mat} matrices, found {found} sums")]
    Shape { entry: String, n_mat: usize, found: usize },
    #[error("entry `{entry}`, value {index}: expected a finite, non-negative number, found {found}")]
    Value { entry: String, index: usize, found: f32 },
    #[error("entry `{entry}`: duplicate entry")]
    Duplicate { entry: String },
    #[error("{field} of entry {index} at byte {offset}: expected {expected}, found {found}")]
    Legacy { field: &'static str, index: u32, offset: u64, expected: &'static str, found: String },
    #[error(
        "{field} of entry {index} at byte {offset}: expected {n_needed} bytes, found the end of the file after {n_left}"
    )]
    Truncated { field: &'static str, index: u32, offset: u64, n_needed: u64, n_left: usize },
    #[error(
        "tensor `{tensor}`: expected importance for {n_col} columns of {n_mat} matrices, found {found} values"
    )]
    Tensor { tensor: String, n_col: usize, n_mat: usize, found: usize },
    #[error("cannot write the file")]
    Write(#[from] WriteError),
}

/// The measurements of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct ImatrixEntry {
    sums: Vec<f32>,
    counts: Vec<f32>,
}

impl ImatrixEntry {
    /// Creates an entry from the sums of squared activations and the number of activations summed.
    ///
    /// # Shapes
    /// `sums`: `[n_mat, n_col]`; `counts`: `[n_mat]`, or one for all matrices
    ///
    /// # Errors
    /// If the lengths do not match, and for values that no sum of squares can have.
    pub fn new(entry: &str, sums: Vec<f32>, counts: Vec<f32>) -> Result<ImatrixEntry, ImatrixError> {
        if counts.is_empty() || sums.is_empty() || !sums.len().is_multiple_of(counts.len()) {
            let (entry, n_mat, found) = (entry.to_owned(), counts.len(), sums.len());
            return Err(ImatrixError::Shape { entry, n_mat, found });
        }
        let wrong = |v: &f32| !(v.is_finite() && *v >= 0.0);
        if let Some(index) = sums.iter().chain(&counts).position(wrong) {
            let found = *sums.iter().chain(&counts).nth(index).expect("the index was found there");
            return Err(ImatrixError::Value { entry: entry.to_owned(), index, found });
        }
        Ok(ImatrixEntry { sums, counts })
    }

    /// Sums of squared activations: `[n_mat, n_col]`.
    pub fn sums(&self) -> &[f32] {
        &self.sums
    }

    /// Number of activations summed, per matrix or for all.
    pub fn counts(&self) -> &[f32] {
        &self.counts
    }

    /// Mean squares; all 1 for a matrix without activations, such as an expert that was never selected.
    fn means(&self) -> Vec<f32> {
        let n_col = self.sums.len() / self.counts.len();
        let rows = self.sums.chunks_exact(n_col).zip(&self.counts);
        rows.flat_map(|(sums, &count)| {
            sums.iter().map(move |&sum| if count > 0.0 { sum / count } else { 1.0 })
        })
        .collect()
    }
}

/// The importance matrix of a model, by tensor name.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct Imatrix {
    /// The entries by name.
    pub entries: BTreeMap<String, ImatrixEntry>,
    /// The texts that it was measured on.
    pub datasets: Vec<String>,
    /// Number of text chunks.
    pub n_chunk: u32,
    /// Tokens per chunk; 0 if unknown.
    pub chunk_len: u32,
}

impl Imatrix {
    /// Parses a file of either format.
    ///
    /// # Errors
    /// For files that are damaged or of another format.
    pub fn parse(bytes: impl Into<HeaderBytes>) -> Result<Imatrix, ImatrixError> {
        let bytes = bytes.into();
        let imatrix =
            if bytes.starts_with(b"GGUF") { gguf_file::read(bytes)? } else { legacy::read(&bytes)? };
        if imatrix.entries.is_empty() { Err(ImatrixError::Empty) } else { Ok(imatrix) }
    }

    /// The importance of a tensor's columns; `None` if there is no entry for it.
    ///
    /// # Shapes
    /// the result: `[n_mat, n_col]`
    ///
    /// # Errors
    /// If the entry has another number of values.
    pub fn importance(
        &self,
        tensor: &str,
        n_col: usize,
        n_mat: usize,
    ) -> Result<Option<Vec<f32>>, ImatrixError> {
        let Some(entry) = self.entries.get(tensor) else { return Ok(None) };
        let found = entry.sums.len();
        if n_col.checked_mul(n_mat) != Some(found) {
            return Err(ImatrixError::Tensor { tensor: tensor.to_owned(), n_col, n_mat, found });
        }
        Ok(Some(entry.means()))
    }
}
