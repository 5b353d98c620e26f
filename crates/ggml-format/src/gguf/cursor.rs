//! A cursor over the first bytes of a file, whose reads name the field they were reading when they fail.

use std::fmt;

use super::error::GgufError;

/// The field of a read; formatted only for an error.
#[derive(Copy, Clone)]
pub(super) enum Field<'a> {
    Magic,
    Version,
    TensorCount,
    KvCount,
    Key(u64),
    ValueType(&'a str),
    ElementType(&'a str),
    ElementCount(&'a str),
    Value(&'a str),
    Element(&'a str, u64),
    TensorName(u64),
    DimensionCount(&'a str),
    Dimension(&'a str, u32),
    TensorType(&'a str),
    TensorOffset(&'a str),
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Magic => f.write_str("magic"),
            Field::Version => f.write_str("version"),
            Field::TensorCount => f.write_str("number of tensors"),
            Field::KvCount => f.write_str("number of keys"),
            Field::Key(i) => write!(f, "key {i}"),
            Field::ValueType(key) => write!(f, "type of key `{key}`"),
            Field::ElementType(key) => write!(f, "element type of key `{key}`"),
            Field::ElementCount(key) => write!(f, "element count of key `{key}`"),
            Field::Value(key) => write!(f, "value of key `{key}`"),
            Field::Element(key, i) => write!(f, "element {i} of key `{key}`"),
            Field::TensorName(i) => write!(f, "name of tensor {i}"),
            Field::DimensionCount(tensor) => write!(f, "number of dimensions of tensor `{tensor}`"),
            Field::Dimension(tensor, i) => write!(f, "dimension {i} of tensor `{tensor}`"),
            Field::TensorType(tensor) => write!(f, "type of tensor `{tensor}`"),
            Field::TensorOffset(tensor) => write!(f, "data offset of tensor `{tensor}`"),
        }
    }
}

pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    file_len: u64,
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte; bytes beyond `file_len` are ignored.
    pub(super) fn new(bytes: &'a [u8], file_len: u64) -> Cursor<'a> {
        let n = usize::try_from(file_len).unwrap_or(usize::MAX).min(bytes.len());
        Cursor { bytes: &bytes[..n], position: 0, file_len }
    }

    /// Offset of the next read, in bytes.
    pub(super) fn position(&self) -> u64 {
        self.position as u64
    }

    pub(super) fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Bytes between the position and the end of the file.
    pub(super) fn n_left(&self) -> u64 {
        self.file_len - self.position()
    }

    /// Fails if the file, including bytes not yet at hand, is too short for `n` more items of `n_byte` bytes.
    pub(super) fn expect_in_file(&self, n: u64, n_byte: u64, field: Field<'_>) -> Result<u64, GgufError> {
        match n.checked_mul(n_byte) {
            Some(n_needed) if n_needed <= self.n_left() => Ok(n_needed),
            n_needed => Err(GgufError::Truncated {
                field: field.to_string(),
                offset: self.position(),
                n_needed: n_needed.unwrap_or(u64::MAX),
                n_left: self.n_left(),
            }),
        }
    }

    /// The next `n` bytes.
    pub(super) fn take(&mut self, n: u64, field: Field<'_>) -> Result<&'a [u8], GgufError> {
        self.expect_in_file(n, 1, field)?;
        let rest = &self.bytes[self.position..];
        if n > rest.len() as u64 {
            // Cannot overflow: both lie within the file.
            return Err(GgufError::NeedMore { n_byte: self.position() + n });
        }
        let n = n as usize;
        self.position += n;
        Ok(&rest[..n])
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self, field: Field<'_>) -> Result<[u8; N], GgufError> {
        let bytes = self.take(N as u64, field)?;
        Ok(bytes.try_into().expect("take gives as many bytes as requested"))
    }

    pub(super) fn u32(&mut self, field: Field<'_>) -> Result<u32, GgufError> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, field: Field<'_>) -> Result<u64, GgufError> {
        self.array(field).map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self, field: Field<'_>) -> Result<i64, GgufError> {
        self.array(field).map(i64::from_le_bytes)
    }

    /// An i64 count.
    pub(super) fn count(&mut self, field: Field<'_>) -> Result<u64, GgufError> {
        let offset = self.position();
        let found = self.i64(field)?;
        u64::try_from(found).map_err(|_| GgufError::NegativeCount { field: field.to_string(), offset, found })
    }

    /// A length followed by that many bytes of text.
    pub(super) fn str(&mut self, field: Field<'_>) -> Result<&'a str, GgufError> {
        let n = self.u64(field)?;
        let offset = self.position();
        let bytes = self.take(n, field)?;
        std::str::from_utf8(bytes).map_err(|e| GgufError::Utf8 {
            field: field.to_string(),
            offset,
            n_valid: e.valid_up_to(),
        })
    }
}
