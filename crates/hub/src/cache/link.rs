//! Links from snapshots to blobs, and what is done where there are none.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::config::Links;
use crate::digest::Digest;

/// Puts a blob into its place in a snapshot: as a link with this relative target. Without links, a new blob is moved
/// there and an old one copied, as other programs do.
///
/// # Errors
/// Those of the file system.
pub(super) fn place(
    blob: &Path,
    pointer: &Path,
    target: &Path,
    is_new: bool,
    links: Links,
) -> io::Result<()> {
    match std::fs::symlink_metadata(pointer) {
        Ok(_)
            if std::fs::metadata(pointer).ok().map(|m| m.len())
                == std::fs::metadata(blob).ok().map(|m| m.len()) =>
        {
            return Ok(());
        }
        // Another size, or a link to nothing.
        Ok(_) => std::fs::remove_file(pointer)?,
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    if links == Links::Auto {
        match symlink(target, pointer) {
            Ok(()) => return Ok(()),
            // Another process made it meanwhile.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(()),
            // Trying is the one way to find out.
            Err(_) => {}
        }
    }
    let is_link = std::fs::symlink_metadata(blob)?.file_type().is_symlink();
    if is_new && !is_link {
        return std::fs::rename(blob, pointer);
    }
    let mut temporary = pointer.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let copied = std::fs::copy(blob, &temporary).and_then(|_| std::fs::rename(&temporary, pointer));
    if copied.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    copied
}

#[cfg(unix)]
fn symlink(target: &Path, pointer: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, pointer)
}

#[cfg(windows)]
fn symlink(target: &Path, pointer: &Path) -> io::Result<()> {
    // Windows wants its own separators in targets.
    let target: PathBuf = target.iter().collect();
    std::os::windows::fs::symlink_file(target, pointer)
}

/// The digest that the target of a link is named by.
pub(super) fn digest(pointer: &Path) -> Option<Digest> {
    Digest::of_digits(std::fs::read_link(pointer).ok()?.file_name()?.to_str()?)
}
