//! Errors: what was asked for, what the other side said, and what to do.

use std::io;
use std::path::PathBuf;

use crate::bytes::Bytes;
use crate::digest::Digest;
use crate::listing::Listing;

/// A failure to find, fetch or keep a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// A name that is not well formed.
    #[error("`{name}` is not a model's name: {reason}")]
    Name {
        /// The name.
        name: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The hub does not know a repository, or hides it.
    #[error("no repository `{repo}` on {hub}{}", private(*.has_token))]
    NoRepo {
        /// The repository.
        repo: String,
        /// Address of the hub.
        hub: String,
        /// A token was sent.
        has_token: bool,
    },
    /// A repository has no such branch, tag or commit.
    #[error("`{repo}` has no revision `{revision}`")]
    NoRevision {
        /// The repository.
        repo: String,
        /// The revision.
        revision: String,
    },
    /// A repository has no such file.
    #[error("`{name}`: there is no file `{path}`")]
    NoFile {
        /// The model's name.
        name: String,
        /// The file.
        path: String,
    },
    /// A repository whose terms must be accepted.
    #[error("`{repo}` is gated: accept its terms on {page}{}", token_advice(*.has_token))]
    Gated {
        /// The repository.
        repo: String,
        /// Address of its page.
        page: String,
        /// A token was sent.
        has_token: bool,
    },
    /// No file has a tag.
    #[error("`{name}`: no GGUF file has the tag `{tag}`; there are:{files}")]
    NoTag {
        /// The model's name.
        name: String,
        /// The tag.
        tag: String,
        /// All that can be chosen.
        files: Listing,
    },
    /// Several files fit equally.
    #[error("`{name}` fits several files; add a tag or the path of one:{files}")]
    ManyFiles {
        /// The model's name.
        name: String,
        /// The files.
        files: Listing,
    },
    /// Nothing can be loaded.
    #[error(
        "`{name}` has no model among its {n_file} files: no GGUF file, no config.json with \
         model.safetensors or its index, and no mlc-chat-config.json"
    )]
    NoModel {
        /// The model's name.
        name: String,
        /// Files of the repository.
        n_file: usize,
    },
    /// A split set is not whole.
    #[error("the split set of {n_part} files lacks `{path}`")]
    MissingPart {
        /// The missing file.
        path: String,
        /// Parts of the set.
        n_part: u32,
    },
    /// A path that must not become a file here.
    #[error("the path `{path}` in {place} is refused: {reason}")]
    UnsafePath {
        /// The path.
        path: String,
        /// The repository or file that has it.
        place: String,
        /// The reason.
        reason: &'static str,
    },
    /// Something is not in the cache, and the network must not be used.
    #[error("`{name}` is not in the cache `{}`, and the network is off (--offline, HF_HUB_OFFLINE)", .cache.display())]
    Offline {
        /// The model's name.
        name: String,
        /// Folder of the cache.
        cache: PathBuf,
    },
    /// A model that a command about the cache was asked for.
    #[error("`{name}` is not in the cache `{}`", .cache.display())]
    NotCached {
        /// The model's name.
        name: String,
        /// Folder of the cache.
        cache: PathBuf,
    },
    /// A model that must not be removed now.
    #[error("`{name}` is being downloaded by another program; remove it when that has ended")]
    Busy {
        /// The model's name.
        name: String,
    },
    /// A token that the hub does not know.
    #[error("{hub} refuses the token; renew or unset HF_TOKEN (or --hf-token)")]
    Token {
        /// Address of the hub.
        hub: String,
    },
    /// A model that no folder of ollama has.
    #[error("`{name}` is in no folder of ollama ({}); `ollama pull` fetches it", list(.folders))]
    NotInOllama {
        /// The model's name.
        name: String,
        /// The folders.
        folders: Vec<PathBuf>,
    },
    /// A manifest of ollama that cannot be used.
    #[error("`{}`: {reason}", .path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// The disk has too little room.
    #[error("`{}` {}", .folder.display(), lack(*.n_needed, *.n_free))]
    NoRoom {
        /// The folder.
        folder: PathBuf,
        /// Bytes to be written.
        n_needed: u64,
        /// Free bytes.
        n_free: u64,
    },
    /// A server's refusal without a meaning of its own.
    #[error("{address}: status {status}{}", said(.message))]
    Status {
        /// The address, without its query.
        address: String,
        /// The status.
        status: u16,
        /// The server's words, if any.
        message: String,
    },
    /// A connection that cannot be made.
    #[error("{address} cannot be reached")]
    Connection {
        /// The address, without its query.
        address: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A connection that broke within an answer.
    #[error("{address}: the connection broke")]
    Broken {
        /// The address, without its query.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// A server whose certificate is not trusted, or that speaks TLS in another way.
    #[error(
        "{address}: no secure connection; a company's certificate is trusted with the roots of the system"
    )]
    Tls {
        /// The address, without its query.
        address: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A body that ended before its end.
    #[error("{address}: the answer ended at byte {at} of {size}")]
    Cut {
        /// The address, without its query.
        address: String,
        /// Bytes that came.
        at: u64,
        /// Bytes that should.
        size: u64,
    },
    /// A redirect that is not followed.
    #[error("{address}: the redirect to `{to}` is not followed: {reason}")]
    Redirect {
        /// The address, without its query.
        address: String,
        /// Its target.
        to: String,
        /// The reason.
        reason: &'static str,
    },
    /// A page where a file should be.
    #[error("{address} sent a web page in place of a file; a proxy or a login page may be in between")]
    Page {
        /// The address, without its query.
        address: String,
    },
    /// An answer that is not as it should be.
    #[error("{address}: {what}")]
    Answer {
        /// The address, without its query.
        address: String,
        /// The fault.
        what: &'static str,
    },
    /// JSON that cannot be read.
    #[error("{place}: the JSON cannot be read")]
    Json {
        /// Address or file.
        place: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// A file of another size than announced; nothing of it was kept.
    #[error("`{file}` has {found} bytes, but should have {expected}; nothing of it was kept")]
    Size {
        /// The file.
        file: String,
        /// Announced bytes.
        expected: u64,
        /// Bytes that came.
        found: u64,
    },
    /// A file of other contents than announced; nothing of it was kept.
    #[error("`{file}` is damaged: expected {expected}, found {found}; nothing of it was kept")]
    Damaged {
        /// The file.
        file: String,
        /// The announced digest.
        expected: Digest,
        /// The digest of what came.
        found: Digest,
    },
    /// A file or folder that cannot be read or written.
    #[error("`{}`", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A setting that cannot be used.
    #[error("{setting} `{value}` cannot be used: {reason}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// The reason.
        reason: &'static str,
    },
    /// The caller asked to stop; parts are kept.
    #[error("interrupted; the same command goes on where it stopped")]
    Interrupted,
}

