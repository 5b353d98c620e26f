//! `rms_norm`: y = x / sqrt(mean(x^2) + eps) * w.

mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::op::{Op, Value, quads};
use crate::reduce::Teams;

/// The row of this operation.
pub const OP: Op = Op {
    name: "rms_norm",
    template: template!("rms_norm/rms_norm.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for set in ["base", "sg"] {
            for y in ["f32", "f32x4", "f16x4"] {
                out.push(vec![("set", Value::Word(set)), ("y", Value::Word(y))]);
            }
        }
        out
    },
    cases: Op::cases(cases::cases),
    ggml: &["RMS_NORM"],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct RmsNorm {
    /// Values per row.
    pub k: u32,
    /// Rows.
    pub n_row: u32,
    /// Row stride of x, in values.
    pub ldx: u32,
    /// Row stride of y, in values.
    pub ldy: u32,
    /// Added to the mean square.
    pub eps: f32,
    /// Multiply by `aux[0..k]`.
    pub weight: bool,
    /// y is f16, two per word, for a product that rounds it anyway. Sizes must be multiples of four.
    pub y_f16: bool,
}

impl RmsNorm {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered; [`DispatchError::Shape`] for f16 in odd sizes.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let y = quads(OP.name, &[self.k, self.ldx, self.ldy], self.y_f16)?;
        let (teams, constants) = self.teams(caps);
        let [gx, gy] = fold(self.n_row, caps.max_groups);
        let grid = [gx, gy, 1];
        let why = format!("{} threads per row", teams.team);
        dispatch(&OP, &[Value::Word(caps.set().word()), Value::Word(y)], constants, grid, why)
    }

    /// The team of a row, and the constants of the norm. The smallest team is one subgroup, which needs no barrier.
    pub(crate) fn teams(&self, caps: &Caps) -> (Teams, Vec<(&'static str, f64)>) {
        let threads = if caps.alone { 1 } else { 256 };
        let teams = Teams::whole(caps, if self.k <= 512 { threads.min(64) } else { threads });
        let mut constants = teams.constants(caps);
        constants.extend([
            ("K", self.k.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("ROWS", self.n_row.into()),
            ("EPS", self.eps.into()),
            ("WEIGHT", f64::from(u8::from(self.weight))),
        ]);
        (teams, constants)
    }
}
