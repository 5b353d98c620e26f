//! Byte sources: memory, a mapped file, or a reader of ranges.

use std::fmt;
use std::future::Future;

use crate::bounds::{MaybeSend, MaybeSync};
use crate::gguf::HeaderBytes;

/// A failure to read bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SourceError {
    #[error("`{name}`: expected {n_byte} bytes at byte {offset}, found the end at byte {len}")]
    OutOfRange { name: String, offset: u64, n_byte: u64, len: u64 },
    #[error("`{name}`: read failed")]
    Io {
        name: String,
        #[source]
        source: std::io::Error,
    },
    #[error("`{name}`: read failed")]
    Other {
        name: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl SourceError {
    /// Fails unless `n_byte` bytes at `offset` lie within the `len` bytes of `name`.
    ///
    /// # Errors
    /// [`SourceError::OutOfRange`]
    pub fn check_range(name: &str, len: u64, offset: u64, n_byte: u64) -> Result<(), SourceError> {
        match offset.checked_add(n_byte) {
            Some(end) if end <= len => Ok(()),
            _ => Err(SourceError::OutOfRange { name: name.to_owned(), offset, n_byte, len }),
        }
    }
}

/// A file with random access to its bytes.
#[allow(clippy::len_without_is_empty, reason = "an empty source has no use")]
pub trait ByteSource: MaybeSend + MaybeSync {
    /// Path, URL or any other name; used in error messages, and to derive the names of a split set's files.
    fn name(&self) -> &str;

    /// Number of bytes.
    fn len(&self) -> u64;

    /// Fills `buf` with the bytes starting at `offset`.
    ///
    /// # Errors
    /// [`SourceError::OutOfRange`] if there are too few; otherwise any failure of the source.
    fn read_at(
        &self,
        offset: u64,
        buf: &mut [u8],
    ) -> impl Future<Output = Result<(), SourceError>> + MaybeSend;

    /// All bytes at once, if they are in memory.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }

    /// All bytes as a shared handle, if they are in memory; the metadata then needs no copy.
    fn shared(&self) -> Option<HeaderBytes> {
        None
    }

    /// All bytes as a shared handle, if they are in memory or can be mapped into it.
    fn mapped(&self) -> Option<HeaderBytes> {
        self.shared()
    }

    /// True if several threads may read at once, in any order, and no read waits for another task: files and memory.
    fn in_parallel(&self) -> bool {
        false
    }
}

/// Bytes in memory.
#[derive(Clone)]
pub struct MemorySource {
    name: String,
    bytes: HeaderBytes,
}

impl MemorySource {
    /// A source over a `Vec<u8>`, an `Arc<[u8]>` or a `&'static [u8]`.
    pub fn new(name: impl Into<String>, bytes: impl Into<HeaderBytes>) -> MemorySource {
        MemorySource { name: name.into(), bytes: bytes.into() }
    }
}

impl fmt::Debug for MemorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemorySource({:?}, {} bytes)", self.name, self.bytes.len())
    }
}

impl ByteSource for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        SourceError::check_range(&self.name, self.len(), offset, buf.len() as u64)?;
        buf.copy_from_slice(&self.bytes[offset as usize..][..buf.len()]);
        Ok(())
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    fn shared(&self) -> Option<HeaderBytes> {
        Some(self.bytes.clone())
    }

    fn in_parallel(&self) -> bool {
        true
    }
}
