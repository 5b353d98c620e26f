//! The hub of a swarm: experts of a model that other machines compute (docs/swarm.md).
//!
//! [`start`] opens the socket where workers join. `driver` has the state machine of `chaski_swarm`, `session` a
//! worker's connection, `listen` the paths of the socket, whose `door` bounds strangers, `line` the bytes of a
//! connection, `catalogue` the weights that workers fetch, `remote` the experts as the engine sees them, `account`
//! where their time goes, and `local` those that the hub computes. `plan` foretells, and `null` measures a hub without
//! a model's own work.

mod account;
pub(crate) mod awake;
mod catalogue;
mod door;
mod driver;
mod join;
mod line;
mod listen;
mod local;
mod null;
mod pages;
mod plan;
mod remote;
mod session;
mod slots;
pub(crate) mod status;

use std::io::IsTerminal as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chaski::experts::WorkerConfig;
use chaski::kernels::ActivationPrecision;
use chaski::source::MetadataChanges;
use chaski::{DeviceChoice, Source};
use chaski_server::TlsAcceptor;
use chaski_swarm::{HubConfig, ModelShape, Unit};
use chaski_wire::{Digest, Dtype, Hex, Token};
use sha2::{Digest as _, Sha256};

pub(crate) use catalogue::{SMALL, shape_of};
pub(crate) use join::origin;
pub(crate) use local::call_of;
pub(crate) use remote::Remote;
pub(crate) use slots::{gpu_config, gpu_slots};

use self::awake::Awake;
use self::catalogue::Catalogue;
use self::driver::Core;
use self::local::Locals;
use self::pages::Pages;
use self::session::Hall;
use crate::failure::Usage;
use crate::model_names::Visit;
use crate::options::EngineArgs;
use crate::swarm_options::random;
use crate::ui::{Ui, bytes, counted};

/// Time that --swarm-workers waits.
const READY: Duration = Duration::from_secs(600);
/// Time after which it says how far workers are.
const TELL: Duration = Duration::from_secs(10);
/// Experts of a unit; DeepSeek's 256 experts of a layer are 32 units.
const BLOCK: u16 = 8;

pub(crate) const LONG: &str = "\
Shows a swarm: a model whose experts other machines compute.

  chaski swarm token > FILE         makes a token, for --token-file here and there
  chaski run MODEL --swarm ADDR     the hub: it has the model's file, and keeps texts, attention and the KV cache
  chaski worker ws://ADDR           a worker, on any machine
  chaski swarm status ADDR          what the workers of a running hub hold and do
  chaski swarm plan MODEL ...       where experts would be placed, and how fast that would be";

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
    /// Print where the experts of a model would be placed, and how fast that would be
    #[command(long_about = plan::LONG)]
    Plan(plan::Args),
    /// Measure a hub that computes nothing itself
    #[command(hide = true)]
    Null(null::Args),
    /// Print a new token
    Token,
}

