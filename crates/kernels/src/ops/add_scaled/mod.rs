//! `add_scaled`: y += by * x.

mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;

/// The row of this operation.
pub const OP: Op = Op {
    name: "add_scaled",
    template: template!("add_scaled/add_scaled.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases::cases),
    ggml: &["SCALE", "ADD"],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct AddScaled {
    /// Values a column.
    pub k: u32,
    /// Values from column to column of x.
    pub ldx: u32,
    /// Values from column to column of y.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
    /// The factor.
    pub by: f32,
}

impl AddScaled {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        dispatch(
            &OP,
            &[],
            vec![
                ("K", self.k.into()),
                ("LDX", self.ldx.into()),
                ("LDY", self.ldy.into()),
                ("BY", self.by.into()),
            ],
            [self.k.div_ceil(64), self.n_col, 1],
            "one thread a value".into(),
        )
    }
}
