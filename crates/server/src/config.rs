//! How a server is set up.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::keys::Key;
use crate::limits::KeyLimits;
use crate::models::{Offers, Store};
use crate::proxies::TrustedProxy;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address and a port; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A socket of the file system.
    Unix(PathBuf),
}

/// Files of certificates in PEM. They are read again when they change; files that cannot be used change nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate, and those between it and a known authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Authorities of clients: only clients with a certificate of theirs may connect.
    pub client_ca: Option<PathBuf>,
}

/// A request that has ended, for a log.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Its name, also in the header `x-request-id`.
    pub id: String,
    /// Name of the trace that it is a part of, as the header `traceparent` has it.
    pub trace_id: Option<String>,
    /// Name of its key, if keys are required.
    pub key: Option<String>,
    /// Address of its client, if it has one.
    pub client: Option<IpAddr>,
    /// Method and path.
    pub method: String,
    /// Path, without the query.
    pub path: String,
    /// The status of the response.
    pub status: u16,
    /// From the head of the request to the head of the response.
    pub time: Duration,
    /// True for work whose only line this is: a request that was refused, or that has results without an answer.
    pub is_only: bool,
}

/// An answer that has ended, for a log.
#[derive(Clone, Debug, Default)]
pub struct Answered {
    /// Name of the request.
    pub id: String,
    /// Name of the trace that it is a part of.
    pub trace_id: Option<String>,
    /// Name of its key, if keys are required.
    pub key: Option<String>,
    /// Address of its client, if it has one.
    pub client: Option<IpAddr>,
    /// The status of the response.
    pub status: u16,
    /// Name of the model.
    pub model: String,
    /// Tokens of the prompt.
    pub n_prompt: usize,
    /// Those of them that were cached.
    pub n_cached: usize,
    /// Tokens of the answer.
    pub n_token: usize,
    /// Time before its prompt began to run.
    pub queue: Duration,
    /// Time to the first token.
    pub ttft: Duration,
    /// Tokens per second after the first.
    pub rate: f64,
    /// `stop`, `length`, `abort` or `error`.
    pub finish: &'static str,
}

/// A text that a model gets, for a log.
#[derive(Clone, Debug, Default)]
pub struct Prompted {
    /// Name of the request.
    pub id: String,
    /// Name of its key, if keys are required.
    pub key: Option<String>,
    /// Name of the model.
    pub model: String,
    /// The text: of a conversation as its template writes it, of tokens as they read.
    pub text: String,
}

/// A line of a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Entry {
    /// A request whose response began.
    Access(Access),
    /// An answer that ended.
    Answered(Answered),
    /// A text that goes to a model ([`ServerConfig::log_prompts`]).
    Prompted(Prompted),
    /// Something that its operator should know.
    Note(String),
}

/// Takes the lines of a log.
pub type Log = Arc<dyn Fn(&Entry) + Send + Sync>;

/// Limits of requests, which can change while a server runs ([`Control::set_bounds`](crate::Control::set_bounds)).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Limits of each key.
    pub keys: KeyLimits,
    /// Bytes of a body, after it is unpacked.
    pub max_body: usize,
    /// Time until the first token; `None` for no limit.
    pub request_timeout: Option<Duration>,
    /// Time in which a request waits for its first place; `None` for no limit.
    pub max_queue_time: Option<Duration>,
    /// Tokens of prompts that wait for a model; `None` for no limit. One request is taken whatever its prompt.
    pub max_queued_tokens: Option<usize>,
    /// Tokens of a prompt, or of a text to embed or score, if less than the context.
    pub max_prompt: Option<usize>,
    /// A model with open requests, of which nothing comes for this long, means that the server is not healthy.
    pub stall: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            keys: KeyLimits::default(),
            max_body: 32 << 20,
            request_timeout: None,
            max_queue_time: None,
            max_queued_tokens: None,
            max_prompt: None,
            stall: Duration::from_secs(60),
        }
    }
}