impl Args {
    /// Visits the name of the model.
    pub(crate) fn models(&mut self, visit: Visit<'_>) -> anyhow::Result<()> {
        match &mut self.command {
            Command::Plan(args) => args.model.models(visit),
            Command::Null(args) => args.model.models(visit),
            Command::Status(_) | Command::Token => Ok(()),
        }
    }
}

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    match &args.command {
        Command::Plan(args) => plan::run(args),
        Command::Null(args) => null::run(args, ui),
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
/// An address beyond this machine without token, or without TLS and `--insecure-lan`; a model without experts; a port
/// that is taken.
pub(crate) fn start(source: &Source, args: &EngineArgs, ui: &Ui) -> anyhow::Result<Option<Remote>> {
    let Some(address) = args.swarm.swarm else { return Ok(None) };
    let is_fast = args.swarm.swarm_fast;
    if !is_fast && !matches!(args.device, DeviceChoice::Auto | DeviceChoice::Cpu) {
        // Workers compute on the CPU, whose last bits are not those of a GPU.
        let text = "--swarm keeps the bits of the CPU, where workers compute: --device cpu, or --swarm-fast";
        return Err(Usage(text.to_owned()).into());
    }
    let token = args.swarm.token.read()?;
    let tls = args.swarm.tls()?;
    check(address, token.as_ref(), tls.is_some() || args.swarm.insecure_lan)?;
    let mut changes = MetadataChanges::default();
    args.metadata.changes().into_iter().for_each(|(key, value)| changes.set(key, value));
    let model = pollster::block_on(source.open_with(&changes))?;
    let catalogue = Arc::new(Catalogue::new(model, BLOCK)?);
    let products = worker_config(args);
    let local = match args.swarm.swarm_only {
        true => None,
        false => Some(Locals::start(&catalogue, products)?),
    };
    let seed = u64::from_le_bytes(random()?);
    let class = cpu_class(&products);
    let short = u64::from_le_bytes(*class.0.first_chunk().expect("32 bytes have a first 8"));
    let dtype = if is_fast { Dtype::F16 } else { Dtype::F32 };
    let config = HubConfig {
        exact: !is_fast,
        sums: is_fast && !args.swarm.swarm_rows,
        input: dtype,
        output: dtype,
        hedging: args.swarm.swarm_hedge.into(),
        replicas: args.swarm.swarm_replicas.into(),
        local: local.is_some().then_some(chaski_swarm::Class(short)),
        verify_all: args.swarm.swarm_verify,
        ..HubConfig::new(catalogue.shape().clone(), seed)
    };
    let core = Arc::new(Core::new(config, local, args.swarm.experts_away));
    let pages = is_fast.then(|| Pages::new(catalogue.clone(), args.swarm.swarm_origin.clone()));
    let class = (!is_fast).then_some(class);
    let hall = Hall { core: core.clone(), catalogue: catalogue.clone(), token, class, pages };
    let awake = Awake::new(is_fast && args.device != DeviceChoice::Cpu);
    let runtime = open(address, tls, hall, ui)?;
    runtime.spawn(awake.clone().keep());
    if let Some(n) = args.swarm.swarm_workers {
        ui.say(&format!("waiting for {}", counted(n as u64, "worker")));
        let unplaced = runtime.block_on(wait(&core, n, ui))?;
        let rest = match (args.swarm.swarm_only, args.swarm.experts_away) {
            (true, _) => Rest::Nobody,
            (false, true) => Rest::File,
            (false, false) => Rest::Hub,
        };
        if let Some(text) = without_room(catalogue.shape(), &unplaced, rest) {
            ui.note(&text);
        }
    }
    Ok(Some(Remote::new(core, awake, runtime, ui.clone())))
}

/// Threads for connections. Frames of single tokens are short, and a second thread wakes up for each only to find that
/// the first one has it. Answers to prompts have megabytes: several threads decode them if there are many cores.
fn network_threads(n_core: usize) -> usize {
    (n_core / 4).clamp(1, 4)
}

/// Opens the socket of a hub, whose tasks are on the runtime that is returned.
fn open(
    address: SocketAddr,
    tls: Option<Arc<TlsAcceptor>>,
    hall: Hall,
    ui: &Ui,
) -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(network_threads(std::thread::available_parallelism().map_or(1, usize::from)))
        .thread_name("swarm")
        .enable_all()
        .build()
        .context("no threads for the swarm")?;
    let listener = runtime.block_on(listen::bind(address))?;
    let address = listener.local_addr()?;
    let s = if tls.is_some() { "s" } else { "" };
    ui.say(&format!("workers join at ws{s}://{address}"));
    if hall.pages.is_some() {
        let is_shown = std::io::stderr().is_terminal();
        link(address, s, hall.token.as_ref(), is_shown).iter().for_each(|line| ui.say(line));
    }
    runtime.spawn(hall.core.clone().keep_time());
    runtime.spawn(warn(hall.core.clone(), ui.clone()));
    runtime.spawn(async move {
        if let Err(error) = listen::serve(listener, tls, Arc::new(hall)).await {
            tracing::error!("the socket of the swarm: {error}");
        }
    });
    Ok(runtime)
}

/// Lines with the link of the join page, for http or with `s` for https. It has the token if `is_shown`, and nobody
/// keeps the lines.
fn link(address: SocketAddr, s: &str, token: Option<&Token>, is_shown: bool) -> Vec<String> {
    let here: IpAddr = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let fragment =
        token.filter(|_| is_shown).map_or_else(String::new, |token| format!("#{}", token.reveal()));
    let url = format!("http{s}://{}{}{fragment}", SocketAddr::new(here, address.port()), join::JOIN);
    let mut lines = vec![format!("pages join at {url}")];
    let is_beyond = !here.is_loopback() || address.ip().is_unspecified();
    if is_beyond && s.is_empty() {
        lines.push("pages on other machines: browsers need https or a tunnel (docs/swarm.md)".to_owned());
    } else if is_beyond {
        lines.push(
            "pages on other machines: with the name of the certificate, if it has no address, which --swarm-origin names"
                .to_owned(),
        );
    }
    if token.is_some() && !is_shown {
        lines.push("in that link # and the token follow, which are printed on terminals alone".to_owned());
    }
    lines
}

