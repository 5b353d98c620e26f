//! `mul_mat_alone`: a matrix times one or many columns, without barriers.
//!
//! It replaces `mul_mat_vec` and `mul_mat` on devices that are CPUs ([`Caps::alone`]). These run four threads in the
//! lanes of a register and a workgroup on one core. Arithmetic is cheap there; barriers (a stack switch per four
//! threads) and loads (hundreds of instructions each) are not. So a thread computes whole rows, and the four threads of
//! a quad read each value of x once.

use super::{ActivationPrecision, MulMatVec, pairs};
use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::format::FORMATS;
use crate::op::{Op, Value, Variant};

/// The kernels of the operation; its table row is [`crate::ops::mul_mat::ALONE`], with cases of both calls. Its
/// reference is that of `mul_mat_vec`.
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

/// Columns per thread: twice as many double the compile time and are no faster.
const COLS: u32 = 8;
/// Rows per thread.
const ROWS: u32 = 4;
/// Threads per workgroup: two quads, so that small matrices keep several cores busy.
const WG: u32 = 8;

fn variant(a: &'static str, b: &'static str, epi: &'static str, cols: u32) -> Variant {
    vec![("a", Value::Word(a)), ("b", Value::Word(b)), ("epi", Value::Word(epi)), ("cols", Value::Int(cols))]
}

/// Parameters common to both calls.
struct Product<'a> {
    call: &'a MulMatVec,
    cols: u32,
    /// Tiles of columns.
    n_tile: u32,
}

/// The product of one column, if this kernel applies: not by experts, and not with 8-bit activations.
pub(crate) fn column(call: &MulMatVec, caps: &Caps) -> Option<Result<Dispatch, DispatchError>> {
    let plain = call.experts.is_none()
        && call.columns.is_none()
        && !matches!(call.act, Some(ActivationPrecision::I16 | ActivationPrecision::I8));
    (caps.alone && plain && fits(call, caps)).then(|| Product { call, cols: 1, n_tile: 1 }.dispatch(&[]))
}

/// The product of many columns, given as the call for one column and the constants `more`. Also returns the columns per
/// step of grid.x.
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

/// True if the rows fit along one axis of the grid.
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
        constants.extend(call.around(KERNELS.name, cols > 1)?);
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
        let why = format!("{ROWS} rows of {cols} columns per thread, no barriers");
        dispatch(&KERNELS, &values, constants, [n_tile, groups, 1], why)
    }
}
