//! Model files as they are read: local, over HTTP, from memory, or by a reader of the program's own.

#[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
pub mod folder;

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

pub use chaski_models::MetadataChanges;
use chaski_models::Model;
use ggml_format::{ByteSource, HeaderBytes, MemorySource, SourceError};

use crate::error::Error;

/// The source of a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source {
    /// A file; for the first file of a split set, its siblings are opened too. With the feature `checkpoints` also a
    /// folder of Hugging Face (config.json, safetensors, tokenizer) or of MLC, in the types that it has.
    Path(PathBuf),
    /// A folder of Hugging Face or of MLC, with options such as other types of tensors.
    #[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Types and other choices.
        options: chaski_checkpoint::hf::OpenOptions,
    },
    /// A file in memory.
    Bytes {
        /// The name in messages.
        name: String,
        /// The contents of the file.
        bytes: &'static [u8],
    },
    /// Files behind the caller's own readers: one, or all files of a split set, distinguished by their names.
    Readers(Vec<Arc<dyn Reader>>),
    /// The model that is embedded in the build: a small model that tells children's stories.
    Default,
}

/// The future returned by [`Reader::read_at`].
#[cfg(not(target_arch = "wasm32"))]
pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<(), SourceError>> + Send + 'a>>;

/// The future returned by [`Reader::read_at`].
#[cfg(target_arch = "wasm32")]
pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<(), SourceError>> + 'a>>;

/// A file that the caller reads: an object-safe [`ByteSource`], for sources that this crate does not know.
#[allow(clippy::len_without_is_empty, reason = "an empty file has no use")]
pub trait Reader: fmt::Debug + Send + Sync {
    /// The file's name, used in messages and to find the parts of a split set.
    fn name(&self) -> &str;

    /// Number of bytes.
    fn len(&self) -> u64;

    /// Fills `buf` with the bytes starting at `offset`. A call requests a few MiB at most.
    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> Reading<'a>;
}

#[cfg(feature = "default-model")]
const DEFAULT_MODEL: Option<&[u8]> = Some(include_bytes!("../../model/storyteller-Q4_K_M.gguf"));
#[cfg(not(feature = "default-model"))]
const DEFAULT_MODEL: Option<&[u8]> = None;

impl Source {
    /// A file.
    pub fn path(path: impl Into<PathBuf>) -> Source {
        Source::Path(path.into())
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::Path(p) => p.display().to_string(),
            #[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
            Source::Folder { path, .. } => path.display().to_string(),
            Source::Bytes { name, .. } => name.clone(),
            Source::Readers(all) => all.first().map_or_else(String::new, |r| r.name().to_owned()),
            Source::Default => "storyteller-Q4_K_M.gguf (embedded)".into(),
        }
    }

    /// Opens the file and reads its header, not its weights. Natively the reads block the thread that polls.
    ///
    /// # Errors
    /// [`Error::Source`], [`Error::Model`], [`Error::NoDefaultModel`].
    pub async fn open(&self) -> Result<OpenModel, Error> {
        self.open_with(&MetadataChanges::default()).await
    }

    /// Opens the file as [`Self::open`] does, with other values for some keys of its metadata
    /// ([`EngineBuilder::metadata`](crate::EngineBuilder::metadata)).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with(&self, changes: &MetadataChanges) -> Result<OpenModel, Error> {
        let first = self.bytes().await?;
        let missing =
            |name: &str, why: &str| SourceError::Other { name: name.to_owned(), source: why.into() };
        let next = |name: &str| match self {
            Source::Path(_) => sibling(name),
            Source::Readers(all) => {
                let found = all.iter().find(|r| r.name() == name).cloned().map(AnySource::Reader);
                found.ok_or_else(|| missing(name, "this file of the split set is missing"))
            }
            _ => Err(missing(
                name,
                "this file of the split set is missing: a source of bytes has only one file",
            )),
        };
        Ok(Model::open_with(first, next, changes).await?)
    }

    pub(crate) async fn bytes(&self) -> Result<AnySource, Error> {
        Ok(match self {
            #[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
            Source::Path(path) if folder::is_checkpoint(path) => {
                AnySource::Checkpoint(Box::new(folder::open(path, &Default::default()).await?.source))
            }
            #[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
            Source::Folder { path, options } => {
                AnySource::Checkpoint(Box::new(folder::open(path, options).await?.source))
            }
            Source::Path(path) => open_file(path)?,
            Source::Readers(all) => {
                let first = all.iter().min_by(|a, b| a.name().cmp(b.name())).ok_or(Error::NoFile)?;
                AnySource::Reader(first.clone())
            }
            Source::Bytes { name, bytes } => AnySource::Memory(MemorySource::new(name.clone(), *bytes)),
            Source::Default => {
                let bytes = DEFAULT_MODEL.ok_or(Error::NoDefaultModel)?;
                AnySource::Memory(MemorySource::new("storyteller-Q4_K_M.gguf", bytes))
            }
        })
    }
}

/// An open model file from any source.
pub type OpenModel = Model<AnySource>;

/// Summary of a model file.
#[derive(Clone, Debug)]
pub struct ModelInfo {
    /// Family, size and file type.
    pub description: String,
    /// Name of the file or source.
    pub file: String,
    /// Bytes of all tensors.
    pub n_byte: u64,
    /// Values of all tensors.
    pub n_param: u64,
    /// Context size that the model was trained with, in tokens.
    pub n_ctx_train: u32,
    /// Size of the vocabulary.
    pub n_vocab: u32,
}

