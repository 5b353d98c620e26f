//! `mul_mat_vec`: a matrix times one column, fused with neighbouring operations of a layer.

pub(crate) mod alone;
pub(crate) mod cases;
mod column_cases;
mod expert_cases;
pub(crate) mod few;
pub mod reference;
mod rounded_cases;
mod split;

pub(crate) use expert_cases::choose;

pub use crate::act::ActivationPrecision;

use self::split::{Job, Split};
use crate::affine::{Affine, AffineBy};
use crate::call::dispatch;
use crate::caps::{Caps, FeatureSet};
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::format::{FORMATS, Format, Matrix};
use crate::kv::RopeKv;
use crate::op::{Op, Value, Variant};
use crate::ops::glu;
use crate::route::Experts;
use crate::tuning::{MatVecTune, ProductClass};

/// The row of this operation.
pub const OP: Op = Op {
    name: "mul_mat_vec",
    template: template!("mul_mat_vec/mul_mat_vec.wgsl.jinja"),
    variants,
    cases: Op::cases(|| {
        let more = expert_cases::cases().into_iter().chain(column_cases::cases());
        cases::cases().into_iter().chain(more).chain(rounded_cases::cases()).collect()
    }),
    ggml: &["MUL_MAT", "MUL_MAT_ID"],
    grid: None,
};

/// The row of `mul_mat_few`. Its reference is that of `mul_mat_vec`, column by column.
pub const FEW: Op = Op { cases: Op::cases(column_cases::few_cases), ..few::KERNELS };

/// Pairs of formats (of q and k, v) that differ within a layer of one of llama.cpp's mixes, including fallbacks for
/// rows that are not whole blocks of 256; a test walks the mixes. The last three occur in no mix.
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
pub(crate) fn pairs() -> impl Iterator<Item = [&'static Format; 2]> {
    let find = |name: &str| FORMATS.iter().find(|f| f.name == name);
    QKV_PAIRS.iter().filter_map(move |(a, b)| Some([find(a)?, find(b)?]))
}

fn variants() -> Vec<Variant> {
    let mut out = Vec::new();
    for set in [FeatureSet::Base, FeatureSet::Sg] {
        for act in ActivationPrecision::ALL {
            for f in FORMATS.iter().filter(|f| act == ActivationPrecision::F32 || f.run > 0) {
                for (epi, rows) in [("store", 4), ("add", 2), ("glu", glu_rows(f)), ("rope_kv", 4)] {
                    out.push(variant(f.name, "none", epi, act, rows, set, "none", 1));
                }
                if set == FeatureSet::Sg {
                    for (epi, rows) in [("store", 8), ("add", 4)] {
                        out.push(variant(f.name, "none", epi, act, rows, set, "none", 1));
                    }
                }
                for epi in ["store", "add"] {
                    out.push(variant(f.name, "none", epi, act, 2, set, "none", FewColumns::AT_ONCE));
                }
                for (ids, epi, rows) in
                    [("each", "store", 4), ("each", "glu", 4), ("sum", "store", 2), ("sum", "add", 2)]
                {
                    out.push(variant(f.name, "none", epi, act, rows, set, ids, 1));
                }
            }
            for [a, b] in pairs().filter(|p| act == ActivationPrecision::F32 || p.iter().all(|f| f.run > 0)) {
                out.push(variant(a.name, b.name, "rope_kv", act, 4, set, "none", 1));
            }
        }
    }
    out
}

/// Rows of gate and up per team step. Eight rows of plain values gain 3 % of a token of an 8B model in F16 on an H200;
/// other formats run out of registers.
fn glu_rows(format: &Format) -> u32 {
    if format.run == 0 { 8 } else { 4 }
}

