//! The options of `chaski serve`.

use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use chaski::embedding::Pooling;
use chaski_server::{KeepAlive, Key, Level, Listen, ServerConfig, Tls, TrustedProxy, Variables};

use super::dialects::DialectArgs;
use super::kept::Kept;
use super::limits::LimitArgs;
use super::log::{LogFormat, LogSettings};
use crate::draft::DraftArgs;
use crate::failure::Usage;
use crate::input::read_text;
use crate::model_names::{Role, Visit};
use crate::numbers::{memory, not_negative};
use crate::options::{EngineArgs, Service};
use crate::overrides::TemplateArgs;
use crate::sampling_options::SamplingArgs;
use crate::variables::VariableArgs;

/// The models.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ModelsArgs {
    /// GGUF files, or names such as hf:org/repo:Q4_K_M; the first answers requests that name no model [default: the
    /// built-in model]
    #[arg(value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// The same, instead of MODEL; may be repeated
    #[arg(short, long, value_name = "FILE", conflicts_with = "models")]
    model: Vec<PathBuf>,
    /// Offer the GGUF files of a folder, and of the folders in it
    #[arg(long = "models-dir", value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Offer the models of a TOML file: a table for each name, with `model` for its file, and options of this command
    #[arg(long = "models-preset", value_name = "FILE")]
    pub(crate) preset: Option<PathBuf>,
    /// File that stores the models that clients pull, and their names; none: keep them until the server ends
    /// [default: served-models.json in the user's data folder]
    #[arg(long = "models-file", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Models that are loaded at once; 0: any number
    #[arg(long = "models-max", value_name = "N", default_value_t = 4)]
    max: usize,
    /// Memory that loaded models may take, in GiB; 0: any [default: 0.9 of the memory of their GPUs, where those tell
    /// it (Vulkan does)]
    #[arg(long = "models-memory", value_name = "GIB", value_parser = not_negative)]
    memory: Option<f32>,
    /// Load models when requests ask for them; the default
    #[arg(long, hide = true, overrides_with = "no_models_autoload")]
    models_autoload: bool,
    /// Load models only at POST /models/load
    #[arg(long)]
    no_models_autoload: bool,
    /// Time for which a model stays loaded after its last request, such as 5m; below 0: always [default: always for
    /// MODEL, 5m for others]
    #[arg(long, alias = "sleep-idle", value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) keep_alive: Option<KeepAlive>,
    /// Load models at the start, instead of when requests ask for them [default: true for MODEL, false for others]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    pub(crate) load_on_startup: Option<bool>,
}

