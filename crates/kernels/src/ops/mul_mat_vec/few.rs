//! `mul_mat_few`: a matrix times two to four columns, on devices whose subgroups have one size.
//!
//! `mul_mat_vec` keeps x in registers and reads many rows with it, which leaves registers for few columns, and each
//! team rounds x for itself. Here a workgroup rounds a chunk of all columns to workgroup memory, and subgroups read it
//! from there for a few rows at a time.

use super::{ActivationPrecision, Epilogue, MulMatVec};
use crate::affine::Affine;
use crate::call::dispatch;
use crate::caps::{Caps, FeatureSet};
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::format::FORMATS;
use crate::op::{Op, Value, Variant};
use crate::tuning::MatVecTune;

/// The kernels of the operation; [`super::FEW`] is its row, with cases.
pub(super) const KERNELS: Op = Op {
    name: "mul_mat_few",
    template: template!("mul_mat_vec/few.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for act in [ActivationPrecision::I16, ActivationPrecision::I8] {
            for f in FORMATS.iter().filter(|f| f.run > 0) {
                for epi in ["store", "add"] {
                    out.extend(ROWS.map(|rows| variant(f.name, epi, act, rows)));
                }
            }
        }
        out
    },
    cases: Vec::new,
    ggml: &["MUL_MAT"],
    grid: None,
};

/// Columns per step of the grid along z.
const COLS: u32 = 4;
/// Rows per subgroup, of small and of large matrices: many small subgroups keep the device busy, large ones read x less
/// often.
const ROWS: [u32; 2] = [2, 4];
/// Rows of a large matrix (measured on an H100: 4 rows are better for 28,672, 2 for 6,144).
const MANY_ROWS: u32 = 16_384;
/// Threads per workgroup.
const WG: u32 = 256;
/// Smallest subgroup: its chunk of K has whole blocks of 256.
const LEAST_SUBGROUP: u32 = 8;

fn variant(a: &'static str, epi: &'static str, act: ActivationPrecision, rows: u32) -> Variant {
    vec![
        ("a", Value::Word(a)),
        ("epi", Value::Word(epi)),
        ("act", Value::Word(act.word())),
        ("set", Value::Word(FeatureSet::Sg.word())),
        ("rows", Value::Int(rows)),
        ("cols", Value::Int(COLS)),
    ]
}

/// The product, if this kernel applies. It is not part of the package for browsers.
pub(crate) fn columns(call: &MulMatVec, caps: &Caps) -> Option<Result<Dispatch, DispatchError>> {
    let epi = match call.epilogue {
        Epilogue::Store | Epilogue::Add => call.epilogue.word(),
        Epilogue::Glu(_) | Epilogue::RopeKv(_) => return None,
    };
    let columns = call.columns?;
    let act = call.act.unwrap_or_else(|| MatVecTune::shipped(caps).0.act);
    let subgroup = match caps.subgroup {
        Some((min, max)) if min == max && min >= LEAST_SUBGROUP && caps.set() == FeatureSet::Sg => min,
        _ => return None,
    };
    let format = call.w.format;
    let plain =
        act != ActivationPrecision::F32 && format.run > 0 && call.w2.is_none() && call.experts.is_none();
    if cfg!(target_arch = "wasm32") || caps.alone || !plain || call.norm.is_some() || columns.ldx % 4 != 0 {
        return None;
    }
    let rows = ROWS[usize::from(call.w.n_row >= MANY_ROWS && ROWS[1] * COLS <= subgroup)];
    let layout = call.w.layout();
    let wg = WG.min(caps.max_threads) / subgroup * subgroup;
    let runs = subgroup * format.unit as u32 / 16;
    let n_byte = COLS * runs * if act == ActivationPrecision::I16 { 40 } else { 24 } + 4 * format.book();
    if wg == 0 || n_byte > caps.max_workgroup_bytes {
        return None;
    }
    let mut constants = vec![
        ("WG", wg.into()),
        ("S", subgroup.into()),
        ("RUNS", runs.into()),
        ("UNITS", layout.units_per_row.into()),
        ("K", call.w.n_col.into()),
        ("M", call.w.n_row.into()),
        ("LDX", columns.ldx.into()),
        ("LDY", columns.ldy.into()),
        ("Y0", call.y0.into()),
    ];
    constants.extend(layout.plane_constants(["w_p1", "w_p2", "w_p3", "w_table"]));
    constants.extend(call.affine.into_iter().flat_map(Affine::of_many));
    let n_group = call.w.n_row.div_ceil(wg / subgroup * rows);
    let [x, y] = fold(n_group, caps.max_groups);
    let why = format!("subgroups of {subgroup}, {rows} rows each; x in {}, once per workgroup", act.word());
    let values: Vec<Value> = variant(format.name, epi, act, rows).iter().map(|(_, v)| *v).collect();
    Some(dispatch(&KERNELS, &values, constants, [x, y, columns.n_col.div_ceil(COLS)], why))
}
