//! Test cases of operations for JavaScript: the dispatches, the contents of buffers, and the comparison with the
//! reference.
//!
//! Tests of the npm package run them with plain WebGPU, in a browser and with Dawn in Node. Inputs, references and
//! tolerances are those of the native tests (`crates/runtime/tests/ops`); pages load none of this.

use std::collections::BTreeMap;
use std::rc::Rc;

use chaski_kernels::grid::{Params, expand, sample};
use chaski_kernels::{
    Access, Binding, Caps, Case, Dialect, DispatchError, FeatureSet, OPS, Op, PlacedStep, Rng,
};
use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// Called once when the module is loaded: logs panics with their location to the console.
#[cfg(target_arch = "wasm32")]
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|info| console_error(&info.to_string())));
}

/// Random cases per operation.
const RANDOM: u64 = 40;
/// Random numbers per random case; zeros follow.
const CHOICES: usize = 160;

/// Features and limits of a device, in WebGPU's terms, and the subset to use.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Device {
    set: String,
    f16: bool,
    /// Smallest and largest size.
    subgroups: Option<(u32, u32)>,
    software: bool,
    max_threads: u32,
    max_workgroup_bytes: u32,
    max_binding_bytes: u64,
    max_groups: u32,
}

impl Device {
    /// The capabilities as an engine in a browser sees them.
    fn caps(&self, set: FeatureSet) -> Caps {
        let subgroup = self.subgroups.filter(|(min, _)| *min >= 4 && set != FeatureSet::Base);
        Caps {
            subgroup,
            f16: self.f16,
            software: self.software,
            alone: set == FeatureSet::Alone && subgroup.is_some(),
            max_threads: self.max_threads,
            max_workgroup_bytes: self.max_workgroup_bytes,
            max_binding_bytes: self.max_binding_bytes,
            max_groups: self.max_groups,
            ..Caps::base()
        }
    }
}

/// A browser's feature set, by name.
fn feature_set(word: &str) -> Result<FeatureSet, String> {
    let all = [FeatureSet::Base, FeatureSet::Sg, FeatureSet::Alone];
    all.into_iter()
        .find(|set| set.word() == word)
        .ok_or_else(|| format!("no feature set `{word}` in browsers"))
}

/// Names of the operations that have their own cases in this feature set, as JSON.
///
/// # Errors
/// An unknown feature set.
#[wasm_bindgen]
pub fn operations(set: &str) -> Result<String, String> {
    let set = feature_set(set)?;
    let names: Vec<&str> = OPS.iter().filter(|op| op.is_for(set)).map(|op| op.name).collect();
    Ok(json!(names).to_string())
}

/// Origin of a case.
#[derive(Clone, Debug)]
enum Source {
    /// The operation's own table.
    Table(usize),
    /// A grid in ggml's notation.
    Grid(Params),
    /// A random seed.
    Random(u64),
}

/// The cases of an operation, in the order in which they should run.
#[wasm_bindgen]
pub struct OpCases {
    op: &'static Op,
    table: Vec<Rc<Case>>,
    sources: Vec<Source>,
    n_all: usize,
    left_out: BTreeMap<&'static str, usize>,
}

#[wasm_bindgen]
impl OpCases {
    /// The cases of an operation, or a sample of them.
    ///
    /// # Errors
    /// No such operation.
    #[wasm_bindgen(constructor)]
    pub fn new(op: &str, full: bool) -> Result<OpCases, String> {
        let op = OPS.iter().find(|o| o.name == op).ok_or_else(|| format!("no operation `{op}`"))?;
        let table: Vec<Rc<Case>> = (op.cases)().into_iter().map(Rc::new).collect();
        let mut left_out = BTreeMap::new();
        let mut grid: Vec<Params> = match &op.grid {
            Some(grid) => expand(grid.text).map_err(|e| e.to_string())?,
            None => Vec::new(),
        };
        grid.retain(|p| {
            let why = p.left_out();
            why.into_iter().for_each(|why| *left_out.entry(why).or_default() += 1);
            why.is_none()
        });
        let has_random = op.grid.as_ref().is_some_and(|grid| grid.random.is_some());
        let random = 0..if has_random { RANDOM } else { 0 };
        let n_all = table.len() + grid.len() + random.clone().count();
        if !full {
            grid = sample(grid);
        }
        // Interleaved, so that a time limit leaves some of each kind.
        let sources = take_turns([
            shuffled((0..table.len()).map(Source::Table)),
            shuffled(grid.into_iter().map(Source::Grid)),
            random.map(Source::Random).collect(),
        ]);
        Ok(OpCases { op, table, sources, n_all, left_out })
    }

