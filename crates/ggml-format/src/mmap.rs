//! Memory-mapped files.

use std::fmt;
use std::fs::File;
use std::path::Path;

use crate::gguf::HeaderBytes;
use crate::source::{ByteSource, SourceError, copy_range};

/// A file mapped into memory, read-only.
///
/// The operating system loads pages on first access and may drop them again, so a large file takes address
/// space, not memory.
#[derive(Clone)]
pub struct MmapSource {
    name: String,
    bytes: HeaderBytes,
}

impl MmapSource {
    /// Maps the file at `path`, which must not be modified while it is mapped.
    ///
    /// # Errors
    /// [`SourceError::Io`] if the file cannot be opened or mapped.
    pub fn open(path: impl AsRef<Path>) -> Result<MmapSource, SourceError> {
        let name = path.as_ref().display().to_string();
        match map(path.as_ref()) {
            Ok(map) => Ok(MmapSource { name, bytes: HeaderBytes::new(map) }),
            Err(source) => Err(SourceError::Io { name, source }),
        }
    }
}

#[allow(unsafe_code, reason = "mapping a file is unsafe: other processes may change it")]
fn map(path: &Path) -> std::io::Result<memmap2::Mmap> {
    let file = File::open(path)?;
    // SAFETY: The map is private to this process's view and read-only; we never write through it. If another
    // process truncates or rewrites the file meanwhile, reads may see other bytes or fault; that is the
    // documented condition of `open`, as it is for every program that maps model files. No code here relies
    // on the bytes staying the same for memory safety: text is validated again at each access.
    unsafe { memmap2::Mmap::map(&file) }
}

impl fmt::Debug for MmapSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MmapSource({:?}, {} bytes)", self.name, self.bytes.len())
    }
}

impl ByteSource for MmapSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        copy_range(&self.name, &self.bytes, offset, buf)
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    fn shared(&self) -> Option<HeaderBytes> {
        Some(self.bytes.clone())
    }
}