impl ModelsArgs {
    /// The file of models and names of clients, if there is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match &self.file {
            Some(file) if file == Path::new("none") => None,
            Some(file) => Some(file.clone()),
            None => Kept::usual_place(),
        }
    }

    /// The files that were named.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.models.iter().chain(&self.model).map(PathBuf::as_path)
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) models: ModelsArgs,
    /// Addresses to listen on, with commas between them
    #[arg(long, value_name = "ADDRESSES", default_value = "127.0.0.1")]
    host: String,
    /// Port to listen on; 0: any free one [default: 8080, with --ollama 11434]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Listen where programs expect ollama
    #[arg(long)]
    ollama: bool,
    /// Listen on a socket of the file system instead; unix:PATH; may be repeated
    #[arg(long, value_name = "unix:PATH")]
    listen: Vec<String>,
    /// Requests that run at once (also -np)
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) parallel: u32,
    /// Tokens that the KV cache has room for, shared by all requests [default: a context for each of --parallel, or as
    /// many as the device has room for]
    #[arg(long, value_name = "N")]
    kv_tokens: Option<u32>,
    /// The same in memory, such as 4GiB: as many tokens as fit, at least a context
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with = "kv_tokens")]
    kv_memory: Option<u64>,
    /// Maximum number of tokens in a step, of answers and prompts together, up to --chunk (64 on the CPU); prompts get
    /// at least 64 where they fit [default: as many as run in a fraction of a second]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    step_tokens: Option<u32>,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    #[command(flatten)]
    pub(super) dialects: DialectArgs,
    /// Keep the cached prefixes of each key apart, so that no client learns from times what others asked
    #[arg(long)]
    pub(crate) cache_per_key: bool,
    /// Name of the model in the API, and further names after commas [default: that of the file]
    #[arg(short, long, value_name = "NAMES")]
    alias: Option<String>,
    /// Responses of OpenAI's API that are kept in memory, so that requests can go on from them [default: none]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    store: usize,
    /// Words that describe the model in the list of models, with commas between them
    #[arg(long, value_name = "WORDS")]
    tags: Option<String>,
    /// Most tokens of an answer; -1: up to the end of the context
    #[arg(short = 'n', long, alias = "max-tokens")]
    #[arg(value_name = "N", default_value_t = -1, allow_negative_numbers = true)]
    pub(crate) n_predict: i64,
    /// When the context is full, drop its older half and go on
    #[arg(long)]
    pub(crate) context_shift: bool,
    /// Fill-in-the-middle: put the suffix before the prefix, for models that were trained so
    #[arg(long)]
    pub(crate) spm_infill: bool,
    /// Make embeddings only, and refuse to answer
    #[arg(long, alias = "embedding")]
    pub(crate) embeddings: bool,
    /// Load the files of --lora without applying them: a request names the LoRA as its model, or gives scales
    #[arg(long)]
    pub(crate) lora_init_without_apply: bool,
    /// Pooling of embeddings: none, mean, cls, last or rank [default: from the model file]
    #[arg(long, value_name = "WAY")]
    pub(crate) pooling: Option<Pooling>,
    /// Speak TLS with the certificate of a PEM file; it is read again when it changes (also --ssl-cert-file)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key (also --ssl-key-file)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Only clients with a certificate of the authorities of this file may connect
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Keys of clients, with commas between them; without any, everybody on this machine may ask
    #[arg(long, value_name = "KEYS", env = "CHASKI_API_KEY", hide_env_values = true)]
    api_key: Option<String>,
    /// File of keys, a line each: KEY, NAME:KEY, or NAME:KEY:admin for one that may load and free models; the key may
    /// be sha256:HASH; it is read again when it changes, and at SIGHUP
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Listen beyond this machine without a key
    #[arg(long)]
    insecure_open: bool,
    /// Another name of this machine that clients may use; may be repeated
    #[arg(long, value_name = "NAME")]
    allowed_host: Vec<String>,
    /// Origins of pages that may use the server, with commas between them; *: all [default: pages of this machine]
    #[arg(long, alias = "cors-origin", value_name = "ORIGINS")]
    cors_origins: Option<String>,
    /// A proxy that may say who its client is (x-forwarded-for): an address, a network such as 10.0.0.0/8, or unix for
    /// sockets of the file system; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    trusted_proxy: Vec<TrustedProxy>,
    /// Answer requests for models with other names, too [default: without keys]
    #[arg(long, overrides_with = "no_any_model")]
    any_model: bool,
    /// Refuse requests for models with other names
    #[arg(long)]
    no_any_model: bool,
    /// Offer the chat page at /; the default
    #[arg(long, hide = true, overrides_with = "no_ui")]
    ui: bool,
    /// Do not offer the chat page at / (also --no-webui)
    #[arg(long)]
    no_ui: bool,
    /// Offer /metrics; the default
    #[arg(long, hide = true, overrides_with = "no_metrics")]
    metrics: bool,
    /// Do not offer /metrics
    #[arg(long)]
    no_metrics: bool,
    /// Offer /slots; the default
    #[arg(long, hide = true, overrides_with = "no_slots")]
    slots: bool,
    /// Do not offer /slots
    #[arg(long)]
    no_slots: bool,
    /// Folder in which POST /slots/N?action=save keeps the states of slots [default: they are not saved]
    #[arg(long, value_name = "DIR")]
    slot_save_path: Option<PathBuf>,
    /// Seconds after the signal to end in which requests are still taken
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    drain_delay: u64,
    /// Seconds after that in which answers may end
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    drain_timeout: u64,
    /// Status of a full queue: 429 or 503
    #[arg(long, value_name = "STATUS", default_value_t = 429)]
    #[arg(value_parser = full_status)]
    full_status: u16,
    #[cfg(feature = "otlp")]
    #[command(flatten)]
    spans: super::spans::SpansArgs,
    /// Form of the log on stderr
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) log_format: LogFormat,
    /// Write the texts that go to models to the log, too: prompts, and texts to embed or score
    #[arg(long)]
    log_prompts: bool,
    /// Draft model for speculative decoding while few requests run: smaller, with the same vocabulary (-md)
    #[arg(long, value_name = "FILE")]
    pub(crate) model_draft: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) draft: DraftArgs,
    #[command(flatten)]
    pub(crate) template: TemplateArgs,
    #[command(flatten)]
    variables: VariableArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
}

