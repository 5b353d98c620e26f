//! `chaski swarm plan`: where the experts of a model would be placed, and the time of a token that the cost model
//! predicts.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use anyhow::Context as _;
use chaski::Source;
use chaski_swarm::{
    Assignment, Available, Cost, ExpertSplit, HostId, Link, ModelShape, ModelSize, Place, Plan, Random,
    Rates, Unit, UnitLoad, WorkerId, WorkerRates, place, place_by_layer,
};
use serde::Serialize;
use serde_json::json;

use super::BLOCK;
use super::catalogue::Catalogue;
use crate::options::{Form, ModelArg};
use crate::quantize::parse_size;
use crate::ui::{Side, bytes, table};

/// Columns that are drawn to count the workers of a layer.
const DRAWS: u64 = 2_000;

pub(crate) const LONG: &str = "\
Prints where a hub would place the experts of a model on a set of workers, and the time of a token that the cost model \
predicts, with its causes. Nothing is started.

  chaski swarm plan MODEL --hub-memory 8G --worker name=attic,memory=16G --worker name=gpu,memory=8G,rate=300,gpu

The prediction adds up reading weights, round trips, bytes on the links, and readbacks; queues and late answers are not \
in it. \"as placed\" is what hubs do; the best of all ways may leave workers out, whose experts others would hold.";

/// Options of `chaski swarm plan`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) model: ModelArg,
    /// A worker, as words with commas: memory=16G, rate=GB/S (weights that it reads), rtt=MS, link=MBIT/S, name=NAME,
    /// and gpu for one with slots in each layer; once for each worker
    #[arg(long = "worker", value_name = "WORDS", required = true)]
    workers: Vec<Machine>,
    /// Memory for weights at the hub
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    hub_memory: u64,
    /// Weights that the hub reads from its memory, in GB/s
    #[arg(long, value_name = "RATE", default_value = "50", value_parser = positive)]
    hub_rate: f64,
    /// Weights that the hub reads from its file, in GB/s
    #[arg(long, value_name = "RATE", default_value = "2", value_parser = positive)]
    disk_rate: f64,
    /// Time of a readback, in milliseconds: 0 on a CPU, about 0.15 on a GPU
    #[arg(long, value_name = "MS", default_value = "0", value_parser = positive_or_zero)]
    readback: f64,
    /// Workers that hold each expert
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    swarm_replicas: u8,
    /// Values travel in 16 bits, and workers sum the products of a token
    #[arg(long)]
    swarm_fast: bool,
    /// With --swarm-fast: workers answer with each product, and the experts of a layer are spread over all workers
    #[arg(long, requires = "swarm_fast")]
    swarm_rows: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "md")]
    format: Form,
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|n: &f64| n.is_finite()).ok_or_else(|| format!("`{text}` is no number"))
}

fn positive(text: &str) -> Result<f64, String> {
    number(text).and_then(|n| if n > 0.0 { Ok(n) } else { Err("expected more than 0".to_owned()) })
}

fn positive_or_zero(text: &str) -> Result<f64, String> {
    number(text).and_then(|n| if n >= 0.0 { Ok(n) } else { Err("expected 0 or more".to_owned()) })
}

/// A worker as an option describes it.
#[derive(Clone, Debug, PartialEq)]
struct Machine {
    name: String,
    /// Bytes for experts.
    memory: u64,
    /// Bytes of weights per second.
    rate: f64,
    /// Seconds of a round trip.
    rtt: f64,
    /// Bytes per second of its link.
    link: f64,
    is_gpu: bool,
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> Result<Machine, String> {
        let mut machine =
            Machine { name: String::new(), memory: 0, rate: 50e9, rtt: 3e-4, link: 125e6, is_gpu: false };
        for word in text.split(',') {
            match word.split_once('=') {
                Some(("memory", value)) => machine.memory = parse_size(value)?,
                Some(("rate", value)) => machine.rate = positive(value)? * 1e9,
                Some(("rtt", value)) => machine.rtt = positive_or_zero(value)? * 1e-3,
                Some(("link", value)) => machine.link = positive(value)? * 1e6 / 8.0,
                Some(("name", value)) => value.clone_into(&mut machine.name),
                None if word == "gpu" => machine.is_gpu = true,
                _ => {
                    return Err(format!(
                        "`{word}`: expected memory=SIZE, rate=GB/S, rtt=MS, link=MBIT/S, name=NAME or gpu"
                    ));
                }
            }
        }
        match machine.memory {
            0 => Err("a worker needs memory=SIZE, such as memory=16G".to_owned()),
            _ => Ok(machine),
        }
    }
}

