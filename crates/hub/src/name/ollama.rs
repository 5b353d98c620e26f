//! Names of ollama's models: `[host/][namespace/]name[:tag]`.

use std::fmt;

/// A model of ollama's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaName {
    /// The registry.
    pub host: String,
    /// The owner; `library` for ollama's own.
    pub namespace: String,
    /// The model.
    pub model: String,
    /// Its variant.
    pub tag: String,
}

const HOST: &str = "registry.ollama.ai";
const NAMESPACE: &str = "library";
const TAG: &str = "latest";

impl OllamaName {
    /// Parses a name; parts that are missing have ollama's defaults.
    ///
    /// # Errors
    /// The reason.
    pub fn parse(text: &str) -> Result<OllamaName, &'static str> {
        let slash = text.rfind('/').map_or(0, |at| at + 1);
        let (model, tag) = match text[slash..].split_once(':') {
            Some((model, tag)) => (model, tag),
            None => (&text[slash..], TAG),
        };
        let before: Vec<&str> =
            text[..slash].trim_end_matches('/').split('/').filter(|p| !p.is_empty()).collect();
        let (host, namespace) = match before[..] {
            [] => (HOST, NAMESPACE),
            [namespace] => (HOST, namespace),
            [host, namespace] => (host, namespace),
            _ => return Err("a name of ollama is `[host/][namespace/]name[:tag]`"),
        };
        for part in [host, namespace, model, tag] {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            // A host may have a port.
            if part.is_empty()
                || part.len() > 128
                || part.starts_with('.')
                || !part.chars().all(|c| is_plain(c) || part == host && c == ':')
            {
                return Err("each part of a name of ollama consists of letters, digits and `-_.`");
            }
        }
        let [host, namespace, model, tag] = [host, namespace, model, tag].map(str::to_owned);
        Ok(OllamaName { host, namespace, model, tag })
    }

    /// Path of its manifest below ollama's `manifests`.
    pub fn manifest(&self) -> [&str; 4] {
        [&self.host, &self.namespace, &self.model, &self.tag]
    }
}

impl fmt::Display for OllamaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ollama:")?;
        if self.host != HOST {
            write!(f, "{}/", self.host)?;
        }
        if self.host != HOST || self.namespace != NAMESPACE {
            write!(f, "{}/", self.namespace)?;
        }
        write!(f, "{}:{}", self.model, self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_missing_have_defaults() {
        for (text, parts, shown) in [
            ("qwen3", ["registry.ollama.ai", "library", "qwen3", "latest"], "ollama:qwen3:latest"),
            (
                "qwen3:4b-q4_K_M",
                ["registry.ollama.ai", "library", "qwen3", "4b-q4_K_M"],
                "ollama:qwen3:4b-q4_K_M",
            ),
            ("me/mine", ["registry.ollama.ai", "me", "mine", "latest"], "ollama:me/mine:latest"),
            (
                "hf.co/org/repo-GGUF:Q8_0",
                ["hf.co", "org", "repo-GGUF", "Q8_0"],
                "ollama:hf.co/org/repo-GGUF:Q8_0",
            ),
            ("host:5000/a/b:c", ["host:5000", "a", "b", "c"], "ollama:host:5000/a/b:c"),
        ] {
            let name = OllamaName::parse(text).unwrap();
            assert_eq!(name.manifest(), parts, "{text}");
            assert_eq!(name.to_string(), shown);
        }
        for text in ["", ":tag", "a:", "a/b/c/d", "../a", "a/..", "a:b:c", "a b"] {
            assert!(OllamaName::parse(text).is_err(), "{text}");
        }
    }
}