fn full_status(text: &str) -> Result<u16, String> {
    match text {
        "429" => Ok(429),
        "503" => Ok(503),
        _ => Err("429 or 503".into()),
    }
}

fn commas(text: &Option<String>) -> Vec<String> {
    let words = text.iter().flat_map(|text| text.split(',')).map(|word| word.trim().to_owned());
    words.filter(|word| !word.is_empty()).collect()
}

impl Args {
    /// Visits the names of models.
    pub(crate) fn models(&mut self, visit: Visit<'_>) -> anyhow::Result<()> {
        let models = self.models.models.iter_mut().chain(&mut self.models.model);
        models.into_iter().try_for_each(|model| visit(model, Role::Main))?;
        self.model_draft.iter_mut().try_for_each(|draft| visit(draft, Role::Other))
    }

    /// Capacities of the engine.
    pub(crate) fn service(&self) -> Service {
        Service {
            kv_tokens: self.kv_tokens,
            kv_memory: self.kv_memory,
            step_tokens: self.step_tokens,
            max_waiting: self.limits.max_waiting(self.parallel),
        }
    }

    /// The size of a KV cache, where neither an option nor the number of requests chose it, but the device.
    pub(super) fn smaller_pool(&self, n_token: u64, n_ctx: u32) -> Option<String> {
        let is_chosen = self.kv_tokens.is_some() || self.kv_memory.is_some();
        let wanted = u64::from(self.parallel) * u64::from(n_ctx);
        (!is_chosen && n_token < wanted).then(|| {
            let n = n_token as f64 / f64::from(n_ctx);
            format!(
                "the device has no room for the contexts of all {} requests: the KV cache holds {n_token} tokens, \
                 {n:.1} full contexts of {n_ctx}, which requests share",
                self.parallel
            )
        })
    }

    /// Names of the model: the first is its id, the others are further names.
    pub(crate) fn names(&self) -> std::vec::IntoIter<String> {
        commas(&self.alias).into_iter()
    }

    /// Words that describe the model.
    pub(crate) fn tags(&self) -> Vec<String> {
        commas(&self.tags)
    }

    /// Variables of the chat template where a request says nothing.
    pub(crate) fn variables(&self) -> Variables {
        let (enable_thinking, extra) = (self.variables.enable_thinking(), self.variables.extra());
        Variables { enable_thinking, extra }
    }

    /// Most tokens of reasoning where a request says nothing, if they are limited.
    pub(crate) fn reasoning_budget(&self) -> Option<usize> {
        self.variables.reasoning_budget()
    }

    /// True if SIGHUP means to read files again: where there are any that can change, and where no terminal can be
    /// closed.
    pub(crate) fn renews(&self) -> bool {
        let models = &self.models;
        let has_files = self.key_file().is_some()
            || self.tls_cert.is_some()
            || models.dir.is_some()
            || models.preset.is_some();
        has_files || !(std::io::stdin().is_terminal() || std::io::stderr().is_terminal())
    }

    /// The file of keys, which can change while the server runs.
    pub(crate) fn key_file(&self) -> Option<&Path> {
        self.api_key_file.as_deref()
    }

