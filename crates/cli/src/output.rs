//! Writing files: they appear under their names only when they are complete, and never in place of what was read.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use ggml_format::SplitName;

use crate::failure::NotWritten;
use crate::interrupt;

/// Temporary files that are not complete yet; Ctrl-C removes them.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is half written and ends the program; nothing is written after it.
pub(crate) fn abandon_and_exit(code: u8) -> ! {
    // The lock stays held: files are begun and renamed under it, so that none is while the process ends.
    let paths = unfinished();
    for path in paths.iter() {
        // There is nobody left to tell.
        let _ = fs::remove_file(path);
    }
    std::process::exit(code.into())
}

/// All files of a model, of which the path names the first; none for the built-in one.
pub(crate) fn files_of_model(path: Option<&Path>) -> Vec<PathBuf> {
    let Some(path) = path else { return Vec::new() };
    match path.to_str().and_then(SplitName::parse) {
        Some(name) => (0..name.count).map(|i| name.sibling(i).into()).collect(),
        None => vec![path.to_owned()],
    }
}

/// Refuses to write a file that is also read.
///
/// # Errors
/// If `path` is one of `inputs`, under whatever name.
pub(crate) fn refuse_to_overwrite(path: &Path, inputs: &[PathBuf]) -> Result<()> {
    // What is not there yet is no input.
    let Ok(output) = fs::canonicalize(path) else { return Ok(()) };
    if inputs.iter().any(|input| fs::canonicalize(input).is_ok_and(|input| input == output)) {
        bail!("`{}`: expected another file than the input", path.display());
    }
    Ok(())
}

/// The file that a path means: where symbolic links lead, so that they are followed and not replaced, whether or not it
/// is there yet.
fn followed(path: &Path) -> PathBuf {
    // Links in a circle are an error of the system, which follows no more than these either.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&path) else { break };
        path = path.parent().map_or(link.clone(), |parent| parent.join(&link));
    }
    path
}

/// A file that is being written: under a temporary name beside the final one, or, if it is a device or a pipe, as it is.
///
/// It is removed when this is dropped, unless [`publish`] gave it its name.
#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    temporary: Option<PathBuf>,
}

impl Part {
    /// Begins a file that is none of `inputs`.
    ///
    /// # Errors
    /// If it is one of them, or cannot be made.
    pub(crate) fn create(path: &Path, inputs: &[PathBuf]) -> Result<(Part, File)> {
        refuse_to_overwrite(path, inputs)?;
        interrupt::install()?;
        if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            let file = File::options().write(true).open(path).with_context(|| NotWritten(path.to_owned()))?;
            return Ok((Part { path: path.to_owned(), temporary: None }, file));
        }
        let path = followed(path);
        let name = path.file_name().with_context(|| format!("`{}` names no file", path.display()))?;
        for n in 0u32.. {
            let mut name = name.to_owned();
            name.push(format!(".{}-{n}.part", std::process::id()));
            let temporary = path.with_file_name(name);
            let mut unfinished = unfinished();
            match File::options().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    unfinished.push(temporary.clone());
                    return Ok((Part { path, temporary: Some(temporary) }, file));
                }
                // Some other file has this name; it is not ours to write.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                // As a text: a folder that is not there is no missing model.
                Err(e) => return Err(anyhow!("{e}")).with_context(|| NotWritten(path)),
            }
        }
        bail!("`{}` cannot be written: all temporary names beside it are taken", path.display())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let mut unfinished = unfinished();
            // What matters is the error that led here.
            let _ = fs::remove_file(temporary);
            unfinished.retain(|path| path != temporary);
        }
    }
}

/// Gives complete files their names, replacing older ones: all of them or none.
///
/// # Errors
/// If a name cannot be given. Then the new files are removed and the older ones are as they were.
pub(crate) fn publish(mut parts: Vec<Part>) -> Result<()> {
    // Ctrl-C waits until the set is whole.
    let mut unfinished = unfinished();
    // One file alone takes the other's place in one step.
    let keep_older = parts.len() > 1;
    let mut replaced = Vec::with_capacity(parts.len());
    let mut result = Ok(());
    for part in &parts {
        let Some(temporary) = &part.temporary else { continue };
        match Replaced::replace(&part.path, temporary, keep_older) {
            Ok(done) => replaced.push(done),
            Err(e) => {
                result = Err(e).with_context(|| format!("`{}` cannot be replaced", part.path.display()));
                break;
            }
        }
    }
    for done in replaced.into_iter().rev() {
        match &result {
            Ok(()) => done.forget(),
            Err(_) => done.undo(),
        }
    }
    for temporary in parts.iter_mut().filter_map(|part| part.temporary.take()) {
        // It is there only if it got no name; what matters is the first error.
        let _ = fs::remove_file(&temporary);
        unfinished.retain(|path| *path != temporary);
    }
    result
}

/// A file that took the place of another one, which is kept until a whole set has its names.
struct Replaced {
    path: PathBuf,
    older: Option<PathBuf>,
}

impl Replaced {
    fn replace(path: &Path, new: &Path, keep_older: bool) -> std::io::Result<Replaced> {
        let mut older = None;
        if keep_older && fs::symlink_metadata(path).is_ok_and(|m| m.is_file()) {
            let kept = new.with_extension("old");
            // A second name leaves the file in its place meanwhile; not every file system has such.
            fs::hard_link(path, &kept).or_else(|_| fs::rename(path, &kept))?;
            older = Some(kept);
        }
        let result = fs::rename(new, path);
        let replaced = Replaced { path: path.to_owned(), older };
        match result {
            Err(e) => {
                replaced.restore();
                Err(e)
            }
            Ok(()) => Ok(replaced),
        }
    }

