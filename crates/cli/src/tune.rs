//! `chaski tune`: finds and saves the fastest thread counts for a model's shapes on this device.
//!
//! Results are saved in the user's cache directory, in one file per adapter and driver; later starts use them for any
//! model with the same shapes.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use chaski::kernels::{Act, MatVecTune, ProductClass, Tuned, Tuning};
use chaski::{AdapterSummary, TuneStep};
use serde_json::{Value, json};

use crate::cache;
use crate::failure::Usage;
use crate::load::{self, Loaded};
use crate::options::{EngineArgs, ModelArg};
use crate::output::write_bytes;
use crate::ui::Ui;

/// Version of the tuning; files of another version are ignored.
const VERSION: u64 = 2;

pub(crate) const LONG: &str = "\
Measures candidates for the kernels of a model's shapes on this device, and saves the best for later starts.

Each candidate runs in the loaded model while it generates some tokens; the fastest configuration is written to \
the cache directory, one file per adapter and driver. Models of other shapes keep the built-in defaults, which \
`--explain` shows.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArg,
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
    let found = pollster::block_on(engine.runner().tune(Duration::from_secs(args.budget), |step| {
        if !args.json {
            print(step);
        }
        steps.push(step.clone());
    }))?;
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

fn tune_json(t: &MatVecTune) -> Value {
    json!({ "fill": t.fill, "team": t.team, "inputs": t.act.word(), "doubled": t.doubled })
}

fn step_json(s: &TuneStep) -> Value {
    let tried: Vec<Value> = s
        .tried
        .iter()
        .map(|(t, time)| json!({ "tune": tune_json(t), "token_us": time.as_secs_f64() * 1e6 }))
        .collect();
    json!({ "class": s.class.to_string(), "chosen": tune_json(&s.chosen), "tried": tried })
}

fn to_json(adapter: &str, driver: &str, tuning: &Tuning) -> Value {
    let row = |t: &Tuned| {
        let c = &t.class;
        json!({
            "format": c.format, "epilogue": c.epilogue, "n_row": c.n_row, "n_col": c.n_col,
            "tune": tune_json(&t.tune),
        })
    };
    let products: Vec<Value> = tuning.products.iter().map(row).collect();
    json!({ "version": VERSION, "adapter": adapter, "driver": driver, "products": products })
}

/// Earlier results on an adapter; empty if there is no file of this version.
pub(crate) fn known(s: &AdapterSummary) -> Tuning {
    let read = || {
        let path = cache::folder("tuning")?.join(cache::file_of(s, "json"));
        let text = std::fs::read_to_string(path).ok()?;
        from_json(&serde_json::from_str(&text).ok()?)
    };
    read().unwrap_or_default()
}

fn from_json(v: &Value) -> Option<Tuning> {
    if v["version"].as_u64() != Some(VERSION) {
        return None;
    }
    let number = |v: &Value| v.as_u64().and_then(|n| u32::try_from(n).ok());
    let row = |v: &Value| {
        let t = &v["tune"];
        let act = [Act::F32, Act::I16].into_iter().find(|a| t["inputs"].as_str() == Some(a.word()))?;
        let fill = number(&t["fill"]).filter(|f| (256..=1 << 20).contains(f))?;
        let team = number(&t["team"]).filter(|t| (MatVecTune::LEAST_TEAM..=1024).contains(t))?;
        let class = ProductClass {
            format: v["format"].as_str()?.to_owned(),
            epilogue: v["epilogue"].as_str()?.to_owned(),
            n_row: number(&v["n_row"])?,
            n_col: number(&v["n_col"])?,
        };
        let doubled = t["doubled"].as_bool()?;
        Some(Tuned { class, tune: MatVecTune { fill, team, act, doubled } })
    };
    Some(Tuning { products: v["products"].as_array()?.iter().filter_map(row).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_nonsense_is_not() {
        let class = ProductClass { format: "q4_K+q6_K".into(), epilogue: "glu".into(), n_row: 7, n_col: 256 };
        let tune = MatVecTune { fill: 4096, team: 128, act: Act::I16, doubled: true };
        let tuning = Tuning { products: vec![Tuned { class, tune }] };
        let mut v = to_json("an adapter", "1.0", &tuning);
        assert_eq!(from_json(&v), Some(tuning));
        v["products"][0]["tune"]["fill"] = 0.into();
        assert_eq!(from_json(&v), Some(Tuning::default()));
        v["version"] = 0.into();
        assert_eq!(from_json(&v), None);
    }
}
