//! Writing GGUF files: metadata and directory first, then the tensor data as a stream.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::ops::Range;

use super::directory::data_bytes;
use super::metadata::Metadata;
use super::value::Value;
use super::{DEFAULT_ALIGNMENT, OwnedValue, align_up};
use crate::types::GgmlType;

/// A request that no file can represent, or an output failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum WriteError {
    #[error("metadata: the key is empty")]
    EmptyKey,
    #[error("key `{key}`: duplicate key")]
    DuplicateKey { key: String },
    #[error("key `general.alignment`: expected a u32 that is a power of two, found {found}")]
    Alignment { found: String },
    #[error("tensor `{tensor}`: expected a name of fewer than 64 bytes, found {}", .tensor.len())]
    NameLength { tensor: String },
    #[error("tensor `{tensor}`: duplicate tensor")]
    DuplicateTensor { tensor: String },
    #[error("tensor `{tensor}`: expected at most 4 dimensions, found {found}")]
    DimensionCount { tensor: String, found: usize },
    #[error("tensor `{tensor}`: expected fewer than 2^63 values and bytes, found the shape {ne:?}")]
    TooLarge { tensor: String, ne: Vec<u64> },
    #[error("tensor `{tensor}`: expected rows of a multiple of {} values for {ty}, found {found}", .ty.block_len())]
    RowLength { tensor: String, ty: GgmlType, found: u64 },
    #[error("data of tensor `{found}`: expected data of tensor `{expected}`, which was declared earlier")]
    Order { expected: String, found: String },
    #[error("data of tensor `{tensor}`: the data of all declared tensors is already complete")]
    Unexpected { tensor: String },
    #[error("data of tensor `{tensor}`: expected at most {expected} more bytes, found {found}")]
    TooLong { tensor: String, expected: u64, found: u64 },
    #[error("data of tensor `{tensor}`: expected {expected} more bytes, found the end of the data")]
    Incomplete { tensor: String, expected: u64 },
    #[error("write failed")]
    Io(#[from] io::Error),
}

#[derive(Debug)]
struct Declared {
    name: String,
    n_byte: u64,
}

/// Everything of a file but its tensor data.
#[derive(Clone, Debug)]
pub struct GgufHead {
    /// The file up to the data of the first tensor, with the padding before it.
    pub bytes: Vec<u8>,
    /// Place of each tensor in the file and its length without padding, in bytes, in the order of the declarations.
    pub tensors: Vec<Range<u64>>,
    /// Length of the whole file, in bytes.
    pub n_byte: u64,
}

/// Collects metadata and the tensor directory; [`GgufWriter::begin`] writes them.
///
/// # Example
/// ```
/// # use ggml_format::{Gguf, GgmlType, GgufWriter};
/// let mut writer = GgufWriter::new();
/// writer.set("general.architecture", "llama")?;
/// writer.tensor("output.weight", &[2, 3], GgmlType::F32)?;
/// let mut data = writer.begin(Vec::new())?;
/// for row in 0..3u8 {
///     data.write("output.weight", &[row; 8])?; // in pieces of any size
/// }
/// let file = data.finish()?;
/// let gguf = Gguf::parse(file.clone().into(), file.len() as u64)?;
/// assert_eq!(gguf.tensor("output.weight").unwrap().shape(), [3, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GgufWriter {
    alignment: u32,
    n_kv: u64,
    kv: Vec<u8>,
    keys: HashSet<String>,
    names: HashSet<String>,
    declared: Vec<(Vec<u8>, Declared)>,
}

impl Default for GgufWriter {
    fn default() -> GgufWriter {
        GgufWriter::new()
    }
}

impl GgufWriter {
    /// A version 3 file without keys or tensors.
    pub fn new() -> GgufWriter {
        GgufWriter {
            alignment: DEFAULT_ALIGNMENT,
            n_kv: 0,
            kv: Vec::new(),
            keys: HashSet::new(),
            names: HashSet::new(),
            declared: Vec::new(),
        }
    }

