//! Addresses of the web, split where redirects and tokens care: scheme, host, path.

use std::fmt;

#[cfg(not(target_arch = "wasm32"))]
use crate::quote;

/// Parameters of queries that are secrets, in lower case.
#[cfg(not(target_arch = "wasm32"))]
const SECRETS: [&str; 13] = [
    "signature",
    "sig",
    "token",
    "access_token",
    "auth",
    "authorization",
    "api_key",
    "api-key",
    "apikey",
    "password",
    "secret",
    "hmac",
    "jwt",
];

/// Beginnings of parameters of signed addresses: of S3 and of Google's storage.
#[cfg(not(target_arch = "wasm32"))]
const SIGNED_PREFIXES: [&str; 2] = ["x-amz-", "x-goog-"];

/// Parameters of signatures, and those that they come with: of S3's older form and CloudFront, and of Azure.
#[cfg(not(target_arch = "wasm32"))]
const SIGNED: [(&str, &[&str]); 2] = [
    ("signature", &["awsaccesskeyid", "googleaccessid", "expires", "policy", "key-pair-id"]),
    (
        "sig",
        &[
            "sv", "ss", "srt", "sp", "se", "st", "sr", "si", "sip", "spr", "skoid", "sktid", "skt", "ske",
            "sks", "skv",
        ],
    ),
];

/// An `http:` or `https:` address without user and fragment.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address {
    is_secure: bool,
    /// Host and port, in lower case, as written.
    authority: String,
    /// Path and query; begins with `/`.
    target: String,
}

impl Address {
    /// Parses an absolute address.
    ///
    /// # Errors
    /// The reason, for another scheme, a missing host, a user, or characters that no address has.
    pub fn parse(text: &str) -> Result<Address, &'static str> {
        if text.chars().any(|c| c.is_control() || c == ' ' || c == '\\') {
            return Err("it has spaces, control characters or backslashes");
        }
        let (scheme, rest) = text.split_once("://").ok_or("it does not begin with `https://`")?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err("only `https:` and `http:` addresses can be fetched"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.is_empty() {
            return Err("it has no host");
        }
        if authority.contains('@') {
            return Err("it has a user or a password, which belong into no address");
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Address {
            is_secure,
            authority: authority.to_ascii_lowercase(),
            target: format!("{slash}{target}"),
        })
    }

    /// The address that `location` means in an answer from this one.
    ///
    /// # Errors
    /// As [`Address::parse`].
    pub fn join(&self, location: &str) -> Result<Address, &'static str> {
        if has_scheme(location) {
            return Address::parse(location);
        }
        let scheme = if self.is_secure { "https" } else { "http" };
        if let Some(rest) = location.strip_prefix("//") {
            return Address::parse(&format!("{scheme}://{rest}"));
        }
        let path = self.path();
        let target = match location.chars().next() {
            None | Some('#') => self.target.clone(),
            Some('/') => location.to_owned(),
            Some('?') => format!("{path}{location}"),
            _ => format!("{}{location}", &path[..=path.rfind('/').unwrap_or(0)]),
        };
        Address::parse(&format!("{scheme}://{}{target}", self.authority))
    }

    /// The same host with another path and query, which begins with `/`.
    pub fn with_target(&self, target: &str) -> Address {
        Address { target: target.to_owned(), ..self.clone() }
    }

    /// True if both are the same server: scheme, host and port.
    pub fn same_origin(&self, other: &Address) -> bool {
        self.is_secure == other.is_secure && self.host_and_port() == other.host_and_port()
    }

    /// True for `https:`.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The host without its port, in lower case.
    pub fn host(&self) -> &str {
        self.host_and_port().0
    }

    /// True for the port of the scheme, named or not.
    pub fn has_usual_port(&self) -> bool {
        self.host_and_port().1 == if self.is_secure { "443" } else { "80" }
    }

    /// The path, as quoted.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The last part of the path, as quoted.
    pub fn file_name(&self) -> &str {
        self.path().rsplit('/').next().unwrap_or_default()
    }

    /// The address without its query, which may be a signature: for messages.
    pub fn plain(&self) -> Address {
        self.with_target(self.path())
    }

    /// The address without signatures and keys in its query, which are secret or expire: for what stays on the disk.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn lasting(&self) -> Address {
        let Some((path, query)) = self.target.split_once('?') else { return self.clone() };
        let name = |pair: &str| {
            let name = pair.split('=').next().unwrap_or_default();
            quote::unquoted(name).unwrap_or_default().to_ascii_lowercase()
        };
        let names: Vec<String> = query.split('&').map(name).collect();
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        let is_secret = |name: &str| {
            SECRETS.contains(&name)
                || SIGNED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || SIGNED.iter().any(|(signature, others)| has(signature) && others.contains(&name))
        };
        let kept = query.split('&').zip(&names).filter(|(_, name)| !is_secret(name)).map(|(pair, _)| pair);
        let kept = kept.collect::<Vec<_>>().join("&");
        let mark = if kept.is_empty() { "" } else { "?" };
        self.with_target(&format!("{path}{mark}{kept}"))
    }

    fn host_and_port(&self) -> (&str, &str) {
        let usual = if self.is_secure { "443" } else { "80" };
        match self.authority.rsplit_once(':') {
            // An address of IPv6 has colons of its own, within brackets.
            Some((host, port)) if !port.contains(']') => (host, if port.is_empty() { usual } else { port }),
            _ => (&self.authority, usual),
        }
    }
}

