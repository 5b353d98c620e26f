//! `soft_max`: y = exp(scale x - max) / sum.

mod cases;
pub mod reference;

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::op::{Op, Value, dispatch};
use crate::reduce::Teams;

/// The row of this operation.
pub const OP: Op = Op {
    name: "soft_max",
    template: include_str!("soft_max.wgsl.jinja"),
    variants: || ["base", "sg"].iter().map(|s| vec![("set", Value::Word(s))]).collect(),
    cases: cases::cases,
    ggml: &["SOFT_MAX"],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct SoftMax {
    /// Values a row.
    pub k: u32,
    /// Rows.
    pub n_row: u32,
    /// Values from row to row of x.
    pub ldx: u32,
    /// Values from row to row of y.
    pub ldy: u32,
    /// Multiplies x first.
    pub scale: f32,
}

impl SoftMax {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let teams = Teams::whole(caps, if self.k <= 512 { 64 } else { 256 });
        let mut constants = teams.constants(caps);
        constants.extend([
            ("K", self.k.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("ROWS", self.n_row.into()),
            ("SCALE", self.scale.into()),
        ]);
        let [x, y] = fold(self.n_row, caps.max_groups);
        let why = format!("{} threads a row", teams.team);
        dispatch(OP.name, &[Value::Word(caps.set().word())], constants, [x, y, 1], why)
    }
}