    /// Adds a key; the type in the file is that of `value`, so mind `1u32` and `1i32`.
    ///
    /// The key `general.alignment` sets the alignment of the tensor data, in bytes.
    ///
    /// # Errors
    /// For an empty or duplicate key, and for an alignment that is not a power of two.
    pub fn set(&mut self, key: &str, value: impl Into<OwnedValue>) -> Result<&mut GgufWriter, WriteError> {
        self.set_value(key, value.into().as_value())
    }

    /// Adds a key with a value from another file, without an intermediate copy.
    ///
    /// # Errors
    /// As [`GgufWriter::set`].
    pub fn set_value(&mut self, key: &str, value: Value<'_>) -> Result<&mut GgufWriter, WriteError> {
        if key.is_empty() {
            return Err(WriteError::EmptyKey);
        }
        if key == "general.alignment" {
            self.alignment = match value {
                Value::U32(n) if n.is_power_of_two() => n,
                other => return Err(WriteError::Alignment { found: other.describe() }),
            };
        }
        if !self.keys.insert(key.to_owned()) {
            return Err(WriteError::DuplicateKey { key: key.to_owned() });
        }
        Value::Str(key).encode(&mut self.kv);
        self.kv.extend(value.ty().id().to_le_bytes());
        value.encode(&mut self.kv);
        self.n_kv += 1;
        Ok(self)
    }

    /// Adds all keys of another file's metadata for which `keep` returns true.
    ///
    /// # Errors
    /// As [`GgufWriter::set`].
    pub fn copy_metadata(
        &mut self,
        metadata: &Metadata,
        mut keep: impl FnMut(&str) -> bool,
    ) -> Result<&mut GgufWriter, WriteError> {
        for (key, value) in metadata.iter() {
            if keep(key) {
                self.set_value(key, value)?;
            }
        }
        Ok(self)
    }

    /// Declares a tensor; the data follows in the order of the declarations.
    ///
    /// # Shapes
    /// `ne`: up to 4 sizes in ggml's order, fastest varying first; empty for a single value
    ///
    /// # Errors
    /// For names, shapes and types that a reader would reject.
    pub fn tensor(&mut self, name: &str, ne: &[u64], ty: GgmlType) -> Result<&mut GgufWriter, WriteError> {
        let tensor = || name.to_owned();
        if name.len() >= 64 {
            return Err(WriteError::NameLength { tensor: tensor() });
        }
        if ne.len() > 4 {
            return Err(WriteError::DimensionCount { tensor: tensor(), found: ne.len() });
        }
        let n_row = ne.first().copied().unwrap_or(1);
        if !n_row.is_multiple_of(ty.block_len() as u64) {
            return Err(WriteError::RowLength { tensor: tensor(), ty, found: n_row });
        }
        let n_byte =
            data_bytes(ty, ne).ok_or_else(|| WriteError::TooLarge { tensor: tensor(), ne: ne.to_vec() })?;
        if !self.names.insert(tensor()) {
            return Err(WriteError::DuplicateTensor { tensor: tensor() });
        }
        let mut record = Vec::new();
        Value::Str(name).encode(&mut record);
        record.extend((ne.len() as u32).to_le_bytes());
        for size in ne {
            record.extend(size.to_le_bytes());
        }
        record.extend(ty.id().to_le_bytes());
        self.declared.push((record, Declared { name: tensor(), n_byte }));
        Ok(self)
    }