/// True if a location begins with a scheme, which ends at a colon before any path, query or fragment.
fn has_scheme(location: &str) -> bool {
    location.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.target)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    #[test]
    fn addresses_have_host_path_and_query() {
        let a = address("HTTPS://HF.co:443/a/b.gguf?x=1#part");
        assert_eq!(a.to_string(), "https://hf.co:443/a/b.gguf?x=1");
        assert_eq!((a.host(), a.path(), a.file_name()), ("hf.co", "/a/b.gguf", "b.gguf"));
        assert_eq!(a.plain().to_string(), "https://hf.co:443/a/b.gguf");
        assert!(a.same_origin(&address("https://hf.co/")) && !a.same_origin(&address("http://hf.co:443/")));
        assert_eq!(address("http://[::1]:8080?q").to_string(), "http://[::1]:8080/?q");
        assert_eq!(address("http://[::1]").host(), "[::1]");
    }

    #[test]
    fn no_address_is_not_taken_for_one() {
        for text in [
            "hf.co/a",
            "ftp://a/b",
            "https://",
            "https:///a",
            "https://u:p@a/b",
            "https://a/b c",
            "http://a\\b",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn signatures_do_not_last() {
        for (query, kept) in [
            ("?v=2&X-Amz-Signature=a&X-Amz-Expires=60&x=1", "?v=2&x=1"),
            ("?Expires=1&Policy=p&Signature=s&Key-Pair-Id=k&response=b", "?response=b"),
            ("?X%2DGoog-Signature=a", ""),
            ("?sv=1&se=2&sp=r&sig=s&n", "?n"),
            ("?access_token=t", ""),
            // Without a signature, these are parameters like any.
            ("?expires=1&sp=r&v", "?expires=1&sp=r&v"),
            ("", ""),
        ] {
            let (signed, lasting) = (format!("https://a.b/c{query}"), format!("https://a.b/c{kept}"));
            assert_eq!(address(&signed).lasting().to_string(), lasting);
        }
    }

    #[test]
    fn locations_are_relative_to_their_answer() {
        let from = address("https://hub.example/org/repo/resolve/main/a.gguf?x=1");
        for (location, to) in [
            ("https://cdn.example/a?sig=/x", "https://cdn.example/a?sig=/x"),
            ("//cdn.example/a", "https://cdn.example/a"),
            ("/new/repo/resolve/main/a.gguf", "https://hub.example/new/repo/resolve/main/a.gguf"),
            ("?y=2", "https://hub.example/org/repo/resolve/main/a.gguf?y=2"),
            ("b.gguf", "https://hub.example/org/repo/resolve/main/b.gguf"),
            ("/a?back=https://other/", "https://hub.example/a?back=https://other/"),
            (
                "b.gguf?back=https://other/",
                "https://hub.example/org/repo/resolve/main/b.gguf?back=https://other/",
            ),
            ("b#https://other/", "https://hub.example/org/repo/resolve/main/b"),
            ("sub/a:b.gguf", "https://hub.example/org/repo/resolve/main/sub/a:b.gguf"),
            ("", "https://hub.example/org/repo/resolve/main/a.gguf?x=1"),
            ("#part", "https://hub.example/org/repo/resolve/main/a.gguf?x=1"),
        ] {
            assert_eq!(from.join(location).unwrap().to_string(), to, "{location}");
        }
        for location in ["ftp://other/a", "mailto:a", "javascript:x"] {
            assert!(from.join(location).is_err(), "{location}");
        }
    }
}