/// The byte sources of this crate as one type.
#[non_exhaustive]
pub enum AnySource {
    /// In memory.
    Memory(MemorySource),
    /// A reader of the caller.
    Reader(Arc<dyn Reader>),
    /// A file.
    #[cfg(not(target_arch = "wasm32"))]
    File(FileSource),
    /// A folder as a file.
    #[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
    Checkpoint(Box<chaski_checkpoint::VirtualSource<FileSource>>),
}

#[cfg(not(target_arch = "wasm32"))]
fn open_file(path: &std::path::Path) -> Result<AnySource, Error> {
    Ok(AnySource::File(FileSource::open(path)?))
}

/// A file that is read, and mapped only for the CPU: while a model streams to a device, mapped pages would count as
/// memory of the process.
#[cfg(not(target_arch = "wasm32"))]
pub struct FileSource {
    name: String,
    file: std::fs::File,
    len: u64,
    /// Made when it is first asked for; `None` if the file cannot be mapped.
    map: std::sync::OnceLock<Option<HeaderBytes>>,
}

#[cfg(not(target_arch = "wasm32"))]
impl FileSource {
    /// Opens a file.
    ///
    /// # Errors
    /// [`SourceError::Io`]
    pub fn open(path: &std::path::Path) -> Result<FileSource, SourceError> {
        let name = path.display().to_string();
        let io = |source| SourceError::Io { name: name.clone(), source };
        // Before it is opened, since that waits for the writer of a pipe.
        let meta = std::fs::metadata(path).map_err(io)?;
        if meta.is_dir() {
            return Err(io(std::io::Error::from(std::io::ErrorKind::IsADirectory)));
        }
        if !meta.is_file() {
            let why = "a model is read at any place of its file, so it cannot be a pipe or device";
            return Err(io(std::io::Error::new(std::io::ErrorKind::InvalidInput, why)));
        }
        let file = std::fs::File::open(path).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        Ok(FileSource { len: meta.len(), file, name, map: std::sync::OnceLock::new() })
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        SourceError::check_range(&self.name, self.len, offset, buf.len() as u64)?;
        read_exact_at(&self.file, offset, buf)
            .map_err(|source| SourceError::Io { name: self.name.clone(), source })
    }

    fn mapped(&self) -> Option<HeaderBytes> {
        let map = || match ggml_format::map_file(&self.file) {
            Ok(bytes) => Some(bytes),
            Err(e) => {
                tracing::debug!("`{}` cannot be mapped, and is read: {e}", self.name);
                None
            }
        };
        self.map.get_or_init(map).clone()
    }

    fn in_parallel(&self) -> bool {
        true
    }
}

#[cfg(unix)]
fn read_exact_at(file: &std::fs::File, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buf, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &std::fs::File, mut offset: u64, mut buf: &mut [u8]) -> std::io::Result<()> {
    while !buf.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buf, offset)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => {
                buf = &mut buf[n..];
                offset += n as u64;
            }
        }
    }
    Ok(())
}

#[cfg(target_arch = "wasm32")]
fn open_file(path: &std::path::Path) -> Result<AnySource, Error> {
    let source = "a browser cannot open files by path; use bytes".into();
    Err(Error::Source(SourceError::Other { name: path.display().to_string(), source }))
}

/// The next file of a split set, from the directory of the first.
fn sibling(name: &str) -> Result<AnySource, SourceError> {
    open_file(std::path::Path::new(name)).map_err(|e| match e {
        Error::Source(e) => e,
        other => SourceError::Other { name: name.to_owned(), source: Box::new(other) },
    })
}

impl ByteSource for AnySource {
    fn name(&self) -> &str {
        match self {
            AnySource::Memory(s) => s.name(),
            AnySource::Reader(s) => s.name(),
            #[cfg(not(target_arch = "wasm32"))]
            AnySource::File(s) => s.name(),
            #[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
            AnySource::Checkpoint(s) => s.name(),
        }
    }

    fn len(&self) -> u64 {
        match self {
            AnySource::Memory(s) => s.len(),
            AnySource::Reader(s) => s.len(),
            #[cfg(not(target_arch = "wasm32"))]
            AnySource::File(s) => s.len(),
            #[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
            AnySource::Checkpoint(s) => s.len(),
        }
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        match self {
            AnySource::Memory(s) => s.read_at(offset, buf).await,
            AnySource::Reader(s) => s.read_at(offset, buf).await,
            #[cfg(not(target_arch = "wasm32"))]
            AnySource::File(s) => s.read_at(offset, buf).await,
            #[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
            AnySource::Checkpoint(s) => s.read_at(offset, buf).await,
        }
    }

    fn as_slice(&self) -> Option<&[u8]> {
        match self {
            AnySource::Memory(s) => s.as_slice(),
            _ => None,
        }
    }

    fn shared(&self) -> Option<HeaderBytes> {
        match self {
            AnySource::Memory(s) => s.shared(),
            _ => None,
        }
    }

    fn mapped(&self) -> Option<HeaderBytes> {
        match self {
            AnySource::Memory(s) => s.mapped(),
            #[cfg(not(target_arch = "wasm32"))]
            AnySource::File(s) => s.mapped(),
            _ => None,
        }
    }

    fn in_parallel(&self) -> bool {
        match self {
            AnySource::Memory(s) => s.in_parallel(),
            #[cfg(not(target_arch = "wasm32"))]
            AnySource::File(s) => s.in_parallel(),
            // A reader may wait for the caller's tasks, and panels of transposed matrices are read in order.
            _ => false,
        }
    }
}
