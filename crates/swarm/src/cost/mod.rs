//! Time of a token for ways to split a model over machines, and a planner that chooses one.
//!
//! A model of sums: weights are read once at the rate of the machine that holds them, rows travel at the rate of the
//! link, every exchange takes a round trip and readbacks. It leaves out what hides behind what, queues and tails
//! (`order` has the latter), so it errs to the long side.

mod order;
mod plan;

pub use order::{best_fan_out, phase_time};
pub use plan::{Available, Choice, Plan, PlanError, WorkerRates, plan};

/// Seconds of other work in a layer: launches, and what the scheduler does.
const OVERHEAD: f64 = 5e-5;

/// Sizes of a model, in weights. Of a dense model `n_moe_layer`, `n_expert` and `n_used` are 0.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ModelSize {
    /// Layers, and those of them with experts.
    pub n_layer: u32,
    /// Layers with experts.
    pub n_moe_layer: u32,
    /// Values in a row of activations.
    pub width: u32,
    /// Experts of a layer.
    pub n_expert: u32,
    /// Experts of a column.
    pub n_used: u32,
    /// Weights of an expert.
    pub expert: f64,
    /// Weights of a layer that every column uses, such as attention.
    pub layer: f64,
    /// Weights of the shared expert of a layer with experts.
    pub shared: f64,
    /// Weights of all dense feed-forward parts of a model with experts.
    pub dense: f64,
    /// Weights of embeddings and head together. A token uses half of them.
    pub embeddings: f64,
    /// Bytes of a weight.
    pub bytes_per_weight: f64,
}

/// A link to a worker.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Link {
    /// Round trip of a small frame, in seconds.
    pub rtt: f64,
    /// Bytes per second, each way.
    pub rate: f64,
}

/// Rates of machines.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Rates {
    /// Bytes of weights that the hub reads per second.
    pub hub: f64,
    /// Bytes of weights that a worker reads per second.
    pub worker: f64,
    /// Seconds of a readback, or an upload, beside an exchange.
    pub readback: f64,
}

/// Seconds of a step, by cause.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// Reading weights.
    pub weights: f64,
    /// Round trips.
    pub trips: f64,
    /// Bytes on links.
    pub transfer: f64,
    /// Readbacks and launches.
    pub overhead: f64,
    /// Bytes over the hub's links.
    pub n_byte: f64,
    /// Exchanges, one after another.
    pub n_trip: u32,
}

impl Cost {
    /// Seconds of the step.
    pub fn seconds(&self) -> f64 {
        self.weights + self.trips + self.transfer + self.overhead
    }

    /// The greatest cause, in words.
    pub fn bound(&self) -> &'static str {
        let causes = [
            (self.weights, "reading weights"),
            (self.trips, "round trips"),
            (self.transfer, "bytes on the links"),
            (self.overhead, "readbacks and launches"),
        ];
        causes.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or("nothing", |(_, name)| name)
    }
}

/// A way to have experts computed by workers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ExpertSplit {
    /// Workers that share the experts of a layer.
    pub fan_out: u32,
    /// Bytes of a value on the wire.
    pub value: f64,
    /// Workers sum the rows of a column: one row a worker comes back, not one an expert.
    pub sum: bool,
}

impl ModelSize {
    /// Experts of a layer that some of `columns` use, on average.
    pub fn distinct(&self, columns: u32) -> f64 {
        let (e, k) = (f64::from(self.n_expert), f64::from(self.n_used));
        if e == 0.0 { 0.0 } else { e * (1.0 - (1.0 - k / e).powi(columns as i32)) }
    }

    /// Bytes of all experts.
    pub fn expert_bytes(&self) -> f64 {
        f64::from(self.n_moe_layer) * f64::from(self.n_expert) * self.expert * self.bytes_per_weight
    }

    /// Bytes of everything else.
    pub fn other_bytes(&self) -> f64 {
        self.hub_bytes() + self.embeddings * self.bytes_per_weight
    }