fn variant(
    a: &'static str,
    b: &'static str,
    epi: &'static str,
    act: ActivationPrecision,
    rows: u32,
    set: FeatureSet,
    ids: &'static str,
    cols: u32,
) -> Variant {
    vec![
        ("a", Value::Word(a)),
        ("b", Value::Word(b)),
        ("epi", Value::Word(epi)),
        ("act", Value::Word(act.word())),
        ("set", Value::Word(set.word())),
        ("rows", Value::Int(rows)),
        ("ids", Value::Word(ids)),
        ("cols", Value::Int(cols)),
    ]
}

/// Epilogues: how the products are stored.
#[derive(Clone, Copy, Debug)]
pub enum Epilogue {
    /// y[y0 + row] = r
    Store,
    /// y[y0 + row] += r
    Add,
    /// Rows are gate, then up: `y[i] = act(gate_i) * up_i`.
    Glu(chaski_graph::Act),
    /// Rows are q, k, v: q gets RoPE and goes to y; k with RoPE, and v, go to the KV cache.
    RopeKv(RopeKv),
}

impl Epilogue {
    /// The name in kernel names.
    pub const fn word(&self) -> &'static str {
        match self {
            Epilogue::Store => "store",
            Epilogue::Add => "add",
            Epilogue::Glu(_) => "glu",
            Epilogue::RopeKv(_) => "rope_kv",
        }
    }
}

/// Several columns of a product with [`Epilogue::Store`] or [`Epilogue::Add`], without a norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FewColumns {
    /// Maximum number of columns, 1 to [`FewColumns::MAX`]; the step buffer holds the actual number.
    pub n_col: u32,
    /// Column stride of x, in values, a multiple of 4.
    pub ldx: u32,
    /// Column stride of y, in values.
    pub ldy: u32,
}

impl FewColumns {
    /// Tiles are faster for more columns.
    pub const MAX: u32 = 8;

    /// Columns per team step, limited by the registers that x takes. With eight columns, products of Q4_K took four
    /// times as long on an H200.
    const AT_ONCE: u32 = 4;
}

/// Experts of a product, and the destination of its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatVecExperts {
    /// The experts of the matrix.
    pub experts: Experts,
    /// Slot stride of x, in values; 0 if all slots share one column.
    pub ldx: u32,
    /// Destination of the products.
    pub slots: Slots,
}

/// Destination of the products of a column's experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// Each goes to its own column of y.
    Each {
        /// Slot stride of y, in values.
        ldy: u32,
    },
    /// Their sum, weighted by the router: [`Epilogue::Store`] or [`Epilogue::Add`].
    Sum,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct MulMatVec {
    /// The matrix; with [`Epilogue::Glu`] its rows are gate and up.
    pub w: Matrix,
    /// More rows in another format (v after q and k).
    pub w2: Option<Matrix>,
    /// The matrix holds experts, of which the product uses those of the column.
    pub experts: Option<MatVecExperts>,
    /// Layout of several columns of x and y; `None`: one column.
    pub columns: Option<FewColumns>,
    /// Normalise x with `aux[0..K]` and this epsilon first.
    pub norm: Option<f32>,
    /// Scales and biases in `aux`. By column they need [`Epilogue::Store`] or [`Epilogue::Add`] without a sum of
    /// slots.
    pub affine: Option<Affine>,
    /// Epilogue.
    pub epilogue: Epilogue,
    /// Offset of row 0 in y.
    pub y0: u32,
    /// x was rounded by a call with [`Self::emit`] to the same precision, times the norm's weights if there is a
    /// norm. It begins at this word of its buffer, a multiple of 4. `None`: x is f32.
    pub rounded: Option<u32>,
    /// Rounds the result for the next product ([`Self::can_emit`]), to [`rounded_words`] words of y from this one on,
    /// a multiple of 4. With [`Epilogue::Add`], y keeps the f32 result as well, and it is the product with the weights
    /// `aux[0..M]` of a norm that is rounded; with [`Epilogue::Glu`] nothing else is written.
    pub emit: Option<u32>,
    /// Precision of x; `None` leaves it to the tuning. Rounded values have one that the caller knows.
    pub act: Option<ActivationPrecision>,
    /// Tuning; `None` uses the device's shipped default.
    pub tune: Option<MatVecTune>,
}

