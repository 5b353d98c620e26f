//! Every case of every operation, on a device: with bounds checks and without, in every feature set it has.
//!
//! `CHASKI_OP` names operations to run alone, separated by commas, `CHASKI_CASE` a word in the labels of their cases. Grids
//! of many cases are sampled, the same ones each time, unless `CHASKI_TEST_FULL` is set; `CHASKI_TEST_SEED` chooses other
//! random shapes.
#![allow(clippy::print_stdout, reason = "a test reports what it covered")]

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Instant;

use chaski_kernels::grid::{Params, expand};
use chaski_kernels::{Case, DispatchError, FeatureSet, OPS, Op, Rng};
use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::{Gpu, GpuOptions, run_case};
use chaski_runtime::plan::PlanError;

/// Cases of a grid that run by default, at most, for each of ggml's operations in it.
const SAMPLE: usize = 50;
/// Values of a case beyond which it runs by default only if it is the smallest of such.
const LARGE: u64 = 1 << 18;
/// Cases with random shapes, strides and types, for each operation.
const RANDOM: u64 = 40;

/// What one device saw.
#[derive(Default)]
struct Seen {
    failures: Vec<String>,
    n: usize,
    /// Cases and how many of them ran, by operation.
    grids: BTreeMap<&'static str, (usize, usize)>,
    left_out: BTreeMap<String, usize>,
    lines: Vec<String>,
}

#[test]
fn every_operation_matches_its_reference() {
    // One device with bounds checks and one without, each on a thread of its own.
    let seen: Vec<Seen> = std::thread::scope(|s| {
        let threads: Vec<_> =
            [false, true].map(|checked| s.spawn(move || run(checked))).into_iter().collect();
        threads.into_iter().map(|t| t.join().expect("a thread that ends")).collect()
    });
    let mut failures = Vec::new();
    for s in &seen {
        s.lines.iter().for_each(|l| println!("{l}"));
        failures.extend_from_slice(&s.failures);
    }
    let n: usize = seen.iter().map(|s| s.n).sum();
    let [grids, ..] = &seen[..] else { unreachable!("two threads") };
    for (op, (ran, all)) in &grids.grids {
        println!("  {op:16} {ran} of {all} cases of its grid");
    }
    for (why, n) in &grids.left_out {
        println!("LEFT OUT: {n} cases: {why}");
    }
    println!("{n} cases");
    assert!(n > 0, "no case has this name");
    assert!(failures.is_empty(), "{} of {n} cases fail:\n{}", failures.len(), failures.join("\n"));
}

