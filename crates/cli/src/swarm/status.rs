//! The state of a swarm: what a hub tells of itself, and the command that asks it.

use std::fmt;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::driver::Core;
use crate::options::Form;
use crate::trust::{Trust, TrustArgs};
use crate::ui::{Side, counted, table};

/// Path of the status at a hub.
pub(crate) const STATUS: &str = "/swarm/status";
/// Time for an answer of a hub.
const TIMEOUT: Duration = Duration::from_secs(10);

/// State of a hub.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Epoch of the placement.
    pub(crate) epoch: u32,
    /// Units of the model.
    pub(crate) units: usize,
    /// Those that a worker in service holds.
    pub(crate) served: usize,
    /// Those for which no worker has room.
    pub(crate) unplaced: usize,
    /// Workers.
    pub(crate) workers: Vec<Worker>,
    /// Counters since the hub began.
    pub(crate) counters: Counters,
}

/// A worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Worker {
    /// Name of its machine.
    pub(crate) name: String,
    /// Device that computes.
    pub(crate) device: String,
    /// In service; otherwise it gets canaries alone.
    pub(crate) up: bool,
    /// Units that it holds.
    pub(crate) units: usize,
    /// Units that it should hold.
    pub(crate) assigned: usize,
    /// Round trip in milliseconds.
    pub(crate) rtt_ms: f64,
    /// Microseconds of an expert and a column.
    pub(crate) pair_us: f64,
    /// Tasks in flight.
    pub(crate) tasks: usize,
}

/// Counters of a hub.
#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Counters {
    /// Layers of steps that asked workers.
    pub(crate) calls: u64,
    /// Those that failed.
    pub(crate) failed: u64,
    /// Tasks sent to workers.
    pub(crate) tasks: u64,
    /// Hedges of late tasks, and those that were faster.
    pub(crate) hedges: u64,
    /// Late hedges that were faster than the first task.
    pub(crate) hedges_won: u64,
    /// Hedges sent together with the first task.
    pub(crate) hedges_at_once: u64,
    /// Products that workers summed with others, and did not send.
    pub(crate) summed: u64,
    /// Tasks cancelled.
    pub(crate) cancelled: u64,
    /// Tasks that the hub computed itself.
    pub(crate) local: u64,
    /// Answers computed again to check them.
    pub(crate) checked: u64,
    /// Answers that differed.
    pub(crate) disputes: u64,
    /// Workers found to answer wrongly.
    pub(crate) quarantined: u64,
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (calls, tasks) = (counted(self.calls, "call"), counted(self.tasks, "task"));
        let (late, won, at_once) = (self.hedges, self.hedges_won, self.hedges_at_once);
        let Counters { summed, cancelled, local, checked, disputes, .. } = self;
        write!(
            f,
            "{calls}, {tasks}: {late} hedged late ({won} won), {at_once} at once, {cancelled} cancelled, {local} by the \
             hub, {checked} checked, {disputes} disputed, {summed} products in sums"
        )
    }
}

/// The state of a running hub.
pub(crate) fn of(core: &Core) -> Status {
    core.look(|hub, peers| {
        let status = hub.status();
        let mut workers = Vec::new();
        // Workers of the state machine are in the order of their connections, which are named in the same order.
        let mut connections: Vec<_> = peers.iter().collect();
        connections.sort_by_key(|(peer, _)| **peer);
        for (worker, (_, connection)) in status.workers.iter().zip(connections) {
            workers.push(Worker {
                name: connection.name.clone(),
                device: connection.device.clone(),
                up: worker.is_up,
                units: worker.n_unit,
                assigned: worker.n_assigned.unwrap_or(0),
                rtt_ms: worker.rtt.as_secs_f64() * 1e3,
                pair_us: worker.per_pair.as_secs_f64() * 1e6,
                tasks: worker.n_task,
            });
        }
        let stats = status.stats;
        let counters = Counters {
            calls: stats.n_call,
            failed: stats.n_failed,
            tasks: stats.n_task,
            hedges: stats.n_hedge_late,
            hedges_won: stats.n_hedge_won,
            hedges_at_once: stats.n_hedge_at_once,
            summed: stats.n_sum,
            cancelled: stats.n_cancel,
            local: stats.n_local,
            checked: stats.n_check,
            disputes: stats.n_dispute,
            quarantined: stats.n_quarantined,
        };
        let served = status.units.iter().filter(|u| u.n_up > 0).count();
        let unplaced = status.units.iter().filter(|u| u.n_placed == 0).count();
        Status { epoch: status.epoch, units: status.units.len(), served, unplaced, workers, counters }
    })
}

