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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GgmlType;
    use crate::gguf::GgufWriter;

    fn sample() -> Imatrix {
        let entry =
            |sums: &[f32], counts: &[f32]| ImatrixEntry::new("", sums.to_vec(), counts.to_vec()).unwrap();
        Imatrix {
            entries: BTreeMap::from([
                ("blk.0.attn_q.weight".to_owned(), entry(&[2.0, 0.0, 8.0], &[4.0])),
                ("blk.0.ffn_up_exps.weight".to_owned(), entry(&[3.0, 6.0, 0.0, 0.0], &[3.0, 0.0])),
            ]),
            datasets: vec!["a.txt".to_owned(), "b.txt".to_owned()],
            n_chunk: 7,
            chunk_len: 512,
        }
    }

    fn legacy() -> Vec<u8> {
        let mut file = Vec::new();
        let number = |n: i32, file: &mut Vec<u8>| file.extend(n.to_le_bytes());
        number(1, &mut file);
        number(8, &mut file);
        file.extend(b"a.weight");
        number(4, &mut file);
        number(2, &mut file);
        file.extend([2.0f32, 6.0].iter().flat_map(|v| v.to_le_bytes()));
        number(9, &mut file);
        number(5, &mut file);
        file.extend(b"c.txt");
        file
    }

    #[test]
    fn what_is_written_is_read_again() {
        let file = sample().write(Vec::new()).unwrap();
        assert_eq!(Imatrix::parse(file).unwrap(), sample());
    }

    #[test]
    fn nothing_is_not_written() {
        let mut out = Vec::new();
        let error = Imatrix::default().write(&mut out).unwrap_err();
        assert!(matches!(error, ImatrixError::Empty), "{error}");
        assert!(out.is_empty());
    }

    #[test]
    fn importance_is_the_mean_square_of_each_column() {
        let imatrix = sample();
        let found = imatrix.importance("blk.0.attn_q.weight", 3, 1).unwrap();
        assert_eq!(found, Some(vec![0.5, 0.0, 2.0]));
        // The second expert had no activations.
        let found = imatrix.importance("blk.0.ffn_up_exps.weight", 2, 2).unwrap();
        assert_eq!(found, Some(vec![1.0, 2.0, 1.0, 1.0]));
        assert_eq!(imatrix.importance("output.weight", 2, 2).unwrap(), None);
        let error = imatrix.importance("blk.0.attn_q.weight", 4, 1).unwrap_err().to_string();
        let expected =
            "tensor `blk.0.attn_q.weight`: expected importance for 4 columns of 1 matrices, found 3 values";
        assert_eq!(error, expected);
    }

    #[test]
    fn the_old_format_is_read_with_its_call_counts() {
        let imatrix = Imatrix::parse(legacy()).unwrap();
        assert_eq!(imatrix.importance("a.weight", 2, 1).unwrap(), Some(vec![0.5, 1.5]));
        // There is one count for all experts.
        assert_eq!(imatrix.importance("a.weight", 1, 2).unwrap(), Some(vec![0.5, 1.5]));
        assert_eq!((imatrix.n_chunk, imatrix.datasets), (9, vec!["c.txt".to_owned()]));
        // Older files end after the entries.
        let n = legacy().len();
        let imatrix = Imatrix::parse(legacy()[..n - 13].to_vec()).unwrap();
        assert_eq!((imatrix.n_chunk, imatrix.datasets.len()), (0, 0));
    }

    #[test]
    fn cut_and_damaged_files_are_errors() {
        for (file, n_optional) in [(sample().write(Vec::new()).unwrap(), 0), (legacy(), 13)] {
            for n in 0..file.len() - n_optional {
                // The padding after the last tensor carries no information.
                if file.len() - n > 32 || n_optional > 0 {
                    assert!(Imatrix::parse(file[..n].to_vec()).is_err(), "{n} bytes of {}", file.len());
                }
            }
            for i in 0..file.len() {
                let mut file = file.clone();
                file[i] ^= 0xff;
                // An error or different values, never a panic.
                let _ = Imatrix::parse(file);
            }
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let error = |bytes: Vec<u8>| Imatrix::parse(bytes).unwrap_err().to_string();
        let mut huge = legacy();
        huge[20..24].copy_from_slice(&i32::MAX.to_le_bytes());
        assert_eq!(
            error(huge),
            "values of entry 0 at byte 24: expected 8589934588 bytes, found the end of the file after 21"
        );
        let mut negative = legacy();
        negative[4..8].copy_from_slice(&(-1i32).to_le_bytes());
        assert_eq!(
            error(negative),
            "length of the name of entry 0 at byte 4: expected a positive number, found -1"
        );
        let mut nan = legacy();
        nan[24..28].copy_from_slice(&f32::NAN.to_le_bytes());
        assert_eq!(
            error(nan),
            "entry `a.weight`, value 0: expected a finite, non-negative number, found NaN"
        );

        let mut head = GgufWriter::new();
        head.set("general.type", "model").unwrap();
        let file = head.begin(Vec::new()).unwrap().finish().unwrap();
        assert_eq!(error(file), "key `general.type`: expected `imatrix`, found model");
        let mut head = GgufWriter::new();
        head.set("general.type", "imatrix").unwrap();
        let file = head.begin(Vec::new()).unwrap().finish().unwrap();
        assert_eq!(error(file), "expected the sums of at least one tensor, found none");
        let mut head = GgufWriter::new();
        head.set("general.type", "imatrix").unwrap();
        head.tensor("a.in_sum2", &[1, 1], GgmlType::F32).unwrap();
        let mut data = head.begin(Vec::new()).unwrap();
        data.write("a.in_sum2", &[0; 4]).unwrap();
        assert_eq!(error(data.finish().unwrap()), "entry `a`: expected a tensor `a.counts`, found none");
    }
}
