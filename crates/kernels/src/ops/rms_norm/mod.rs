//! `rms_norm`: y = x / sqrt(mean(x^2) + eps) * w.

mod cases;
pub mod reference;

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::op::{Op, Value, dispatch};
use crate::reduce::Teams;

/// The row of this operation.
pub const OP: Op = Op {
    name: "rms_norm",
    template: include_str!("rms_norm.wgsl.jinja"),
    variants: || ["base", "sg"].iter().map(|s| vec![("set", Value::Word(s))]).collect(),
    cases: cases::cases,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct RmsNorm {
    /// Values a row.
    pub k: u32,
    /// Rows.
    pub n_row: u32,
    /// Values from row to row of x.
    pub ldx: u32,
    /// Values from row to row of y.
    pub ldy: u32,
    /// Added to the mean square.
    pub eps: f32,
    /// Multiply by `aux[0..k]`.
    pub weight: bool,
}

impl RmsNorm {
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
            ("EPS", self.eps.into()),
            ("WEIGHT", f64::from(u8::from(self.weight))),
        ]);
        let [x, y] = fold(self.n_row, caps.max_groups);
        let why = format!("{} threads a row", teams.team);
        dispatch(OP.name, &[Value::Word(caps.set().word())], constants, [x, y, 1], why)
    }
}
