//! `sum`: sums and means of rows, and the sum of a whole tensor.

mod cases;
pub mod reference;

use ggml_format::GgmlType;

use crate::call::{A, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, Step};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::reduce::Teams;
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "sum",
    template: template!("sum/sum.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for set in ["base", "sg"] {
            for ty in ["f32", "f16", "bf16"] {
                out.push(vec![("set", Value::Word(set)), ("ty", Value::Word(ty))]);
            }
        }
        out
    },
    cases: Op::cases(cases::by_hand),
    ggml: &["SUM", "SUM_ROWS", "MEAN"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// Kind of sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Each row.
    Rows,
    /// Each row, divided by its length.
    Means,
    /// Everything.
    All,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Kind of sum.
    pub what: What,
    /// Input: f32, f16 or bf16.
    pub a: Tensor,
    /// Output: f32, one value per row of a, or one.
    pub y: Tensor,
}

/// Values per partial sum of a whole tensor.
const CHUNK: u32 = 8192;

impl Sum {
    /// Bytes of the buffer `scratch`; 0 if it needs none.
    pub fn scratch_bytes(&self) -> u64 {
        self.parts().map_or(0, |p| u64::from(p.n_alloc) * 4)
    }

    /// The partial sums, if the call takes two steps.
    fn parts(&self) -> Option<Tensor> {
        let n = self.a.n_elem().div_ceil(CHUNK);
        (self.what == What::All && n > 1).then(|| Tensor::new(GgmlType::F32, [n, 1, 1, 1]))
    }

    /// Chooses the kernels, in order; the buffer `scratch` is bound if the call needs it.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match; [`DispatchError::Type`] if y is not f32;
    /// [`DispatchError::NoKernel`] for other types of a.
    pub fn dispatch(&self, caps: &Caps) -> Result<Vec<Step>, DispatchError> {
        let [ne0, ne1, ne2, ne3] = self.a.ne;
        self.y.check_type(OP.name, "y", GgmlType::F32)?;
        let rows = if self.what == What::All { [1; 4] } else { [1, ne1, ne2, ne3] };
        self.y.check_ne(OP.name, "y", rows)?;
        if self.what == What::Means && self.y.n_elem() > 0 {
            // There is no mean of no values.
            self.a.check_filled(OP.name, "a")?;
        }
        let scale = if self.what == What::Means { 1.0 / f64::from(ne0.max(1)) } else { 1.0 };
        let sum = |a: &Tensor, y: &Tensor, len: u32| sums(caps, a, y, len, scale);
        match (self.what, self.parts()) {
            (_, Some(parts)) => Ok(vec![
                Step::renamed(sum(&self.a, &parts, CHUNK)?, &[("y", "scratch")]),
                Step::renamed(sum(&parts, &self.y, parts.n_elem())?, &[("a", "scratch")]),
            ]),
            (What::All, None) => Ok(sum(&self.a, &self.y, CHUNK)?.into()),
            _ => Ok(sum(&self.a, &self.y, ne0)?.into()),
        }
    }
}

/// One sum of `len` values for each value of y.
fn sums(caps: &Caps, a: &Tensor, y: &Tensor, len: u32, scale: f64) -> Result<Dispatch, DispatchError> {
    let n = y.n_elem();
    // An empty sum is 0: bind a dummy value that no sum reads.
    let one = Tensor::new(a.ty, [1; 4]);
    let source = if a.n_elem() == 0 { &one } else { a };
    let teams = Teams::new(caps, (len / 4).clamp(1, 256), 256);
    let mut constants = teams.rows(caps, n);
    constants.extend([("LEN", len.into()), ("TOTAL", a.n_elem().into()), ("SCALE", scale)]);
    Call {
        op: &OP,
        variant: &[Value::Word(caps.set().word()), Value::Word(a.ty.name())],
        sources: &[(A, source)],
        y,
        constants,
    }
    .groups(teams.groups(n), format!("{} threads a sum", teams.team), caps)
}
