//! Output files appear under their names only when complete, and never overwrite an input.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use ggml_format::SplitName;

use crate::failure::{NotWritten, Usage};
use crate::interrupt;
use crate::unfinished::unfinished;

/// All files of a model, given the path of the first; none for the built-in one.
pub(crate) fn files_of_model(path: Option<&Path>) -> Vec<PathBuf> {
    let Some(path) = path else { return Vec::new() };
    match path.to_str().and_then(SplitName::parse) {
        Some(name) => (0..name.count).map(|i| name.sibling(i).into()).collect(),
        None => vec![path.to_owned()],
    }
}

/// Refuses to overwrite an input.
///
/// # Errors
/// If `path` is one of `inputs`, under any name, or `-`.
pub(crate) fn refuse_to_overwrite(path: &Path, inputs: &[PathBuf]) -> Result<()> {
    if path == Path::new("-") {
        return Err(Usage("`-`: this output cannot go to stdout; name a file".into()).into());
    }
    // A path that does not exist is not an input.
    let Ok(output) = fs::canonicalize(path) else { return Ok(()) };
    if inputs.iter().any(|input| fs::canonicalize(input).is_ok_and(|input| input == output)) {
        bail!("`{}`: the output must not be an input file", path.display());
    }
    Ok(())
}

/// Tries whether a file can be written, before work that takes long.
///
/// # Errors
/// If it is one of `inputs` or cannot be created.
pub(crate) fn try_to_write(path: &Path, inputs: &[PathBuf]) -> Result<()> {
    // Opening a pipe and closing it would end it for its reader.
    if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        return refuse_to_overwrite(path, inputs);
    }
    Part::create(path, inputs).map(drop)
}

/// Resolves a path, following symbolic links so that they are not replaced, even if the target does not exist yet.
fn followed(path: &Path) -> PathBuf {
    // The system itself reports circular links as an error at this depth.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&path) else { break };
        path = path.parent().map_or(link.clone(), |parent| parent.join(&link));
    }
    path
}

/// A file being written: under a temporary name beside the final one, or directly if it is a device or a pipe.
///
/// Dropping this removes the file, unless [`publish`] renamed it.
#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    temporary: Option<PathBuf>,
}

impl Part {
    /// Creates a file that is not one of `inputs`.
    ///
    /// # Errors
    /// If it is one of them, or cannot be created.
    pub(crate) fn create(path: &Path, inputs: &[PathBuf]) -> Result<(Part, File)> {
        refuse_to_overwrite(path, inputs)?;
        interrupt::install()?;
        if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            let file = File::options().write(true).open(path).with_context(|| NotWritten(path.to_owned()))?;
            return Ok((Part { path: path.to_owned(), temporary: None }, file));
        }
        let path = followed(path);
        let name = path.file_name().with_context(|| format!("`{}` is not a file name", path.display()))?;
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
                // Another file has this name; it is not ours to overwrite.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                // As text: a missing folder is not a missing model.
                Err(e) => return Err(anyhow!("{e}")).with_context(|| NotWritten(path)),
            }
        }
        bail!("cannot write `{}`: all temporary names beside it are taken", path.display())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let mut unfinished = unfinished();
            // The original error matters more.
            let _ = fs::remove_file(temporary);
            unfinished.retain(|path| path != temporary);
        }
    }
}

/// Renames complete files to their final names, replacing older ones: all of them or none.
///
/// # Errors
/// If a rename fails. Then the new files are removed and the older ones restored.
pub(crate) fn publish(mut parts: Vec<Part>) -> Result<()> {
    // Ctrl-C waits until the set is complete.
    let mut unfinished = unfinished();
    // A single file is replaced atomically.
    let keep_older = parts.len() > 1;
    let mut replaced = Vec::with_capacity(parts.len());
    let mut result = Ok(());
    for part in &parts {
        let Some(temporary) = &part.temporary else { continue };
        match Replaced::replace(&part.path, temporary, keep_older) {
            Ok(done) => replaced.push(done),
            Err(e) => {
                result = Err(e).with_context(|| format!("cannot replace `{}`", part.path.display()));
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
        // It exists only if it was not renamed; the first error matters more.
        let _ = fs::remove_file(&temporary);
        unfinished.retain(|path| *path != temporary);
    }
    result
}

/// A replaced file, kept until the whole set is renamed.
struct Replaced {
    path: PathBuf,
    older: Option<PathBuf>,
}

impl Replaced {
    fn replace(path: &Path, new: &Path, keep_older: bool) -> std::io::Result<Replaced> {
        let mut older = None;
        if keep_older && fs::symlink_metadata(path).is_ok_and(|m| m.is_file()) {
            let kept = new.with_extension("old");
            // A hard link leaves the file in place meanwhile; not every file system has them.
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
            // The set is complete; a leftover file is not a failure.
            let _ = fs::remove_file(older);
        }
    }

    /// Removes the new file.
    fn undo(self) {
        if self.older.is_none() {
            // The original error matters more.
            let _ = fs::remove_file(&self.path);
        }
        self.restore();
    }

    /// Restores the older file; if even that fails, it remains under its other name.
    fn restore(self) {
        if let Some(older) = self.older
            && fs::rename(&older, &self.path).is_ok()
        {
            // Renaming between two hard links of one file does nothing.
            let _ = fs::remove_file(older);
        }
    }
}

/// Writes a file that is not one of `inputs`; it appears under its name only when complete.
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

/// Writes a file that is not one of `inputs`, to be renamed by [`publish`].
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
        out.flush().context("cannot flush the output")?;
        // A name that survives a power cut when its bytes do not would be worse than none. Pipes and devices cannot
        // sync.
        if part.temporary.is_some() {
            out.get_ref().sync_all().context("cannot flush the output")?;
        }
        Ok(())
    });
    written.with_context(|| NotWritten(path.to_owned()))?;
    Ok(part)
}

/// Writes a small file.
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
        // A folder appears at the name of the last file.
        fs::create_dir(&c).unwrap();
        fs::write(c.join("theirs"), "theirs").unwrap();
        let error = publish(parts).unwrap_err().to_string();
        assert!(error.starts_with("cannot replace"), "{error}");
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
        // First it is dangling, then it points to a file.
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
        assert!(error.ends_with("the output must not be an input file"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"input");
        let files = files_of_model(Some(Path::new("d/a-00002-of-00003.gguf")));
        assert_eq!(
            files,
            (1..=3).map(|i| format!("d/a-0000{i}-of-00003.gguf").into()).collect::<Vec<PathBuf>>()
        );
    }
}
