//! `mul_mat_vec`: a matrix times one column, with what stands before and after it in a layer fused.

mod cases;
pub mod reference;

use crate::caps::{Caps, FeatureSet};
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::format::{FORMATS, Format, Matrix};
use crate::kv::RopeKv;
use crate::op::{Op, Value, Variant, dispatch};
use crate::rope::RopePairing;
use crate::tuning::MatVecTune;

/// The row of this operation.
pub const OP: Op = Op {
    name: "mul_mat_vec",
    template: include_str!("mul_mat_vec.wgsl.jinja"),
    variants,
    cases: cases::cases,
    ggml: &["MUL_MAT"],
    grid: None,
};

/// Formats of (q and k, v) that differ in a layer of one of llama.cpp's mixes, among them those for rows that are no
/// whole blocks of 256; a test walks the mixes. The last three no mix makes.
pub static QKV_PAIRS: &[(&str, &str)] = &[
    ("iq1_m", "q2_K"),
    ("iq1_m", "q4_K"),
    ("iq1_s", "q2_K"),
    ("iq1_s", "q4_K"),
    ("iq2_s", "iq3_s"),
    ("iq2_s", "iq3_xxs"),
    ("iq2_s", "q4_K"),
    ("iq2_s", "q5_K"),
    ("iq2_xs", "iq3_s"),
    ("iq2_xs", "q2_K"),
    ("iq2_xs", "q4_K"),
    ("iq2_xxs", "q2_K"),
    ("iq2_xxs", "q4_K"),
    ("iq3_s", "q4_K"),
    ("iq3_s", "q5_K"),
    ("iq3_xxs", "iq3_s"),
    ("iq3_xxs", "q4_K"),
    ("iq3_xxs", "q5_K"),
    ("iq4_nl", "q4_0"),
    ("iq4_nl", "q5_0"),
    ("iq4_nl", "q5_1"),
    ("iq4_nl", "q5_K"),
    ("iq4_xs", "q5_K"),
    ("q2_K", "q3_K"),
    ("q2_K", "q4_K"),
    ("q2_K", "q5_K"),
    ("q3_K", "q4_K"),
    ("q3_K", "q5_K"),
    ("q4_0", "q5_0"),
    ("q4_0", "q5_1"),
    ("q4_K", "q5_K"),
    ("q4_K", "q6_K"),
    ("q5_0", "q5_1"),
    ("q5_0", "q8_0"),
    ("q5_1", "q8_0"),
    ("q5_K", "q6_K"),
    ("q4_K", "q8_0"),
    ("q4_0", "q6_K"),
    ("f16", "f32"),
];

/// The pairs whose formats the device reads.
fn pairs() -> impl Iterator<Item = [&'static Format; 2]> {
    let find = |name: &str| FORMATS.iter().find(|f| f.name == name);
    QKV_PAIRS.iter().filter_map(move |(a, b)| Some([find(a)?, find(b)?]))
}

fn variants() -> Vec<Variant> {
    let mut out = Vec::new();
    for set in [FeatureSet::Base, FeatureSet::Sg] {
        for act in [Act::F32, Act::I16, Act::I8] {
            for f in FORMATS.iter().filter(|f| act == Act::F32 || f.run > 0) {
                for (epi, rows) in [("store", 4), ("add", 2), ("glu", 4), ("rope_kv", 4)] {
                    out.push(variant(f.name, "none", epi, act, rows, set));
                }
            }
            for [a, b] in pairs().filter(|p| act == Act::F32 || p.iter().all(|f| f.run > 0)) {
                out.push(variant(a.name, b.name, "rope_kv", act, 4, set));
            }
        }
    }
    out
}

fn variant(
    a: &'static str,
    b: &'static str,
    epi: &'static str,
    act: Act,
    rows: u32,
    set: FeatureSet,
) -> Variant {
    vec![
        ("a", Value::Word(a)),
        ("b", Value::Word(b)),
        ("epi", Value::Word(epi)),
        ("act", Value::Word(act.word())),
        ("set", Value::Word(set.word())),
        ("rows", Value::Int(rows)),
    ]
}

/// How x is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// As it is.
    F32,
    /// In 16 bits with a scale for each run, where the weights are integers with scales; else as it is. As exact as
    /// [`Act::F32`], and faster where the device multiplies four bytes in an instruction.
    I16,
    /// In 8 bits, likewise: as inexact as that is.
    I8,
}

