//! The planner: tries all ways that are available with subsets of the workers, and chooses the fastest.

use std::fmt;

use super::{Cost, Drafts, ExpertSplit, Link, ModelSize, Rates};

/// Fan-outs that are tried.
const FAN_OUTS: [u32; 4] = [1, 2, 4, 8];

/// A worker that could take part.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct WorkerRates {
    /// Bytes for weights.
    pub memory: f64,
    /// Bytes of weights that it reads per second.
    pub rate: f64,
    /// Its link.
    pub link: Link,
}

/// Ways that may be chosen, and what the hub has.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Available {
    /// Bytes for weights at the hub.
    pub memory: f64,
    /// Bytes of weights that the hub reads per second from its memory.
    pub rate: f64,
    /// The same from where experts are that its memory does not hold: a disk, or 0 without the file.
    pub source: f64,
    /// Seconds of a readback.
    pub readback: f64,
    /// Replicas of each unit of experts.
    pub replicas: u32,
    /// Only f32 on the wire.
    pub exact: bool,
    /// Workers can sum the rows of a column.
    pub sum: bool,
    /// Workers can take spans of layers.
    pub spans: bool,
    /// Drafts, if there are any.
    pub drafts: Option<Drafts>,
}

/// A way to split a model.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Choice {
    /// The hub alone.
    Alone,
    /// Experts at this many workers.
    Experts {
        /// Workers.
        n_worker: usize,
        /// The rest.
        split: ExpertSplit,
    },
    /// Spans of layers at this many workers.
    Spans {
        /// Workers, one span each.
        n_worker: usize,
    },
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Alone => write!(f, "the hub alone"),
            Choice::Experts { n_worker, split } => {
                let format = match split.value {
                    v if v >= 4.0 => "f32",
                    v if v >= 2.0 => "f16",
                    _ => "q8",
                };
                let rows = if split.sum { "summed" } else { "a row an expert" };
                let n = split.fan_out;
                write!(f, "experts at {n_worker} workers, {n} a layer, {format}, {rows}")
            }
            Choice::Spans { n_worker } => write!(f, "spans of layers at {n_worker} workers"),
        }
    }
}

/// A plan with its prediction and its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The way.
    pub choice: Choice,
    /// Indices of the workers that take part.
    pub workers: Vec<usize>,
    /// A step of one column, or of all drafts.
    pub cost: Cost,
    /// Predicted seconds of a token.
    pub seconds: f64,
    /// The reason, in a sentence.
    pub reason: String,
    /// All ways tried, the best of each kind, with their seconds of a token, the fastest first.
    pub tried: Vec<(Choice, f64)>,
}

/// No way to run a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The weights fit nowhere.
    #[error(
        "{needed:.1} GB of weights: the hub has room for {hub:.1} GB, {n_worker} workers for {workers:.1} GB, and there is no \
         file to read from"
    )]
    Memory {
        /// Bytes of all weights, in GB.
        needed: f64,
        /// Room at the hub, in GB.
        hub: f64,
        /// Number of workers.
        n_worker: usize,
        /// Their room together, in GB.
        workers: f64,
    },
}

/// Chooses how to split a model: the fastest of all ways that are available and have room. Workers that would slow
/// it down take no part.
///
/// # Errors
/// [`PlanError::Memory`] if no way has room for the weights.
pub fn plan(model: &ModelSize, workers: &[WorkerRates], available: &Available) -> Result<Plan, PlanError> {
    let mut tried: Vec<(Choice, Vec<usize>, Cost)> = Vec::new();
    let rates = |worker: f64| Rates { hub: available.rate, worker, readback: available.readback };
    let columns = available.drafts.map_or(1, |d| d.n + 1);
    let total = model.other_bytes() + model.expert_bytes();
    if total <= available.memory {
        tried.push((Choice::Alone, Vec::new(), model.resident(rates(0.0), columns)));
    } else if model.other_bytes() <= available.memory && available.source > 0.0 {
        tried.push((Choice::Alone, Vec::new(), model.alone(available.source, rates(0.0), columns)));
    }
    for order in orders(workers) {
        for n in 1..=order.len() {
            let chosen = &order[..n];
            tried.extend(with_experts(model, workers, chosen, available, columns));
            tried.extend(with_spans(model, workers, chosen, available, columns));
        }
    }
    let seconds = |cost: &Cost| match available.drafts {
        Some(drafts) => drafts.seconds_per_token(cost.seconds()),
        None => cost.seconds(),
    };
    tried.sort_by(|a, b| seconds(&a.2).total_cmp(&seconds(&b.2)));
    let Some((choice, chosen, cost)) = tried.first().cloned() else {
        let room: f64 = workers.iter().map(|w| w.memory).sum();
        let (needed, hub, room) = (total / 1e9, available.memory / 1e9, room / 1e9);
        return Err(PlanError::Memory { needed, hub, n_worker: workers.len(), workers: room });
    };
    let mut kinds: Vec<(Choice, f64)> = Vec::new();
    for (other, _, cost) in &tried {
        let is_new = |(k, _): &(Choice, f64)| std::mem::discriminant(k) != std::mem::discriminant(other);
        if kinds.iter().all(is_new) {
            kinds.push((*other, seconds(cost)));
        }
    }
    let (left, time) = (workers.len() - chosen.len(), seconds(&cost));
    let mut reason =
        format!("{choice}: {:.1} tokens/s, most of the time goes to {}", 1.0 / time, cost.bound());
    for (other, seconds) in &kinds[1..] {
        reason += &format!("; {other}: {:.1}", 1.0 / seconds);
    }
    if left > 0 && choice != Choice::Alone {
        reason += &format!("; {left} workers would not make it faster");
    }
    Ok(Plan { choice, workers: chosen, cost, seconds: time, reason, tried: kinds })
}

