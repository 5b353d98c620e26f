//! `set_rows`: scatters rows of a tensor to rows of another by id, like a write to a KV cache.

mod cases;

use ggml_format::GgmlType;

use crate::call::{A, Call, IDS};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::encode;
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "set_rows",
    template: template!("set_rows/set_rows.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for a in ["f32", "f16", "bf16"] {
            for y in ["f32", "f16", "bf16"].into_iter().chain(encode::written()) {
                for i in ["i32", "i64"] {
                    out.push(vec![("a", Value::Word(a)), ("y", Value::Word(y)), ("i", Value::Word(i))]);
                }
            }
        }
        out
    },
    cases: Op::cases(cases::cases),
    ggml: &["SET_ROWS"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct SetRows {
    /// The rows.
    pub a: Tensor,
    /// Row indices in y, `[., ., row of a]`; i32 or i64. They broadcast along the axes above the rows.
    pub ids: Tensor,
    /// Destination; other rows do not change. Out-of-range ids are skipped.
    pub y: Tensor,
}

impl SetRows {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, [`DispatchError::Format`] for block formats that the device does
    /// not write, [`DispatchError::NoKernel`] for other types.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let SetRows { a, ids, y } = self;
        if !encode::can_write(y.ty) {
            return Err(DispatchError::Format { op: OP.name, format: y.ty.name() });
        }
        a.check_ne(OP.name, "a", [y.ne[0], a.ne[1], y.ne[2], y.ne[3]])?;
        ids.check_repeats(OP.name, "ids", [a.ne[1], a.ne[2], a.ne[3], 1])?;
        if ids.ne[0] != a.ne[1] {
            ids.check_ne(OP.name, "ids", [a.ne[1], ids.ne[1], ids.ne[2], 1])?;
        }
        if !matches!(ids.ty, GgmlType::I32 | GgmlType::I64) {
            ids.check_type(OP.name, "ids", GgmlType::I32)?;
        }
        let per = encode::group(y.ty.name()).unwrap_or(4 / y.ty.block_bytes() as u32);
        let n = a.ne[0].div_ceil(per).saturating_mul(a.n_row());
        Call {
            op: &OP,
            variant: &[Value::Word(a.ty.name()), Value::Word(y.ty.name()), Value::Word(ids.ty.name())],
            sources: &[(A, a), (IDS, ids)],
            y,
            constants: vec![],
        }
        .threads(n, caps)
    }
}
