//! Cases of every operation on a device: with and without bounds checks, in every feature set it supports.
//!
//! By default a fixed sample of each grid runs, each case in one feature set, with or without bounds checks, since
//! software drivers take longer to compile a case than to run it; fewer cases of slow kernels run (`SLOW`). Of two
//! operations one has bounds checks in its first feature set, the other in its second.
//! `CHASKI_TEST_FULL=1` runs everything. `CHASKI_OP` selects operations, separated by commas; `CHASKI_CASE` selects
//! cases whose labels contain a word, all of which then run. In addition there are random cases (`random`):
//! `PROPTEST_CASES` sets the number per operation, `CHASKI_TEST_SEED` selects others.

mod random;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chaski_kernels::grid::{Grid, Params, expand, sample};
use chaski_kernels::{Caps, Case, DispatchError, FeatureSet, OPS, Op};
use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::{Gpu, GpuOptions, run_case};
use chaski_runtime::plan::PlanError;
use rayon::prelude::*;

/// Random cases per operation and feature set, unless `PROPTEST_CASES` is set.
const RANDOM: u32 = 20;
/// By default each of the two devices of an operation runs the first of its cases, one in this many, each another one,
/// and one random case.
const TURNS: usize = 24;
/// The same for kernels that take long to compile.
const SLOW: &[(&str, usize)] = &[
    ("attention", 144),
    ("attention_keys", 72),
    ("attention_nd", 48),
    ("attention_texts", 48),
    ("attention_tiles", 72),
    ("conv_2d", 48),
    ("cpy", 72),
    ("delta_chunks", 48),
    ("gated_delta_net", 48),
    ("gated_linear_attn", 48),
    ("lightning_indexer", 48),
    ("mul_mat", 144),
    ("mul_mat_alone", 72),
    ("mul_mat_few", 48),
    ("mul_mat_id", 288),
    ("mul_mat_nd", 48),
    ("mul_mat_q8", 48),
    ("mul_mat_vec", 144),
    ("rope_kv", 72),
    ("sample", 48),
    ("set_rows", 72),
    ("ssm_scan", 48),
    ("top_k", 48),
];
/// Options from the environment.
struct Wish {
    /// Selected operations.
    only: Option<String>,
    /// A word in the labels of cases and in the lines of grids, which contain ggml's names of operations.
    word: String,
    /// No sampling.
    full: bool,
    /// Number of random cases.
    random: u32,
    seed: u64,
}

impl Wish {
    fn new() -> Wish {
        let var = |name| std::env::var(name).ok();
        let word = var("CHASKI_CASE").unwrap_or_default();
        Wish {
            only: var("CHASKI_OP"),
            full: !word.is_empty() || var("CHASKI_TEST_FULL").is_some_and(|v| v != "0"),
            word,
            random: var("PROPTEST_CASES").map_or(RANDOM, |n| n.parse().expect("PROPTEST_CASES is a number")),
            seed: var("CHASKI_TEST_SEED").map_or(1, |n| n.parse().expect("CHASKI_TEST_SEED is a number")),
        }
    }

    fn op(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|o| o.split(',').any(|o| o == name))
    }
}

/// Prints a line that is visible although the test passes.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("standard error");
}

/// Results of some operations.
#[derive(Default)]
struct Seen {
    failures: Vec<String>,
    n: usize,
    /// Fingerprints of successful runs, with or without bounds checks: kernels without team reductions are equal in all
    /// feature sets.
    done: HashSet<(bool, u64)>,
    /// Number of cases, and of those that ran, by operation.
    grids: BTreeMap<&'static str, (usize, usize)>,
    left_out: BTreeMap<String, usize>,
}

impl Seen {
    /// Adds the results of other operations.
    fn add(&mut self, other: Seen) {
        self.failures.extend(other.failures);
        self.n += other.n;
        self.grids.extend(other.grids);
        for (why, n) in other.left_out {
            *self.left_out.entry(why).or_default() += n;
        }
    }
}

/// A configuration that the adapter supports.
struct Device {
    set: FeatureSet,
    checked: bool,
    caps: Caps,
}

impl Device {
    fn options(set: FeatureSet, checked: bool) -> GpuOptions {
        GpuOptions { set: Some(set), no_f16: set == FeatureSet::Base, checked, ..GpuOptions::default() }
    }