    /// The keys of clients; those of the file as it is now.
    ///
    /// # Errors
    /// A file that cannot be read, or lines in it.
    pub(crate) fn keys(&self) -> anyhow::Result<Vec<Key>> {
        let own = commas(&self.api_key);
        let mut keys: Vec<Key> = own
            .iter()
            .enumerate()
            .map(|(i, key)| Key::new(format!("key{}", i + 1), key).level(Level::Admin))
            .collect();
        if let Some(file) = &self.api_key_file {
            keys.extend(Key::parse(&read_text(file)?).with_context(|| format!("`{}`", file.display()))?);
        }
        Ok(keys)
    }

    /// How the server is set up.
    pub(crate) fn config(&self, log: &LogSettings) -> anyhow::Result<ServerConfig> {
        let mut config = ServerConfig::default();
        config.listen = self.listen()?;
        config.tls = self.tls_cert.clone().zip(self.tls_key.clone()).map(|(cert, key)| Tls {
            cert,
            key,
            client_ca: self.tls_client_ca.clone(),
        });
        config.keys = self.keys()?;
        config.bounds = self.limits.bounds();
        let is_open = config.listen.iter().any(|listen| match listen {
            Listen::Tcp(address) => !address.ip().is_loopback(),
            Listen::Unix(_) => false,
        });
        if is_open && config.keys.is_empty() && !self.insecure_open {
            let message = "others could reach this server without a key: set --api-key, or --insecure-open if that is intended";
            return Err(Usage(message.into()).into());
        }
        config.allowed_hosts = self.allowed_host.clone();
        config.cors_origins = commas(&self.cors_origins);
        config.trusted_proxies = self.trusted_proxy.clone();
        config.models_max = Some(self.models.max).filter(|most| *most > 0);
        config.models_bytes = self.models.memory.map(|gib| match gib {
            0.0 => u64::MAX,
            gib => (f64::from(gib) * f64::from(1 << 30)) as u64,
        });
        config.autoload = !self.models.no_models_autoload;
        config.any_model = match (self.any_model, self.no_any_model) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        config.page = !self.no_ui;
        config.kept_responses = self.store;
        config.metrics = !self.no_metrics;
        config.slots = !self.no_slots;
        config.slot_save_path = self.slot_save_path()?;
        config.drain_delay = Duration::from_secs(self.drain_delay);
        config.drain_timeout = Duration::from_secs(self.drain_timeout);
        config.fingerprint = concat!("chaski-", env!("CHASKI_COMMIT")).into();
        config.full_status = self.full_status;
        config.log = Some(log.log());
        config.log_prompts = self.log_prompts;
        Ok(config)
    }

    /// The collector of spans, if there is one.
    #[cfg(feature = "otlp")]
    pub(crate) fn collector(&self, ui: &crate::ui::Ui) -> Option<chaski_server::Collector> {
        self.spans.collector(|text| ui.note(text))
    }

    /// The folder of states, which must be there.
    fn slot_save_path(&self) -> anyhow::Result<Option<PathBuf>> {
        match &self.slot_save_path {
            Some(folder) if !folder.is_dir() => {
                Err(Usage(format!("--slot-save-path: `{}` is no folder", folder.display())).into())
            }
            folder => Ok(folder.clone()),
        }
    }

    fn listen(&self) -> anyhow::Result<Vec<Listen>> {
        if !self.listen.is_empty() {
            let unix = |text: &String| match text.strip_prefix("unix:") {
                Some(path) if !path.is_empty() => Ok(Listen::Unix(path.into())),
                _ => Err(Usage(format!("`{text}` is no socket: --listen unix:PATH")).into()),
            };
            return self.listen.iter().map(unix).collect();
        }
        let port = self.port.unwrap_or(if self.ollama { 11434 } else { 8080 });
        let address = |host: &str| match host {
            "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
            host => host.parse().map_err(|_| Usage(format!("`{host}` is no address: --host 127.0.0.1"))),
        };
        let hosts = commas(&Some(self.host.clone()));
        hosts.iter().map(|host| Ok(Listen::Tcp(SocketAddr::new(address(host)?, port)))).collect()
    }
}
