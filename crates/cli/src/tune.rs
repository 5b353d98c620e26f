//! `chaski tune`: finds and saves the fastest thread counts for a model's shapes on this device.
//!
//! Results are saved in the user's cache directory, in one file per adapter and driver; later starts use them for any
//! model with the same shapes.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use chaski::gpu::TuneStep;
use chaski::kernels::{MatVecTune, ProductClass, Tuning};
use serde_json::{Value, json};

use crate::cache;
use crate::failure::Usage;
use crate::load::{self, Loaded};
use crate::options::{EngineArgs, ModelArg};
use crate::output::write_bytes;
use crate::progress::Unit;
use crate::tuned::{known, to_json, tune_json};
use crate::ui::Ui;

pub(crate) const LONG: &str = "\
Measures candidates for the kernels of a model's shapes on this device, and saves the best for later starts.

Each candidate runs in the loaded model while it generates some tokens; the fastest configuration is written to \
the cache directory, one file per adapter and driver. Models of other shapes keep the built-in defaults, which \
`--explain` shows.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) model: ModelArg,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    budget: u64,
    /// Print the results without saving them
    #[arg(long)]
    dry_run: bool,
    /// Discard earlier results on this device and start from the defaults
    #[arg(long)]
    fresh: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let source = args.model.source();
    let mut engine_args = args.engine.clone();
    engine_args.no_tuning |= args.fresh;
    let Loaded { mut engine, .. } = load::load(source, &engine_args, ui)?;
    let Some(gpu) = engine.gpu().cloned() else {
        return Err(Usage("the CPU backend has nothing to tune: specify a GPU".into()).into());
    };
    let mut steps = Vec::new();
    let progress = ui.progress("tune", Unit::Seconds, args.budget);
    let found = pollster::block_on(engine.runner().tune(Duration::from_secs(args.budget), |step| {
        progress.set(progress.elapsed().as_secs().min(args.budget), args.budget);
        progress.message(step.class.to_string());
        if !args.json {
            progress.suspend(|| print(step));
        }
        steps.push(step.clone());
    }))?;
    // It may need less than its budget.
    progress.set(args.budget, args.budget);
    progress.finish();
    let summary = gpu.summary();
    let mut out = std::io::stdout().lock();
    if args.json {
        let steps: Vec<Value> = steps.iter().map(step_json).collect();
        let value = json!({ "adapter": summary.name, "driver": summary.driver, "steps": steps });
        writeln!(out, "{value:#}")?;
    }
    if args.dry_run {
        return Ok(());
    }
    // Results for shapes that this model lacks are kept.
    let mut all = if args.fresh { Tuning::default() } else { known(summary) };
    let tried = |class: &ProductClass| steps.iter().any(|s| s.class == *class && s.tried.len() > 1);
    for t in found.products {
        if tried(&t.class) {
            all.set(t.class, t.tune);
        }
    }
    let folder = cache::folder("tuning").context("no cache directory found")?;
    let path = folder.join(cache::file_of(summary, "json"));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    write_bytes(&path, &[], format!("{:#}\n", to_json(&summary.name, &summary.driver, &all)).as_bytes())?;
    ui.note(&format!("saved in {}", path.display()));
    Ok(())
}

fn print(step: &TuneStep) {
    let first = step.tried.first().map_or(Duration::ZERO, |t| t.1);
    let best = step.tried.iter().filter(|t| t.0 == step.chosen).map(|t| t.1).min().unwrap_or(first);
    let gain = first.as_secs_f64() / best.as_secs_f64().max(1e-12);
    println!(
        "{}: {}, {} tried, {:.1} µs per token instead of {:.1} µs ({:+.1} %)",
        step.class,
        words(&step.chosen),
        step.tried.len(),
        best.as_secs_f64() * 1e6,
        first.as_secs_f64() * 1e6,
        (gain - 1.0) * 100.0
    );
}

fn words(t: &MatVecTune) -> String {
    let rows = if t.doubled { ", twice the rows" } else { "" };
    format!("{} threads at once, teams of at most {}{rows}, x in {}", t.fill, t.team, t.act.word())
}

fn step_json(s: &TuneStep) -> Value {
    let tried: Vec<Value> = s
        .tried
        .iter()
        .map(|(t, time)| json!({ "tune": tune_json(t), "token_us": time.as_secs_f64() * 1e6 }))
        .collect();
    json!({ "class": s.class.to_string(), "chosen": tune_json(&s.chosen), "tried": tried })
}