    /// Those of the adapter; prints them, and which it lacks.
    fn all() -> Vec<Device> {
        let mut all = Vec::new();
        for set in [FeatureSet::Coop, FeatureSet::Alone, FeatureSet::Sg, FeatureSet::Base] {
            for checked in [false, true] {
                let gpu = Opened::new(&Device::options(set, checked));
                let caps = gpu.caps().clone();
                let lacks = match set {
                    FeatureSet::Coop if caps.coop.is_none() => "cooperative matrices",
                    FeatureSet::Alone | FeatureSet::Sg if caps.subgroup.is_none() => "subgroups",
                    _ => "",
                };
                if !lacks.is_empty() {
                    let summary = gpu.summary();
                    let (listed, subgroup) = (summary.cooperative.join(", "), caps.subgroup);
                    let more = match set {
                        FeatureSet::Coop => {
                            format!(" in a shape of kernels: it lists [{listed}], subgroups {subgroup:?}")
                        }
                        _ => String::new(),
                    };
                    say(&format!("SKIPPED: {lacks}, which this adapter lacks{more}"));
                    break;
                }
                say(&format!("{}: {caps:?}, checks {checked}", gpu.summary().name));
                all.push(Device { set, checked, caps });
            }
        }
        all
    }
}

#[test]
fn every_operation_matches_its_reference() {
    let (wish, devices) = (Wish::new(), Device::all());
    // Those that take longest first.
    let mut ops: Vec<(usize, &Op)> = OPS.iter().enumerate().filter(|(_, op)| wish.op(op.name)).collect();
    ops.sort_by_key(|(_, op)| std::cmp::Reverse(turns(op)));
    let queue = Mutex::new(VecDeque::from(ops));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        let mut seen = Seen::default();
        while let Some((nth_op, op)) = next() {
            seen.add(run(&wish, nth_op, op, &devices));
        }
        seen
    };
    let mut seen = Seen::default();
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..rayon::current_num_threads().max(2)).map(|_| s.spawn(work)).collect();
        threads.into_iter().for_each(|t| seen.add(t.join().expect("a thread that ends")));
    });
    for (op, (ran, all)) in &seen.grids {
        say(&format!("  {op:16} {ran} of {all} cases of its grid"));
    }
    for (why, n) in &seen.left_out {
        say(&format!("SKIPPED: {n} cases: {why}"));
    }
    let (n, failures) = (seen.n, seen.failures);
    say(&format!("{n} cases"));
    assert!(failures.is_empty(), "{} of {n} cases fail:\n{}", failures.len(), failures.join("\n"));
    assert!(n > 0, "no case has this name");
}

/// A device opened and closed under a lock: with several threads doing so, NVIDIA's driver occasionally crashes.
struct Opened(Option<Gpu>);

static ONE_BY_ONE: Mutex<()> = Mutex::new(());

impl Opened {
    fn new(options: &GpuOptions) -> Opened {
        let _alone = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
        Opened(Some(pollster::block_on(Gpu::open(options)).expect("a GPU or a software Vulkan driver")))
    }
}

impl std::ops::Deref for Opened {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        self.0.as_ref().expect("it is taken where it is dropped")
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _alone = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.take();
    }
}

/// Each device runs one in this many cases.
fn turns(op: &Op) -> usize {
    SLOW.iter().find(|(name, _)| *name == op.name).map_or(TURNS, |(_, n)| *n)
}