    fn forget(self) {
        if let Some(older) = self.older {
            // The set is there; a file too many is no reason to fail.
            let _ = fs::remove_file(older);
        }
    }

    /// Takes the new file away.
    fn undo(self) {
        if self.older.is_none() {
            // What matters is the error that led here.
            let _ = fs::remove_file(&self.path);
        }
        self.restore();
    }

    /// Puts the older file back; if even that fails, it is still there under its other name.
    fn restore(self) {
        if let Some(older) = self.older
            && fs::rename(&older, &self.path).is_ok()
        {
            // A name of a file that is renamed to another name of it stays.
            let _ = fs::remove_file(older);
        }
    }
}

/// Writes a file that is none of `inputs`; it appears under its name only when it is complete.
///
/// # Errors
/// If it is one of them or cannot be written, and the errors of `write`.
pub(crate) fn write_file(
    path: &Path,
    inputs: &[PathBuf],
    write: impl FnOnce(BufWriter<File>) -> Result<BufWriter<File>>,
) -> Result<()> {
    publish(vec![write_part(path, inputs, write)?])
}

/// Writes a file that is none of `inputs` and gets its name by [`publish`].
///
/// # Errors
/// As [`write_file`].
pub(crate) fn write_part(
    path: &Path,
    inputs: &[PathBuf],
    write: impl FnOnce(BufWriter<File>) -> Result<BufWriter<File>>,
) -> Result<Part> {
    let (part, file) = Part::create(path, inputs)?;
    let written = write(BufWriter::with_capacity(1 << 20, file)).and_then(|mut out| {
        out.flush().context("the end cannot be written")?;
        // A name for bytes that a power cut takes away would be worse than none. Pipes and devices have no such step.
        if part.temporary.is_some() {
            out.get_ref().sync_all().context("the end cannot be written")?;
        }
        Ok(())
    });
    written.with_context(|| NotWritten(path.to_owned()))?;
    Ok(part)
}

/// Writes a file of a few bytes.
///
/// # Errors
/// As [`write_file`].
pub(crate) fn write_bytes(path: &Path, inputs: &[PathBuf], bytes: &[u8]) -> Result<()> {
    write_file(path, inputs, |mut out| {
        out.write_all(bytes)?;
        Ok(out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_could_not_be_completed_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.gguf");
        assert!(write_file(&path, &[], |_| bail!("no more")).is_err());
        assert_eq!(names(dir.path()), [""; 0]);
        write_bytes(&path, &[], b"old").unwrap();
        assert!(write_file(&path, &[], |_| bail!("no more")).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["model.gguf"]);
        assert!(unfinished().iter().all(|path| !path.starts_with(dir.path())));
    }

    #[test]
    fn a_set_that_fails_leaves_an_older_one_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| dir.path().join(name));
        write_bytes(&a, &[], b"old").unwrap();
        let part = |path: &Path| {
            let write = |mut out: BufWriter<File>| {
                out.write_all(b"new")?;
                Ok(out)
            };
            write_part(path, &[], write).unwrap()
        };
        let parts = vec![part(&a), part(&b), part(&c)];
        // Someone makes a folder where the last file was to be.
        fs::create_dir(&c).unwrap();
        fs::write(c.join("theirs"), "theirs").unwrap();
        let error = publish(parts).unwrap_err().to_string();
        assert!(error.ends_with("c` cannot be replaced"), "{error}");
        assert_eq!(fs::read(&a).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["a", "c"]);
        assert_eq!(names(&c), ["theirs"]);
        assert!(unfinished().iter().all(|path| !path.starts_with(dir.path())));
        fs::remove_dir_all(&c).unwrap();
        publish(vec![part(&a), part(&b), part(&c)]).unwrap();
        assert_eq!(names(dir.path()), ["a", "b", "c"]);
        assert!([a, b, c].iter().all(|path| fs::read(path).unwrap() == b"new"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_stay() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("far")).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("far/model.gguf", &link).unwrap();
        // First it leads nowhere, then to a file.
        for bytes in [b"one", b"two"] {
            write_bytes(&link, &[], bytes).unwrap();
            assert_eq!(fs::read(dir.path().join("far/model.gguf")).unwrap(), bytes);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        assert_eq!(names(&dir.path().join("far")), ["model.gguf"]);
    }

    #[test]
    fn files_of_others_are_no_place_to_write_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.gguf");
        let theirs = dir.path().join(format!("model.gguf.{}-0.part", std::process::id()));
        fs::write(&theirs, "theirs").unwrap();
        write_bytes(&path, &[], b"ours").unwrap();
        assert_eq!(
            (fs::read(&theirs).unwrap(), fs::read(&path).unwrap()),
            (b"theirs".into(), b"ours".into())
        );
    }

    #[test]
    fn what_is_read_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.gguf");
        fs::write(&path, "input").unwrap();
        let by_another_name = dir.path().join(".").join("model.gguf");
        let error = write_bytes(&by_another_name, std::slice::from_ref(&path), b"x").unwrap_err().to_string();
        assert!(error.ends_with("expected another file than the input"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"input");
        let files = files_of_model(Some(Path::new("d/a-00002-of-00003.gguf")));
        assert_eq!(
            files,
            (1..=3).map(|i| format!("d/a-0000{i}-of-00003.gguf").into()).collect::<Vec<PathBuf>>()
        );
    }
}
