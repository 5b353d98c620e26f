//! A file that is not whole yet: `NAME.chaski-part`, and beside it a note in JSON, by which another process goes on.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::hasher::Hasher;
use crate::digest::Digest;
use crate::error::HubError;
use crate::job::Job;

/// Ending of a part.
pub(crate) const ENDING: &str = ".chaski-part";

/// Time after which a part is flushed even if few bytes came.
const FLUSH_TIME: Duration = Duration::from_secs(1);
/// Bytes of the first flush; each is followed by one twice as far.
const FIRST_FLUSH: u64 = 64 << 10;

/// The note of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    /// Address of the file, without signatures.
    pub(crate) address: String,
    /// Size of the whole, if known.
    pub(crate) size: Option<u64>,
    /// The server's mark of the contents: a strong ETag, or the date of the last change.
    pub(crate) validator: Option<String>,
    /// Bytes that are on the disk for certain.
    pub(crate) flushed: u64,
}

impl Note {
    /// The note of a part, if it has one that can be read.
    pub(crate) fn read(part: &Path) -> Option<Note> {
        Note::at(&note_path(part))
    }

    /// The note in a file.
    pub(crate) fn at(path: &Path) -> Option<Note> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}

fn note_path(part: &Path) -> PathBuf {
    with_ending(part, "json")
}

/// The name of the part that the name of a note belongs to; `None` for other names.
pub(crate) fn of_note(name: &str) -> Option<&str> {
    name.strip_suffix(".json").filter(|part| part.ends_with(ENDING))
}

/// Removes a part with its note.
pub(crate) fn remove(part: &Path) {
    // Files that are not there need no removal, and those that stay are written over or pruned.
    let _ = std::fs::remove_file(part);
    remove_note(part);
}

/// Removes the note of a part; no other file has one.
pub(crate) fn remove_note(part: &Path) {
    if part.to_string_lossy().ends_with(ENDING) {
        // Without its part, a note is nothing.
        let _ = std::fs::remove_file(note_path(part));
    }
}

/// A part of the same file that only this download writes, for where there are no locks.
pub(crate) fn own(part: &Path) -> PathBuf {
    static N: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (process, n) = (std::process::id(), N.fetch_add(1, Ordering::Relaxed));
    let name = part.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(ENDING).unwrap_or(&name);
    part.with_file_name(format!("{name}.{process}-{n}-{:x}{ENDING}", now.as_nanos()))
}

/// Moves a whole part to its place.
///
/// # Errors
/// [`HubError::File`].
pub(crate) fn put(part: &Path, place: &Path) -> Result<(), HubError> {
    std::fs::rename(part, place).map_err(|source| HubError::File { path: place.to_owned(), source })?;
    remove(part);
    Ok(())
}

/// An open part.
pub(crate) struct Part {
    path: PathBuf,
    file: File,
    hasher: Hasher,
    digest: Option<Digest>,
    pub(crate) note: Note,
    n_byte: u64,
    next_flush: u64,
    n_flush: u64,
    last_flush: Instant,
    /// Bytes of several answers are in it.
    pub(crate) is_joined: bool,
}

impl Part {
    /// Opens a part, and hashes what an earlier download left; bytes that were not flushed are cut off.
    ///
    /// # Errors
    /// [`HubError::File`], [`HubError::Interrupted`].
    pub(crate) fn open(
        path: &Path,
        address: &str,
        size: Option<u64>,
        digest: Option<&Digest>,
        n_flush: u64,
        job: &Job,
    ) -> Result<Part, HubError> {
        let failed = |source| HubError::File { path: path.to_owned(), source };
        let old = Note::read(path).filter(|note| size.is_none() || note.size == size);
        // Without a digest, only what came from the same address can be a beginning.
        let old = old.filter(|note| digest.is_some() || note.address == address && note.validator.is_some());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        let note = old.unwrap_or_default();
        let n_byte = note.flushed.min(found).min(size.unwrap_or(u64::MAX));
        file.set_len(n_byte).map_err(failed)?;
        let size = size.or(note.size);
        let mut part = Part {
            path: path.to_owned(),
            hasher: Hasher::of(digest, size.unwrap_or(0)),
            digest: digest.cloned(),
            note: Note { address: address.to_owned(), size, validator: note.validator, flushed: n_byte },
            n_byte,
            next_flush: 0,
            n_flush,
            last_flush: Instant::now(),
            is_joined: n_byte > 0,
            file,
        };
        part.rehash(job)?;
        part.plan_flush();
        Ok(part)
    }

