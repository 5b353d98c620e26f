//! Identifiers of repositories: `org/name`.

use std::fmt;

/// A repository of the hub.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoId(String);

impl RepoId {
    /// Checks an identifier: two parts of letters, digits and `-_.`.
    ///
    /// # Errors
    /// The reason.
    pub fn parse(text: &str) -> Result<RepoId, &'static str> {
        let (owner, name) = text.split_once('/').ok_or("a repository is written `owner/name`")?;
        if name.contains('/') {
            return Err("a repository has one slash, as in `owner/name`");
        }
        for part in [owner, name] {
            if part.is_empty() || part.len() > 96 {
                return Err("owner and name of a repository have 1 to 96 characters");
            }
            if !part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
                return Err("owner and name of a repository consist of letters, digits and `-_.`");
            }
            if part.starts_with(['-', '.']) || part.ends_with(['-', '.']) {
                return Err("owner and name of a repository begin and end with neither `-` nor `.`");
            }
            // The cache has `--` between its parts.
            if part.contains("--") || part.contains("..") {
                return Err("owner and name of a repository have neither `--` nor `..`");
            }
        }
        Ok(RepoId(text.to_owned()))
    }

    /// The identifier.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name of its folder in the cache: `models--owner--name`.
    pub fn folder(&self) -> String {
        format!("models--{}", self.0.replace('/', "--"))
    }

    /// The repository of a folder in the cache.
    pub fn of_folder(name: &str) -> Option<RepoId> {
        let (owner, name) = name.strip_prefix("models--")?.split_once("--")?;
        RepoId::parse(&format!("{owner}/{name}")).ok()
    }
}

impl fmt::Display for RepoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_and_their_folders() {
        let repo = RepoId::parse("TheBloke/Llama-2_7B.v1-GGUF").unwrap();
        assert_eq!(repo.folder(), "models--TheBloke--Llama-2_7B.v1-GGUF");
        assert_eq!(RepoId::of_folder(&repo.folder()), Some(repo));
        assert_eq!(RepoId::of_folder("datasets--a--b"), None);
        assert_eq!(RepoId::of_folder("models--gpt2"), None);
    }

    #[test]
    fn others_are_refused() {
        for text in ["gpt2", "a/b/c", "a/", "/b", "a/..", "a/b--c", "a/b c", "-a/b", "a/b.", "a/ü", "../b"] {
            assert!(RepoId::parse(text).is_err(), "{text}");
        }
    }
}
