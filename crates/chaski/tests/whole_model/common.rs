//! Test helpers: golden data, devices, error measures.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use chaski::gpu::GpuOptions;
use chaski::kernels::FeatureSet;
use chaski::{DeviceChoice, Engine, EngineBuilder, GenerateOptions, SamplerParams, Source};
use chaski_models::Target;
use chaski_runtime::gpu::Gpu;

pub(crate) use pollster::block_on;

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of golden data in the tree.
pub(crate) fn fixture(name: &str) -> PathBuf {
    root().join("fixtures").join(name)
}

/// The file of the default model.
pub(crate) fn default_model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("model/storyteller-Q4_K_M.gguf")
}

/// A folder of golden data outside the tree: `$CHASKI_TEST_DATA/name`, by default `../shared/data/name` beside the
/// repository.
fn outside(name: &str) -> Option<PathBuf> {
    let base = std::env::var_os("CHASKI_TEST_DATA").map(PathBuf::from);
    Some(base.unwrap_or_else(|| root().join("../shared/data")).join(name)).filter(|folder| folder.is_dir())
}

/// A folder of golden data that a test requires. If it is missing, prints the line by which `cargo xtask test` counts
/// this test as skipped, and returns `None`.
pub(crate) fn test_data(name: &str) -> Option<PathBuf> {
    let found = outside(name);
    if found.is_none() {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        say(format!("SKIPPED {test}: for want of {name} (set CHASKI_TEST_DATA)"));
    }
    found
}

/// A folder of golden data for part of a test; prints which part is skipped if it is missing.
pub(crate) fn more_data(name: &str, part: &str) -> Option<PathBuf> {
    let found = outside(name);
    if found.is_none() {
        say(format!("SKIPPED: {part}, for want of {name} (set CHASKI_TEST_DATA)"));
    }
    found
}

/// True if long tests run in full: `CHASKI_TEST_FULL` is set.
pub(crate) fn full() -> bool {
    std::env::var_os("CHASKI_TEST_FULL").is_some_and(|v| v != "0")
}

/// True if the calling test is left for a full run, since others test most of what it does: prints the line by which
/// `cargo xtask test` counts it as skipped.
pub(crate) fn left_for_full() -> bool {
    if full() {
        return false;
    }
    let thread = std::thread::current();
    say(format!(
        "SKIPPED {}: for want of a full run (CHASKI_TEST_FULL=1)",
        thread.name().unwrap_or("a test")
    ));
    true
}

/// Every case if tests run in full, otherwise the first of each `n`.
pub(crate) fn one_in<T>(n: usize, cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    cases.into_iter().step_by(if full() { 1 } else { n })
}

/// One of several ways to run the `nth` case, in rotation; all of them if tests run in full.
pub(crate) fn in_turns<T: Clone>(nth: usize, ways: &[T]) -> Vec<T> {
    if full() { ways.to_vec() } else { vec![ways[nth % ways.len()].clone()] }
}

/// Feature sets on a GPU of tests that are not about kernels: all if tests run in full, otherwise the one whose kernels
/// software drivers run fastest, and which tests share. Others run in `archs` and `ops`.
pub(crate) fn gpu_sets() -> &'static [FeatureSet] {
    if full() { &[FeatureSet::Sg, FeatureSet::Base] } else { &[FeatureSet::Sg] }
}

/// The CPU, and the GPU with each of its feature sets.
pub(crate) fn targets() -> Vec<(&'static str, Target)> {
    let on_gpu = gpu_sets().iter().map(|set| (set.word(), Target::Gpu(shared_gpu(*set, false))));
    [("CPU", Target::Cpu)].into_iter().chain(on_gpu).collect()
}

