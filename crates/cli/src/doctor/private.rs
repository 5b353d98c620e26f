//! Paths and names of the user, which a report must not have.

use std::path::{Path, PathBuf};

/// Folders of the user and the words that stand for them, longest paths first.
pub(super) struct Private(Vec<(String, &'static str)>);

impl Private {
    /// The folders of the user who runs this.
    pub(super) fn of_user() -> Self {
        let of_system =
            |f: fn(&directories::BaseDirs) -> &Path| directories::BaseDirs::new().map(|d| f(&d).to_owned());
        let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        Private::of([
            (variable("XDG_CACHE_HOME"), "$XDG_CACHE_HOME"),
            (of_system(directories::BaseDirs::home_dir), "~"),
            (variable("HOME"), "~"),
            (std::env::current_dir().ok(), "."),
        ])
    }

    fn of<const N: usize>(folders: [(Option<PathBuf>, &'static str); N]) -> Self {
        let mut known: Vec<(String, &'static str)> = folders
            .into_iter()
            .filter_map(|(path, word)| Some((path?.to_string_lossy().into_owned(), word)))
            // The root of the file system names nobody.
            .filter(|(path, _)| Path::new(path).components().count() > 1)
            // JSON doubles backslashes.
            .flat_map(|(path, word)| [(path.replace('\\', r"\\"), word), (path, word)])
            .collect();
        known.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Private(known)
    }

    /// A text with the words in place of the folders.
    pub(super) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (path, word)| text.replace(path.as_str(), word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_user_become_words() {
        let at = |path: &str| Some(PathBuf::from(path));
        let private = Private::of([
            (at("/home/nora"), "~"),
            (at("/home/nora/c"), "$XDG_CACHE_HOME"),
            (None, "-"),
            (at("/"), "."),
        ]);
        let text = "cannot write /home/nora/c/x: see /home/nora/log, /etc";
        assert_eq!(private.hide(text), "cannot write $XDG_CACHE_HOME/x: see ~/log, /etc");
    }
}
