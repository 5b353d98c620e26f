//! The GGUF container, versions 2 and 3: metadata, a directory of tensors, then the tensors' bytes.
//!
//! ```text
//! file   := header kv* tensor* padding data        all numbers little endian
//! header := "GGUF" version:u32 n_tensor:i64 n_kv:i64
//! kv     := key:string type:i32 value              string := n_byte:u64 bytes
//! tensor := name:string n_dims:u32 ne[n_dims]:i64 type:i32 offset:u64
//! ```
//!
//! Reading needs no file: [`Gguf::parse`] takes its first bytes, from any source.

mod cursor;
mod directory;
mod error;
mod fork;
mod header_bytes;
mod metadata;
mod owned;
mod tensor;
mod value;
mod writer;

use std::collections::HashMap;
use std::ops::Deref;

pub use error::GgufError;
pub use header_bytes::HeaderBytes;
pub use metadata::Metadata;
pub use owned::{ArrayBuf, OwnedValue};
pub use tensor::TensorInfo;
pub use value::{ArrayIter, ArrayView, FromValue, StrIter, Value, ValueType};
pub use writer::{DataWriter, GgufHead, GgufWriter, WriteError};

use cursor::{Cursor, Field};
use metadata::Entries;

/// Default alignment of tensor data, in bytes.
pub const DEFAULT_ALIGNMENT: u32 = 32;

/// The header of a GGUF file: its metadata and its tensor directory.
///
/// Dereferences to its [`Metadata`], so that `gguf.u32("llama.block_count")?` works.
#[derive(Clone, Debug)]
pub struct Gguf {
    metadata: Metadata,
    layout: Layout,
    index: HashMap<String, u32>,
}

/// Everything except the metadata values.
#[derive(Clone, Debug)]
struct Layout {
    version: u32,
    alignment: u32,
    n_byte_header: u64,
    data_start: u64,
    tensors: Vec<TensorInfo>,
}

impl Gguf {
    /// Parses the header of a file of `file_len` bytes from `bytes`, its first bytes.
    ///
    /// Metadata arrays and strings are not copied: they stay in `bytes`, which the result keeps.
    ///
    /// # Errors
    /// [`GgufError::NeedMore`] if the file's header may be longer than `bytes`: call again with more of the
    /// file, preferably a multiple of the previous length. Any other error is about the file itself.
    ///
    /// # Example
    /// ```
    /// # use ggml_format::{Gguf, GgufWriter};
    /// let mut writer = GgufWriter::new();
    /// writer.set("general.architecture", "llama")?.set("llama.block_count", 16u32)?;
    /// let file = writer.begin(Vec::new())?.finish()?;
    /// let gguf = Gguf::parse(file.clone().into(), file.len() as u64)?;
    /// assert_eq!(gguf.str("general.architecture")?, "llama");
    /// assert_eq!(gguf.u32("llama.block_count")?, 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(bytes: HeaderBytes, file_len: u64) -> Result<Gguf, GgufError> {
        let scan = Scan::new(&bytes, file_len)?;
        Ok(scan.with_bytes(bytes))
    }

    /// The version of the container, 2 or 3.
    pub fn version(&self) -> u32 {
        self.layout.version
    }

    /// The metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Alignment of the tensors' data, in bytes: a power of two.
    pub fn alignment(&self) -> u32 {
        self.layout.alignment
    }

    /// Length of the header, up to the end of the directory, in bytes.
    pub fn n_byte_header(&self) -> u64 {
        self.layout.n_byte_header
    }

    /// Offset of the tensor data in the file, in bytes.
    pub fn data_start(&self) -> u64 {
        self.layout.data_start
    }

    /// The tensors, in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.layout.tensors
    }

    /// The tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|&i| &self.layout.tensors[i as usize])
    }

    pub(crate) fn into_parts(self) -> (Metadata, Vec<TensorInfo>) {
        (self.metadata, self.layout.tensors)
    }
}

impl Deref for Gguf {
    type Target = Metadata;

    fn deref(&self) -> &Metadata {
        &self.metadata
    }
}

/// A parsed header, not yet bound to the bytes that its spans point into.
pub(crate) struct Scan {
    entries: Entries,
    layout: Layout,
    index: HashMap<String, u32>,
}

impl Scan {
    pub(crate) fn new(bytes: &[u8], file_len: u64) -> Result<Scan, GgufError> {
        let mut cursor = Cursor::new(bytes, file_len);
        let (version, n_tensor, n_kv) = header(&mut cursor)?;
        let entries = Entries::read(&mut cursor, n_kv)?;
        let alignment = entries.alignment(bytes)?;
        let directory = directory::read(&mut cursor, n_tensor, alignment)?;
        let layout = Layout {
            version,
            alignment,
            n_byte_header: cursor.position(),
            data_start: directory.data_start,
            tensors: directory.tensors,
        };
        Ok(Scan { entries, layout, index: directory.index })
    }

    pub(crate) fn n_byte_header(&self) -> u64 {
        self.layout.n_byte_header
    }

    /// Binds the header to its bytes, or to a copy of at least their first [`Scan::n_byte_header`].
    pub(crate) fn with_bytes(self, bytes: HeaderBytes) -> Gguf {
        let metadata = Metadata::new(bytes, self.entries);
        Gguf { metadata, layout: self.layout, index: self.index }
    }
}

/// Version, number of tensors, number of key-value pairs.
fn header(cursor: &mut Cursor<'_>) -> Result<(u32, u64, u64), GgufError> {
    let magic = cursor.array::<4>(Field::Magic)?;
    if magic != *b"GGUF" {
        return Err(GgufError::Magic { found: magic.escape_ascii().to_string() });
    }
    let version = cursor.u32(Field::Version)?;
    if version & 0xffff == 0 {
        return Err(GgufError::ByteOrder { found: version });
    }
    if !(2..=3).contains(&version) {
        return Err(GgufError::Version { found: version });
    }
    let n_tensor = cursor.count(Field::TensorCount)?;
    let n_kv = cursor.count(Field::KvCount)?;
    Ok((version, n_tensor, n_kv))
}

/// `n` rounded up to a multiple of `alignment`, a power of two.
pub(crate) fn align_up(n: u64, alignment: u32) -> Option<u64> {
    n.checked_next_multiple_of(u64::from(alignment))
}