    /// Makes everything but the tensor data, for a file whose data come from elsewhere.
    ///
    /// # Errors
    /// [`WriteError::TooLarge`] if the tensors together exceed the maximum file size.
    pub fn head(&self) -> Result<GgufHead, WriteError> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend((self.declared.len() as u64).to_le_bytes());
        bytes.extend(self.n_kv.to_le_bytes());
        bytes.extend(&self.kv);
        let mut offset = 0u64;
        let mut tensors = Vec::with_capacity(self.declared.len());
        for (record, declared) in &self.declared {
            bytes.extend(record);
            bytes.extend(offset.to_le_bytes());
            tensors.push(offset..offset + declared.n_byte);
            offset = align_up(declared.n_byte, self.alignment)
                .and_then(|n| offset.checked_add(n))
                .filter(|&n| n <= i64::MAX as u64)
                .ok_or_else(|| WriteError::TooLarge { tensor: declared.name.clone(), ne: Vec::new() })?;
        }
        if !tensors.is_empty() {
            let n_byte = bytes.len() as u64;
            pad(&mut bytes, n_byte, self.alignment)?;
        }
        let start = bytes.len() as u64;
        tensors.iter_mut().for_each(|place| *place = place.start + start..place.end + start);
        Ok(GgufHead { bytes, tensors, n_byte: start + offset })
    }

    /// Writes everything but the tensor data, which goes to the returned writer.
    ///
    /// # Errors
    /// [`WriteError::Io`]; [`WriteError::TooLarge`] if the tensors together exceed the maximum file size.
    pub fn begin<W: io::Write>(self, mut out: W) -> Result<DataWriter<W>, WriteError> {
        out.write_all(&self.head()?.bytes)?;
        let queue = self.declared.into_iter().map(|(_, declared)| declared).collect();
        let mut writer = DataWriter { out, alignment: self.alignment, queue, n_written: 0 };
        writer.step_over_finished()?;
        Ok(writer)
    }
}

/// Zeros from `n_byte` to the next multiple of `alignment`.
fn pad(out: &mut impl io::Write, n_byte: u64, alignment: u32) -> Result<(), WriteError> {
    const ZEROS: [u8; 256] = [0; 256];
    let mut n_left = align_up(n_byte, alignment).expect("the file's size was checked") - n_byte;
    while n_left > 0 {
        let n = n_left.min(ZEROS.len() as u64);
        out.write_all(&ZEROS[..n as usize])?;
        n_left -= n;
    }
    Ok(())
}

/// Takes the data of the declared tensors, in order and in pieces of any size, without buffering.
#[derive(Debug)]
pub struct DataWriter<W: io::Write> {
    out: W,
    alignment: u32,
    queue: VecDeque<Declared>,
    /// Bytes of the first queued tensor written so far.
    n_written: u64,
}

impl<W: io::Write> DataWriter<W> {
    /// The tensor whose data comes next, and its missing bytes; `None` after the last tensor.
    pub fn next(&self) -> Option<(&str, u64)> {
        self.queue.front().map(|t| (t.name.as_str(), t.n_byte - self.n_written))
    }

    /// Writes more data of `tensor`.
    ///
    /// # Errors
    /// For a tensor other than that of [`DataWriter::next`], or too many bytes; [`WriteError::Io`].
    pub fn write(&mut self, tensor: &str, data: &[u8]) -> Result<(), WriteError> {
        if data.is_empty() {
            return Ok(());
        }
        let Some((expected, n_left)) = self.next() else {
            return Err(WriteError::Unexpected { tensor: tensor.to_owned() });
        };
        if expected != tensor {
            return Err(WriteError::Order { expected: expected.to_owned(), found: tensor.to_owned() });
        }
        let found = data.len() as u64;
        if found > n_left {
            return Err(WriteError::TooLong { tensor: tensor.to_owned(), expected: n_left, found });
        }
        self.out.write_all(data)?;
        self.n_written += found;
        self.step_over_finished()
    }

    /// Pads the complete tensors at the front of the queue and removes them.
    fn step_over_finished(&mut self) -> Result<(), WriteError> {
        while let Some(tensor) = self.queue.front() {
            if tensor.n_byte > self.n_written {
                break;
            }
            pad(&mut self.out, tensor.n_byte, self.alignment)?;
            self.queue.pop_front();
            self.n_written = 0;
        }
        Ok(())
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    /// [`WriteError::Incomplete`] if data is missing; [`WriteError::Io`].
    pub fn finish(mut self) -> Result<W, WriteError> {
        if let Some((tensor, expected)) = self.next() {
            return Err(WriteError::Incomplete { tensor: tensor.to_owned(), expected });
        }
        self.out.flush()?;
        Ok(self.out)
    }
}