/// A worker in the plan.
#[derive(Clone, Debug, Serialize)]
struct Share {
    name: String,
    /// Bytes for experts, and of those placed there.
    memory: u64,
    bytes: u64,
    units: usize,
    experts: usize,
    /// Units whose best worker it is.
    first: usize,
    /// Experts of each layer that it holds, at least and at most.
    layer: [usize; 2],
}

/// Milliseconds of a token, by cause.
#[derive(Copy, Clone, Debug, Serialize)]
struct Times {
    token_ms: f64,
    weights_ms: f64,
    round_trips_ms: f64,
    bytes_ms: f64,
    overhead_ms: f64,
    bytes_of_a_token: f64,
    round_trips: u32,
}

impl Times {
    fn of(cost: &Cost) -> Times {
        Times {
            token_ms: cost.seconds() * 1e3,
            weights_ms: cost.weights * 1e3,
            round_trips_ms: cost.trips * 1e3,
            bytes_ms: cost.transfer * 1e3,
            overhead_ms: cost.overhead * 1e3,
            bytes_of_a_token: cost.n_byte,
            round_trips: cost.n_trip,
        }
    }
}

/// Everything that the command prints.
struct Report {
    size: ModelSize,
    shares: Vec<Share>,
    /// Experts without room, and their bytes.
    unplaced: (usize, u64),
    n_expert: usize,
    /// Workers that a layer of one token asks, on average.
    fan_out: f64,
    /// A token as hubs have experts placed.
    placed: Cost,
    plan: Plan,
}

/// Prints a plan.
///
/// # Errors
/// A model without experts; weights for which nobody has room.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let report = report(args)?;
    match args.format {
        Form::Md => print!("{}", shown(&report, args)),
        Form::Json => println!("{}", serde_json::to_string_pretty(&json(&report))?),
    }
    Ok(())
}

impl Args {
    /// Workers sum products.
    fn sums(&self) -> bool {
        self.swarm_fast && !self.swarm_rows
    }
}

fn report(args: &Args) -> anyhow::Result<Report> {
    let source: Source = args.model.source();
    let model = pollster::block_on(source.open())?;
    let catalogue = Catalogue::new(model, BLOCK)?;
    let shape = catalogue.shape();
    let n_used = catalogue.graph().experts().iter().map(|l| l.n_used).max().unwrap_or(0);
    let size = size_of(&catalogue, shape, n_used)?;
    let place = if args.sums() { place_by_layer } else { place };
    let assignment = placed(shape, &args.workers, args.swarm_replicas.into(), place);
    let fan_out = fan_out(shape, &assignment, n_used);
    let workers: Vec<WorkerRates> = (args.workers.iter())
        .map(|w| WorkerRates {
            memory: w.memory as f64,
            rate: w.rate,
            link: Link { rtt: w.rtt, rate: w.link },
        })
        .collect();
    let available = Available {
        memory: args.hub_memory as f64,
        rate: args.hub_rate * 1e9,
        source: args.disk_rate * 1e9,
        readback: args.readback * 1e-3,
        replicas: args.swarm_replicas.into(),
        exact: !args.swarm_fast,
        sum: args.sums(),
        // Hubs give experts alone.
        spans: false,
        drafts: None,
    };
    let plan = chaski_swarm::plan(&size, &workers, &available).context("no way to run the model")?;
    let without: Vec<Unit> = shape.units().filter(|unit| assignment.holders(*unit).is_empty()).collect();
    let unplaced = without.iter().map(|unit| shape.experts(*unit).len()).sum();
    let unplaced_bytes = without.iter().map(|unit| shape.bytes(*unit)).sum();
    Ok(Report {
        size,
        shares: shares(shape, &args.workers, &assignment),
        unplaced: (unplaced, unplaced_bytes),
        n_expert: shape.units().map(|unit| shape.experts(unit).len()).sum(),
        fan_out,
        placed: cost(&size, &workers, &available, fan_out),
        plan,
    })
}