/// Orders of workers whose first ones are tried: by round trip, by rate, by memory.
fn orders(workers: &[WorkerRates]) -> Vec<Vec<usize>> {
    let keys: [fn(&WorkerRates) -> f64; 3] = [|w| w.link.rtt, |w| -w.rate, |w| -w.memory];
    let order = |key: fn(&WorkerRates) -> f64| {
        let mut order: Vec<usize> = (0..workers.len()).collect();
        order.sort_by(|&a, &b| key(&workers[a]).total_cmp(&key(&workers[b])));
        order
    };
    keys.into_iter().map(order).collect()
}

/// Experts at some workers: every fan-out and number format, if they have room.
fn with_experts(
    model: &ModelSize,
    workers: &[WorkerRates],
    chosen: &[usize],
    available: &Available,
    columns: u32,
) -> Vec<(Choice, Vec<usize>, Cost)> {
    let room: f64 = chosen.iter().map(|&w| workers[w].memory).sum();
    let needed = model.expert_bytes() * f64::from(available.replicas);
    let has_hub_room = model.other_bytes() <= available.memory;
    if model.n_moe_layer == 0 || room < needed || !has_hub_room {
        return Vec::new();
    }
    let values: &[f64] = if available.exact { &[4.0] } else { &[4.0, 2.0, 1.0625] };
    let fan_outs = FAN_OUTS.into_iter().filter(|&f| f as usize <= chosen.len() && f <= model.n_used.max(1));
    let sums: &[bool] = if available.sum { &[true, false] } else { &[false] };
    let mut all = Vec::new();
    for fan_out in fan_outs {
        for &value in values {
            // Exact sums are those of one worker, in the order of slots.
            for &sum in sums.iter().filter(|&&sum| !sum || !available.exact || fan_out == 1) {
                let split = ExpertSplit { fan_out, value, sum };
                let cost = mean_cost(model, workers, chosen, available, split, columns);
                all.push((Choice::Experts { n_worker: chosen.len(), split }, chosen.to_vec(), cost));
            }
        }
    }
    all
}

/// The cost of experts at workers that differ: layers are shared by memory, and a layer that several share takes the
/// time of the slowest.
fn mean_cost(
    model: &ModelSize,
    workers: &[WorkerRates],
    chosen: &[usize],
    available: &Available,
    split: ExpertSplit,
    columns: u32,
) -> Cost {
    let of = |w: &WorkerRates| {
        let rates = Rates { hub: available.rate, worker: w.rate, readback: available.readback };
        model.experts(split, w.link, rates, columns)
    };
    let costs: Vec<(f64, Cost)> = chosen.iter().map(|&w| (workers[w].memory, of(&workers[w]))).collect();
    if split.fan_out > 1 {
        return costs
            .into_iter()
            .map(|c| c.1)
            .max_by(|a, b| a.seconds().total_cmp(&b.seconds()))
            .unwrap_or_default();
    }
    let room: f64 = costs.iter().map(|c| c.0).sum();
    let mean = |part: fn(&Cost) -> f64| costs.iter().map(|(m, c)| m / room * part(c)).sum::<f64>();
    Cost {
        weights: mean(|c| c.weights),
        trips: mean(|c| c.trips),
        transfer: mean(|c| c.transfer),
        overhead: mean(|c| c.overhead),
        ..costs[0].1
    }
}

/// A span at each of some workers, as long as its memory, if all layers have room.
fn with_spans(
    model: &ModelSize,
    workers: &[WorkerRates],
    chosen: &[usize],
    available: &Available,
    columns: u32,
) -> Option<(Choice, Vec<usize>, Cost)> {
    let room: f64 = chosen.iter().map(|&w| workers[w].memory).sum();
    let needed = model.hub_bytes() + model.expert_bytes();
    let head = model.embeddings * model.bytes_per_weight;
    if !available.spans || room < needed || head > available.memory {
        return None;
    }
    let mut sum = Cost { n_trip: chosen.len() as u32, ..Cost::default() };
    for w in chosen.iter().map(|&w| &workers[w]) {
        let rates = Rates { hub: available.rate, worker: w.rate, readback: available.readback };
        let whole = model.spans(1, w.link, rates, columns);
        let head_time = head / 2.0 / available.rate;
        sum.weights += (whole.weights - head_time) * w.memory / room;
        sum.trips += whole.trips;
        sum.transfer += whole.transfer;
        sum.overhead += available.readback;
        sum.n_byte += whole.n_byte;
    }
    sum.weights += head / 2.0 / available.rate;
    sum.overhead += super::OVERHEAD * f64::from(model.n_layer);
    Some((Choice::Spans { n_worker: chosen.len() }, chosen.to_vec(), sum))
}
