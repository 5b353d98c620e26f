//! Files below a folder.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Deepest folders that are looked into.
const DEEPEST: usize = 16;
/// Most files that are listed.
const MOST: usize = 200_000;

/// Paths of all files below a folder, relative, with `/` between names, sorted; links to files count, links to
/// folders do not. Folders that cannot be read, names that are no UTF-8 and temporary files are left out.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    walk(folder, "", 0, &mut found);
    found.sort();
    found
}

fn walk(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
        let path = format!("{prefix}{name}");
        if kind.is_dir() {
            if depth < DEEPEST {
                walk(&entry.path(), &format!("{path}/"), depth + 1, found);
            }
        } else if found.len() < MOST && !name.ends_with(".tmp") {
            found.push(path);
        }
    }
}

/// Names of the folders in a folder, sorted.
pub(super) fn folders(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Paths of all files and links below a folder, relative to it, for removals: nothing is left out. Links to folders
/// count as files. A folder that does not exist has none.
///
/// # Errors
/// Those of the file system, for any folder below.
pub(super) fn all_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(prefix) = folders.pop() {
        for (name, is_folder) in entries(&folder.join(&prefix))? {
            let path = prefix.join(name);
            if is_folder { &mut folders } else { &mut found }.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Names of the entries of a folder, with true for folders; none if there is no folder.
///
/// # Errors
/// Those of the file system.
pub(super) fn entries(folder: &Path) -> io::Result<Vec<(OsString, bool)>> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let entry = |entry: io::Result<std::fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name(), entry.file_type()?.is_dir()))
    };
    entries.map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_for_removals_leaves_nothing_out() {
        let dir = tempfile::tempdir().unwrap();
        let deep: PathBuf = (0..DEEPEST + 4).map(|i| format!("d{i}")).collect();
        std::fs::create_dir_all(dir.path().join(&deep)).unwrap();
        let mut expected = vec![deep.join("a.gguf"), deep.join("b.tmp")];
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::ffi::OsStringExt as _;
            expected.push(PathBuf::from(OsString::from_vec(vec![b'x', 0xff])));
        }
        expected.iter().for_each(|path| std::fs::write(dir.path().join(path), "").unwrap());
        assert_eq!(all_files(dir.path()).unwrap(), expected);
        assert!(files(dir.path()).is_empty());
        assert!(all_files(&dir.path().join("none")).unwrap().is_empty());
        // A file where a folder should be.
        assert!(all_files(&dir.path().join(&expected[0])).is_err());
    }
}
