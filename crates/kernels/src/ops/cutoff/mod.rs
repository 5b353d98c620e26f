//! `cutoff`: y = max(x - (mean + by * deviation), 0) along rows, a sparse activation without sorting.

mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::op::{Op, Value};
use crate::reduce::Teams;

/// The row of this operation.
pub const OP: Op = Op {
    name: "cutoff",
    template: template!("cutoff/cutoff.wgsl.jinja"),
    variants: || ["base", "sg"].iter().map(|s| vec![("set", Value::Word(s))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Cutoff {
    /// Values per row.
    pub k: u32,
    /// Rows.
    pub n_row: u32,
    /// Row stride of x, in values.
    pub ldx: u32,
    /// Row stride of y, in values.
    pub ldy: u32,
    /// Threshold in standard deviations above the mean.
    pub by: f32,
}

impl Cutoff {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if there is none.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let teams = Teams::whole(caps, if self.k <= 512 { 64 } else { 256 });
        let mut constants = teams.rows(caps, self.n_row);
        constants.extend([
            ("K", self.k.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("BY", self.by.into()),
        ]);
        let [gx, gy] = fold(self.n_row, caps.max_groups);
        let why = format!("{} threads per row", teams.team);
        dispatch(&OP, &[Value::Word(caps.set().word())], constants, [gx, gy, 1], why)
    }
}
