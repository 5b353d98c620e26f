//! Files of a repository at a commit, as the hub lists them, and digests of their contents.

use serde::Deserialize;

use crate::digest::Digest;
use crate::error::HubError;
use crate::name::RepoId;
use crate::paths::{self, System};

/// Most files of a repository.
const MOST_FILES: usize = 200_000;

/// A file of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// Path within the repository.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Digest of the contents, whose digits name the file in the cache; the hub always tells it, a folder may not.
    pub digest: Option<Digest>,
    /// Git's name of what the repository has: the file, or a pointer to it.
    pub oid: String,
    /// Name in the hub's other storage, which is not asked; others read it in the cache.
    pub xet_hash: Option<String>,
}

/// True for 40 hex digits: the name of a commit.
pub(crate) fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The address of the next page in the header `Link`.
pub fn next_page(link: &str) -> Option<&str> {
    link.split(',').find_map(|part| {
        let (address, attributes) = part.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |a: &str| matches!(a.trim(), "rel=\"next\"" | "rel=next");
        attributes.split(';').any(is_next).then_some(address)
    })
}

#[derive(Deserialize)]
struct Item {
    r#type: String,
    path: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    oid: String,
    lfs: Option<Lfs>,
    #[serde(rename = "xetHash")]
    xet_hash: Option<String>,
}

#[derive(Deserialize)]
struct Lfs {
    oid: String,
    size: Option<u64>,
}

/// Reads a page of the list of files, behind those of the pages before.
///
/// # Errors
/// [`HubError::Json`], [`HubError::UnsafePath`], [`HubError::Answer`].
pub fn read_page(
    repo: &RepoId,
    address: &str,
    json: &[u8],
    files: &mut Vec<TreeFile>,
) -> Result<(), HubError> {
    let items: Vec<Item> = serde_json::from_slice(json)
        .map_err(|source| HubError::Json { place: address.to_owned(), source })?;
    for item in items.into_iter().filter(|item| item.r#type == "file") {
        paths::check(&item.path, System::Unix).map_err(|reason| HubError::UnsafePath {
            path: item.path.clone(),
            place: repo.to_string(),
            reason,
        })?;
        let wrong = |what: &'static str| HubError::Answer { address: address.to_owned(), what };
        if files.len() == MOST_FILES {
            return Err(wrong("a repository has more than 200000 files"));
        }
        let size = item.lfs.as_ref().and_then(|lfs| lfs.size).unwrap_or(item.size);
        let digits = item.lfs.as_ref().map_or(&item.oid, |lfs| &lfs.oid);
        // Some programs that copy pointers write the kind before it.
        let digest = Digest::of_digits(digits.trim_start_matches("sha256:"));
        let digest = digest.ok_or_else(|| wrong("a file has no digest of 40 or 64 hex digits"))?;
        let xet_hash =
            item.xet_hash.filter(|hash| matches!(Digest::of_digits(hash), Some(Digest::Sha256(_))));
        files.push(TreeFile { path: item.path, size, digest: Some(digest), oid: item.oid, xet_hash });
    }
    Ok(())
}

#[derive(Deserialize)]
struct Revision {
    sha: String,
}

/// The commit in an answer about a revision.
///
/// # Errors
/// [`HubError::Json`], [`HubError::Answer`].
pub fn read_commit(address: &str, json: &[u8]) -> Result<String, HubError> {
    let Revision { sha } = serde_json::from_slice(json)
        .map_err(|source| HubError::Json { place: address.to_owned(), source })?;
    match is_commit(&sha) {
        true => Ok(sha.to_ascii_lowercase()),
        false => {
            Err(HubError::Answer { address: address.to_owned(), what: "the commit is not 40 hex digits" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(json: &str) -> Result<Vec<TreeFile>, HubError> {
        let (repo, mut files) = (RepoId::parse("org/repo").unwrap(), Vec::new());
        read_page(&repo, "https://hub/tree", json.as_bytes(), &mut files).map(|()| files)
    }

    #[test]
    fn large_files_have_their_sha256_and_small_ones_the_git_blob() {
        let (sha, git) = ("AB".repeat(32), "12".repeat(20));
        let json = format!(
            r#"[{{"type":"directory","oid":"x","size":0,"path":"sub"}},
            {{"type":"file","oid":"{git}","size":7,"path":"README.md"}},
            {{"type":"file","oid":"{git}","size":9,"path":"sub/a.gguf",
             "lfs":{{"oid":"{sha}","size":9,"pointerSize":134}},"xetHash":"1"}}]"#
        );
        let files = page(&json).unwrap();
        assert_eq!(files.len(), 2);
        assert_eq!(files[0].digest, Some(Digest::Git(git.clone())));
        let large = &files[1];
        assert_eq!((large.path.as_str(), large.size, &large.oid), ("sub/a.gguf", 9, &git));
        assert_eq!(large.digest, Some(Digest::Sha256(sha.to_ascii_lowercase())));
        assert_eq!(large.xet_hash, None, "a hash of one digit");
    }

    #[test]
    fn wicked_pages_are_refused() {
        let file =
            |path: &str, oid: &str| format!(r#"[{{"type":"file","size":1,"path":"{path}","oid":"{oid}"}}]"#);
        let git = "12".repeat(20);
        for path in ["../../.bashrc", "/etc/passwd", "a/../../b", ""] {
            assert!(matches!(page(&file(path, &git)), Err(HubError::UnsafePath { .. })), "{path}");
        }
        assert!(matches!(page(&file("a", "../../x")), Err(HubError::Answer { .. })));
        for json in
            ["", "{}", "<html>", "[{\"type\":\"file\"}]", "[{\"type\":\"file\",\"path\":\"a\",\"size\":-1}]"]
        {
            assert!(matches!(page(json), Err(HubError::Json { .. })), "{json}");
        }
        assert!(read_commit("x", br#"{"sha":"main"}"#).is_err());
        assert_eq!(read_commit("x", format!(r#"{{"sha":"{git}"}}"#).as_bytes()).unwrap(), git);
    }

    #[test]
    fn links_to_the_next_page() {
        let next = "https://hub/api/models/a/b/tree/main?cursor=x";
        assert_eq!(next_page(&format!("<{next}>; rel=\"next\"")), Some(next));
        assert_eq!(next_page(&format!("<https://hub/>; rel=\"xet-auth\", <{next}>;rel=next")), Some(next));
        for link in ["", "<https://hub/>; rel=\"prev\"", "next", "<>", "<a", ">;rel=next"] {
            assert_eq!(next_page(link), None, "{link}");
        }
    }
}
