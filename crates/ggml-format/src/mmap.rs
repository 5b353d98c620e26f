//! Memory-mapped files.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::gguf::HeaderBytes;
use crate::source::{MemorySource, SourceError};

impl MemorySource {
    /// A source over the file at `path`, mapped into memory, which must not be modified while it is mapped.
    ///
    /// The operating system loads pages on first access and may drop them again, so a large file takes address
    /// space, not memory.
    ///
    /// # Errors
    /// [`SourceError::Io`] if the file cannot be opened or mapped.
    pub fn map(path: impl AsRef<Path>) -> Result<MemorySource, SourceError> {
        let name = path.as_ref().display().to_string();
        match File::open(path).and_then(|file| map_file(&file)) {
            Ok(bytes) => Ok(MemorySource::new(name, bytes)),
            Err(source) => Err(SourceError::Io { name, source }),
        }
    }
}

/// The bytes of a file, mapped into memory as by [`MemorySource::map`].
///
/// # Errors
/// Those of the operating system.
#[allow(unsafe_code, reason = "mapping a file is unsafe: other processes may change it")]
pub fn map_file(file: &File) -> io::Result<HeaderBytes> {
    // SAFETY: The map is private to this process's view and read-only; we never write through it. If another
    // process truncates or rewrites the file meanwhile, reads may see other bytes or fault; that is the
    // documented condition of `MemorySource::map`, as it is for every program that maps model files. No code here
    // relies on the bytes staying the same for memory safety: text is validated again at each access.
    let map = unsafe { memmap2::Mmap::map(file) }?;
    Ok(HeaderBytes::new(map))
}
