//! `chaski worker`: computes experts of a model for a hub (docs/swarm.md).
//!
//! `connection` joins a hub, `session` runs the state machine of `chaski_swarm` with the hub's model until the end or
//! another model, `fetch` gets weights by ranges, `store` keeps them by digest, `hollow` is the model with only those
//! weights, `products` the device that multiplies, and `compute` its thread.

mod compute;
mod connection;
mod fetch;
mod hollow;
mod products;
mod session;
mod store;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use chaski::experts::WorkerConfig;
use chaski_wire::{Hello, Hex, Limits, Token, UnitKind};
use sysinfo::System;

use self::connection::{Connection, Plans, Refused};
use self::products::Device;
use self::session::End;
use self::store::Store;
use crate::options::ThreadArgs;
use crate::swarm::awake::Awake;
use crate::swarm_options::{TokenArgs, random};
use crate::trust::{Trust, TrustArgs, is_untrusted};
use crate::ui::{Ui, bytes};

pub(crate) const LONG: &str = "\
Computes experts of a model for a hub: `chaski run MODEL --swarm ADDR`, or serve, bench and others.

  chaski worker ws://127.0.0.1:8090                   for a hub on this machine
  chaski worker wss://HOST:PORT --token-file FILE     for another machine's

The hub gives it as many experts as --memory has room for; their weights come from the hub by ranges, are compared with \
their digests, and stay in --store, so that a worker that comes back is ready at once. If the hub is not there, or goes \
away, the worker tries again. Ctrl-C leaves politely: the hub copies what only this worker has; again ends at once.

A worker sees the hidden states of every text in the layers that it computes, from which texts can be guessed, and the \
hub's machine sees the worker's address. Join only hubs that you trust.";

/// First and longest time between attempts before the first connection.
const AGAIN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address of the hub, such as ws://127.0.0.1:8090
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    token: TokenArgs,
    #[command(flatten)]
    trust: TrustArgs,
    /// Device that multiplies: cpu, gpu, or the name or index of a GPU; hubs take GPUs with --swarm-fast alone
    #[arg(long, value_parser = crate::options::device, default_value = "cpu", value_name = "DEVICE")]
    device: chaski::DeviceChoice,
    /// Memory for experts: a number and K, M or G [default: half of the device's]
    #[arg(long, value_name = "SIZE", value_parser = crate::quantize::parse_size)]
    memory: Option<u64>,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Folder for weights [default: in the user's cache]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Name that the hub shows [default: the machine's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// As at the hub: multiply from the file's own layout, with less memory
    #[arg(long)]
    no_repack: bool,
}

/// All that stays the same over connections and models.
struct Site {
    url: String,
    token: Option<Token>,
    trust: Trust,
    store: Store,
    device: Device,
    memory: u64,
    name: String,
    id: Hex<16>,
    awake: Arc<Awake>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let site = Site::new(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("worker")
        .enable_all()
        .build()
        .context("no threads for the network")?;
    runtime.spawn(site.awake.clone().keep());
    let result = runtime.block_on(site.work(ui));
    // Fetches may be under way.
    runtime.shutdown_background();
    result
}

impl Site {
    fn new(args: &Args) -> anyhow::Result<Site> {
        let folder = args.store.clone().or_else(|| crate::cache::folder("swarm"));
        let folder = folder.context("there is no cache folder: --store names one")?;
        let store = Store::open(&folder)?;
        let threads =
            chaski::steps::Threads { decode: args.threads.threads, batch: args.threads.threads_batch };
        let products = WorkerConfig { threads, repack: !args.no_repack, ..WorkerConfig::default() };
        let device = Device::open(&args.device, products)?;
        let memory = args.memory.unwrap_or_else(|| device.half());
        fetch::base(&args.url)?;
        // The hub's socket is at a path of its own.
        let url = args.url.trim_end_matches('/');
        let url = if url.ends_with("/swarm") { url.to_owned() } else { format!("{url}/swarm") };
        let name = args.name.clone().or_else(System::host_name).unwrap_or_default();
        let id = store.id()?;
        let awake = Awake::new(matches!(device, Device::Gpu(_)));
        let trust = Trust::new(&args.trust)?;
        Ok(Site { url, token: args.token.read()?, trust, store, device, memory, name, id, awake })
    }

    /// HELLO for a new connection.
    fn hello(&self) -> anyhow::Result<Hello> {
        Ok(Hello {
            build: env!("CARGO_PKG_VERSION").to_owned(),
            id: self.id,
            name: self.name.clone(),
            features: self.device.features(),
            units: vec![UnitKind::Experts],
            device: self.device.name(),
            class: self.device.class(),
            memory: self.memory,
            cores: std::thread::available_parallelism().map_or(1, |n| n.get().min(u16::MAX.into()) as u16),
            limits: Limits::default(),
            nonce: Hex(random()?),
            page: None,
        })
    }

    async fn connect(&self) -> anyhow::Result<Connection> {
        connection::connect(&self.url, self.hello()?, self.token.as_ref(), &self.trust).await
    }

    /// Works for the hub, whatever model it has, until somebody ends the worker.
    async fn work(&self, ui: &Ui) -> anyhow::Result<()> {
        let mut signals = session::Signals::new()?;
        ui.say(&format!("{} for experts; joining {}", bytes(self.memory), self.url));
        let mut connection = tokio::select! {
            connection = self.first(ui) => connection?,
            () = signals.next() => return Ok(()),
        };
        loop {
            match session::run(self, connection, &mut signals, ui).await? {
                End::Left => return Ok(()),
                End::OtherModel(next) => connection = *next,
            }
        }
    }

    /// The first connection: the hub may not be there yet.
    async fn first(&self, ui: &Ui) -> anyhow::Result<Connection> {
        let mut again = AGAIN.0;
        loop {
            let error = match self.connect().await {
                Ok(connection) => return Ok(connection),
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => error,
            };
            ui.detail(&format!("{error:#}; trying again"));
            tokio::time::sleep(again).await;
            again = (again * 2).min(AGAIN.1);
        }
    }
}

/// True if another attempt would fail in the same way.
fn is_final(error: &anyhow::Error) -> bool {
    let is_refused = error.is::<Refused>() || error.is::<Plans>();
    is_refused || error.is::<chaski_wire::ProofError>() || is_untrusted(error)
}