/// Sizes of a model from its file, in bytes.
fn size_of(catalogue: &Catalogue, shape: &ModelShape, n_used: u32) -> anyhow::Result<ModelSize> {
    let model = catalogue.model();
    let total: u64 = model.tensors().iter().map(|t| t.n_byte).sum();
    let named = |name: &str| model.tensors().iter().find(|t| t.name == name).map(|t| t.n_byte);
    let table = named("token_embd.weight").context("the model has no token_embd.weight")?;
    let head = named("output.weight");
    let experts: u64 = shape.units().map(|unit| shape.bytes(unit)).sum();
    let n_expert = shape.layers.iter().map(|l| u32::from(l.n_expert)).max().unwrap_or(0);
    let n_moe_layer = shape.layers.len() as u32;
    let rest = total - experts - table - head.unwrap_or(0);
    let n_layer = model.config().n_layer;
    Ok(ModelSize {
        n_layer,
        n_moe_layer,
        width: shape.width,
        n_expert,
        n_used,
        expert: experts as f64 / f64::from(n_moe_layer * n_expert),
        layer: rest as f64 / f64::from(n_layer),
        shared: 0.0,
        // A token reads all of a head that is the table of embeddings, too, and half of two tables otherwise.
        dense: head.map_or(table, |_| 0) as f64,
        embeddings: head.map_or(0, |head| head + table) as f64,
        bytes_per_weight: 1.0,
    })
}

/// A function that places units.
type Placing = fn(&[UnitLoad], &[Place], usize, &Assignment, u64) -> Assignment;

/// The placement of hubs, of workers that are as fast as each other.
fn placed(shape: &ModelShape, workers: &[Machine], replicas: usize, place: Placing) -> Assignment {
    let units: Vec<UnitLoad> = shape
        .units()
        .map(|unit| UnitLoad {
            unit,
            bytes: shape.bytes(unit),
            n_expert: shape.experts(unit).len() as u32,
            count: 0.0,
        })
        .collect();
    let workers: Vec<Place> = (0..)
        .zip(workers)
        .map(|(id, w)| Place {
            worker: WorkerId(id),
            host: HostId(id),
            memory: w.memory,
            slots: w.is_gpu.then(|| shape.even_slots(w.memory)),
            speed: 1.0,
        })
        .collect();
    place(&units, &workers, replicas, &Assignment::default(), 1)
}

/// Workers that the experts of one token need in a layer, on average over tokens drawn at random: each unit's first
/// worker; those that nobody holds are the hub's.
fn fan_out(shape: &ModelShape, assignment: &Assignment, n_used: u32) -> f64 {
    let mut random = Random::new(1);
    let mut sum = 0;
    for draw in 0..DRAWS {
        let layer = &shape.layers[draw as usize % shape.layers.len()];
        let mut experts: Vec<u16> = (0..layer.n_expert).collect();
        let mut asked: BTreeSet<WorkerId> = BTreeSet::new();
        for i in 0..(n_used as usize).min(experts.len()) {
            let other = i + random.below((experts.len() - i) as u64) as usize;
            experts.swap(i, other);
            let unit = shape.unit(layer.layer, experts[i]).expect("an expert of the layer");
            asked.extend(assignment.holders(unit).first());
        }
        sum += asked.len();
    }
    sum as f64 / DRAWS as f64
}

/// A token as the placement has it: every layer asks `fan_out` workers at once, and waits for the slowest link.
fn cost(size: &ModelSize, workers: &[WorkerRates], available: &Available, fan_out: f64) -> Cost {
    let n = workers.len() as f64;
    let slowest = workers.iter().map(|w| w.link.rtt).fold(0.0, f64::max);
    let link = Link { rtt: slowest, rate: workers.iter().map(|w| w.link.rate).sum::<f64>() / n };
    let worker = workers.iter().map(|w| w.rate).sum::<f64>() / n;
    let rates = Rates { hub: available.rate, worker, readback: available.readback };
    let (value, sum) = (if available.exact { 4.0 } else { 2.0 }, available.sum);
    let of = |f: f64| size.experts(ExpertSplit { fan_out: f.max(1.0) as u32, value, sum }, link, rates, 1);
    // Between two whole numbers.
    let (low, high, part) = (of(fan_out.floor()), of(fan_out.ceil()), fan_out.fract());
    let mix = |of: fn(&Cost) -> f64| (1.0 - part) * of(&low) + part * of(&high);
    Cost {
        weights: mix(|c| c.weights),
        trips: low.trips,
        transfer: mix(|c| c.transfer),
        overhead: low.overhead,
        n_byte: mix(|c| c.n_byte),
        n_trip: low.n_trip,
    }
}

fn shares(shape: &ModelShape, workers: &[Machine], assignment: &Assignment) -> Vec<Share> {
    let share = |(id, w): (u64, &Machine)| {
        let units = assignment.units(WorkerId(id));
        let mut of_layer: BTreeMap<u16, usize> = shape.layers.iter().map(|l| (l.layer, 0)).collect();
        for unit in &units {
            *of_layer.entry(unit.layer).or_default() += shape.experts(*unit).len();
        }
        let (least, most) = (of_layer.values().min(), of_layer.values().max());
        Share {
            name: if w.name.is_empty() { format!("{}", id + 1) } else { w.name.clone() },
            memory: w.memory,
            bytes: units.iter().map(|unit| shape.bytes(*unit)).sum(),
            units: units.len(),
            experts: of_layer.values().sum(),
            first: units.iter().filter(|u| assignment.holders(**u).first() == Some(&WorkerId(id))).count(),
            layer: [least.copied().unwrap_or(0), most.copied().unwrap_or(0)],
        }
    };
    (0..).zip(workers).map(share).collect()
}

