//! Files below a folder.

use std::path::Path;

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
