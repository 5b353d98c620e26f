//! Inputs of earlier sessions, in a file that several sessions append to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// First line of the file: entries are escaped.
const HEADER: &str = "#V2";
/// Entries that a session brings back.
const MAX_ENTRIES: usize = 2000;
/// A file of more bytes loses its older entries.
const MAX_BYTES: u64 = 4 << 20;

/// The file. Each input is appended at once, under a lock, so that sessions at the same time keep each other's, and a
/// terminal that closes loses nothing.
pub(super) struct History {
    path: PathBuf,
}

impl History {
    /// The user's own; `None` if the system has no place for it.
    pub(super) fn of_user() -> Option<History> {
        let dirs = directories::ProjectDirs::from("", "", "chaski")?;
        Some(History { path: dirs.data_dir().join("history.txt") })
    }

    /// The newest entries, oldest first.
    pub(super) fn load(&self) -> Vec<String> {
        // There is no file at the first start.
        let bytes = fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let entries: Vec<&str> = entries(&text).collect();
        entries[entries.len().saturating_sub(MAX_ENTRIES)..].iter().map(|e| unescape(e)).collect()
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn append(&self, entry: &str) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let _lock = lock(&self.path.with_extension("lock"))?;
        let mut file = private().append(true).create(true).open(&self.path)?;
        let n_byte = file.metadata()?.len();
        let head = if n_byte == 0 { format!("{HEADER}\n") } else { String::new() };
        file.write_all(format!("{head}{}\n", escape(entry)).as_bytes())?;
        if n_byte > MAX_BYTES { self.shorten() } else { Ok(()) }
    }

    /// Leaves the newest entries. The lock is held.
    fn shorten(&self) -> io::Result<()> {
        let newest: Vec<String> = self.load().iter().map(|e| escape(e)).collect();
        let temporary = self.path.with_extension("new");
        let mut file = private().write(true).create(true).truncate(true).open(&temporary)?;
        // Long entries are few.
        let mut n_byte = 0;
        let fits = newest.iter().rev().take_while(|e| {
            n_byte += e.len() as u64 + 1;
            n_byte < MAX_BYTES / 2
        });
        let kept = &newest[newest.len() - fits.count()..];
        file.write_all(format!("{HEADER}\n{}\n", kept.join("\n")).as_bytes())?;
        fs::rename(&temporary, &self.path)
    }
}

/// Options of a file that others cannot read.
fn private() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes of files"))]
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// The lock, until the file is closed. It is a file of its own, since the history may be replaced.
fn lock(path: &Path) -> io::Result<File> {
    const PATIENCE: u32 = 100;
    let file = private().append(true).create(true).open(path)?;
    for _ in 0..PATIENCE {
        if file.try_lock().is_ok() {
            return Ok(file);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // Someone holds it who does not go on; a short line is appended whole in any case.
    Ok(file)
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && *line != HEADER)
}

fn escape(entry: &str) -> String {
    entry.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(folder: &Path) -> History {
        History { path: folder.join("deeper/history.txt") }
    }

    #[test]
    fn entries_come_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let entries = ["one", "two\nlines\\n", "#V2 is no header", "\\", "ü 日本\r"];
        for entry in entries {
            history(folder.path()).append(entry).unwrap();
        }
        assert_eq!(history(folder.path()).load(), entries);
    }

    #[test]
    fn sessions_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let session = |n: usize| {
            let history = history(folder.path());
            (0..50).for_each(|i| history.append(&format!("session {n}\nline {i}")).unwrap());
        };
        std::thread::scope(|s| (0..4).for_each(|n| drop(s.spawn(move || session(n)))));
        let found = history(folder.path()).load();
        assert_eq!(found.len(), 200);
        for n in 0..4 {
            let own: Vec<_> = found.iter().filter(|e| e.starts_with(&format!("session {n}\n"))).collect();
            let expected: Vec<_> = (0..50).map(|i| format!("session {n}\nline {i}")).collect();
            assert_eq!(own, expected.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_long_file_keeps_its_newest_entries() {
        let folder = tempfile::tempdir().unwrap();
        let history = history(folder.path());
        history.append("first").unwrap();
        let long = "x".repeat(1 << 20);
        (0..6).for_each(|i| history.append(&format!("{i}{long}")).unwrap());
        history.append("last").unwrap();
        let found = history.load();
        assert_eq!(found.last().map(String::as_str), Some("last"));
        assert!(
            found.len() < 5 && fs::metadata(&history.path).unwrap().len() <= MAX_BYTES,
            "{}",
            found.len()
        );
    }
}
