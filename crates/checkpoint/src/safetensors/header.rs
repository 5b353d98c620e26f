//! The header of a safetensors file.
//!
//! ```text
//! file := n:u64 header[n] data          little endian; the header is JSON, padded with spaces
//! header := {NAME: {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__": {KEY: TEXT}}
//! ```

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{Error as _, MapAccess, Visitor};

use super::{Dtype, SafetensorsError};

/// Bytes before the header: its length.
pub(super) const N_BYTE_LENGTH: u64 = 8;
/// Longest header in bytes, the limit of the library that writes these files.
pub const MAX_HEADER: u64 = 100_000_000;
/// Most tensors of a file.
pub const MAX_TENSOR: usize = 1_000_000;
/// Most dimensions of a tensor.
pub const MAX_RANK: usize = 8;

/// A tensor of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorEntry {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Sizes, outermost first; empty for a single element.
    pub shape: Vec<u64>,
    /// Place of its first byte in the file.
    pub offset: u64,
    /// Number of its bytes.
    pub n_byte: u64,
}

/// The header of a file: its tensors in the order of their data, and its remarks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The tensors.
    pub tensors: Vec<TensorEntry>,
    /// The texts under `__metadata__`.
    pub metadata: BTreeMap<String, String>,
}

/// Length of the header, from the first 8 bytes of a file of `file_len` bytes.
///
/// # Errors
/// [`SafetensorsError::HeaderLength`]
pub(super) fn header_length(first: [u8; 8], file_len: u64) -> Result<u64, SafetensorsError> {
    let found = u64::from_le_bytes(first);
    let limit = MAX_HEADER.min(file_len.saturating_sub(N_BYTE_LENGTH));
    if found > limit {
        return Err(SafetensorsError::HeaderLength { found, limit });
    }
    Ok(found)
}

impl Header {
    /// Parses the text of a header whose file has `file_len` bytes.
    ///
    /// The data must be covered by the tensors without gap, overlap or rest.
    ///
    /// # Errors
    /// For damaged JSON, unknown types, duplicate names, and sizes that do not match.
    pub fn parse(json: &[u8], file_len: u64) -> Result<Header, SafetensorsError> {
        let raw: RawHeader = serde_json::from_slice(json).map_err(SafetensorsError::Json)?;
        let data_start = N_BYTE_LENGTH + json.len() as u64;
        let n_byte_data = file_len.saturating_sub(data_start);
        let mut tensors = Vec::with_capacity(raw.entries.len());
        for (name, entry) in raw.entries {
            tensors.push(entry.check(name, data_start)?);
        }
        tensors.sort_by_key(|t| (t.offset, t.n_byte));
        let mut end = data_start;
        for t in &tensors {
            if t.offset != end {
                let (tensor, found) = (t.name.clone(), t.offset - data_start);
                return Err(SafetensorsError::Offset { tensor, expected: end - data_start, found });
            }
            // Offsets lie below the last one, whose sum was checked.
            end = t.offset + t.n_byte;
        }
        if end - data_start != n_byte_data {
            return Err(SafetensorsError::Coverage { expected: end - data_start, found: n_byte_data });
        }
        Ok(Header { tensors, metadata: raw.metadata })
    }
}

/// An entry as it is in the file.
#[derive(Deserialize)]
struct RawEntry {
    dtype: Dtype,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl RawEntry {
    fn check(self, name: String, data_start: u64) -> Result<TensorEntry, SafetensorsError> {
        let RawEntry { dtype, shape, data_offsets: (begin, end) } = self;
        if shape.len() > MAX_RANK {
            return Err(SafetensorsError::Rank { tensor: name, found: shape.len() });
        }
        let n_elem = shape.iter().try_fold(1u64, |n, &size| n.checked_mul(size));
        let n_byte = n_elem.and_then(|n| dtype.n_byte(n));
        let found = end.checked_sub(begin);
        let (Some(n_byte), Some(_), true) = (n_byte, data_start.checked_add(end), n_byte == found) else {
            return Err(SafetensorsError::Size { tensor: name, dtype, shape, begin, end });
        };
        Ok(TensorEntry { name, dtype, shape, offset: data_start + begin, n_byte })
    }
}

/// The JSON object, with its names in order.
struct RawHeader {
    entries: Vec<(String, RawEntry)>,
    metadata: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<RawHeader, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = RawHeader;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RawHeader, M::Error> {
        let (mut entries, mut metadata) = (Vec::new(), None);
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                if metadata.replace(map.next_value()?).is_some() {
                    return Err(M::Error::custom("duplicate `__metadata__`"));
                }
                continue;
            }
            if !names.insert(name.clone()) {
                return Err(M::Error::custom(format_args!("duplicate tensor `{name}`")));
            }
            if entries.len() == MAX_TENSOR {
                return Err(M::Error::custom(format_args!(
                    "expected at most {MAX_TENSOR} tensors, found more"
                )));
            }
            entries.push((name, map.next_value()?));
        }
        Ok(RawHeader { entries, metadata: metadata.unwrap_or_default() })
    }
}
