//! The hub of a swarm: experts of a model that other machines compute (docs/swarm.md).
//!
//! [`start`] opens the socket where workers join. `driver` has the state machine of `chaski_swarm`, `session` a
//! worker's connection, `listen` the paths of the socket, `catalogue` the weights that workers fetch, `remote` the
//! experts as the engine sees them, and `local` those that the hub computes when no worker can.

mod catalogue;
mod driver;
mod listen;
mod local;
mod remote;
mod session;
pub(crate) mod status;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chaski::experts::WorkerConfig;
use chaski::kernels::ActivationPrecision;
use chaski::source::MetadataChanges;
use chaski::{DeviceChoice, Source};
use chaski_swarm::HubConfig;
use chaski_wire::{Digest, Dtype, Hex, Token};
use sha2::{Digest as _, Sha256};

pub(crate) use catalogue::{SMALL, shape_of};
pub(crate) use local::call_of;
pub(crate) use remote::Remote;

use self::catalogue::Catalogue;
use self::driver::Core;
use self::local::Local;
use self::session::Hall;
use crate::failure::Usage;
use crate::options::EngineArgs;
use crate::swarm_options::random;
use crate::ui::{Ui, counted};

/// Time that --swarm-workers waits.
const READY: Duration = Duration::from_secs(600);
/// Experts of a unit; DeepSeek's 256 experts of a layer are 32 units.
const BLOCK: u16 = 8;

pub(crate) const LONG: &str = "\
Shows a swarm: a model whose experts other machines compute.

  chaski swarm token > FILE         makes a token, for --token-file here and there
  chaski run MODEL --swarm ADDR     the hub: it has the model's file, and keeps texts, attention and the KV cache
  chaski worker ws://ADDR           a worker, on any machine
  chaski swarm status ADDR          what the workers of a running hub hold and do";

/// Arguments of `chaski swarm`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the workers of a running hub
    Status(status::Args),
    /// Print a new token
    Token,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Status(args) => status::run(args),
        Command::Token => {
            println!("{}", Token::new(random()?).reveal());
            Ok(())
        }
    }
}

/// Digest of everything that decides the last bits of products on the CPU: workers of the same class give the same
/// bits.
pub(crate) fn cpu_class(config: &WorkerConfig) -> Digest {
    let text = format!(
        "chaski {} cpu repack={} 16={}",
        env!("CARGO_PKG_VERSION"),
        config.repack,
        config.inputs_in_16_bits || config.repack
    );
    Hex(Sha256::digest(text).into())
}

/// Products of experts as the options have them for the model itself.
pub(crate) fn worker_config(args: &EngineArgs) -> WorkerConfig {
    WorkerConfig {
        map: !args.no_mmap,
        repack: !args.no_repack,
        inputs_in_16_bits: args.inputs != Some(ActivationPrecision::F32),
        ..WorkerConfig::default()
    }
}

/// Starts the hub that the options ask for, which runs as long as the experts that are returned; `None` without
/// `--swarm`.
///
/// # Errors
/// An address beyond this machine without token and `--insecure-lan`; a model without experts; a port that is taken.
pub(crate) fn start(source: &Source, args: &EngineArgs, ui: &Ui) -> anyhow::Result<Option<Remote>> {
    let Some(address) = args.swarm.swarm else { return Ok(None) };
    let is_fast = args.swarm.swarm_fast;
    if !is_fast && !matches!(args.device, DeviceChoice::Auto | DeviceChoice::Cpu) {
        // Workers compute on the CPU, whose last bits are not those of a GPU.
        let text = "--swarm keeps the bits of the CPU, where workers compute: --device cpu, or --swarm-fast";
        return Err(Usage(text.to_owned()).into());
    }
    let token = args.swarm.token.read()?;
    check(address, token.as_ref(), args.swarm.insecure_lan)?;
    let mut changes = MetadataChanges::default();
    args.metadata.changes().into_iter().for_each(|(key, value)| changes.set(key, value));
    let model = pollster::block_on(source.open_with(&changes))?;
    let catalogue = Arc::new(Catalogue::new(model, BLOCK)?);
    let products = worker_config(args);
    let local = Local::start(catalogue.clone(), products)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("swarm")
        .enable_all()
        .build()
        .context("no threads for the swarm")?;
    let listener = runtime.block_on(listen::bind(address))?;
    let bound = listener.local_addr()?;
    let seed = u64::from_le_bytes(random()?);
    let class = cpu_class(&products);
    let short = u64::from_le_bytes(*class.0.first_chunk().expect("32 bytes have a first 8"));
    let dtype = if is_fast { Dtype::F16 } else { Dtype::F32 };
    let config = HubConfig {
        exact: !is_fast,
        input: dtype,
        output: dtype,
        hedging: args.swarm.swarm_hedge.into(),
        replicas: args.swarm.swarm_replicas.into(),
        local: Some(chaski_swarm::Class(short)),
        ..HubConfig::new(catalogue.shape().clone(), seed)
    };
    let core = Arc::new(Core::new(config, local, args.swarm.experts_away));
    ui.say(&format!("workers join at ws://{bound}"));
    runtime.spawn(core.clone().keep_time());
    runtime.spawn(warn(core.clone(), ui.clone()));
    let hall = Arc::new(Hall {
        core: core.clone(),
        catalogue: catalogue.clone(),
        token,
        class: (!is_fast).then_some(class),
    });
    runtime.spawn(async move {
        if let Err(error) = listen::serve(listener, hall).await {
            tracing::error!("the socket of the swarm: {error}");
        }
    });
    if let Some(n) = args.swarm.swarm_workers {
        ui.say(&format!("waiting for {}", counted(n as u64, "worker")));
        if !runtime.block_on(core.ready(n, READY)) {
            bail!("{} with all experts did not join within 10 minutes", counted(n as u64, "worker"));
        }
    }
    Ok(Some(Remote::new(core, runtime, ui.clone())))
}

/// A hub that other machines reach has a token, and says that there is no TLS.
fn check(address: SocketAddr, token: Option<&Token>, is_insecure: bool) -> Result<(), Usage> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    if token.is_none() {
        return Err(Usage(format!(
            "--swarm {address} is reached from other machines: --token-file is needed"
        )));
    }
    if !is_insecure {
        let text = "the hub has no TLS: listen on 127.0.0.1 behind a tunnel, or say --insecure-lan";
        return Err(Usage(text.to_owned()));
    }
    Ok(())
}

/// Prints warnings as they come; never ready.
async fn warn(core: Arc<Core>, ui: Ui) {
    let mut every = tokio::time::interval(Duration::from_millis(200));
    loop {
        every.tick().await;
        core.warnings().iter().for_each(|warning| ui.note(warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_a_token_and_consent() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let token = Token::new([1; 16]);
        assert!(check(at("127.0.0.1:1"), None, false).is_ok());
        assert!(check(at("[::1]:1"), None, false).is_ok());
        for address in ["0.0.0.0:1", "192.168.1.2:1", "[::]:1"] {
            assert!(check(at(address), None, true).unwrap_err().0.contains("--token-file"));
            assert!(check(at(address), Some(&token), false).unwrap_err().0.contains("--insecure-lan"));
            assert!(check(at(address), Some(&token), true).is_ok());
        }
    }
}
