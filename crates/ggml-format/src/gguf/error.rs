//! Errors of GGUF files, each with the byte offset where it occurs.

use crate::types::GgmlType;

/// A file that is not a readable GGUF file, or that lacks a requested value.
///
/// Offsets count bytes from the start of the file.
#[derive(Clone, PartialEq, thiserror::Error)]
#[cfg_attr(not(target_arch = "wasm32"), derive(Debug))]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum GgufError {
    /// Not an error of the file: its header is longer than the bytes at hand.
    #[error("the file header is longer than the bytes given: at least {n_byte} bytes are needed")]
    NeedMore { n_byte: u64 },
    #[error(
        "{field} at byte {offset}: expected {n_needed} more bytes, found the end of the file after {n_left}"
    )]
    Truncated { field: String, offset: u64, n_needed: u64, n_left: u64 },
    #[error("magic at byte 0: expected `GGUF`, found `{found}`; this is not a GGUF file")]
    Magic { found: String },
    #[error("version at byte 4: expected 2 or 3, found {found}")]
    Version { found: u32 },
    #[error("version at byte 4: found {found:#010x}; the file is big-endian, expected little-endian")]
    ByteOrder { found: u32 },
    #[error("{field} at byte {offset}: expected a non-negative count, found {found}")]
    NegativeCount { field: String, offset: u64, found: i64 },
    #[error("{field} at byte {offset}: expected UTF-8, found an invalid sequence after {n_valid} bytes")]
    Utf8 { field: String, offset: u64, n_valid: usize },
    #[error("key {index} at byte {offset}: the name is empty")]
    EmptyKey { index: u64, offset: u64 },
    #[error("key `{key}` at byte {offset}: duplicate key, first found at byte {first}")]
    DuplicateKey { key: String, offset: u64, first: u64 },
    #[error("type of key `{key}` at byte {offset}: expected 0 to 12, found {found}")]
    ValueTypeId { key: String, offset: u64, found: u32 },
    #[error(
        "element type of key `{key}` at byte {offset}: expected a scalar or a string, found an array of arrays"
    )]
    NestedArray { key: String, offset: u64 },
    #[error("key `general.alignment` at byte {offset}: expected a u32 that is a power of two, found {found}")]
    Alignment { offset: u64, found: String },
    #[error("name of tensor {index} at byte {offset}: expected fewer than 64 bytes, found {found}")]
    TensorNameLength { index: u64, offset: u64, found: u64 },
    #[error("tensor `{tensor}` at byte {offset}: duplicate tensor")]
    DuplicateTensor { tensor: String, offset: u64 },
    #[error("dimensions of tensor `{tensor}` at byte {offset}: expected at most 4, found {found}")]
    DimensionCount { tensor: String, offset: u64, found: u32 },
    #[error(
        "dimension {index} of tensor `{tensor}` at byte {offset}: expected a non-negative size, found {found}"
    )]
    NegativeDimension { tensor: String, index: u32, offset: u64, found: i64 },
    #[error(
        "shape of tensor `{tensor}` at byte {offset}: expected fewer than 2^63 values and bytes, found {ne:?}"
    )]
    TooLarge { tensor: String, offset: u64, ne: [u64; 4] },
    #[error("type of tensor `{tensor}` at byte {offset}: expected the id of a ggml type, found {found}{}", removed(*.found))]
    TensorTypeId { tensor: String, offset: u64, found: u32 },
    #[error(
        "rows of tensor `{tensor}` at byte {offset}: expected a multiple of {} values for {ty}, found {found}",
        .ty.block_len()
    )]
    RowLength { tensor: String, offset: u64, ty: GgmlType, found: u64 },
    #[error(
        "data offset of tensor `{tensor}` at byte {offset}: expected {expected}, the end of the previous tensor, \
         found {found}"
    )]
    TensorOffset { tensor: String, offset: u64, expected: u64, found: u64 },
    #[error(
        "tensor `{tensor}` at byte {offset}: expected {expected} bytes for type id {id} ({ty}), found {found}, \
         the size of a fork's {fork}; convert the model again with a current llama.cpp"
    )]
    ForkType {
        tensor: String,
        offset: u64,
        id: u32,
        ty: GgmlType,
        expected: u64,
        found: u64,
        fork: &'static str,
    },
    #[error(
        "data of tensor `{tensor}` at byte {offset}: expected {n_byte} bytes, found the end of the file at byte {file_len}"
    )]
    TensorPastEnd { tensor: String, offset: u64, n_byte: u64, file_len: u64 },
    #[error("key `{key}`: expected {expected}, but the key is missing")]
    MissingKey { key: String, expected: &'static str },
    #[error("key `{key}` at byte {offset}: expected {expected}, found {found}")]
    KeyType { key: String, offset: u64, expected: &'static str, found: String },
    #[error("element {index} of key `{key}` at byte {offset}: expected {expected}, found {found}")]
    ElementType { key: String, index: u64, offset: u64, expected: &'static str, found: String },
    #[error("key `{key}` at byte {offset}: expected one value or {expected}, found {found}")]
    ElementCount { key: String, offset: u64, expected: u64, found: u64 },
    #[error("key `{key}`: expected at most {limit} layers that share one value, found {found}")]
    LayerCount { key: String, limit: usize, found: usize },
}

/// Modules for browsers are small: there, the message stands for the fields.
#[cfg(target_arch = "wasm32")]
impl std::fmt::Debug for GgufError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

fn removed(id: u32) -> &'static str {
    match id {
        4 | 5 | 31..=33 | 36..=38 => ", a type that ggml has removed",
        _ => "",
    }
}