/// Options of `chaski swarm status`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address of the hub, such as 127.0.0.1:8090, with https:// before it for TLS; it answers programs on its own
    /// machine
    #[arg(value_name = "ADDR")]
    address: String,
    #[command(flatten)]
    trust: TrustArgs,
    /// Output format
    #[arg(long, value_enum, default_value = "md")]
    format: Form,
}

/// Asks a hub, and prints its answer.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let address = args.address.trim_end_matches('/');
    let scheme = if address.contains("://") { "" } else { "http://" };
    let url = format!("{scheme}{address}{STATUS}");
    let tls = Trust::new(&args.trust)?.of_requests;
    let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).tls_config(tls);
    let agent: ureq::Agent = config.build().into();
    let answer = agent.get(&url).call().with_context(|| format!("no hub answers at {}", args.address))?;
    let text = answer.into_body().read_to_string()?;
    let status: Status = serde_json::from_str(&text).context("the answer is no status of a hub")?;
    match args.format {
        Form::Json => println!("{}", serde_json::to_string_pretty(&status)?),
        Form::Md => print!("{}", shown(&status)),
    }
    Ok(())
}

/// A table of workers, and a line of counters.
fn shown(status: &Status) -> String {
    let header = ["worker", "device", "state", "units", "round trip", "an expert", "tasks"];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(status.workers.iter().map(|w| {
        [
            w.name.clone(),
            w.device.clone(),
            (if w.up { "up" } else { "suspect" }).to_owned(),
            format!("{}/{}", w.units, w.assigned),
            format!("{:.2} ms", w.rtt_ms),
            format!("{:.0} us", w.pair_us),
            w.tasks.to_string(),
        ]
    }));
    let (l, r) = (Side::Left, Side::Right);
    let room = match status.unplaced {
        0 => String::new(),
        n => format!(", no room for {n}"),
    };
    format!(
        "{}\n{} of {} in service{room}, epoch {}; {}\n",
        table(&rows, [l, l, l, r, r, r, r]),
        status.served,
        counted(status.units as u64, "unit"),
        status.epoch,
        status.counters
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_table_and_a_line() {
        let worker = Worker {
            name: "attic".into(),
            device: "cpu".into(),
            up: true,
            units: 3,
            assigned: 4,
            rtt_ms: 0.25,
            pair_us: 12.4,
            tasks: 1,
        };
        let counters = Counters {
            calls: 10,
            failed: 0,
            tasks: 12,
            hedges: 2,
            hedges_won: 1,
            hedges_at_once: 0,
            cancelled: 2,
            local: 0,
            checked: 1,
            summed: 5,
            disputes: 0,
            quarantined: 0,
        };
        let status = Status { epoch: 2, units: 4, served: 3, unplaced: 1, workers: vec![worker], counters };
        let text = shown(&status);
        assert!(
            text.contains("| attic  | cpu    | up    |   3/4 |    0.25 ms |     12 us |     1 |"),
            "{text}"
        );
        assert!(text.ends_with(
            "3 of 4 units in service, no room for 1, epoch 2; 10 calls, 12 tasks: 2 hedged late (1 won), 0 at once, 2 cancelled, \
             0 by the hub, 1 checked, 0 disputed, 5 products in sums\n"
        ));
    }
}