/// Runs the cases of an operation, each of which is made once, on its devices, one after another: what a driver has
/// compiled for one it need not compile for the next.
fn run(wish: &Wish, nth_op: usize, op: &Op, devices: &[Device]) -> Seen {
    let (mut seen, mut cases, n_turn) = (Seen::default(), (op.cases)(), turns(op));
    cases.retain(|c| c.label.contains(&wish.word));
    let base = |d: &Device| usize::from(d.set == FeatureSet::Base);
    // By default bounds checks rotate over operations and feature sets.
    let is_all = wish.full || wish.only.is_some();
    let is_on = |d: &Device| is_all || d.checked == ((nth_op + base(d)) % 2 == 1);
    for d in devices.iter().filter(|d| op.is_for(d.set) && is_on(d)) {
        // A device keeps all of its pipelines, so each operation has its own device.
        let gpu = &Opened::new(&Device::options(d.set, d.checked));
        let (start, mut worst) = (Instant::now(), 0.0f64);
        // Cases rotate over feature sets.
        let base = base(d);
        let mut turns = (0..).map(|nth| nth == 0 || (nth + base * n_turn / 2) % n_turn == 0);
        let mut next = || turns.next().expect("it has no end") || wish.full;
        let on = Place { gpu, op, set: d.set, checked: d.checked };
        for case in cases.iter().filter(|_| next()) {
            worst = worst.max(on.check(case, &mut seen));
        }
        if let Some(grid) = &op.grid {
            let chosen = chosen(wish, op, grid, &d.caps, &mut seen).into_iter();
            let chosen: Vec<_> = chosen.filter(|_| next()).collect();
            // References of long sequences take longer than the device, so all cores compute some concurrently.
            for some in chosen.chunks(2 * rayon::current_num_threads()) {
                let cases: Vec<_> = some.par_iter().map(|p| (p, (grid.case)(p))).collect();
                for (params, case) in cases {
                    match case {
                        Ok(case) => worst = worst.max(on.check(&case, &mut seen)),
                        Err(e) => seen.failures.push(format!("{params}: {e}")),
                    }
                }
            }
            if let Some(random) = grid.random {
                // Each of these devices has its own cases.
                let n = if wish.full { wish.random } else { wish.random.div_ceil(2 * n_turn as u32) };
                let stream = [wish.seed, u64::from(d.checked), base as u64];
                worst = worst.max(random::check(&on, random, n, stream, &wish.word, &mut seen));
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let (name, set, checks) = (op.name, d.set.word(), if d.checked { "checked" } else { "" });
        say(&format!("  {name:18} {set:4} {checks:8} worst error {worst:.2e}, {seconds:.1} s"));
    }
    seen
}

/// The cases of an operation's grid to run.
fn chosen(wish: &Wish, op: &Op, grid: &Grid, caps: &Caps, seen: &mut Seen) -> Vec<Params> {
    let mut all = expand(grid.text).expect("a grid that a test of the kernels has read");
    let n_all = all.len();
    // Equal in each feature set.
    let mut left_out = BTreeMap::new();
    all.retain(|p| match p.left_out() {
        Some(why) => {
            *left_out.entry(format!("{}: {why}", op.name)).or_default() += 1;
            false
        }
        None => p.to_string().contains(&wish.word),
    });
    seen.left_out.extend(left_out);
    let mut chosen = if wish.full { all } else { sample(all) };
    seen.grids.insert(op.name, (chosen.len(), n_all));
    let n = chosen.len();
    chosen.retain(|p| p.n_byte() <= caps.max_binding_bytes);
    if chosen.len() < n {
        let why = format!("{}: more bytes than a binding has on this adapter", op.name);
        *seen.left_out.entry(why).or_default() += n - chosen.len();
    }
    chosen
}

/// Configuration in which a case runs.
struct Place<'a> {
    gpu: &'a Gpu,
    op: &'a Op,
    set: FeatureSet,
    checked: bool,
}

impl Place<'_> {
    /// Runs a case and records its failure; returns its error.
    fn check(&self, case: &Case, seen: &mut Seen) -> f64 {
        match self.run(case, seen) {
            Ok(nmse) => nmse,
            Err(what) => {
                seen.failures.push(what);
                0.0
            }
        }
    }

    /// Runs a case, unless the same kernel with the same constants has run it: returns its error, or the failure.
    fn run(&self, case: &Case, seen: &mut Seen) -> Result<f64, String> {
        let Place { gpu, op, set, checked } = *self;
        let (mut id, mut its) = (None, false);
        if let Ok(steps) = case.placed(gpu.caps()) {
            let fingerprint = (checked, case.fingerprint(&steps));
            if seen.done.contains(&fingerprint) {
                return Ok(0.0);
            }
            id = Some(fingerprint);
            // Partial sums may be reduced by another kernel.
            its = steps.iter().any(|s| s.step.dispatch.kernel.name.starts_with(op.name));
        }
        match pollster::block_on(run_case(gpu, case)) {
            Ok(r) => {
                seen.n += 1;
                if op.set().is_some() && !its {
                    return Err(format!("{}: {} ran instead of it", op.name, r.kernel));
                }
                if let Some(what) = r.failure {
                    return Err(format!("{} [{}] {}: {what}", r.kernel, set.word(), case.label));
                }
                seen.done.extend(id);
                Ok(r.nmse)
            }
            Err(RuntimeError::Plan(PlanError::Dispatch(e @ DispatchError::Lacks { .. }))) => {
                *seen.left_out.entry(e.to_string()).or_default() += 1;
                Ok(0.0)
            }
            Err(e) => Err(format!("{} [{}] {}: {e:?}", op.name, set.word(), case.label)),
        }
    }
}

/// A case that exceeds the largest binding, if there is memory for it.
fn beyond(caps: &Caps) -> Option<Case> {
    const MOST: u64 = 1 << 28;
    let (op, n) = (OPS.iter().find(|op| op.name == "arange")?, caps.max_binding_bytes / 4 + 64);
    let params = Params { op: "ARANGE".into(), text: format!("type=f32,start=0,stop={n},step=1") };
    (caps.max_binding_bytes <= MOST).then(|| (op.grid.expect("its cases").case)(&params).expect("a range"))
}

#[test]
fn a_case_that_is_refused_leaves_the_device_to_others() {
    let gpu = Opened::new(&GpuOptions::default());
    let Some(case) = beyond(gpu.caps()) else {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        return say(&format!("SKIPPED {test}: for want of an adapter with a small limit of bindings"));
    };
    let refused = pollster::block_on(run_case(&gpu, &case)).expect_err("more bytes than a binding has");
    assert!(matches!(refused, RuntimeError::Refused { .. }), "{refused:?}");
    let op = OPS.iter().find(|op| op.name == "arange").expect("a row of the table");
    let grid = op.grid.expect("its cases");
    let params = expand(grid.text).expect("a grid").swap_remove(0);
    let report =
        pollster::block_on(run_case(&gpu, &(grid.case)(&params).expect("a case"))).expect("a result");
    assert_eq!(report.failure, None);
}
