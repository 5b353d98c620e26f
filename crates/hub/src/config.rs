//! Settings. Programs fill them from their options and environment.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a [`Hub`](crate::Hub).
#[derive(Clone, Debug)]
pub struct HubConfig {
    /// Address of the hub, or of a mirror.
    pub endpoint: String,
    /// Folder of the cache that huggingface_hub and llama.cpp share.
    pub cache: PathBuf,
    /// Folder for files of other addresses.
    pub address_cache: PathBuf,
    /// Folders of ollama's models, which are read only.
    pub ollama: Vec<PathBuf>,
    /// Folders of LM Studio's models, which are read only.
    pub lm_studio: Vec<PathBuf>,
    /// Token of the user; no other host ever sees it.
    pub token: Option<Token>,
    /// Use no network.
    pub offline: bool,
    /// Proxies.
    pub proxies: Proxies,
    /// Certificates that are trusted.
    pub roots: Roots,
    /// Links in the cache.
    pub links: Links,
    /// Name and version of the program, for servers.
    pub user_agent: String,
    /// Times and sizes.
    pub limits: Limits,
}

impl HubConfig {
    /// The hub itself, with a cache folder; everything else is empty or usual.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        let cache = cache.into();
        HubConfig {
            endpoint: "https://huggingface.co".into(),
            address_cache: cache.join(".addresses"),
            cache,
            ollama: Vec::new(),
            lm_studio: Vec::new(),
            token: None,
            offline: false,
            proxies: Proxies::default(),
            roots: Roots::default(),
            links: Links::default(),
            user_agent: concat!("chaski/", env!("CARGO_PKG_VERSION")).into(),
            limits: Limits::default(),
        }
    }
}

/// A secret, which no message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token without the white space around it; `None` if nothing is left.
    pub fn new(text: &str) -> Option<Token> {
        let text = text.trim();
        (!text.is_empty()).then(|| Token(text.to_owned()))
    }

    /// The value of the header `Authorization`.
    pub(crate) fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Proxies by the scheme of an address, as `http://`, `https://` or `socks5://` addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `https:` addresses.
    pub https: Option<String>,
    /// For `http:` addresses.
    pub http: Option<String>,
    /// Hosts without a proxy, separated by commas.
    pub none_for: String,
}

/// Certificates that are trusted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Roots {
    /// Mozilla's, built in.
    #[default]
    BuiltIn,
    /// Those of the system; needs the feature `platform-verifier`.
    #[cfg(feature = "platform-verifier")]
    Platform,
}

/// Links from snapshots to blobs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Links {
    /// Where the file system can, else files.
    #[default]
    Auto,
    /// Never: files are moved to their snapshot.
    Never,
}

/// Times and sizes of downloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files at once.
    pub n_parallel: usize,
    /// Waits before further tries; tries that brought bytes do not count.
    pub delays: Vec<Duration>,
    /// Longest wait that a server may ask for.
    pub longest_wait: Duration,
    /// Time without a byte after which a connection counts as broken.
    pub silence: Duration,
    /// Bytes after which a part is flushed to the disk.
    pub n_flush: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            n_parallel: 4,
            delays: [1, 2, 4, 8, 8].map(Duration::from_secs).into(),
            longest_wait: Duration::from_secs(330),
            silence: Duration::from_secs(30),
            n_flush: 16 << 20,
        }
    }
}