/// How a server is set up.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Where it listens.
    pub listen: Vec<Listen>,
    /// Speak TLS on addresses; sockets of the file system do not.
    pub tls: Option<Tls>,
    /// Keys of clients; without any, everybody may ask.
    pub keys: Vec<Key>,
    /// Names under which clients may reach it besides those of the loopback interface and its own addresses. Others are
    /// refused where no key is required, so that no page of the web can reach it by a name of its own.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may use it; by default those on the loopback interface. `*` allows all.
    pub cors_origins: Vec<String>,
    /// Proxies that may say in `x-forwarded-for` who their client is. The word of others is not taken.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// Limits of requests.
    pub bounds: Bounds,
    /// Answer requests for unknown models; by default if there are neither keys nor a second model.
    pub any_model: Option<bool>,
    /// Models that can be loaded. It is called at the start, when a request names an unknown model, and when the list
    /// is asked for; it may read folders.
    pub offers: Option<Offers>,
    /// Fetches, names and deletes models for operators (`/api/pull`, `/api/copy`, `/api/delete`), if it does.
    pub store: Option<Arc<dyn Store>>,
    /// OpenAI's responses that are kept in memory, for requests that go on from them; 0: none.
    pub kept_responses: usize,
    /// Models that are loaded at once; `None` for any number.
    pub models_max: Option<usize>,
    /// Bytes of loaded models, weights and caches. `None`: others make room for a model with which all would take more
    /// than 0.9 of the memory of their GPUs, where those tell it (Vulkan does). `u64::MAX`: no limit.
    pub models_bytes: Option<u64>,
    /// Free the models when the server ends. A program that ends with it can leave that to the system: some drivers of
    /// GPUs crash now and then while a device is closed.
    pub free_models: bool,
    /// Load models when requests ask for them.
    pub autoload: bool,
    /// Offer the chat page at `/`.
    pub page: bool,
    /// Offer `/metrics`.
    pub metrics: bool,
    /// Offer `/slots`.
    pub slots: bool,
    /// Folder of the states of slots; without one they are neither saved, restored nor erased.
    pub slot_save_path: Option<PathBuf>,
    /// Offer `/props`.
    pub props: bool,
    /// After the signal to end: time in which requests are still taken, so that routers notice. Also without requests,
    /// unless nobody has to notice ([`Control::hurry`](crate::Control::hurry)).
    pub drain_delay: Duration,
    /// After that: time in which those that run may end, while new ones are refused.
    pub drain_timeout: Duration,
    /// The head of a stream goes at the latest after this, with a comment; until then a failure is a status.
    pub stream_head: Duration,
    /// A client that takes nothing of its stream for this long is gone.
    pub stream_stall: Duration,
    /// Name of the build, as `system_fingerprint` of answers.
    pub fingerprint: String,
    /// Status of a full queue: 429, or 503 for routers that expect it.
    pub full_status: u16,
    /// The log.
    pub log: Option<Log>,
    /// The log has the texts that go to models: prompts, and texts to embed or score. Headers are never in it.
    pub log_prompts: bool,
    /// Collector that takes spans of requests by OTLP over HTTP.
    #[cfg(feature = "otlp")]
    pub otlp: Option<crate::Collector>,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            listen: vec![Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 8080)))],
            tls: None,
            keys: Vec::new(),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            bounds: Bounds::default(),
            any_model: None,
            offers: None,
            store: None,
            kept_responses: 0,
            models_max: None,
            models_bytes: None,
            free_models: true,
            autoload: true,
            page: true,
            metrics: true,
            slots: true,
            slot_save_path: None,
            props: true,
            drain_delay: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(120),
            stream_head: Duration::from_secs(5),
            stream_stall: Duration::from_secs(60),
            fingerprint: concat!("chaski-", env!("CARGO_PKG_VERSION")).into(),
            full_status: 429,
            log: None,
            log_prompts: false,
            #[cfg(feature = "otlp")]
            otlp: None,
        }
    }
}

impl std::fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerConfig").field("listen", &self.listen).finish_non_exhaustive()
    }
}
