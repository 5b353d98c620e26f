//! Safetensors files: their headers, strictly, and the sets that an index describes.
//!
//! Only headers are read here; the data of a tensor are a range of its file, at any byte.

mod dtype;
mod header;
mod index;

pub use dtype::Dtype;
pub use header::{Header, MAX_HEADER, MAX_RANK, MAX_TENSOR, TensorEntry};
pub use index::ShardIndex;

use ggml_format::{ByteSource, SourceError};

use header::{N_BYTE_LENGTH, header_length};

/// A damaged file or index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SafetensorsError {
    #[error(
        "expected a header of at most {limit} bytes, found a length of {found}; the file is damaged or incomplete"
    )]
    HeaderLength { found: u64, limit: u64 },
    #[error("expected JSON that describes tensors")]
    Json(#[source] serde_json::Error),
    #[error("tensor `{tensor}`: expected at most {MAX_RANK} dimensions, found {found}")]
    Rank { tensor: String, found: usize },
    #[error(
        "tensor `{tensor}`: expected the bytes of {dtype:?} {shape:?}, found data_offsets [{begin}, {end}]"
    )]
    Size { tensor: String, dtype: Dtype, shape: Vec<u64>, begin: u64, end: u64 },
    #[error(
        "tensor `{tensor}`: expected data at byte {expected}, after the tensor before it, found byte {found}"
    )]
    Offset { tensor: String, expected: u64, found: u64 },
    #[error("expected {expected} bytes of data, found {found}; the file is damaged or incomplete")]
    Coverage { expected: u64, found: u64 },
    #[error("expected at most {MAX_TENSOR} tensors, found {found}")]
    TooMany { found: usize },
    #[error("tensor `{tensor}`: expected the plain name of a .safetensors file, found {found:?}")]
    FileName { tensor: String, found: String },
    #[error("tensor `{tensor}`: named by the index, not found in the file")]
    NotInFile { tensor: String },
    #[error("tensor `{tensor}`: found in the file, not named by the index")]
    NotInIndex { tensor: String },
    #[error("read failed")]
    Source(#[from] SourceError),
}

/// Reads the header of a file.
///
/// # Errors
/// As [`Header::parse`], and failures of the source.
pub async fn read_header<S: ByteSource>(source: &S) -> Result<Header, SafetensorsError> {
    let mut first = [0; N_BYTE_LENGTH as usize];
    source.read_at(0, &mut first).await?;
    let n_byte = header_length(first, source.len())?;
    let mut json = vec![0; n_byte as usize];
    source.read_at(N_BYTE_LENGTH, &mut json).await?;
    Header::parse(&json, source.len())
}
