//! `chaski swarm null`: a hub that calls experts without a model's own work between the calls, to measure its rounds,
//! its CPU time, and hedges (`xtask swarm-lab`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use chaski::experts::{ExpertCall, Pair};
use chaski_swarm::{HubConfig, LayerShape, ModelShape, Random, WorkerId};
use serde_json::json;

use super::catalogue::Catalogue;
use super::driver::Core;
use super::session::Hall;
use super::{open, status, wait};
use crate::options::ModelArg;
use crate::swarm_options::HedgeArg;
use crate::ui::Ui;

/// Options of `chaski swarm null`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) model: ModelArg,
    /// Address where workers join
    #[arg(long, value_name = "ADDR")]
    swarm: SocketAddr,
    /// Workers that are waited for
    #[arg(long, value_name = "N")]
    workers: usize,
    /// Texts at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    streams: u64,
    /// Tokens of a text, each a call for every layer, one after another
    #[arg(long, value_name = "N")]
    tokens: usize,
    /// Tokens before the measurement
    #[arg(long, value_name = "N", default_value_t = 4)]
    warm: usize,
    /// Experts of a unit
    #[arg(long, value_name = "N", default_value_t = 1)]
    block: u16,
    /// Experts of a layer, of distinct units drawn at random; 0: one of each worker
    #[arg(long, value_name = "N", default_value_t = 0)]
    used: usize,
    /// Columns of a call
    #[arg(long, value_name = "N", default_value_t = 1)]
    columns: u16,
    /// Workers that hold each expert
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: usize,
    /// Policy of hedging
    #[arg(long, value_name = "WHEN", value_enum, default_value = "never")]
    hedge: HedgeArg,
    /// Microseconds between the calls of a text
    #[arg(long, value_name = "US", default_value_t = 0)]
    think: u64,
}

/// Times of a text: of its tokens and of its rounds, in microseconds.
#[derive(Default)]
struct Times {
    tokens: Vec<f64>,
    rounds: Vec<f64>,
}