/// Bytes of a file that must exist.
pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Text of a file that must exist.
pub(crate) fn read_text(path: &Path) -> String {
    String::from_utf8(read(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// JSON of a file that must exist.
pub(crate) fn read_json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&read(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Prints a line past the test harness, which hides the output of passing tests.
pub(crate) fn say(line: impl Display) {
    use std::io::Write;
    // Only macros are captured.
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).expect("stderr can be written");
}

/// Prints at the end of a test how long it took.
pub(crate) struct Timed(&'static str, Instant);

impl Timed {
    /// Starts the clock.
    pub(crate) fn new(name: &'static str) -> Timed {
        Timed(name, Instant::now())
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        say(format!("{}: {:.1} s", self.0, self.1.elapsed().as_secs_f64()));
    }
}

/// Collects failures, so that one does not hide the next.
#[derive(Default)]
pub(crate) struct Failures(Vec<String>);

impl Failures {
    /// Records a failure unless `ok`.
    pub(crate) fn check(&mut self, ok: bool, what: impl FnOnce() -> String) {
        if !ok {
            self.0.push(what());
        }
    }

    /// Records a failure unless the two texts are equal.
    pub(crate) fn same_text(&mut self, case: impl Display, found: &str, expected: &str) {
        self.check(found == expected, || format!("{case}:\n   found {found:?}\nexpected {expected:?}"));
    }

    /// Fails the test if any failure was recorded.
    pub(crate) fn conclude(self) {
        assert!(self.0.is_empty(), "{} failures:\n{}", self.0.len(), self.0.join("\n"));
    }
}

/// Normalised mean square error: the sum of squared differences over the sum of squares expected.
pub(crate) fn nmse(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len(), "values to compare");
    let square = |v: f64| v * v;
    let error: f64 = found.iter().zip(expected).map(|(a, b)| square(f64::from(*a) - f64::from(*b))).sum();
    let power: f64 = expected.iter().map(|b| square(f64::from(*b))).sum();
    assert!(power > 0.0, "what is expected must not be zero throughout");
    error / power
}

/// A device shared by several tests, with its compiled kernels.
pub(crate) fn shared_gpu(set: FeatureSet, checked: bool) -> Arc<Gpu> {
    static OPEN: Mutex<Vec<(FeatureSet, bool, Arc<Gpu>)>> = Mutex::new(Vec::new());
    let mut open = OPEN.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((.., gpu)) = open.iter().find(|(s, c, _)| (*s, *c) == (set, checked)) {
        return gpu.clone();
    }
    let options =
        GpuOptions { set: Some(set), no_f16: set == FeatureSet::Base, checked, ..GpuOptions::default() };
    let gpu = block_on(Gpu::open(&options)).expect("a GPU or a software Vulkan driver");
    say(format!("{}, set {}, checks {checked}: {:?}", gpu.summary().name, set.word(), gpu.caps()));
    let gpu = Arc::new(gpu);
    open.push((set, checked, gpu.clone()));
    gpu
}

/// The device with cooperative matrices, where there is one: software GPUs have none.
pub(crate) fn coop_gpu() -> Option<Arc<Gpu>> {
    let gpu = shared_gpu(FeatureSet::Coop, false);
    gpu.caps().uses_coop().then_some(gpu)
}

/// An engine for the default model on a GPU.
pub(crate) fn default_engine() -> EngineBuilder {
    Engine::builder(Source::Default).device(DeviceChoice::Gpu(None))
}

/// Builds an engine; panics on errors.
pub(crate) fn build(builder: EngineBuilder) -> Engine {
    block_on(builder.build()).unwrap_or_else(|e| panic!("the engine: {}", chain(&e)))
}

/// Greedy sampling of `n` tokens.
pub(crate) fn greedy(n: usize) -> GenerateOptions {
    GenerateOptions { sampler: SamplerParams::greedy(), max_tokens: Some(n), ..GenerateOptions::default() }
}

/// The complete answer to a prompt.
pub(crate) fn text(
    engine: &mut Engine,
    prompt: &str,
    options: GenerateOptions,
) -> Result<String, chaski::Error> {
    let mut generation = engine.generate(prompt, options)?;
    let mut out = String::new();
    while let Some(piece) = block_on(generation.next())? {
        out.push_str(&piece.text);
    }
    Ok(out)
}

/// An error with all its causes.
pub(crate) fn chain(e: &dyn std::error::Error) -> String {
    let mut out = e.to_string();
    let mut cause = e.source();
    while let Some(c) = cause {
        out.push_str(": ");
        out.push_str(&c.to_string());
        cause = c.source();
    }
    out
}