/// The kind of a failure, for exit codes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The name or a setting is wrong.
    Usage,
    /// There is no such model, or it is not for this user.
    NoModel,
    /// The network or a server.
    Network,
    /// The disk is full.
    NoRoom,
    /// A file is damaged.
    Damaged,
    /// A file cannot be read or written.
    File,
    /// The caller asked to stop.
    Interrupted,
}

impl HubError {
    /// The kind of this failure.
    pub fn kind(&self) -> FailureKind {
        use HubError::*;
        match self {
            Name { .. } | Setting { .. } => FailureKind::Usage,
            NoRepo { .. }
            | NoRevision { .. }
            | NoFile { .. }
            | Gated { .. }
            | Token { .. }
            | Status { status: 401 | 403 | 404 | 410, .. }
            | NoTag { .. }
            | ManyFiles { .. }
            | NoModel { .. }
            | MissingPart { .. }
            | Offline { .. }
            | NotCached { .. }
            | NotInOllama { .. }
            | Manifest { .. }
            | UnsafePath { .. } => FailureKind::NoModel,
            Status { .. }
            | Connection { .. }
            | Broken { .. }
            | Tls { .. }
            | Cut { .. }
            | Redirect { .. }
            | Page { .. }
            | Answer { .. }
            | Json { .. } => FailureKind::Network,
            NoRoom { .. } => FailureKind::NoRoom,
            Size { .. } | Damaged { .. } => FailureKind::Damaged,
            File { .. } | Busy { .. } => FailureKind::File,
            Interrupted => FailureKind::Interrupted,
        }
    }
}

fn private(has_token: bool) -> &'static str {
    match has_token {
        false => "; check the spelling, or set HF_TOKEN if it is private",
        true => "; check the spelling, or whether the token may read it if it is private",
    }
}

fn token_advice(has_token: bool) -> &'static str {
    match has_token {
        false => ", then set HF_TOKEN (or --hf-token) to a token of that account",
        true => "; the token that was sent may not read it",
    }
}

fn lack(n_needed: u64, n_free: u64) -> String {
    let lack = Bytes(n_needed.saturating_sub(n_free));
    format!("has room for {}, but {} are missing: {lack} lack", Bytes(n_free), Bytes(n_needed))
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn list(folders: &[PathBuf]) -> String {
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    folders.join(", ")
}
