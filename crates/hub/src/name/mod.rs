//! Names of models: paths, and names of the hub, of addresses and of other programs.
//!
//! | name | meaning |
//! | --- | --- |
//! | `hf:org/repo[@rev][:TAG]` | a repository of the hub; TAG, such as `Q4_K_M`, chooses the file |
//! | `hf:org/repo[@rev]/path/file.gguf` | a file of it |
//! | `hf.co/...`, `huggingface.co/...` | the same, as ollama and the hub's pages write it |
//! | `https://...`, `http://...` | a file at an address |
//! | `ollama:name[:tag]` | a model of ollama's folder |
//! | anything else | a file or folder; `file:` says so |

mod ollama;
mod repo;

use std::fmt;
use std::path::PathBuf;

use crate::address::Address;
use crate::error::HubError;
use crate::quote::unquoted;

pub use ollama::OllamaName;
pub use repo::RepoId;

/// Host names of the hub, which may redirect to each other.
pub(crate) const HUB_HOSTS: [&str; 3] = ["huggingface.co", "www.huggingface.co", "hf.co"];

/// A name of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelName {
    /// A file or folder.
    Path(PathBuf),
    /// Files of a repository of the hub.
    Hub(HubName),
    /// A file at an address.
    Address(Address),
    /// A model of ollama's folder.
    Ollama(OllamaName),
}

/// Files of a repository of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubName {
    /// The repository.
    pub repo: RepoId,
    /// Branch, tag or commit; `main` if unset.
    pub revision: Option<String>,
    /// The files.
    pub pick: Pick,
}

/// Files of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pick {
    /// The usual one.
    Usual,
    /// The one with this tag, such as `Q4_K_M`.
    Tag(String),
    /// The one of this path.
    File(String),
}

impl ModelName {
    /// Parses a name. Text that is none of the forms is a path.
    ///
    /// # Errors
    /// [`HubError::Name`] for a name of one of the forms that is not well formed.
    pub fn parse(text: &str) -> Result<ModelName, HubError> {
        let wrong = |reason| HubError::Name { name: text.to_owned(), reason };
        let lower = text.to_ascii_lowercase();
        let after = |prefix: &str| lower.starts_with(prefix).then(|| &text[prefix.len()..]);
        if let Some(rest) = after("hf:") {
            return hub_name(rest).map(ModelName::Hub).map_err(wrong);
        }
        if let Some(rest) = after("ollama:") {
            return OllamaName::parse(rest).map(ModelName::Ollama).map_err(wrong);
        }
        if let Some(rest) = after("file://localhost/").or_else(|| after("file:///")) {
            return Ok(ModelName::Path(PathBuf::from(format!("/{rest}"))));
        }
        if let Some(rest) = after("file:") {
            return Ok(ModelName::Path(rest.into()));
        }
        for host in HUB_HOSTS {
            if let Some(rest) = after(&format!("{host}/")) {
                return hub_page(rest).map(ModelName::Hub).map_err(wrong);
            }
        }
        if after("https://").or_else(|| after("http://")).is_none() {
            return Ok(ModelName::Path(text.into()));
        }
        let address = Address::parse(text).map_err(wrong)?;
        if HUB_HOSTS.contains(&address.host()) {
            return hub_page(&address.path()[1..]).map(ModelName::Hub).map_err(wrong);
        }
        Ok(ModelName::Address(address))
    }
}

impl HubName {
    /// Parses `org/repo[@rev][:TAG]` or `org/repo[@rev]/path/file`, as behind `hf:`.
    ///
    /// # Errors
    /// [`HubError::Name`].
    pub fn parse(text: &str) -> Result<HubName, HubError> {
        hub_name(text).map_err(|reason| HubError::Name { name: text.to_owned(), reason })
    }

    /// The revision that is asked for.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }
}

