//! The folders of data kept between starts.

use std::fs;
use std::path::{Path, PathBuf};

use super::private::Private;
use super::report::Cache;
use crate::cache;

/// Names of the folders.
const NAMES: [&str; 4] = ["pipelines", "tested", "tuning", "peaks"];

pub(super) fn examine() -> Vec<Cache> {
    let private = Private::of_user();
    NAMES
        .into_iter()
        .map(|name| {
            let folder = cache::folder(name);
            let (files, bytes) = folder.as_deref().map_or((0, 0), contents);
            let writable = folder.as_deref().is_some_and(is_writable);
            let folder = folder.map(|folder| private.hide(&folder.to_string_lossy()));
            Cache { name, folder, files, bytes, writable }
        })
        .collect()
}

/// Number of files, and bytes of all of them.
fn contents(folder: &Path) -> (usize, u64) {
    let Ok(entries) = fs::read_dir(folder) else { return (0, 0) };
    let sizes = entries.flatten().filter_map(|e| e.metadata().ok()).filter(fs::Metadata::is_file);
    sizes.fold((0, 0), |(n, bytes), m| (n + 1, bytes + m.len()))
}

/// True if files can be made in a folder, or in that which it would be made in.
fn is_writable(folder: &Path) -> bool {
    let existing = folder.ancestors().find(|path| path.exists()).map(PathBuf::from);
    existing.is_some_and(|path| tempfile::tempfile_in(path).is_ok())
}