/// Words of `n` rounded values, a multiple of 16: a run of 16 has two bytes for each, its scale, and sums.
pub const fn rounded_words(n: u32) -> u32 {
    n / RUN * 12
}

/// Values that are rounded with one scale.
const RUN: u32 = 16;

impl MulMatVec {
    /// The product of a matrix with one column of f32, stored from the beginning of y.
    pub const fn new(w: Matrix, epilogue: Epilogue) -> MulMatVec {
        MulMatVec {
            w,
            w2: None,
            experts: None,
            columns: None,
            norm: None,
            affine: None,
            epilogue,
            y0: 0,
            rounded: None,
            emit: None,
            act: None,
            tune: None,
        }
    }

    /// The tuning class of the call.
    pub fn class(&self) -> ProductClass {
        let second = self.w2.map_or(String::new(), |w| format!("+{}", w.format.name));
        ProductClass {
            format: format!("{}{second}", self.w.format.name),
            epilogue: match self.experts {
                None => self.epilogue.word().to_owned(),
                Some(_) => format!("{} by experts", self.epilogue.word()),
            },
            n_row: self.n_row(),
            n_col: self.n_col(),
        }
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the formats have no kernel, [`DispatchError::Shape`] if heads do not divide by 4.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        if cfg!(not(target_arch = "wasm32")) {
            self.check_rounding(caps)?;
        }
        if let Some(dispatch) = alone::column(self, caps) {
            return dispatch;
        }
        let layout = self.w.layout();
        let tune = self.tune.unwrap_or_else(|| MatVecTune::shipped(caps).0);
        let epi = self.epilogue.word();
        let (ids, n_slot) = match self.experts {
            None => ("none", 1),
            Some(MatVecExperts { experts, slots: Slots::Each { .. }, .. }) => ("each", experts.route.n_used),
            Some(MatVecExperts { slots: Slots::Sum, .. }) => ("sum", 1),
        };
        let doubled = tune.doubled && self.can_be_doubled(caps);
        // Rows per step, and rows of y that they produce.
        let (rows, outs) = match self.epilogue {
            Epilogue::Store if doubled => (8, 8),
            Epilogue::Add if doubled => (4, 4),
            Epilogue::Store if ids == "sum" || self.columns.is_some() => (2, 2),
            Epilogue::Store | Epilogue::RopeKv(_) => (4, 4),
            Epilogue::Add => (2, 2),
            Epilogue::Glu(_) if ids == "none" => (glu_rows(self.w.format), glu_rows(self.w.format) / 2),
            Epilogue::Glu(_) => (4, 2),
        };
        let n_row = self.n_row();
        let m = if epi == "glu" { n_row / 2 } else { n_row };
        let plain = self.w.format.run == 0 || self.w2.is_some_and(|w| w.format.run == 0);
        let act = if plain { ActivationPrecision::F32 } else { self.act.unwrap_or(tune.act) };
        let n_batch = m.div_ceil(outs) * n_slot;
        // Columns per step, and number of steps.
        let (cols, n_step) = match &self.columns {
            None => (1, n_slot),
            Some(c) => {
                self.check_columns(c, ids)?;
                (FewColumns::AT_ONCE, c.n_col.div_ceil(FewColumns::AT_ONCE))
            }
        };
        let book = [Some(self.w), self.w2].into_iter().flatten().map(|w| 4 * w.format.book()).sum();
        // Values of x per thread, and units per row.
        let wide = self.w.format.wide_for(act).filter(|_| cols == 1 && self.w2.is_none());
        let (hold, n_unit) = match wide {
            Some(w) => {
                ((self.w.format.block / w.per_block) as u32, layout.blocks_per_row * w.per_block as u32)
            }
            None => (self.w.format.hold(), layout.units_per_row),
        };
        let (rounded, emits) = (self.rounded.is_some(), self.emit.is_some());
        let job = Job { cols, n_col: self.n_col(), hold, n_batch, rows, outs, book, rounded, emits };
        let split = Split::new(caps, &tune, act, &job);
        let mut constants = split.constants(caps, rows * cols);
        if act != ActivationPrecision::F32 {
            constants.extend([("STAGED", f64::from(u8::from(split.staged))), ("RUNS", split.runs().into())]);
        }
        constants.extend(layout.plane_constants(["w_p1", "w_p2", "w_p3", "w_table"]));
        constants.extend([
            ("K", self.n_col().into()),
            ("M", m.into()),
            ("Y0", self.y0.into()),
            ("w_units", n_unit.into()),
        ]);
        let ragged = match &self.experts {
            Some(e) if ids == "sum" => e.ldx != self.w.n_col,
            _ => self.w.n_col % 4 != 0,
        };
        constants.push(("RAGGED", f64::from(u8::from(ragged))));
        if let Some(c) = &self.columns {
            constants.extend([("LDX", c.ldx.into()), ("LDY", c.ldy.into())]);
        }
        // Nothing rounds ahead in browsers.
        let [rounded, emit] =
            [self.rounded, self.emit].map(|at| at.filter(|_| cfg!(not(target_arch = "wasm32"))));
        if let Some(at) = rounded {
            constants.extend([("ROUNDED", 1.0), ("X0", (at / 4).into())]);
        }
        if let Some(at) = emit {
            constants.extend([("EMIT", 1.0), ("Z0", at.into())]);
        }
        if let Some(e) = &self.experts {
            constants.extend(self.expert_constants(e)?);
        }
        constants.extend(self.around(OP.name, self.columns.is_some())?);
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
            "{} threads per row, {rows} rows at once, {} times; x in {}; {from}",
            split.team,
            split.batch * split.passes,
            act.word()
        );
        let b = self.w2.map_or("none", |w| w.format.name);
        let variant = variant(self.w.format.name, b, epi, act, rows, caps.set(), ids, cols);
        let values: Vec<Value> = variant.iter().map(|(_, v)| *v).collect();
        dispatch(&OP, &values, constants, [x, y, n_step], why)
    }

    /// True if the call can round its result, and one with the same format can read that: subgroups are known to have
    /// room for the four threads of a run, and runs are whole.
    pub fn can_emit(&self, caps: &Caps) -> bool {
        let epilogue = matches!(self.epilogue, Epilogue::Add | Epilogue::Glu(_));
        let plain = self.w2.is_none() && self.experts.is_none() && self.columns.is_none();
        let n_row = self.n_result();
        let whole =
            n_row > 0 && n_row % RUN == 0 && !(matches!(self.epilogue, Epilogue::Add) && self.norm.is_some());
        epilogue
            && plain
            && whole
            && Self::can_read_rounded(self.w.format, caps)
            && caps.set() == FeatureSet::Sg
    }

    /// True if a call that can round its result should: the device has threads enough for whole runs.
    pub fn should_emit(&self, caps: &Caps) -> bool {
        self.can_emit(caps) && split::runs_fill(caps, self.n_result())
    }

    /// Results of a column: gate and up make one.
    fn n_result(&self) -> u32 {
        if matches!(self.epilogue, Epilogue::Glu(_)) { self.w.n_row / 2 } else { self.w.n_row }
    }

    /// True if products in a format read rounded values.
    pub fn can_read_rounded(format: &Format, caps: &Caps) -> bool {
        format.run > 0 && !caps.alone && caps.subgroup.is_some_and(|(least, _)| least >= 4)
    }

    fn check_rounding(&self, caps: &Caps) -> Result<(), DispatchError> {
        let formats = [Some(self.w), self.w2].into_iter().flatten().map(|w| w.format);
        let reads = self.rounded.is_none()
            || formats.into_iter().all(|f| Self::can_read_rounded(f, caps))
                && self.experts.is_none()
                && self.columns.is_none();
        let known = self.act.is_some_and(|a| a != ActivationPrecision::F32);
        let emits = self.emit.is_none() || self.can_emit(caps);
        if (self.rounded.is_some() || self.emit.is_some()) && !(reads && emits && known) {
            return Err(DispatchError::Lacks { op: OP.name, what: "rounded activations of this call" });
        }
        Ok(())
    }

    /// True if there are kernels with twice as many rows per step. Without subgroups their reduction trees would not
    /// fit beside a codebook.
    fn can_be_doubled(&self, caps: &Caps) -> bool {
        let plain = self.experts.is_none() && self.columns.is_none() && caps.set() == FeatureSet::Sg;
        plain && self.emit.is_none() && matches!(self.epilogue, Epilogue::Store | Epilogue::Add)
    }

    /// Variations of a choice for the tuner: half and twice the threads, smaller teams, twice the rows, the other
    /// precision.
    pub fn neighbours(&self, tune: MatVecTune, caps: &Caps) -> Vec<MatVecTune> {
        let mut out = Vec::new();
        for fill in [tune.fill / 4, tune.fill / 2, tune.fill * 2, tune.fill * 4] {
            out.push(MatVecTune { fill: fill.clamp(256, 1 << 20), ..tune });
        }
        for team in [64, 128, 256, 512] {
            out.push(MatVecTune { team: team.min(caps.max_threads), ..tune });
        }
        if self.can_be_doubled(caps) {
            out.push(MatVecTune { doubled: !tune.doubled, ..tune });
        }
        if self.act.is_none() && self.w.format.run > 0 {
            let act = if tune.act == ActivationPrecision::F32 {
                ActivationPrecision::I16
            } else {
                ActivationPrecision::F32
            };
            out.push(MatVecTune { act, ..tune });
        }
        out.retain(|t| *t != tune);
        out
    }

    /// Rows of the product: all, or those of one expert.
    pub(crate) fn n_row(&self) -> u32 {
        let all = self.w.n_row + self.w2.map_or(0, |w| w.n_row);
        self.experts.map_or(all, |e| e.experts.n_row)
    }

    /// Values per row: of the matrix, or of the concatenated rows of all slots.
    pub(crate) fn n_col(&self) -> u32 {
        match self.experts {
            Some(MatVecExperts { experts, ldx, slots: Slots::Sum }) => experts.route.n_used * ldx,
            _ => self.w.n_col,
        }
    }

    fn check_columns(&self, c: &FewColumns, ids: &str) -> Result<(), DispatchError> {
        let plain = matches!(self.epilogue, Epilogue::Store | Epilogue::Add) && self.w2.is_none();
        let wrong = |what, expected: &str, found: u32| {
            let expected = expected.to_owned();
            Err(DispatchError::Shape { op: OP.name, what, expected, found: found.into() })
        };
        if !plain || self.norm.is_some() || ids != "none" || c.n_col > FewColumns::MAX {
            return wrong("columns", "at most 8, and 1 with a norm, experts or another epilogue", c.n_col);
        }
        if c.ldx % 4 != 0 {
            return wrong("column stride of x", "a multiple of 4", c.ldx);
        }
        Ok(())
    }

    /// Scales and biases by column are those of LoRAs, whose products have no other epilogue.
    fn check_affine(&self, op: &'static str, affine: Affine) -> Result<(), DispatchError> {
        let is_sum = self.experts.is_some_and(|e| matches!(e.slots, Slots::Sum));
        let plain = matches!(self.epilogue, Epilogue::Store | Epilogue::Add) && !is_sum;
        match affine.by {
            AffineBy::Column if !plain => {
                Err(DispatchError::Lacks { op, what: "scales by column of a fused product" })
            }
            AffineBy::Column | AffineBy::Row => Ok(()),
        }
    }

    /// Constants of the operations fused before and after the product, common to all kernels of one or `many` columns.
    ///
    /// # Errors
    /// [`DispatchError`] for heads that RoPE cannot process four channels per thread, and for a cache of blocks.
    pub(crate) fn around(
        &self,
        op: &'static str,
        many: bool,
    ) -> Result<Vec<(&'static str, f64)>, DispatchError> {
        let mut constants = Vec::new();
        if let Epilogue::Glu(act) = self.epilogue {
            constants.extend(glu::constants(act));
        }
        if let Some(eps) = self.norm {
            constants.extend([("NORM", 1.0), ("EPS", eps.into())]);
        }
        if let Some(affine) = self.affine {
            self.check_affine(op, affine)?;
            match many {
                true => constants.extend(affine.of_many()),
                false => constants.extend(affine.of_one()),
            }
        }
        if let Epilogue::RopeKv(r) = &self.epilogue {
            r.check(op)?;
            if !r.plain() {
                return Err(DispatchError::Lacks { op, what: "a cache of plain values" });
            }
            constants.extend(r.constants());
        }
        Ok(constants)
    }

    fn expert_constants(&self, e: &MatVecExperts) -> Result<Vec<(&'static str, f64)>, DispatchError> {
        let layout = self.w.layout();
        // Concatenated rows are laid out in units.
        let row = layout.blocks_per_row * self.w.format.block as u32;
        let (ldy, whole) = match e.slots {
            Slots::Each { ldy } => (ldy, e.ldx % 4 == 0),
            Slots::Sum => (0, e.ldx == row),
        };
        let wrong = |what, expected: String, found: u32| {
            Err(DispatchError::Shape { op: OP.name, what, expected, found: found.into() })
        };
        if !whole {
            let expected = format!("{row}, or without a sum over slots a multiple of 4");
            return wrong("values from slot to slot of x", expected, e.ldx);
        }
        if self.w.n_row % e.experts.stride.max(1) != 0 || e.experts.stride < e.experts.n_row {
            let expected = format!("a multiple of the {} of an expert", e.experts.stride);
            return wrong("rows of a matrix of experts", expected, self.w.n_row);
        }
        let route = e.experts.route;
        let by_slot = e.experts.by_slot;
        if by_slot && matches!(e.slots, Slots::Sum) {
            return wrong("slots without a route", "without a sum, which wants weights".into(), route.n_used);
        }
        let by_slot =
            matches!(e.slots, Slots::Each { .. }).then_some(("BY_SLOT", f64::from(u8::from(by_slot))));
        let constants = vec![
            ("E0", e.experts.first.into()),
            ("N_E", e.experts.count(self.w.n_row).into()),
            ("E_ROWS", e.experts.stride.into()),
            ("USED", route.n_used.into()),
            ("W0", route.weights_at().into()),
            ("KX", self.w.n_col.into()),
            ("LDX", e.ldx.into()),
            ("LDY", ldy.into()),
        ];
        Ok(constants.into_iter().chain(by_slot).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ggml_format::{FILE_TYPES, MixCounters, ModelFacts, tensor_type};

    use super::*;

    #[test]
    fn small_models_on_large_devices_do_not_round_ahead() {
        let large = Caps {
            vendor: crate::tuning::vendor::NVIDIA,
            int_dot: true,
            subgroup: Some((32, 32)),
            max_threads: 1024,
            ..Caps::base()
        };
        let software = Caps { software: true, ..large.clone() };
        let format = FORMATS.iter().find(|f| f.name == "q8_0").expect("a format of products");
        for (n_row, caps, is_worth_it) in
            [(1024, &large, false), (2048, &large, true), (16384, &large, true), (64, &software, true)]
        {
            let product = MulMatVec::new(Matrix { format, n_row, n_col: 1024 }, Epilogue::Add);
            assert!(product.can_emit(caps), "{n_row} rows");
            assert_eq!(product.should_emit(caps), is_worth_it, "{n_row} rows");
        }
    }

    /// Formats of q, k and v in every layer of every mix, for each kind of model that a mix distinguishes.
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
                is_falcon: false,
                has_importance: kind / 12 == 1,
            };
            for file in FILE_TYPES {
                let mut counters = MixCounters::default();
                for layer in 0..facts.n_layer {
                    let mut ty = |part: &str| {
                        let name = format!("blk.{layer}.attn_{part}.weight");
                        tensor_type(file.file_type, &name, &[n_per_row, 512], &facts, &mut counters)
                    };
                    // In the order in which a mix counts them. A file of q1_0 requires rows of 128.
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

    /// Pairs that occur in no mix.
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
    fn scales_by_column_are_refused_where_a_kernel_has_none() {
        let f = FORMATS.iter().find(|f| f.name == "f16").expect("a format of the table");
        let w = Matrix { format: f, n_row: 8, n_col: 64 };
        let route = crate::route::Route { n_expert: 2, n_used: 2, n_col: 1, tile: 64 };
        let experts = Experts { route, first: 0, n_row: 4, stride: 4, by_slot: false };
        let by = |slots| Some(MatVecExperts { experts, ldx: 64, slots });
        let gated = MulMatVec::new(w, Epilogue::Glu(chaski_graph::Act::Swiglu));
        let store = MulMatVec::new(w, Epilogue::Store);
        let sum = MulMatVec { experts: by(Slots::Sum), ..store };
        let each = MulMatVec { experts: by(Slots::Each { ldy: 4 }), ..store };
        for (call, can) in [(gated, false), (sum, false), (each, true), (store, true)] {
            for caps in [Caps::base(), Caps { alone: true, ..Caps::base() }] {
                let found = |by| MulMatVec { affine: Some(Affine { at: 0, by }), ..call }.dispatch(&caps);
                assert!(found(AffineBy::Row).is_ok(), "{call:?}");
                let by_column = found(AffineBy::Column);
                let is_refused = matches!(by_column, Err(DispatchError::Lacks { .. }));
                assert!(if can { by_column.is_ok() } else { is_refused }, "{call:?}: {by_column:?}");
            }
        }
    }

    #[test]
    fn workgroup_memory_fits_the_least_that_a_device_may_have() {
        for subgroup in [None, Some((8, 32)), Some((32, 32)), Some((4, 64))] {
            let caps = Caps { subgroup, ..Caps::base() };
            let (shipped, _) = MatVecTune::shipped(&caps);
            for (act, fill) in [ActivationPrecision::F32, ActivationPrecision::I16, ActivationPrecision::I8]
                .into_iter()
                .flat_map(|a| [256, 1 << 11, shipped.fill, 1 << 20].map(|f| (a, f)))
            {
                let tune = MatVecTune { fill, ..shipped };
                for n_col in [64, 256, 2048, 4096, 8192, 14336, 53248] {
                    for (n_batch, rows, outs, cols) in [
                        (1, 4, 4, 1),
                        (1024, 2, 2, 1),
                        (7168, 4, 2, 1),
                        (3584, 8, 4, 1),
                        (64128, 4, 4, 1),
                        (512, 8, 8, 1),
                        (32064, 8, 8, 1),
                        (1, 2, 2, 8),
                        (2048, 2, 2, 4),
                    ] {
                        // Without subgroups only plain formats, which have no codebook, take eight rows.
                        let any = rows < 8 || subgroup.is_some();
                        let books = [0, 4096, 6144].into_iter().filter(|book| any || *book == 0);
                        for (book, hold) in books.flat_map(|b| [32, 85, 128].map(|hold| (b, hold))) {
                            let (rounded, emits) = (false, false);
                            let job = Job { n_col, hold, n_batch, rows, outs, cols, book, rounded, emits };
                            let split = Split::new(&caps, &tune, act, &job);
                            let n_byte = split.n_byte(&caps, act, rows, cols) + book;
                            assert!(split.team >= outs * cols * split.batch.min(1));
                            assert!(n_byte <= 16384, "{subgroup:?} {act:?} {n_col}: {n_byte} bytes");
                            assert!(
                                split.wg <= caps.max_threads && split.team * split.passes * hold >= n_col
                            );
                        }
                    }
                }
            }
        }
    }
}