/// `org/repo[@rev][:TAG]` or `org/repo[@rev]/path/file`.
fn hub_name(text: &str) -> Result<HubName, &'static str> {
    let (owner, rest) = text.split_once('/').ok_or("a repository is written `owner/name`")?;
    let end = rest.find(['/', ':', '@']).unwrap_or(rest.len());
    let repo = RepoId::parse(&format!("{owner}/{}", &rest[..end]))?;
    let rest = &rest[end..];
    let (revision, rest) = match rest.strip_prefix('@') {
        Some(rest) => {
            let (revision, rest) = rest.split_at(revision_end(rest));
            (Some(checked_revision(&unquoted(revision).ok_or("the revision is not UTF-8")?)?), rest)
        }
        None => (None, rest),
    };
    let pick = match rest.chars().next() {
        None => Pick::Usual,
        Some(':') => tag(&rest[1..])?,
        Some(_) => match &rest[1..] {
            "" => Pick::Usual,
            path => file(path)?,
        },
    };
    Ok(HubName { repo, revision, pick })
}

/// The end of a revision: revisions of requests and conversions have slashes, others must quote theirs.
fn revision_end(text: &str) -> usize {
    let n_slash = if text.starts_with("refs/") { 2 } else { 0 };
    let mut slashes = 0;
    let is_end = |(_, c): &(usize, char)| {
        slashes += usize::from(*c == '/');
        *c == ':' || slashes > n_slash
    };
    text.char_indices().find(is_end).map_or(text.len(), |(at, _)| at)
}

/// Checks a branch, tag or commit: a relative path of the cache is made of it.
///
/// # Errors
/// The reason.
pub(crate) fn checked_revision(text: &str) -> Result<String, &'static str> {
    crate::paths::check(text, crate::paths::System::Windows).map_err(
        |_| "a revision is a branch, a tag or a commit, such as `main`, `refs/pr/1` or 40 hex digits",
    )?;
    Ok(text.to_owned())
}

fn tag(text: &str) -> Result<Pick, &'static str> {
    match text {
        "" => Err("there is no tag behind the colon, such as `Q4_K_M`"),
        // The word for the usual one in ollama's names.
        "latest" => Ok(Pick::Usual),
        _ if text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) => {
            Ok(Pick::Tag(text.to_owned()))
        }
        _ => Err("a tag consists of letters, digits and `-_.`, such as `Q4_K_M`"),
    }
}

fn file(path: &str) -> Result<Pick, &'static str> {
    crate::paths::check(path, crate::paths::System::Unix)?;
    Ok(Pick::File(path.to_owned()))
}

/// `org/repo`, also with `:TAG`, or a page of it: `org/repo/blob/main/file`, `/resolve/`, `/raw/`, `/tree/main`.
fn hub_page(text: &str) -> Result<HubName, &'static str> {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<&str> = text.splitn(5, '/').collect();
    match parts[..] {
        [owner, repo, "blob" | "resolve" | "raw", revision, path] => Ok(HubName {
            repo: RepoId::parse(&format!("{owner}/{repo}"))?,
            revision: Some(page_revision(revision)?),
            pick: file(&unquoted(path).ok_or("the path is not UTF-8")?)?,
        }),
        [owner, repo, "tree", revision] | [owner, repo, "tree", revision, ""] => Ok(HubName {
            repo: RepoId::parse(&format!("{owner}/{repo}"))?,
            revision: Some(page_revision(revision)?),
            pick: Pick::Usual,
        }),
        [_, _, "tree", _, _] => {
            Err("it is a folder of a repository; name a file of it, or the repository with a tag")
        }
        ["datasets" | "spaces", ..] => Err("it is no repository of models"),
        _ => hub_name(text),
    }
}

fn page_revision(quoted: &str) -> Result<String, &'static str> {
    checked_revision(&unquoted(quoted).ok_or("the revision is not UTF-8")?)
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelName::Path(path) => path.display().fmt(f),
            ModelName::Hub(name) => name.fmt(f),
            ModelName::Address(address) => address.fmt(f),
            ModelName::Ollama(name) => name.fmt(f),
        }
    }
}

