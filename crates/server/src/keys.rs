//! Keys of clients.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use crate::hex;

/// The rights of a key.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// To ask.
    #[default]
    Use,
    /// Also to load and free models, and to end the server.
    Admin,
}

/// A key of a client. Of the key itself only its hash is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name in logs.
    pub name: String,
    /// Its rights.
    pub level: Level,
    /// Its SHA-256.
    hash: [u8; 32],
}

/// A line of a file of keys that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the keys: {what}")]
pub struct KeyError {
    /// From 1.
    pub line: usize,
    /// The defect.
    pub what: &'static str,
}

fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

impl Key {
    /// A key with this text, which allows to ask.
    pub fn new(name: impl Into<String>, text: &str) -> Key {
        Key { name: name.into(), level: Level::Use, hash: sha256(text) }
    }

    /// The same key with this level.
    pub fn level(self, level: Level) -> Key {
        Key { level, ..self }
    }

    /// The keys of a file: lines `key`, `name:key` or `name:key:level`, where the key may be `sha256:` and 64
    /// hexadecimal digits, and the level is `use` or `admin`. Empty lines and those that begin with `#` do not count.
    ///
    /// # Errors
    /// [`KeyError`] for other lines.
    pub fn parse(text: &str) -> Result<Vec<Key>, KeyError> {
        let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
        lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(line, text)| parse_line(line, text))
            .collect()
    }

    /// A number for the scheduler: its requests take turns with those of other keys.
    pub(crate) fn client(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash.hash(&mut hasher);
        hasher.finish()
    }
}

fn parse_line(line: usize, text: &str) -> Result<Key, KeyError> {
    let wrong = |what| KeyError { line, what };
    let (name, key) = match text.split_once(':') {
        Some((name, key)) if name != "sha256" => (name.to_owned(), key),
        _ => (format!("key{line}"), text),
    };
    let (key, level) = match key.rsplit_once(':') {
        Some((key, "admin")) => (key, Level::Admin),
        Some((key, "use")) => (key, Level::Use),
        _ => (key, Level::Use),
    };
    if key.is_empty() {
        return Err(wrong("the key is empty"));
    }
    let key = match key.strip_prefix("sha256:") {
        None => Key::new(name, key),
        Some(digits) => {
            let hash = hex::bytes(digits).ok_or(wrong("a hash has 64 hexadecimal digits"))?;
            Key { name, level, hash }
        }
    };
    Ok(key.level(level))
}

/// The key with this text. The time does not depend on which it is, nor on how much of it is right.
pub(crate) fn find<'k>(keys: &'k [Key], text: &str) -> Option<&'k Key> {
    let hash = sha256(text);
    let (mut found, mut index) = (Choice::from(0), 0u32);
    for (i, key) in keys.iter().enumerate() {
        let is_it = key.hash.ct_eq(&hash);
        index.conditional_assign(&(i as u32), is_it);
        found |= is_it;
    }
    bool::from(found).then(|| &keys[index as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_names_and_hashes() {
        let hash = hex::text(&sha256("secret"));
        let text = format!("# ours\nplain\n\nann:sk-1\nbob:sk-2:admin\ncat:sha256:{hash}\nsha256:{hash}");
        let keys = Key::parse(&text).unwrap();
        let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["key2", "ann", "bob", "cat", "key7"]);
        assert_eq!(find(&keys, "secret").unwrap().name, "key7");
        assert_eq!(find(&keys, "sk-1").unwrap().name, "ann");
        assert_eq!(find(&keys, "sk-2").map(|key| key.level), Some(Level::Admin));
        assert_eq!(find(&keys, "sk-1").map(|key| key.level), Some(Level::Use));
        assert_eq!(find(&keys, "sk-3"), None);
        let signs = format!("x:sha256:{}", "+f".repeat(32));
        assert_eq!(Key::parse(&signs).unwrap_err().what, "a hash has 64 hexadecimal digits");
        assert_eq!(Key::parse("x:sha256:12").unwrap_err().what, "a hash has 64 hexadecimal digits");
        assert_eq!(Key::parse("a\nx:").unwrap_err().line, 2);
    }
}
