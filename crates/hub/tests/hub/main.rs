//! The hub against a server that behaves like it, with its faults.

mod access;
mod addresses;
mod cache;
mod download;
mod fake;
mod foreign;
mod golden;
mod offline;
mod processes;
mod protocol;
mod proxies;
mod python;
mod room;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use chaski_hub::{Event, Found, Hub, HubConfig, HubError, Limits, ModelName, Plan, Token, Watch};
use fake::FakeHub;

/// Bytes that do not repeat, as a model's.
pub(crate) fn bytes(n: usize, seed: u64) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15 ^ seed;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..n).map(|_| next()).collect()
}

/// The size of the usual model.
pub(crate) const SIZE: usize = 300_000;

/// A hub with one repository, `org/tiny-GGUF`: two models, a projector and a text.
pub(crate) fn tiny() -> FakeHub {
    FakeHub::start().with(
        "org/tiny-GGUF",
        &[
            ("tiny-Q4_0.gguf", bytes(SIZE, 1)),
            ("tiny-f32.gguf", bytes(2 * SIZE, 2)),
            ("mmproj-F16.gguf", bytes(1000, 3)),
            ("README.md", b"# tiny\n".to_vec()),
        ],
    )
}

pub(crate) const NAME: &str = "hf:org/tiny-GGUF:Q4_0";

/// A client with a cache of its own.
pub(crate) struct Client {
    pub(crate) config: HubConfig,
    folder: tempfile::TempDir,
}

impl Client {
    pub(crate) fn of(hub: &FakeHub) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = HubConfig {
            endpoint: hub.endpoint(),
            limits: Limits { delays: vec![Duration::from_millis(5); 5], ..Limits::default() },
            ..HubConfig::new(folder.path().join("hub"))
        };
        Client { config, folder }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut HubConfig)) -> Self {
        change(&mut self.config);
        self
    }

    pub(crate) fn with_token(self, token: &str) -> Self {
        self.with(|config| config.token = Token::new(token))
    }

    /// A folder beside the cache.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn hub(&self) -> Hub {
        Hub::new(self.config.clone()).unwrap()
    }

    /// Plans and fetches, as a command that pulls.
    pub(crate) fn pull(&self, name: &str) -> Result<Found, HubError> {
        self.pull_with(name, &mut |_| {})
    }

    pub(crate) fn pull_with(&self, name: &str, tell: &mut dyn FnMut(Event)) -> Result<Found, HubError> {
        let mut watch = Watch { cancel: Arc::new(AtomicBool::new(false)), tell };
        let plan = self.hub().plan(&ModelName::parse(name)?, &mut watch)?;
        self.hub().fetch(&plan, &mut watch)
    }

    pub(crate) fn plan(&self, name: &str) -> Result<Plan, HubError> {
        let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
        self.hub().plan(&ModelName::parse(name)?, &mut watch)
    }

    pub(crate) fn find(&self, name: &str) -> Option<Found> {
        self.hub().find(&ModelName::parse(name).unwrap()).unwrap()
    }

    /// The folder of `org/tiny-GGUF` in the cache.
    pub(crate) fn repo(&self) -> PathBuf {
        self.config.cache.join("models--org--tiny-GGUF")
    }

    /// Names in the folder of blobs, sorted.
    pub(crate) fn blobs(&self) -> Vec<String> {
        names(&self.repo().join("blobs"))
    }
}

/// Names in a folder, sorted; none if there is no folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Says that the calling test could not run, past the test harness, which captures only what macros print.
pub(crate) fn skipped(want: &str) {
    use std::io::Write as _;
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    writeln!(std::io::stderr(), "SKIPPED {test}: for want of {want}").expect("stderr can be written");
}
