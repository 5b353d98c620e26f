//! `take_rows`: columns whose input is a row of values take it in place of their token's embedding.

mod cases;

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;

/// The row of this operation. Its reference is a copy: the cases have it.
pub const OP: Op = Op {
    name: "take_rows",
    template: template!("take_rows/take_rows.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct TakeRows {
    /// Values a row.
    pub k: u32,
    /// Values from row to row of the uploaded rows.
    pub ldx: u32,
    /// Values from column to column of y.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
}

impl TakeRows {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let constants = vec![("K", self.k.into()), ("LDX", self.ldx.into()), ("LDY", self.ldy.into())];
        let grid = [self.k.div_ceil(64), self.n_col, 1];
        dispatch(&OP, &[], constants, grid, "a thread a value".into())
    }
}
