//! Arguments that name models: files, or names that become files before a command runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use chaski_hub::ModelName;

/// Names for models of the configuration file, and what they stand for.
pub(crate) type Aliases = BTreeMap<String, String>;

/// The part that a model plays in a command.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A model of the command line, for which the options about names and the settings of ollama are.
    Main,
    /// A draft, or a model of a file of presets.
    Other,
}

/// Called with each argument that names a model; it may become a file.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(&mut PathBuf, Role) -> anyhow::Result<()>;

/// Visits an argument that may be text of any kind.
///
/// # Errors
/// Those of the visit.
pub(crate) fn visit_path(word: &mut OsString, visit: Visit<'_>) -> anyhow::Result<()> {
    let mut path = PathBuf::from(std::mem::take(word));
    let visited = visit(&mut path, Role::Main);
    *word = path.into();
    visited
}

/// True for a name that is no path, even one that is not well formed.
pub(crate) fn is_name(text: &Path) -> bool {
    text.to_str().is_some_and(|text| !matches!(ModelName::parse(text), Ok(ModelName::Path(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_paths() {
        for (text, expected) in
            [("hf:a", true), ("hf.co/a/b", true), ("ollama:x", true), ("a/b", false), ("C:\\a", false)]
        {
            assert_eq!(is_name(Path::new(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_visit_may_change_a_word_or_fail() {
        let mut word = OsString::from("a");
        visit_path(&mut word, &mut |path, role| {
            assert_eq!(role, Role::Main);
            *path = "b".into();
            Ok(())
        })
        .unwrap();
        assert_eq!(word, "b");
        assert!(visit_path(&mut word, &mut |_, _| anyhow::bail!("no")).is_err());
        assert_eq!(word, "b");
    }
}