    /// Number of cases to run.
    #[wasm_bindgen(getter)]
    pub fn length(&self) -> usize {
        self.sources.len()
    }

    /// Number of supported cases.
    #[wasm_bindgen(getter)]
    pub fn all(&self) -> usize {
        self.n_all
    }

    /// Unsupported kinds of cases and their counts, as JSON.
    #[wasm_bindgen(getter)]
    pub fn left_out(&self) -> String {
        json!(self.left_out).to_string()
    }

    /// Builds a case with its inputs and reference; `None` if it exceeds the largest binding.
    ///
    /// # Errors
    /// A case that cannot be built.
    pub fn make(&self, i: usize, max_binding_bytes: f64) -> Result<Option<MadeCase>, String> {
        let case = match self.sources.get(i).ok_or_else(|| format!("no case {i}"))? {
            Source::Table(i) => self.table[*i].clone(),
            Source::Grid(p) => {
                if p.n_byte() as f64 > max_binding_bytes {
                    return Ok(None);
                }
                let grid = self.op.grid.ok_or("an operation without a grid")?;
                Rc::new((grid.case)(p).map_err(|e| format!("{p}: {e}"))?)
            }
            Source::Random(seed) => {
                let mut rng = Rng::new(*seed);
                let choices = (0..CHOICES).map(|_| rng.bits() as u32).collect();
                let random =
                    self.op.grid.and_then(|g| g.random).ok_or("an operation without random cases")?;
                Rc::new(random(&mut Rng::of_choices(choices)))
            }
        };
        Ok(Some(MadeCase { op: self.op, case }))
    }
}

/// A case with its inputs and reference.
#[wasm_bindgen]
pub struct MadeCase {
    op: &'static Op,
    case: Rc<Case>,
}

#[wasm_bindgen]
impl MadeCase {
    /// Shape and variant, for messages.
    #[wasm_bindgen(getter)]
    pub fn label(&self) -> String {
        self.case.label.clone()
    }

    /// The dispatches of the case on a device, given as JSON; `None` if the device lacks a feature that the case needs.
    ///
    /// # Errors
    /// A case that should run there but has no kernel, or a kernel of another operation.
    pub fn on(&self, device: &str) -> Result<Option<ReadyCase>, String> {
        let device: Device = serde_json::from_str(device).map_err(|e| format!("the device: {e}"))?;
        let steps = match self.case.placed(&device.caps(feature_set(&device.set)?)) {
            Ok(steps) => steps,
            Err(DispatchError::Lacks { .. }) => return Ok(None),
            Err(e) => return Err(e.to_string()),
        };
        let kernel = steps.last().map_or("", |s| s.step.dispatch.kernel.name);
        if self.op.set().is_some() && !kernel.starts_with(self.op.name) {
            return Err(format!("{kernel} would run instead of it"));
        }
        Ok(Some(ReadyCase { case: self.case.clone(), steps }))
    }
}

/// Shuffles deterministically, depending on the number of cases alone.
fn shuffled(all: impl Iterator<Item = Source>) -> Vec<Source> {
    let mut all: Vec<(u64, Source)> =
        all.enumerate().map(|(i, source)| (Rng::new(i as u64).bits(), source)).collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, source)| source).collect()
}

/// Round-robin over the lists until all are empty.
fn take_turns<T, const N: usize>(lists: [Vec<T>; N]) -> Vec<T> {
    let mut lists = lists.map(Vec::into_iter);
    let mut out = Vec::new();
    loop {
        let n = out.len();
        out.extend(lists.iter_mut().filter_map(Iterator::next));
        if out.len() == n {
            return out;
        }
    }
}

