//! The model that is read: files that are read piece by piece.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use ggml_format::{ByteSource, ModelFile, SourceError};

/// A file that is read piece by piece: unlike a mapped one, it does not count as memory of this process.
#[derive(Debug)]
pub(crate) struct FileSource {
    name: String,
    len: u64,
    file: Mutex<File>,
}

impl FileSource {
    fn open(path: &str) -> Result<FileSource, SourceError> {
        let located = |source| SourceError::Io { name: path.to_owned(), source };
        let file = File::open(path).map_err(located)?;
        let len = file.metadata().map_err(located)?.len();
        Ok(FileSource { name: path.to_owned(), len, file: Mutex::new(file) })
    }
}

impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        SourceError::check_range(&self.name, self.len, offset, buf.len() as u64)?;
        // Each reader goes to its place first, so that one who panicked leaves nothing behind.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(buf));
        read.map_err(|source| SourceError::Io { name: self.name.clone(), source })
    }
}

/// A model in files of this kind.
pub(crate) type Model = ModelFile<FileSource>;

/// Opens the model that a file begins.
pub(crate) fn open(path: &Path) -> Result<Model> {
    let name = path.to_str().with_context(|| format!("`{}`: expected a name in UTF-8", path.display()))?;
    let first = FileSource::open(name)?;
    Ok(pollster::block_on(ModelFile::open(first, async |name: &str| FileSource::open(name)))?)
}
