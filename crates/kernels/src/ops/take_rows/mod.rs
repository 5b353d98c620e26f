//! `take_rows`: replaces embeddings by input rows in the columns that have them.

mod cases;

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;

/// The row of this operation. Its reference, a copy, is in the cases.
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
    /// Values per row.
    pub k: u32,
    /// Row stride of the uploaded rows, in values.
    pub ldx: u32,
    /// Column stride of y, in values.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
}

impl TakeRows {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let constants = vec![("K", self.k.into()), ("LDX", self.ldx.into()), ("LDY", self.ldy.into())];
        let grid = [self.k.div_ceil(64), self.n_col, 1];
        dispatch(&OP, &[], constants, grid, "a thread a value".into())
    }
}