/// A case and its dispatches on a device.
#[wasm_bindgen]
pub struct ReadyCase {
    case: Rc<Case>,
    steps: Vec<PlacedStep>,
}

#[wasm_bindgen]
impl ReadyCase {
    /// Equal for cases that run the same kernels on the same bytes.
    #[wasm_bindgen(getter)]
    pub fn fingerprint(&self) -> String {
        format!("{:016x}", self.case.fingerprint(&self.steps))
    }

    /// The dispatches in order: kernel, constants, workgroups and buffer indices by binding, as JSON.
    #[wasm_bindgen(getter)]
    pub fn steps(&self) -> String {
        let buffer = |(b, i): &(Binding, usize)| json!({ "binding": b.index, "write": b.access == Access::ReadWrite, "buffer": i });
        let steps: Vec<Value> = self
            .steps
            .iter()
            .map(|PlacedStep { step, buffers }| {
                let d = &step.dispatch;
                let constants: serde_json::Map<String, Value> =
                    d.constants.iter().map(|(name, v)| ((*name).to_owned(), json!(v))).collect();
                json!({
                    "kernel": d.kernel.name,
                    "constants": constants,
                    "grid": d.grid,
                    "buffers": buffers.iter().map(buffer).collect::<Vec<Value>>(),
                })
            })
            .collect();
        json!(steps).to_string()
    }

    /// WGSL of a step's kernel, in the browsers' dialect.
    pub fn text(&self, step: usize) -> String {
        self.steps.get(step).map_or_else(String::new, |s| s.step.dispatch.kernel.text(Dialect::Web))
    }

    /// For each buffer, true if it has an expected result, as JSON.
    #[wasm_bindgen(getter)]
    pub fn buffers(&self) -> String {
        json!(self.case.buffers.iter().map(|b| b.expect.is_some()).collect::<Vec<bool>>()).to_string()
    }

    /// Initial contents of a buffer, with sentinels behind.
    pub fn bytes(&self, buffer: usize) -> Vec<u8> {
        self.case.buffers[buffer].marked()
    }

    /// Describes the mismatch of a buffer's final contents, if any.
    pub fn check(&self, buffer: usize, found: &[u8]) -> Option<String> {
        self.case.buffers[buffer].check(found).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = r#"{"set": "SET", "f16": true, "subgroups": [4, 4], "software": true, "maxThreads": 256,
        "maxWorkgroupBytes": 16384, "maxBindingBytes": 134217728, "maxGroups": 65535}"#;

    #[test]
    fn cases_are_those_of_the_feature_set() {
        for (set, op, kernel) in
            [("sg", "rms_norm", "rms_norm."), ("alone", "mul_mat_alone", "mul_mat_alone.")]
        {
            assert!(operations(set).expect("a set").contains(&format!("\"{op}\"")));
            let cases = OpCases::new(op, false).expect("an operation");
            assert!(cases.all() >= cases.length() && cases.length() > 0);
            let case = cases.make(0, 1e9).expect("a case").expect("a small one");
            let case = case.on(&DEVICE.replace("SET", set)).expect("a kernel").expect("one that runs");
            let steps: Value = serde_json::from_str(&case.steps()).expect("JSON");
            assert!(steps[0]["kernel"].as_str().is_some_and(|k| k.starts_with(kernel)), "{steps}");
            assert!(case.text(0).contains("fn main("));
        }
        assert!(operations("coop").is_err() && OpCases::new("no", true).is_err());
    }

    #[test]
    fn an_output_that_nothing_wrote_is_wrong() {
        let cases = OpCases::new("rms_norm", false).expect("an operation");
        let case = cases.make(0, 1e9).expect("a case").expect("a small one");
        let case = case.on(&DEVICE.replace("SET", "base")).expect("a kernel").expect("one that runs");
        let expected: Vec<bool> = serde_json::from_str(&case.buffers()).expect("JSON");
        assert!(expected.iter().enumerate().any(|(i, e)| *e && case.check(i, &case.bytes(i)).is_some()));
    }

    #[test]
    fn lists_take_turns() {
        assert_eq!(take_turns([vec![1, 2, 3], vec![], vec![4]]), [1, 4, 2, 3]);
    }
}