fn json(report: &Report) -> serde_json::Value {
    let tried: Vec<_> = (report.plan.tried.iter())
        .map(|(choice, seconds)| json!({"way": choice.to_string(), "token_ms": seconds * 1e3}))
        .collect();
    json!({
        "experts": report.n_expert,
        "expert_bytes": report.size.expert_bytes(),
        "other_bytes": report.size.other_bytes(),
        "workers": report.shares,
        "unplaced_experts": report.unplaced.0,
        "unplaced_bytes": report.unplaced.1,
        "workers_of_a_layer": report.fan_out,
        "as_placed": Times::of(&report.placed),
        "best": {
            "way": report.plan.choice.to_string(),
            "workers": report.plan.workers,
            "reason": report.plan.reason,
            "times": Times::of(&report.plan.cost),
        },
        "tried": tried,
    })
}

fn shown(report: &Report, args: &Args) -> String {
    let size = &report.size;
    let header = ["worker", "memory", "experts", "of a layer", "units", "first", "bytes"];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(report.shares.iter().map(|s| {
        [
            s.name.clone(),
            bytes(s.memory),
            s.experts.to_string(),
            match s.layer {
                [least, most] if least == most => most.to_string(),
                [least, most] => format!("{least}-{most}"),
            },
            s.units.to_string(),
            s.first.to_string(),
            bytes(s.bytes),
        ]
    }));
    let (l, r) = (Side::Left, Side::Right);
    let mut text = format!(
        "{} experts of {}, {} copies of each; {} of other weights at the hub\n\n{}\n",
        report.n_expert,
        bytes(size.expert_bytes() as u64),
        args.swarm_replicas,
        bytes(size.other_bytes() as u64),
        table(&rows, [l, r, r, r, r, r, r])
    );
    if report.unplaced.0 > 0 {
        text += &format!(
            "no worker has room for {} experts ({}): the hub computes them\n",
            report.unplaced.0,
            bytes(report.unplaced.1)
        );
    }
    let times = Times::of(&report.placed);
    text += &format!(
        "as placed, a layer asks {:.1} workers: {:.2} ms a token ({:.2} weights, {:.2} round trips, {:.2} bytes, {:.2} \
         overhead), {} over the network; most of it goes to {}\n",
        report.fan_out,
        times.token_ms,
        times.weights_ms,
        times.round_trips_ms,
        times.bytes_ms,
        times.overhead_ms,
        bytes(times.bytes_of_a_token as u64),
        report.placed.bound()
    );
    text + &format!("best of all ways: {}\n", report.plan.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(text: &str) -> Machine {
        text.parse().unwrap()
    }

    #[test]
    fn a_worker_is_read_from_words() {
        let found = machine("memory=16G,rate=200,rtt=0.5,link=100,name=attic,gpu");
        let name = "attic".to_owned();
        let expected =
            Machine { name, memory: 16_000_000_000, rate: 2e11, rtt: 5e-4, link: 12.5e6, is_gpu: true };
        assert_eq!(found, expected);
        for (wrong, says) in [
            ("rate=3", "a worker needs memory=SIZE"),
            ("memory=3G,speed=1", "`speed=1`: expected memory=SIZE"),
            ("memory=3", "expected a positive number with K, M or G"),
            ("memory=3G,rate=0", "expected more than 0"),
            ("memory=3G,rtt=x", "`x` is no number"),
        ] {
            let error = wrong.parse::<Machine>().unwrap_err();
            assert!(error.starts_with(says), "{wrong}: {error}");
        }
    }

    #[test]
    fn one_worker_is_asked_alone_and_eight_share_a_layer() {
        let layers =
            (0..4).map(|layer| chaski_swarm::LayerShape { layer, n_expert: 128, expert_bytes: 1000 });
        let shape = ModelShape { layers: layers.collect(), width: 64, block: 8 };
        let workers = |n| vec![machine("memory=1G"); n];
        let of = |n| fan_out(&shape, &placed(&shape, &workers(n), 1, place), 8);
        assert_eq!(of(1), 1.0);
        // 8 experts of 128 lie in 6.2 units of 16 on average, which are spread over 8 workers.
        assert!((3.5..6.2).contains(&of(8)), "{}", of(8));
    }
}
