//! A swarm under test: a hub, workers behind proxies, and what a table needs of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use chaski_wire::Frame;
use tokio::sync::mpsc;

use super::delay::Delay;
use super::proxy::{Counters, Proxy};
use super::site::{Process, Site};
use super::timer::Timer;

/// Workers behind proxies.
pub(super) struct Workers {
    pub(super) proxies: Vec<Proxy>,
    pub(super) processes: Vec<Process>,
    /// Answers to tasks of taps.
    pub(super) answers: mpsc::UnboundedReceiver<Frame>,
    pub(super) counters: Arc<Counters>,
}

impl Workers {
    /// Starts workers for a hub, each with delays of its own seed.
    pub(super) async fn start(
        site: &Site,
        hub: &str,
        n: usize,
        delay: Delay,
        seed: u64,
    ) -> anyhow::Result<Workers> {
        let (sender, answers) = mpsc::unbounded_channel();
        let (timer, counters) = (Timer::start()?, Arc::new(Counters::default()));
        let (mut proxies, mut processes) = (Vec::new(), Vec::new());
        for i in 0..n {
            let seed = seed.wrapping_mul(1000).wrapping_add(i as u64);
            let proxy =
                Proxy::start(hub, delay, seed, timer.clone(), sender.clone(), counters.clone()).await?;
            processes.push(site.worker(&proxy.address, i)?);
            proxies.push(proxy);
        }
        Ok(Workers { proxies, processes, answers, counters })
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
        if list.len() == workers && units > 0 && held == replicas * units {
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
