//! Loaders of included files.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A loaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The name of the file in errors and line maps; two includes of the same file give it the same name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The reason why a file could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file.
    NotFound {
        /// The names that were tried, in order.
        tried: Vec<String>,
    },
    /// The file exists but cannot be read.
    Unreadable {
        /// The reason, lower case without a full stop.
        message: String,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { tried } if tried.len() > 1 => {
                write!(f, "not found (tried {})", tried.join(", "))
            }
            Self::NotFound { .. } => write!(f, "not found"),
            Self::Unreadable { message } => write!(f, "{message}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Finds included files.
///
/// Maps from names to texts are loaders: they search next to the including file first, then from the root.
///
/// ```
/// use std::collections::BTreeMap;
/// use wgsl_pre::Loader;
///
/// let files = BTreeMap::from([("lib/a.wgsl", "a"), ("lib/b.wgsl", "b"), ("b.wgsl", "root")]);
/// assert_eq!(files.load("b.wgsl", Some("lib/a.wgsl"))?.name, "lib/b.wgsl");
/// assert_eq!(files.load("../b.wgsl", Some("lib/a.wgsl"))?.name, "b.wgsl");
/// assert_eq!(files.load("lib/b.wgsl", Some("lib/a.wgsl"))?.text, "b");
/// # Ok::<(), wgsl_pre::LoadError>(())
/// ```
pub trait Loader: Send + Sync {
    /// Loads the file that `path` refers to in the file `from`, or outside any file.
    ///
    /// # Errors
    ///
    /// [`LoadError::NotFound`] with the names that were tried, or [`LoadError::Unreadable`].
    fn load(&self, path: &str, from: Option<&str>) -> Result<Source, LoadError>;
}

/// The loader for texts without includes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoFiles;

impl Loader for NoFiles {
    fn load(&self, _: &str, _: Option<&str>) -> Result<Source, LoadError> {
        Err(LoadError::NotFound { tried: Vec::new() })
    }
}

impl<K, V> Loader for BTreeMap<K, V>
where
    K: std::borrow::Borrow<str> + Ord + Send + Sync,
    V: AsRef<str> + Send + Sync,
{
    fn load(&self, path: &str, from: Option<&str>) -> Result<Source, LoadError> {
        load_from_map(path, from, |name| self.get(name).map(AsRef::as_ref))
    }
}

impl<K, V, S> Loader for HashMap<K, V, S>
where
    K: std::borrow::Borrow<str> + Eq + std::hash::Hash + Send + Sync,
    V: AsRef<str> + Send + Sync,
    S: std::hash::BuildHasher + Send + Sync,
{
    fn load(&self, path: &str, from: Option<&str>) -> Result<Source, LoadError> {
        load_from_map(path, from, |name| self.get(name).map(AsRef::as_ref))
    }
}

fn load_from_map<'a>(
    path: &str,
    from: Option<&str>,
    get: impl Fn(&str) -> Option<&'a str>,
) -> Result<Source, LoadError> {
    let tried = candidates(path, from, &[""]);
    match tried.iter().find_map(|name| Some((name, get(name)?))) {
        Some((name, text)) => Ok(Source { name: name.clone(), text: text.to_owned() }),
        None => Err(LoadError::NotFound { tried }),
    }
}

/// The names that `path` can refer to in `from`: next to it, then in each root, without duplicates.
fn candidates(path: &str, from: Option<&str>, roots: &[impl AsRef<str>]) -> Vec<String> {
    let sibling = from.map(|from| from.rsplit_once('/').map_or("", |(dir, _)| dir));
    let mut names = Vec::new();
    for dir in sibling.into_iter().chain(roots.iter().map(AsRef::as_ref)) {
        let name = normalise(dir, path);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// `dir/path` without `.`, and without `..` after a name.
fn normalise(dir: &str, path: &str) -> String {
    let is_absolute = path.starts_with('/') || dir.starts_with('/');
    let dir = if path.starts_with('/') { "" } else { dir };
    let mut parts: Vec<&str> = Vec::new();
    for part in dir.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("{}{}", if is_absolute { "/" } else { "" }, parts.join("/"))
}

/// Reads files from directories: first from that of the including file, then from each of these, in order.
#[cfg(feature = "fs")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirs {
    dirs: Vec<String>,
}

#[cfg(feature = "fs")]
impl Dirs {
    /// A loader for these directories.
    pub fn new<S: Into<String>>(dirs: impl IntoIterator<Item = S>) -> Self {
        Self { dirs: dirs.into_iter().map(Into::into).collect() }
    }
}

#[cfg(feature = "fs")]
impl Loader for Dirs {
    fn load(&self, path: &str, from: Option<&str>) -> Result<Source, LoadError> {
        let roots = if from.is_none() { &[String::new()][..] } else { &[] };
        let roots: Vec<&String> = roots.iter().chain(&self.dirs).collect();
        let tried = candidates(path, from, &roots);
        for name in &tried {
            match std::fs::read_to_string(name) {
                Ok(text) => return Ok(Source { name: name.clone(), text }),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => {
                    return Err(LoadError::Unreadable { message: format!("{name}: {e}").to_lowercase() });
                }
            }
        }
        Err(LoadError::NotFound { tried })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised() {
        for (dir, path, expected) in [
            ("", "a.wgsl", "a.wgsl"),
            ("lib", "./a.wgsl", "lib/a.wgsl"),
            ("lib/x", "../../a.wgsl", "a.wgsl"),
            ("lib", "../../a.wgsl", "../a.wgsl"),
            ("/abs/", "a.wgsl", "/abs/a.wgsl"),
            ("lib", "/abs/a.wgsl", "/abs/a.wgsl"),
        ] {
            assert_eq!(normalise(dir, path), expected);
        }
    }
}