impl Act {
    /// Its word in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            Act::F32 => "f32",
            Act::I16 => "i16",
            Act::I8 => "i8",
        }
    }
}

/// What happens to the products.
#[derive(Clone, Copy, Debug)]
pub enum Epilogue {
    /// y[y0 + row] = r
    Store,
    /// y[y0 + row] += r
    Add,
    /// Rows are gate, then up: `y[i] = silu(gate_i) * up_i`.
    Swiglu,
    /// Rows are q, k, v: q is rotated to y, k rotated and v written to the KV cache.
    RopeKv(RopeKv),
}

impl Epilogue {
    /// Its word in kernel names.
    pub const fn word(&self) -> &'static str {
        match self {
            Epilogue::Store => "store",
            Epilogue::Add => "add",
            Epilogue::Swiglu => "glu",
            Epilogue::RopeKv(_) => "rope_kv",
        }
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct MulMatVec {
    /// The matrix; with [`Epilogue::Swiglu`] its rows are gate and up.
    pub w: Matrix,
    /// More rows in another format (v under q and k).
    pub w2: Option<Matrix>,
    /// Normalise x with `aux[0..K]` and this epsilon first.
    pub norm: Option<f32>,
    /// Word of `aux` where a (scale, bias) for each row begins.
    pub affine: Option<u32>,
    /// What happens to the products.
    pub epilogue: Epilogue,
    /// Index of row 0 in y.
    pub y0: u32,
    /// How x is multiplied; `None` leaves it to the tuning.
    pub act: Option<Act>,
    /// Tuning; `None`: the shipped default of the device.
    pub tune: Option<MatVecTune>,
}

/// What threads must share.
struct Job {
    /// Values a row, and how many of them a thread keeps.
    n_col: u32,
    hold: u32,
    /// Batches of rows, rows that a team takes at once, and outputs that they make.
    n_batch: u32,
    rows: u32,
    outs: u32,
}

/// How threads share the rows of a product.
struct Split {
    wg: u32,
    team: u32,
    passes: u32,
    subs: u32,
    batch: u32,
    staged: bool,
}

impl Split {
    fn new(caps: &Caps, tune: &MatVecTune, act: Act, job: &Job) -> Self {
        let Job { n_col, hold, n_batch, rows, outs } = *job;
        // A thread finishes each output of a batch, and there are up to four.
        let want = n_col.div_ceil(hold).max(4);
        let cap = caps.max_threads.min(tune.team.max(MatVecTune::LEAST_TEAM));
        let (team, passes, subs) = match caps.subgroup {
            // A part of a subgroup, if its size is certain.
            Some((min, _)) if want.next_power_of_two() <= min => (want.next_power_of_two(), 1, 1),
            Some((min, max)) => {
                let cap = cap.max(max) / max * max;
                let passes = want.div_ceil(cap);
                let team = want.div_ceil(passes).next_multiple_of(max);
                (team, passes, team / min)
            }
            None => {
                let team = want.next_power_of_two().min(1 << cap.ilog2());
                (team, want.div_ceil(team), 1)
            }
        };
        // Small teams share a workgroup, which rounds x once for all of them.
        let group = if act == Act::F32 { 128 } else { 256 };
        let wg = team * (group.min(caps.max_threads) / team).max(1);
        // Partial sums stay within 2 KiB, and each thread finishes one output.
        let most = 512 / (wg / team) / subs / rows;
        // Large matrices want more threads at once than small ones, which want few teams that prepare x.
        let fill = match u64::from(n_batch) * u64::from(team) / u64::from(tune.fill) {
            0..=4 => tune.fill,
            5..=48 => 2 * tune.fill,
            _ => 8 * tune.fill,
        };
        let batch = n_batch.div_ceil((fill / team).max(1)).clamp(1, most.min(team / outs).max(1));
        let mut split = Split { wg, team, passes, subs, batch, staged: act != Act::F32 && wg > team };
        // Where memory is short, every team rounds x for itself.
        split.staged &= split.n_byte(caps, act, rows) <= caps.max_workgroup_bytes;
        split
    }

    /// Bytes of workgroup memory.
    fn n_byte(&self, caps: &Caps, act: Act, rows: u32) -> u32 {
        let runs = if self.staged { 2 * self.team } else { 1 };
        let run = match act {
            Act::F32 => 0,
            Act::I16 => 40,
            Act::I8 => 24,
        };
        let part = self.batch * rows * self.subs * (self.wg / self.team);
        let tree = if caps.subgroup.is_some() { 0 } else { rows * self.wg };
        runs * run + 4 * (part + self.wg + 16 + tree)
    }