    /// Bytes of layers without their experts.
    fn hub_bytes(&self) -> f64 {
        let layers = f64::from(self.n_layer) * self.layer + f64::from(self.n_moe_layer) * self.shared;
        (layers + self.dense) * self.bytes_per_weight
    }

    /// Bytes that the hub reads for a step in which it does not compute experts.
    fn hub_step(&self) -> f64 {
        self.hub_bytes() + self.embeddings / 2.0 * self.bytes_per_weight
    }

    /// Bytes of the experts of all layers that a step of some columns reads.
    fn active(&self, columns: u32) -> f64 {
        f64::from(self.n_moe_layer) * self.distinct(columns) * self.expert * self.bytes_per_weight
    }

    /// A step with experts at workers and everything else at the hub.
    pub fn experts(&self, split: ExpertSplit, link: Link, rates: Rates, columns: u32) -> Cost {
        let (n, f) = (f64::from(self.n_moe_layer), f64::from(split.fan_out));
        let row = f64::from(self.width) * split.value * f64::from(columns);
        let n_back = if split.sum { f } else { f64::from(self.n_used) };
        Cost {
            weights: self.hub_step() / rates.hub + self.active(columns) / f / rates.worker,
            trips: n * link.rtt,
            transfer: n * (f + n_back) * row / link.rate,
            overhead: n * (2.0 * rates.readback + OVERHEAD),
            n_byte: n * (f + n_back) * row,
            n_trip: self.n_moe_layer,
        }
    }

    /// Spans of layers that workers with so many bytes make of the model.
    pub fn n_span(&self, memory: f64) -> u32 {
        ((self.hub_bytes() + self.expert_bytes()) / memory).ceil().max(1.0) as u32
    }

    /// A step with spans of layers at `n_span` workers, f32 rows through the hub.
    pub fn spans(&self, n_span: u32, link: Link, rates: Rates, columns: u32) -> Cost {
        let n = f64::from(n_span);
        let rows = 2.0 * f64::from(self.width) * 4.0 * f64::from(columns);
        let head = self.embeddings / 2.0 * self.bytes_per_weight;
        Cost {
            weights: (self.hub_bytes() + self.active(columns)) / rates.worker + head / rates.hub,
            trips: n * link.rtt,
            transfer: n * rows / link.rate,
            overhead: n * rates.readback + OVERHEAD * f64::from(self.n_layer),
            n_byte: n * rows,
            n_trip: n_span,
        }
    }

    /// A step of the hub alone, in whose memory all weights are.
    pub fn resident(&self, rates: Rates, columns: u32) -> Cost {
        let weights = (self.hub_step() + self.active(columns)) / rates.hub;
        Cost { weights, overhead: OVERHEAD * f64::from(self.n_layer), ..Cost::default() }
    }

    /// A step of the hub alone, which reads the experts that it needs at a rate of its own: from a disk, over a bus, or
    /// by its CPU.
    pub fn alone(&self, expert_rate: f64, rates: Rates, columns: u32) -> Cost {
        let layers = f64::from(self.n_moe_layer);
        Cost {
            weights: self.hub_step() / rates.hub + self.active(columns) / expert_rate,
            overhead: layers * (rates.readback + OVERHEAD),
            ..Cost::default()
        }
    }
}

/// Drafts that are verified in one step.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Drafts {
    /// Drafted tokens of a step.
    pub n: u32,
    /// Chance that a token is kept if all before it are.
    pub kept: f64,
    /// Seconds that it takes to draft a column.
    pub seconds: f64,
}

impl Drafts {
    /// Tokens of a step: those that are kept, and one more.
    pub fn tokens(&self) -> f64 {
        (1.0 - self.kept.powi(self.n as i32 + 1)) / (1.0 - self.kept)
    }

    /// Seconds of a token, if a step of `n + 1` columns takes so long.
    pub fn seconds_per_token(&self, step: f64) -> f64 {
        (step + f64::from(self.n + 1) * self.seconds) / self.tokens()
    }
}