/// Measures, and prints a line of JSON. Answers are not checked: workers may send anything.
///
/// # Errors
/// A worker that does not answer; layers in which some worker holds nothing.
pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let model = pollster::block_on(args.model.source().open())?;
    let catalogue = Arc::new(Catalogue::new(model, args.block.max(1))?);
    let shape = catalogue.shape().clone();
    let config = HubConfig {
        replicas: args.replicas,
        hedging: args.hedge.into(),
        check: 0.0,
        ..HubConfig::new(shape.clone(), 1)
    };
    let core = Arc::new(Core::new(config, None, true));
    let hall = Hall { core: core.clone(), catalogue, token: None, class: None, pages: None };
    let runtime = open(args.swarm, None, hall, ui)?;
    runtime.block_on(wait(&core, args.workers, ui))?;
    let layers = layers(&core, &shape, args)?;
    let text = |stream: u64, n_token: usize| -> anyhow::Result<Times> {
        let (mut times, mut random) = (Times::default(), Random::new(stream));
        for _ in 0..n_token {
            let begin = Instant::now();
            for layer in &layers {
                if args.think > 0 {
                    std::thread::sleep(Duration::from_micros(args.think));
                }
                let call = call(&shape, layer, args, &mut random);
                let start = Instant::now();
                pollster::block_on(core.call(call).rows())?;
                times.rounds.push(start.elapsed().as_secs_f64() * 1e6);
            }
            times.tokens.push(begin.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times)
    };
    text(u64::MAX, args.warm)?;
    let (begin, cpu, before) = (Instant::now(), cpu_seconds()?, status::of(&core).counters);
    let texts = std::thread::scope(|scope| {
        let text = &text;
        let threads: Vec<_> = (0..args.streams).map(|i| scope.spawn(move || text(i, args.tokens))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a text does not panic")).collect::<Vec<_>>()
    });
    let (seconds, cpu, after) =
        (begin.elapsed().as_secs_f64(), cpu_seconds()? - cpu, status::of(&core).counters);
    let mut all = Times::default();
    for times in texts {
        let Times { tokens, rounds } = times?;
        all.tokens.extend(tokens);
        all.rounds.extend(rounds);
    }
    let line = json!({
        "tokens": all.tokens.len(),
        "calls": all.rounds.len(),
        "tasks": after.tasks - before.tasks,
        "late": after.hedges - before.hedges,
        "won": after.hedges_won - before.hedges_won,
        "at_once": after.hedges_at_once - before.hedges_at_once,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "token_us": quantiles(all.tokens),
        "round_us": quantiles(all.rounds),
    });
    println!("{line}");
    Ok(())
}

/// The quantiles 0.5, 0.9, 0.95 and 0.99.
fn quantiles(mut times: Vec<f64>) -> [f64; 4] {
    times.sort_by(f64::total_cmp);
    let last = times.len().saturating_sub(1);
    [0.5, 0.9, 0.95, 0.99]
        .map(|q| times.get(((q * times.len() as f64) as usize).min(last)).copied().unwrap_or(0.0))
}

/// The layers that are called, with one expert of each worker if no experts are drawn.
fn layers(core: &Core, shape: &ModelShape, args: &Args) -> anyhow::Result<Vec<(LayerShape, Vec<u16>)>> {
    let of_workers = |layer: &LayerShape| {
        let mut first: BTreeMap<WorkerId, u16> = BTreeMap::new();
        for unit in shape.units().filter(|unit| unit.layer == layer.layer) {
            let holders = core.look(|hub, _| hub.holders(unit));
            if let (Some(&worker), Some(expert)) = (holders.first(), shape.experts(unit).next()) {
                first.entry(worker).or_insert(expert);
            }
        }
        let mut experts: Vec<u16> = first.into_values().collect();
        experts.sort_unstable();
        experts
    };
    if args.used > 0 {
        let n_unit = |l: &LayerShape| usize::from(l.n_expert.div_ceil(shape.block));
        let least = shape.layers.iter().map(n_unit).min().unwrap_or(0);
        ensure!(args.used <= least, "a layer has {least} units, of which {} are used", args.used);
        return Ok(shape.layers.iter().map(|layer| (*layer, Vec::new())).collect());
    }
    let all = shape.layers.iter().map(|layer| (*layer, of_workers(layer)));
    let whole: Vec<_> = all.filter(|(_, experts)| experts.len() == args.workers).collect();
    ensure!(!whole.is_empty(), "no layer has experts at all of {} workers", args.workers);
    Ok(whole)
}

/// A call of some columns, all for the same experts.
fn call(
    shape: &ModelShape,
    (layer, of_workers): &(LayerShape, Vec<u16>),
    args: &Args,
    random: &mut Random,
) -> ExpertCall {
    let mut experts = of_workers.clone();
    while experts.len() < args.used {
        let expert = random.below(layer.n_expert.into()) as u16;
        if let Err(at) = experts.binary_search_by_key(&(expert / shape.block), |e| e / shape.block) {
            experts.insert(at, expert);
        }
    }
    let n_value = shape.width as usize * usize::from(args.columns);
    // Slots do not matter here, and the model may have fewer.
    let pair = |expert: u16| (0..args.columns).map(move |column| Pair { expert, column, slot: 0 });
    let pairs = experts.iter().flat_map(|&expert| pair(expert));
    ExpertCall {
        layer: layer.layer,
        width: shape.width,
        step_columns: args.columns.into(),
        x: (0..n_value).map(|i| (i % 17) as f32 / 16.0 - 0.5).collect(),
        pairs: pairs.collect(),
        weights: Vec::new(),
    }
}

/// Seconds of CPU time of this process.
fn cpu_seconds() -> anyhow::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").context("CPU time is read from /proc")?;
    // Behind the name, which may have spaces: the 12th and 13th field from there, in hundredths of a second.
    let (_, rest) = text.rsplit_once(')').context("a name in parentheses")?;
    let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok());
    Ok(ticks.sum::<u64>() as f64 / 100.0)
}