    /// Workgroups for `n_batch` batches.
    fn groups(&self, n_batch: u32) -> u32 {
        n_batch.div_ceil(self.batch).div_ceil(self.wg / self.team)
    }

    fn constants(&self, caps: &Caps, rows: u32) -> Vec<(&'static str, f64)> {
        let part = self.batch * rows * self.subs * (self.wg / self.team);
        let mut c = vec![
            ("WG", self.wg.into()),
            ("T", self.team.into()),
            ("SUBS", self.subs.into()),
            ("PART", part.into()),
            ("PASSES", self.passes.into()),
            ("BATCH", self.batch.into()),
        ];
        if let Some((_, max)) = caps.subgroup {
            c.push(("WHOLE", f64::from(u8::from(self.team % max == 0))));
        }
        c
    }
}

impl MulMatVec {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the formats have no kernel, [`DispatchError::Shape`] if heads do not divide by 4.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let layout = self.w.layout();
        let tune = self.tune.unwrap_or_else(|| MatVecTune::shipped(caps).0);
        let epi = self.epilogue.word();
        // Rows at once, and rows of y that they make.
        let (rows, outs) = match self.epilogue {
            Epilogue::Store | Epilogue::RopeKv(_) => (4, 4),
            Epilogue::Add => (2, 2),
            Epilogue::Swiglu => (4, 2),
        };
        let n_row = self.w.n_row + self.w2.map_or(0, |w| w.n_row);
        let m = if epi == "glu" { n_row / 2 } else { n_row };
        let plain = self.w.format.run == 0 || self.w2.is_some_and(|w| w.format.run == 0);
        let act = if plain { Act::F32 } else { self.act.unwrap_or(tune.act) };
        let job =
            Job { n_col: self.w.n_col, hold: self.w.format.hold(), n_batch: m.div_ceil(outs), rows, outs };
        let split = Split::new(caps, &tune, act, &job);
        let mut constants = split.constants(caps, rows);
        if act != Act::F32 {
            // Not staged, the arrays are not used.
            let runs = if split.staged { 2 * split.team } else { 1 };
            constants.extend([("STAGED", f64::from(u8::from(split.staged))), ("RUNS", runs.into())]);
        }
        constants.extend(layout.plane_constants(["w_p1", "w_p2", "w_p3", "w_table"]));
        constants.extend([
            ("K", self.w.n_col.into()),
            ("M", m.into()),
            ("Y0", self.y0.into()),
            ("w_units", layout.units_per_row.into()),
            ("RAGGED", f64::from(u8::from(self.w.n_col % 4 != 0))),
        ]);
        if let Some(eps) = self.norm {
            constants.extend([("NORM", 1.0), ("EPS", eps.into())]);
        }
        if let Some(at) = self.affine {
            constants.extend([("AFFINE", 1.0), ("AFF", at.into())]);
        }
        if let Epilogue::RopeKv(r) = &self.epilogue {
            for (what, n) in [("channels a head", r.kv.d), ("rotated channels", r.n_rot)] {
                let whole = if r.pairing == RopePairing::Neox || what == "channels a head" { 4 } else { 2 };
                if n % whole != 0 {
                    let expected = format!("a multiple of {whole}");
                    return Err(DispatchError::Shape { op: OP.name, what, expected, found: n.into() });
                }
            }
            if !r.plain() {
                return Err(DispatchError::Lacks { op: OP.name, what: "a cache of plain values" });
            }
            constants.extend(r.kv.writer_constants());
            constants.extend([
                ("M_Q", r.m_q.into()),
                ("M_K", r.m_k.into()),
                ("N_ROT", r.n_rot.into()),
                ("ROPE_NEOX", f64::from(u8::from(r.pairing == RopePairing::Neox))),
            ]);
        }
        let per_group = split.wg / split.team;
        let mut groups = split.groups((m - self.w2.map_or(0, |w| w.n_row)).div_ceil(outs));
        constants.push(("SLOTS", (groups * per_group).into()));
        if let Some(w2) = &self.w2 {
            let layout = w2.layout();
            let second = split.groups(w2.n_row.div_ceil(outs));
            constants.extend(layout.plane_constants(["w2_p1", "w2_p2", "w2_p3", "w2_table"]));
            constants.extend([
                ("M2", self.w.n_row.into()),
                ("SLOTS2", (second * per_group).into()),
                ("w2_units", layout.units_per_row.into()),
            ]);
            groups += second;
        }
        let [x, y] = fold(groups, caps.max_groups);
        let from = self.tune.map_or_else(|| MatVecTune::shipped(caps).1, |_| "tuned here");
        let why = format!(
            "{} threads a row, {rows} rows at once, {} times; x in {}; {from}",
            split.team,
            split.batch * split.passes,
            act.word()
        );
        let b = self.w2.map_or("none", |w| w.format.name);
        let variant = variant(self.w.format.name, b, epi, act, rows, caps.set());
        let values: Vec<Value> = variant.iter().map(|(_, v)| *v).collect();
        dispatch(OP.name, &values, constants, [x, y, 1], why)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ggml_format::{FILE_TYPES, MixCounters, ModelFacts, tensor_type};

