//! The configuration file: TOML whose keys are the long names of options.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toml::de::{DeTable, DeValue};

use crate::failure::Usage;

/// A key with its value, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The table of a command; `None` for keys of all commands.
    pub(super) table: Option<String>,
    pub(super) key: String,
    pub(super) words: Vec<String>,
    pub(super) line: usize,
}

/// A file's entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) entries: Vec<Entry>,
}

/// The file's place if no other is named.
pub(super) fn usual_place() -> Option<PathBuf> {
    Some(directories::ProjectDirs::from("", "", "chaski")?.config_dir().join("config.toml"))
}

/// Reads a file; `None` if it is in the usual place and does not exist.
///
/// # Errors
/// If a file that was named cannot be read, or it is not as it should be.
pub(super) fn read(named: Option<&Path>) -> anyhow::Result<Option<File>> {
    let Some(path) = named.map(Path::to_owned).or_else(usual_place) else { return Ok(None) };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(parse(&path, &text)?)),
        Err(e) if e.kind() == ErrorKind::NotFound && named.is_none() => Ok(None),
        Err(e) => Err(e).with_context(|| format!("the configuration `{}` cannot be read", path.display())),
    }
}

fn parse(path: &Path, text: &str) -> Result<File, Usage> {
    let line_of =
        |at: usize| 1 + text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count();
    let wrong = |at: usize, what: &str| Usage(format!("`{}`, line {}: {what}", path.display(), line_of(at)));
    let table =
        DeTable::parse(text).map_err(|e| wrong(e.span().map_or(0, |span| span.start), e.message()))?;
    let mut entries = Vec::new();
    for (key, value) in table.get_ref() {
        let at = key.span().start;
        if let DeValue::Table(inner) = value.get_ref() {
            for (key_in, value) in inner {
                let at = key_in.span().start;
                let words = words(value.get_ref()).ok_or_else(|| {
                    wrong(at, &format!("`{}` needs a text, number or list of them", key_in.get_ref()))
                })?;
                let (table, key) = (Some(key.get_ref().to_string()), key_in.get_ref().to_string());
                entries.push(Entry { table, key, words, line: line_of(at) });
            }
            continue;
        }
        let words = words(value.get_ref())
            .ok_or_else(|| wrong(at, &format!("`{}` needs a text, number or list of them", key.get_ref())))?;
        entries.push(Entry { table: None, key: key.get_ref().to_string(), words, line: line_of(at) });
    }
    // Tables are sorted by key.
    entries.sort_by_key(|entry| entry.line);
    Ok(File { path: path.to_owned(), entries })
}

/// A value as words of a command line.
fn words(value: &DeValue<'_>) -> Option<Vec<String>> {
    match value {
        DeValue::Array(list) => list
            .iter()
            .map(|value| match words(value.get_ref())?.as_slice() {
                [word] => Some(word.clone()),
                _ => None,
            })
            .collect(),
        DeValue::String(text) => Some(vec![text.to_string()]),
        DeValue::Boolean(on) => Some(vec![on.to_string()]),
        DeValue::Float(number) => Some(vec![number.as_str().to_owned()]),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix()).ok()?;
            Some(vec![number.to_string()])
        }
        DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_lines_and_tables() {
        let text = "# mine\ntemp = 0.5\nstop = [\"a\", \"b\"]\n\n[bench]\nn-prompt = 0x10\nverbose = true\n";
        let file = parse(Path::new("c.toml"), text).unwrap();
        let rows: Vec<_> = file
            .entries
            .iter()
            .map(|e| (e.table.as_deref(), e.key.as_str(), e.words.join("|"), e.line))
            .collect();
        assert_eq!(
            rows,
            [
                (None, "temp", "0.5".into(), 2),
                (None, "stop", "a|b".into(), 3),
                (Some("bench"), "n-prompt", "16".into(), 6),
                (Some("bench"), "verbose", "true".into(), 7),
            ]
        );
    }

    #[test]
    fn mistakes_have_a_line() {
        for (text, says) in [
            ("a = 1\nb = = 2\n", "`c.toml`, line 2: "),
            ("a = 1\na = 2\n", "`c.toml`, line 2: duplicate key"),
            ("\nday = 2026-01-02\n", "`c.toml`, line 2: `day` needs a text"),
            ("[run]\nx = { y = 1 }\n", "`c.toml`, line 2: `x` needs a text"),
        ] {
            let Usage(error) = parse(Path::new("c.toml"), text).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
