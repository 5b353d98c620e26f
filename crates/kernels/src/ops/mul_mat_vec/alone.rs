//! `mul_mat_alone`: a matrix times one column or many, without a thread that waits for another.
//!
//! It takes the place of `mul_mat_vec` and `mul_mat` on devices that are a processor ([`Caps::alone`]). These run four
//! threads in the lanes of a register and a workgroup on one core: what costs is not arithmetic but barriers, each a switch
//! of stacks for every four threads, and loads, each of hundreds of instructions. So a thread has whole rows, and the four
//! of a quad read each value of x once for all.

use super::{Act, MulMatVec, pairs};
use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::format::FORMATS;
use crate::op::{Op, Value, Variant};

/// The kernels of the operation; its row has them with cases of both calls ([`crate::ops::mul_mat::ALONE`]). Its reference is
/// that of `mul_mat_vec`.
pub(crate) const KERNELS: Op = Op {
    name: "mul_mat_alone",
    template: template!("mul_mat_vec/alone.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for f in FORMATS {
            for epi in ["store", "add", "glu", "rope_kv"] {
                out.push(variant(f.name, "none", epi, 1));
            }
            out.extend(["store", "add"].map(|epi| variant(f.name, "none", epi, COLS)));
        }
        out.extend(pairs().map(|[a, b]| variant(a.name, b.name, "rope_kv", 1)));
        out
    },
    cases: Vec::new,
    ggml: &["MUL_MAT"],
    grid: None,
};

/// Columns that a thread has at once: with twice as many a kernel takes twice as long to compile and is as fast.
const COLS: u32 = 8;
/// Rows of a thread.
const ROWS: u32 = 4;
/// Threads of a workgroup: two quads, so that small matrices keep several cores busy.
const WG: u32 = 8;

fn variant(a: &'static str, b: &'static str, epi: &'static str, cols: u32) -> Variant {
    vec![("a", Value::Word(a)), ("b", Value::Word(b)), ("epi", Value::Word(epi)), ("cols", Value::Int(cols))]
}

/// What both calls have.
struct Product<'a> {
    call: &'a MulMatVec,
    cols: u32,
    /// Tiles of columns.
    n_tile: u32,
}

/// The product of one column, if it is to be done this way: by experts it is not, nor with inputs of few bits.
pub(crate) fn column(call: &MulMatVec, caps: &Caps) -> Option<Result<Dispatch, DispatchError>> {
    let plain =
        call.experts.is_none() && call.columns.is_none() && !matches!(call.act, Some(Act::I16 | Act::I8));
    (caps.alone && plain && fits(call, caps)).then(|| Product { call, cols: 1, n_tile: 1 }.dispatch(&[]))
}

/// The product of many columns by a call that says what is done to one, likewise: `more` has its constants. Also how many
/// of them a step of the grid along x makes.
pub(crate) fn columns(
    call: &MulMatVec,
    caps: &Caps,
    n_col: u32,
    more: &[(&'static str, f64)],
) -> Option<Result<(Dispatch, u32), DispatchError>> {
    (caps.alone && fits(call, caps)).then(|| {
        let product = Product { call, cols: COLS, n_tile: n_col.div_ceil(COLS) };
        Ok((product.dispatch(more)?, COLS))
    })
}

/// Rows lie along one axis of the grid.
fn fits(call: &MulMatVec, caps: &Caps) -> bool {
    u64::from(call.n_row()) < u64::from(caps.max_groups) * u64::from(WG)
}

impl Product<'_> {
    fn dispatch(&self, more: &[(&'static str, f64)]) -> Result<Dispatch, DispatchError> {
        let Product { call, cols, n_tile } = *self;
        let (layout, epi) = (call.w.layout(), call.epilogue.word());
        let (n_row, k) = (call.n_row(), call.n_col());
        let m = if epi == "glu" { n_row / 2 } else { n_row };
        let mut constants = layout.plane_constants(["w_p1", "w_p2", "w_p3", "w_table"]);
        constants.extend([
            ("WG", WG.into()),
            ("K", k.into()),
            ("M", m.into()),
            ("Y0", call.y0.into()),
            ("w_units", layout.units_per_row.into()),
            ("w_blocks", layout.blocks_per_row.into()),
            ("RAGGED", f64::from(u8::from(k % 16 != 0))),
        ]);
        constants.extend(more);
        constants.extend(call.around(KERNELS.name)?);
        let per_group = WG * if epi == "glu" { ROWS / 2 } else { ROWS };
        let n_second = call.w2.map_or(0, |w| w.n_row);
        let mut groups = (m - n_second).div_ceil(per_group);
        if let Some(w2) = &call.w2 {
            let layout = w2.layout();
            constants.extend(layout.plane_constants(["w2_p1", "w2_p2", "w2_p3", "w2_table"]));
            constants.extend([
                ("M2", call.w.n_row.into()),
                ("w2_units", layout.units_per_row.into()),
                ("w2_blocks", layout.blocks_per_row.into()),
            ]);
            groups += n_second.div_ceil(per_group);
        }
        let b = call.w2.map_or("none", |w| w.format.name);
        let variant = variant(call.w.format.name, b, epi, cols);
        let values: Vec<Value> = variant.iter().map(|(_, v)| *v).collect();
        let why = format!("{ROWS} rows of {cols} columns a thread, without barriers");
        dispatch(&KERNELS, &values, constants, [n_tile, groups, 1], why)
    }
}