    use super::*;

    /// What q, k and v are in every layer of every mix, for models of every kind that a mix distinguishes.
    fn mixed() -> BTreeSet<(&'static str, &'static str)> {
        let mut pairs = BTreeSet::new();
        // Rows of whole blocks of 256, of 64 and of 32.
        for (n_per_row, kind) in [2048, 960, 2080].into_iter().flat_map(|n| (0..24).map(move |k| (n, k))) {
            let facts = ModelFacts {
                n_layer: 32,
                n_attn_v: 32,
                gqa: [1, 4][kind % 2],
                n_expert: [0, 4, 8][kind / 2 % 3],
                has_output: true,
                is_70b: kind / 6 % 2 == 1,
                has_importance: kind / 12 == 1,
            };
            for file in FILE_TYPES {
                let mut counters = MixCounters::default();
                for layer in 0..facts.n_layer {
                    let mut ty = |part: &str| {
                        let name = format!("blk.{layer}.attn_{part}.weight");
                        tensor_type(file.file_type, &name, &[n_per_row, 512], &facts, &mut counters)
                    };
                    // In the order in which a mix counts them. A file of q1_0 needs rows of 128.
                    let (Ok(Some(k)), Ok(Some(q)), Ok(Some(v))) = (ty("k"), ty("q"), ty("v")) else {
                        continue;
                    };
                    if q == k && q != v {
                        pairs.insert((q.name(), v.name()));
                    }
                }
            }
        }
        pairs
    }

    /// Pairs that no mix makes.
    const OTHER_PAIRS: [(&str, &str); 3] = [("q4_K", "q8_0"), ("q4_0", "q6_K"), ("f16", "f32")];

    #[test]
    fn every_pair_of_a_mix_has_kernels() {
        let listed: BTreeSet<_> = QKV_PAIRS.iter().copied().collect();
        assert_eq!(listed.len(), QKV_PAIRS.len(), "a pair is listed twice");
        let missing: Vec<_> = mixed().difference(&listed).copied().collect();
        assert!(missing.is_empty(), "not in QKV_PAIRS: {missing:?}");
        let needless: Vec<_> =
            listed.difference(&mixed()).filter(|p| !OTHER_PAIRS.contains(p)).copied().collect();
        assert!(needless.is_empty(), "in no mix: {needless:?}");
    }

    #[test]
    fn workgroup_memory_fits_the_least_that_a_device_may_have() {
        for subgroup in [None, Some((8, 32)), Some((32, 32)), Some((4, 64))] {
            let caps = Caps { subgroup, ..Caps::base() };
            let (shipped, _) = MatVecTune::shipped(&caps);
            for (act, fill) in [Act::F32, Act::I16, Act::I8]
                .into_iter()
                .flat_map(|a| [256, 1 << 11, shipped.fill, 1 << 20].map(|f| (a, f)))
            {
                let tune = MatVecTune { fill, ..shipped };
                for n_col in [64, 256, 2048, 4096, 8192, 14336, 53248] {
                    for (n_batch, rows, outs) in [(1, 4, 4), (1024, 2, 2), (7168, 4, 2), (64128, 4, 4)] {
                        let split =
                            Split::new(&caps, &tune, act, &Job { n_col, hold: 32, n_batch, rows, outs });
                        let n_byte = split.n_byte(&caps, act, rows);
                        assert!(n_byte <= 16384, "{subgroup:?} {act:?} {n_col}: {n_byte} bytes");
                        assert!(split.wg <= caps.max_threads && split.team * split.passes * 32 >= n_col);
                    }
                }
            }
        }
    }
}