/// Everything on devices with or without bounds checks.
fn run(checked: bool) -> Seen {
    let mut seen = Seen::default();
    // Some operations alone while working on them.
    let only = std::env::var("CHASKI_OP").ok();
    let word = std::env::var("CHASKI_CASE").unwrap_or_default();
    // What ran already: kernels without team reductions are the same in each feature set.
    let mut done = HashSet::new();
    for set in [FeatureSet::Coop, FeatureSet::Sg, FeatureSet::Base] {
        let options =
            GpuOptions { set: Some(set), no_f16: set == FeatureSet::Base, checked, ..GpuOptions::default() };
        // A device keeps every pipeline that it made, so each operation has a device of its own.
        let open = || pollster::block_on(Gpu::open(&options)).expect("a GPU or a software Vulkan driver");
        let first = open();
        let caps = first.caps().clone();
        seen.lines.push(format!("{}: {caps:?}, checks {checked}", first.summary().name));
        drop(first);
        let coop = set == FeatureSet::Coop;
        if coop && !caps.coop {
            seen.lines.push("LEFT OUT: cooperative matrices, which this adapter lacks".into());
            continue;
        }
        // Some operations are cooperative matrices; the others do not change with them.
        let wanted = |name: &str| only.as_ref().is_none_or(|o| o.split(',').any(|o| o == name));
        for op in OPS.iter().filter(|op| wanted(op.name) && coop == op.name.ends_with("_coop")) {
            let (gpu, start, mut worst) = (open(), Instant::now(), 0.0f64);
            for case in (op.cases)().into_iter().filter(|c| c.label.contains(&word)) {
                check(&gpu, op, set, &case, &mut done, &mut seen, &mut worst);
            }
            let line = |worst: f64| {
                format!("  {:16} worst error {worst:.2e}, {:.1} s", op.name, start.elapsed().as_secs_f64())
            };
            let Some(grid) = &op.grid else {
                seen.lines.push(line(worst));
                continue;
            };
            let all = expand(grid.text).expect("a grid that a test of the kernels has read");
            let n_all = all.len();
            let (all, unknown): (Vec<_>, Vec<_>) = all.into_iter().partition(Params::can_run);
            if !unknown.is_empty() {
                let why = format!("{}: types that the device does not read, or not write", op.name);
                seen.left_out.insert(why, unknown.len());
            }
            let mut sample = sample(all);
            sample.retain(|p| p.text.contains(&word));
            seen.grids.insert(op.name, (sample.len(), n_all));
            for params in sample {
                if params.size() * 4 > gpu.caps().max_binding_bytes {
                    let why = format!("{}: more bytes than a binding has on this adapter", op.name);
                    *seen.left_out.entry(why).or_default() += 1;
                    continue;
                }
                match (grid.case)(&params) {
                    Ok(case) => check(&gpu, op, set, &case, &mut done, &mut seen, &mut worst),
                    Err(e) => seen.failures.push(format!("{params}: {e}")),
                }
            }
            if let Some(random) = grid.random {
                let seed = std::env::var("CHASKI_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
                for i in 0..RANDOM {
                    let case = random(&mut Rng::new(seed * 1000 + i));
                    if !case.label.contains(&word) {
                        continue;
                    }
                    check(&gpu, op, set, &case, &mut done, &mut seen, &mut worst);
                }
            }
            seen.lines.push(line(worst));
        }
    }
    seen
}

/// Runs a case, unless the same kernel with the same constants has run it.
fn check(
    gpu: &Gpu,
    op: &Op,
    set: FeatureSet,
    case: &Case,
    done: &mut HashSet<u64>,
    seen: &mut Seen,
    worst: &mut f64,
) {
    if let Ok(steps) = (case.steps)(gpu.caps()) {
        let mut h = DefaultHasher::new();
        case.label.hash(&mut h);
        for d in steps.iter().map(|s| &s.dispatch) {
            (d.kernel.name, d.grid).hash(&mut h);
            d.constants.iter().for_each(|(name, v)| (name, v.to_bits()).hash(&mut h));
        }
        case.buffers.iter().for_each(|b| b.bytes.hash(&mut h));
        if !done.insert(h.finish()) {
            return;
        }
    }
    match pollster::block_on(run_case(gpu, case)) {
        Ok(r) => {
            seen.n += 1;
            *worst = worst.max(r.nmse);
            if set == FeatureSet::Coop && !r.kernel.starts_with(op.name) {
                seen.failures.push(format!("{}: {} ran instead of it", op.name, r.kernel));
            }
            if let Some(what) = r.failure {
                seen.failures.push(format!("{} [{}] {}: {what}", r.kernel, set.word(), case.label));
            }
        }
        Err(RuntimeError::Plan(PlanError::Dispatch(e @ DispatchError::Lacks { .. }))) => {
            *seen.left_out.entry(e.to_string()).or_default() += 1;
        }
        Err(e) => seen.failures.push(format!("{} [{}] {}: {e:?}", op.name, set.word(), case.label)),
    }
}

/// The cases of a grid that run now: all, or of each of ggml's operations some that are chosen by their text alone.
fn sample(all: Vec<Params>) -> Vec<Params> {
    if std::env::var_os("CHASKI_TEST_FULL").is_some() {
        return all;
    }
    let mut by_op: BTreeMap<String, Vec<Params>> = BTreeMap::new();
    all.into_iter().for_each(|p| by_op.entry(p.op.clone()).or_default().push(p));
    let rank = |p: &Params| {
        let mut h = DefaultHasher::new();
        p.text.hash(&mut h);
        h.finish()
    };
    by_op
        .into_values()
        .flat_map(|mut cases| {
            cases.sort_by_key(rank);
            let (mut large, small): (Vec<_>, Vec<_>) = cases.into_iter().partition(|p| p.size() > LARGE);
            large.sort_by_key(Params::size);
            large.into_iter().take(1).chain(small.into_iter().take(SAMPLE))
        })
        .collect()
}