impl fmt::Display for HubName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hf:{}", self.repo)?;
        if let Some(revision) = &self.revision {
            // As it is typed, if that is read as the same.
            let is_plain =
                revision_end(revision) == revision.len() && crate::quote::path(revision) == *revision;
            let quoted = crate::quote::segment(revision);
            write!(f, "@{}", if is_plain { revision } else { &quoted })?;
        }
        match &self.pick {
            Pick::Usual => Ok(()),
            Pick::Tag(tag) => write!(f, ":{tag}"),
            Pick::File(path) => write!(f, "/{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(text: &str) -> HubName {
        match ModelName::parse(text).unwrap() {
            ModelName::Hub(name) => name,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn names_of_the_hub() {
        for (text, same) in [
            ("hf:org/repo", "hf:org/repo"),
            ("HF:org/repo", "hf:org/repo"),
            ("hf:org/repo:Q4_K_M", "hf:org/repo:Q4_K_M"),
            ("hf:org/repo@v1.0:UD-Q4_K_XL", "hf:org/repo@v1.0:UD-Q4_K_XL"),
            ("hf:org/repo@refs/pr/1:F16", "hf:org/repo@refs/pr/1:F16"),
            ("hf:org/repo@refs%2Fpr%2F1/a.gguf", "hf:org/repo@refs/pr/1/a.gguf"),
            ("hf:org/repo@refs/pr/1/sub/a.gguf", "hf:org/repo@refs/pr/1/sub/a.gguf"),
            ("hf:org/repo@feature%2Fx", "hf:org/repo@feature%2Fx"),
            ("hf:org/repo@refs%2Fa%2Fb%2Fc:F16", "hf:org/repo@refs%2Fa%2Fb%2Fc:F16"),
            ("hf:org/repo/sub/a b.gguf", "hf:org/repo/sub/a b.gguf"),
            ("hf.co/org/repo:latest", "hf:org/repo"),
            ("hf.co/org/repo:Q8_0", "hf:org/repo:Q8_0"),
            ("huggingface.co/org/repo/", "hf:org/repo"),
            ("https://huggingface.co/org/repo", "hf:org/repo"),
            ("https://huggingface.co/org/repo/tree/main", "hf:org/repo@main"),
            ("https://huggingface.co/org/repo/blob/main/sub/a%20b.gguf", "hf:org/repo@main/sub/a b.gguf"),
            (
                "https://hf.co/org/repo/resolve/refs%2Fpr%2F1/a.gguf?download=true",
                "hf:org/repo@refs/pr/1/a.gguf",
            ),
        ] {
            let name = hub(text);
            assert_eq!(name.to_string(), same, "{text}");
            assert_eq!(hub(same), name, "{text}");
        }
    }

    #[test]
    fn other_names() {
        let path = |text: &str| ModelName::Path(text.into());
        for (text, name) in [
            ("model.gguf", path("model.gguf")),
            ("./hf.co/a.gguf", path("./hf.co/a.gguf")),
            ("C:\\models\\a.gguf", path("C:\\models\\a.gguf")),
            ("file:a.gguf", path("a.gguf")),
            ("file:///models/a.gguf", path("/models/a.gguf")),
            ("org/repo", path("org/repo")),
            ("", path("")),
        ] {
            assert_eq!(ModelName::parse(text).unwrap(), name, "{text}");
        }
        let name = ModelName::parse("https://example.org/a.gguf?x=1").unwrap();
        assert!(matches!(&name, ModelName::Address(a) if a.host() == "example.org"), "{name:?}");
        assert!(matches!(ModelName::parse("ollama:qwen3:4b").unwrap(), ModelName::Ollama(_)));
    }

    #[test]
    fn names_that_are_not_well_formed_say_why() {
        for (text, why) in [
            ("hf:repo", "a repository is written `owner/name`"),
            ("hf:a b/c", "letters, digits"),
            ("hf:org/repo:", "no tag behind the colon"),
            ("hf:org/repo:Q4 K", "a tag consists of"),
            ("hf:org/repo/../x", "leaves its folder"),
            ("hf:org/repo@:Q4", "a revision is"),
            ("hf:org/repo@..", "a revision is"),
            ("hf:org/repo@a%2F..%2F..%2Fb", "a revision is"),
            ("https://huggingface.co/datasets/a/b", "no repository of models"),
            ("https://huggingface.co/org/repo/tree/main/sub", "a folder of a repository"),
            ("https://u:p@example.org/a.gguf", "a password"),
            ("ollama:", "name"),
        ] {
            let error = ModelName::parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{text}: {error}");
        }
    }
}
