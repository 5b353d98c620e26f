//! Lists of the files of a commit, in the form of huggingface_hub 2: `trees/<commit>.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::paths::{self, System};
use crate::tree::TreeFile;

/// The version of the form.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct List {
    format_version: u32,
    files: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    size: u64,
    blob_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lfs_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lfs_size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    xet_hash: Option<String>,
}

/// Reads a list; `None` if there is none, or none that can be used.
pub(super) fn read(path: &Path) -> Option<Vec<TreeFile>> {
    parse(&std::fs::read(path).ok()?)
}

/// True if a file may be written over: a damaged list, but none in a form of later programs.
pub(super) fn is_damaged(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct Version {
        format_version: u32,
    }
    let Ok(json) = std::fs::read(path) else { return true };
    let version = serde_json::from_slice(&json).map_or(VERSION, |Version { format_version }| format_version);
    version == VERSION && parse(&json).is_none()
}

/// Parses a list; `None` for another form, and for paths that leave the snapshot.
pub(super) fn parse(json: &[u8]) -> Option<Vec<TreeFile>> {
    let list: List = serde_json::from_slice(json).ok()?;
    if list.format_version != VERSION {
        return None;
    }
    let file = |(path, entry): (String, Entry)| {
        paths::check(&path, System::Unix).ok()?;
        let digest = Digest::of_digits(entry.lfs_sha256.as_deref().unwrap_or(&entry.blob_id))?;
        let size = entry.lfs_size.unwrap_or(entry.size);
        Some(TreeFile { path, size, digest: Some(digest), oid: entry.blob_id, xet_hash: entry.xet_hash })
    };
    list.files.into_iter().map(file).collect()
}

/// The text of a list.
pub(super) fn write(files: &[TreeFile]) -> Vec<u8> {
    let entry = |file: &TreeFile| {
        let sha256 = match &file.digest {
            Some(Digest::Sha256(digits)) => Some(digits.clone()),
            _ => None,
        };
        let entry = Entry {
            size: file.size,
            blob_id: file.oid.clone(),
            lfs_size: sha256.is_some().then_some(file.size),
            lfs_sha256: sha256,
            xet_hash: file.xet_hash.clone(),
        };
        (file.path.clone(), entry)
    };
    let list = List { format_version: VERSION, files: files.iter().map(entry).collect() };
    serde_json::to_vec_pretty(&list).expect("a list of files is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_written() {
        let (sha, git) = ("ab".repeat(32), "12".repeat(20));
        let file = |path: &str, digest, xet_hash| TreeFile {
            path: path.into(),
            size: 7,
            digest: Some(digest),
            oid: git.clone(),
            xet_hash,
        };
        let files = vec![
            file("a/b.gguf", Digest::Sha256(sha.clone()), Some(sha.clone())),
            file("c.json", Digest::Git(git.clone()), None),
        ];
        assert_eq!(parse(&write(&files)), Some(files));
        let theirs =
            format!(r#"{{"format_version": 1, "files": {{"x": {{"size": 5, "blob_id": "{git}"}}}}}}"#);
        assert_eq!(parse(theirs.as_bytes()).unwrap()[0].size, 5);
        for bad in
            [theirs.replace("\"x\"", "\"../x\""), theirs.replace(": 1,", ": 2,"), theirs.replace(&git, "x")]
        {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
