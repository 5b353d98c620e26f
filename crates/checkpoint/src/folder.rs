//! The files of a folder, by name, whatever they are read from.

use ggml_format::{ByteSource, SourceError};

/// Longest file that is read whole, such as tokenizer.json, in bytes.
pub const MAX_SMALL_FILE: u64 = 256 << 20;

/// A file that cannot be read whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum FolderError {
    #[error("`{folder}`: expected a file `{file}`, found none")]
    Missing { folder: String, file: String },
    #[error("`{folder}/{file}`: expected at most {MAX_SMALL_FILE} bytes, found {found}")]
    TooLong { folder: String, file: String, found: u64 },
    #[error("cannot read a file of the checkpoint")]
    Source(#[from] SourceError),
}

/// True for a name that stays in its folder on every system.
pub(crate) fn is_plain_name(file: &str) -> bool {
    !file.is_empty() && !file.starts_with('.') && !file.contains(['/', '\\', ':', '\0'])
}

/// Files by their names within a folder. Recipes refer to them by number: [`Folder::position`].
#[derive(Debug)]
pub struct Folder<S> {
    name: String,
    names: Vec<String>,
    sources: Vec<S>,
    others: Vec<String>,
}

impl<S: ByteSource> Folder<S> {
    /// A folder of these files; `name` is used in messages.
    pub fn new(name: impl Into<String>, files: impl IntoIterator<Item = (String, S)>) -> Folder<S> {
        let (names, sources) = files.into_iter().unzip();
        Folder { name: name.into(), names, sources, others: Vec::new() }
    }

    /// The same with the names of files that were not opened, which messages give as the reason why others are missing.
    pub fn beside(self, others: Vec<String>) -> Folder<S> {
        Folder { others, ..self }
    }

    /// The same with more files, which get the next numbers.
    pub fn with(mut self, files: impl IntoIterator<Item = (String, S)>) -> Folder<S> {
        for (name, source) in files {
            self.others.retain(|other| *other != name);
            self.names.push(name);
            self.sources.push(source);
        }
        self
    }

    /// The names of all files, opened or not.
    pub(crate) fn all_names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().chain(&self.others).map(String::as_str)
    }

    /// The folder's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the files, in the order of their numbers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The number of a file.
    pub fn position(&self, file: &str) -> Option<usize> {
        self.names.iter().position(|name| name == file)
    }

    /// A file.
    pub fn file(&self, file: &str) -> Option<&S> {
        self.position(file).map(|i| &self.sources[i])
    }

    /// The bytes of a small file, if the folder has it.
    ///
    /// # Errors
    /// [`FolderError::TooLong`], and failures of the source.
    pub async fn try_read(&self, file: &str) -> Result<Option<Vec<u8>>, FolderError> {
        let Some(source) = self.file(file) else { return Ok(None) };
        let found = source.len();
        if found > MAX_SMALL_FILE {
            return Err(FolderError::TooLong { folder: self.name.clone(), file: file.to_owned(), found });
        }
        let mut bytes = vec![0; found as usize];
        source.read_at(0, &mut bytes).await?;
        Ok(Some(bytes))
    }

    /// The bytes of a small file.
    ///
    /// # Errors
    /// [`FolderError::Missing`], and as [`Folder::try_read`].
    pub async fn read(&self, file: &str) -> Result<Vec<u8>, FolderError> {
        let missing = || FolderError::Missing { folder: self.name.clone(), file: file.to_owned() };
        self.try_read(file).await?.ok_or_else(missing)
    }

    /// The files in the order of their numbers, for [`VirtualGguf::finish`](crate::VirtualGguf::finish).
    pub fn into_sources(self) -> Vec<S> {
        self.sources
    }
}