    /// Hashes the bytes that are there; the file is then at their end.
    fn rehash(&mut self, job: &Job) -> Result<(), HubError> {
        let mut piece = vec![0; 1 << 20];
        loop {
            job.check()?;
            match self.file.read(&mut piece).map_err(|source| self.failed(source))? {
                0 => return Ok(()),
                n => self.hasher.update(&piece[..n]),
            }
        }
    }

    /// Bytes that are there.
    pub(crate) fn len(&self) -> u64 {
        self.n_byte
    }

    /// Appends bytes; flushes now and then.
    ///
    /// # Errors
    /// [`HubError::NoRoom`], with the part kept; [`HubError::File`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), HubError> {
        self.file.write_all(bytes).map_err(|source| self.failed(source))?;
        self.hasher.update(bytes);
        self.n_byte += bytes.len() as u64;
        if self.n_byte >= self.next_flush || self.last_flush.elapsed() > FLUSH_TIME {
            self.flush()?;
        }
        Ok(())
    }

    /// Brings the bytes to the disk, then their number.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) fn flush(&mut self) -> Result<(), HubError> {
        self.file.sync_data().map_err(|source| self.failed(source))?;
        self.note.flushed = self.n_byte;
        self.plan_flush();
        self.write_note()
    }

    fn plan_flush(&mut self) {
        self.last_flush = Instant::now();
        self.next_flush = (2 * self.n_byte).max(FIRST_FLUSH).min(self.n_byte.saturating_add(self.n_flush));
    }

    fn write_note(&self) -> Result<(), HubError> {
        let path = note_path(&self.path);
        let text = serde_json::to_vec(&self.note).expect("a note is JSON");
        // Nobody else writes it: what a killed process leaves, the next one writes over.
        write_by(&with_ending(&path, "tmp"), &path, &text).map_err(|source| self.failed(source))
    }

    /// Forgets all bytes: the file comes from its beginning.
    ///
    /// # Errors
    /// [`HubError::File`].
    pub(crate) fn restart(&mut self) -> Result<(), HubError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|source| self.failed(source))?;
        self.n_byte = 0;
        self.hasher = Hasher::of(self.digest.as_ref(), self.note.size.unwrap_or(0));
        self.is_joined = false;
        self.note.flushed = 0;
        self.note.validator = None;
        self.plan_flush();
        self.write_note()
    }

    /// Ends the part, and gives its digest; the file stays until it is moved.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(crate) fn finish(self) -> Result<Option<Digest>, HubError> {
        self.file.sync_all().map_err(|source| self.failed(source))?;
        self.write_note()?;
        Ok(self.hasher.finish())
    }

    /// The error of a write; a full disk is one of its own.
    fn failed(&self, source: std::io::Error) -> HubError {
        if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            let folder = self.path.parent().unwrap_or(Path::new(".")).to_owned();
            let n_free = fs4::available_space(&folder).unwrap_or(0);
            let n_needed =
                self.note.size.unwrap_or(0).saturating_sub(self.n_byte).max(n_free.saturating_add(1));
            return HubError::NoRoom { folder, n_needed, n_free };
        }
        HubError::File { path: self.path.clone(), source }
    }
}

/// Writes a file so that readers find the old or the new one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    write_by(&with_ending(path, &format!("{}.tmp", std::process::id())), path, bytes)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    PathBuf::from(name)
}

fn write_by(temporary: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let written = std::fs::write(temporary, bytes).and_then(|()| std::fs::rename(temporary, path));
    if written.is_err() {
        // It may not even be there.
        let _ = std::fs::remove_file(temporary);
    }
    written
}

/// Keeps the note of a whole part in a file of its own.
///
/// # Errors
/// [`HubError::File`].
pub(crate) fn keep_note(part: &Path, to: &Path) -> Result<(), HubError> {
    std::fs::rename(note_path(part), to).map_err(|source| HubError::File { path: to.to_owned(), source })
}
