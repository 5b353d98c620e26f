//! `mul_mat_join`: reduces the partial sums of a split-K product.

mod cases;
pub mod reference;

use crate::affine::Affine;
use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;

/// The row of this operation.
pub const OP: Op = Op {
    name: "mul_mat_join",
    template: template!("mul_mat_join/mul_mat_join.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct MulMatJoin {
    /// Rows of the product.
    pub n_row: u32,
    /// Columns.
    pub n_col: u32,
    /// Ranges of K, at least 1.
    pub splits: u32,
    /// Words between ranges of x.
    pub part: u32,
    /// Words between columns of x.
    pub ldx: u32,
    /// Column stride of y, in values.
    pub ldy: u32,
    /// Offset of row 0 in a column of y.
    pub y0: u32,
    /// y += r rather than y = r.
    pub add: bool,
    /// Scales and biases in `aux`.
    pub affine: Option<Affine>,
}

impl MulMatJoin {
    /// Chooses the kernel and its grid: columns are along y.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let mut constants = vec![
            ("M", self.n_row.into()),
            ("SPLITS", self.splits.into()),
            ("PART", self.part.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("Y0", self.y0.into()),
            ("ADD", f64::from(u8::from(self.add))),
        ];
        constants.extend(self.affine.into_iter().flat_map(Affine::of_many));
        let grid = [self.n_row.div_ceil(128), self.n_col, 1];
        dispatch(&OP, &[], constants, grid, format!("{} ranges of K", self.splits))
    }
}
