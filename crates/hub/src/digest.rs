//! Digests of contents, and the ETags that are some.

use std::fmt;

/// The digest of a file's contents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Digest {
    /// sha256 of the contents, as of large files: 64 hex digits.
    Sha256(String),
    /// The name of a git blob: sha1 of `blob SIZE`, a zero byte and the contents, 40 hex digits.
    Git(String),
}

impl Digest {
    /// The digest that an ETag of the hub is, by its number of digits.
    pub fn of_etag(etag: &str) -> Option<Digest> {
        Digest::of_digits(plain_etag(etag))
    }

    /// The digest of so many hex digits.
    pub fn of_digits(digits: &str) -> Option<Digest> {
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        match digits.len() {
            64 if is_hex => Some(Digest::Sha256(digits.to_ascii_lowercase())),
            40 if is_hex => Some(Digest::Git(digits.to_ascii_lowercase())),
            _ => None,
        }
    }

    /// Its hex digits.
    pub fn digits(&self) -> &str {
        match self {
            Digest::Sha256(digits) | Digest::Git(digits) => digits,
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Digest::Sha256(digits) => write!(f, "sha256 {digits}"),
            Digest::Git(digits) => write!(f, "git blob {digits}"),
        }
    }
}

/// An ETag without `W/` and quotes.
pub(crate) fn plain_etag(etag: &str) -> &str {
    let etag = etag.trim();
    etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"')
}

/// An ETag that a range may be conditional on; weak ones may not.
pub fn strong_etag(etag: &str) -> Option<&str> {
    let etag = etag.trim();
    (etag.len() > 2 && etag.starts_with('"') && etag.ends_with('"')).then_some(etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags() {
        let sha = "0f".repeat(32);
        assert_eq!(Digest::of_etag(&format!("W/\"{sha}\"")), Some(Digest::Sha256(sha)));
        assert_eq!(Digest::of_etag("\"fe1e0f716c4a3e1de8c0bf526c8ee7df\""), None);
        assert_eq!(strong_etag(" \"a\""), Some("\"a\""));
        for weak in ["W/\"a\"", "a", "\"\"", ""] {
            assert_eq!(strong_etag(weak), None);
        }
    }
}
