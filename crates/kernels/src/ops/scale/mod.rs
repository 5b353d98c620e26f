//! `scale`: y = y * by + bias, in place.

mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;

/// The row of this operation.
pub const OP: Op = Op {
    name: "scale",
    template: template!("scale/scale.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases::cases),
    ggml: &["SCALE"],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Values per column.
    pub k: u32,
    /// Column stride, in values.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
    /// Factor.
    pub by: f32,
    /// Added after the product.
    pub bias: f32,
}

impl Scale {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        dispatch(
            &OP,
            &[],
            vec![
                ("K", self.k.into()),
                ("LDY", self.ldy.into()),
                ("BY", self.by.into()),
                ("BIAS", self.bias.into()),
            ],
            [self.k.div_ceil(64), self.n_col, 1],
            "one thread per value".into(),
        )
    }
}