/// Waits for workers, and says now and then how far they are. Returns units for which nobody has room.
async fn wait(core: &Core, n: usize, ui: &Ui) -> anyhow::Result<Vec<Unit>> {
    for _ in 0..READY.as_secs() / TELL.as_secs() {
        match tokio::time::timeout(TELL, core.ready(n)).await {
            Ok(unplaced) => return Ok(unplaced),
            Err(_) => ui.say(&format!("waiting: {}", core.progress(n))),
        }
    }
    bail!("{} did not load all experts within 10 minutes: {}", counted(n as u64, "worker"), core.progress(n))
}

/// The maker of products of experts that no worker holds.
#[derive(Copy, Clone, Debug)]
enum Rest {
    /// The hub, which has them in its memory.
    Hub,
    /// The hub, from its file.
    File,
    /// Nobody.
    Nobody,
}

/// Experts for which workers have no room, in numbers; `None` if there are none.
fn without_room(shape: &ModelShape, unplaced: &[Unit], rest: Rest) -> Option<String> {
    if unplaced.is_empty() {
        return None;
    }
    let sum = |units: &mut dyn Iterator<Item = Unit>| {
        units.fold((0, 0), |(n, b), unit| (n + shape.experts(unit).len(), b + shape.bytes(unit)))
    };
    let ((n, n_byte), (all, all_bytes)) = (sum(&mut unplaced.iter().copied()), sum(&mut shape.units()));
    let how = match rest {
        Rest::Hub => "the hub computes the others",
        Rest::File => "the hub reads the others from its file when they are needed",
        Rest::Nobody => "a text that needs another one fails",
    };
    Some(format!(
        "workers have room for {} of {all} experts ({} of {}): {how}",
        all - n,
        bytes(all_bytes - n_byte),
        bytes(all_bytes)
    ))
}

/// A hub that other machines reach has a token, and TLS unless somebody says that it may be without.
fn check(address: SocketAddr, token: Option<&Token>, is_allowed: bool) -> Result<(), Usage> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    if token.is_none() {
        return Err(Usage(format!(
            "--swarm {address} is reached from other machines: --token-file is needed"
        )));
    }
    if !is_allowed {
        let text = "the hub has no TLS: --swarm-tls-cert and --swarm-tls-key, 127.0.0.1 behind a tunnel, or --insecure-lan";
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
    fn experts_without_room_are_told_in_numbers() {
        let layer = |layer| chaski_swarm::LayerShape { layer, n_expert: 20, expert_bytes: 1 << 20 };
        let shape = ModelShape { layers: vec![layer(0), layer(3)], width: 8, block: 8 };
        assert_eq!(without_room(&shape, &[], Rest::File), None);
        let unplaced = [Unit { layer: 0, block: 2 }, Unit { layer: 3, block: 0 }];
        assert_eq!(
            without_room(&shape, &unplaced, Rest::Hub).unwrap(),
            "workers have room for 28 of 40 experts (28.00 MiB of 40.00 MiB): the hub computes the others"
        );
        for (rest, end) in
            [(Rest::File, "from its file when they are needed"), (Rest::Nobody, "another one fails")]
        {
            assert!(without_room(&shape, &unplaced, rest).unwrap().ends_with(end));
        }
    }

    #[test]
    fn links_can_be_opened_and_have_the_token_on_terminals_alone() {
        let token = Token::new([0x0f; 16]);
        let first = |address: &str, token, is_shown| {
            link(address.parse().unwrap(), "", token, is_shown).swap_remove(0)
        };
        let here = "pages join at http://127.0.0.1:8090/join";
        assert_eq!(first("127.0.0.1:8090", None, true), here);
        assert_eq!(first("127.0.0.1:8090", Some(&token), true), format!("{here}#{}", "0f".repeat(16)));
        assert_eq!(first("0.0.0.0:8090", Some(&token), false), here);
        assert_eq!(first("[::]:8090", None, false), "pages join at http://[::1]:8090/join");
        let all = |s| link("0.0.0.0:1".parse().unwrap(), s, Some(&token), false).join("\n");
        assert!(
            all("s").starts_with("pages join at https://127.0.0.1:1/join\n")
                && all("s").contains("--swarm-origin")
        );
        let all = all("");
        assert!(!all.contains("0f0f") && all.contains("other machines") && all.contains("# and the token"));
    }

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
