//! A swarm under test: a hub, workers behind proxies, and what a table needs of them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use chaski_wire::Frame;
use tokio::sync::mpsc;

use super::counters::Counters;
use super::delay::Delay;
use super::proxy::{Network, Proxy};
use super::site::{Process, Site};
use super::timer::Timer;

/// Workers behind proxies.
pub(super) struct Workers {
    pub(super) proxies: Vec<Proxy>,
    pub(super) processes: Vec<Process>,
    /// Answers to tasks of taps.
    pub(super) answers: mpsc::UnboundedReceiver<Frame>,
    pub(super) counters: Arc<Counters>,
    /// The hub's address, which changes when it is started again.
    pub(super) hub: Arc<Mutex<String>>,
}

impl Workers {
    /// Starts workers for a hub, each with delays of its own seed. With `is_serial` a delay is the time of a service
    /// that answers one task after another.
    pub(super) async fn start(
        site: &Site,
        hub: &str,
        n: usize,
        (delay, is_serial): (Delay, bool),
        seed: u64,
    ) -> anyhow::Result<Workers> {
        let (sender, answers) = mpsc::unbounded_channel();
        let (timer, counters) = (Timer::start()?, Arc::new(Counters::default()));
        let hub = Arc::new(Mutex::new(hub.to_owned()));
        let network = Network { delay, is_serial, timer, answers: sender, counters: counters.clone() };
        let (mut proxies, mut processes) = (Vec::new(), Vec::new());
        for i in 0..n {
            let seed = seed.wrapping_mul(1000).wrapping_add(i as u64);
            let proxy = Proxy::start(hub.clone(), seed, network.clone()).await?;
            processes.push(site.worker(&proxy.address, i)?);
            proxies.push(proxy);
        }
        Ok(Workers { proxies, processes, answers, counters, hub })
    }

    /// Starts the process of a worker again, as somebody else if its old identity is shut out.
    pub(super) fn restart(&mut self, site: &Site, i: usize, is_new: bool) -> anyhow::Result<()> {
        self.processes[i].kill()?;
        if is_new {
            site.forget_id(i)?;
        }
        self.processes[i] = site.worker(&self.proxies[i].address, i)?;
        Ok(())
    }
}

/// A hub that serves a model over HTTP.
pub(super) struct Hub {
    pub(super) process: Process,
    /// Address for workers.
    pub(super) swarm: String,
    /// Address for requests.
    pub(super) http: String,
}

impl Hub {
    /// Starts a hub, which waits for nothing.
    pub(super) fn start(site: &Site, model: &str, more: &[&str]) -> anyhow::Result<Hub> {
        let mut args =
            vec!["serve", model, "--device", "cpu", "-t", "1", "--port", "0", "--swarm", "127.0.0.1:0", "-v"];
        args.extend(more);
        let process = Process::start(&site.program, &args)?;
        let http = process.after("listening on http://")?;
        let swarm = process.after("workers join at ws://")?;
        process.after("ready: ")?;
        Ok(Hub { process, swarm, http })
    }

    /// A counter of its status.
    pub(super) fn counter(&self, site: &Site, name: &str) -> anyhow::Result<u64> {
        let status = site.status(&self.swarm)?;
        status["counters"][name].as_u64().with_context(|| format!("no counter `{name}`"))
    }
}

/// Waits until workers hold every unit `replicas` times.
pub(super) fn ready(site: &Site, hub: &str, workers: usize, replicas: u64) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let status = site.status(hub)?;
        let list = status["workers"].as_array().cloned().unwrap_or_default();
        let held: u64 = list.iter().filter_map(|w| w["units"].as_u64()).sum();
        let units = status["units"].as_u64().unwrap_or(0);
        let is_up = list.iter().all(|w| w["up"] == true);
        if list.len() == workers && is_up && units > 0 && held == replicas * units {
            return Ok(());
        }
        ensure!(Instant::now() < end, "the workers do not hold {replicas} times {units} units: {status:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A quantile of values.
pub(super) fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(at.saturating_sub(1).min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// Mean of values.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
