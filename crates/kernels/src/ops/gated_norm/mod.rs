//! `gated_norm`: gates rows, with a norm before or after the gate or none.

mod cases;
pub mod reference;

use chaski_graph::recurrent::{GateAct, NormAt};

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value};
use crate::reduce::Teams;

/// The row of this operation.
pub const OP: Op = Op {
    name: "gated_norm",
    template: template!("gated_norm/gated_norm.wgsl.jinja"),
    variants: || {
        let both = ["base", "sg"].into_iter().flat_map(|s| ["first", "last", "none"].map(|n| (s, n)));
        both.map(|(s, n)| vec![("set", Value::Word(s)), ("norm", Value::Word(n))]).collect()
    },
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct GatedNorm {
    /// Values per row.
    pub k: u32,
    /// Rows per column.
    pub per: u32,
    /// Columns.
    pub n_col: u32,
    /// Column strides of x, z, y, in values.
    pub ld: [u32; 3],
    /// Offset of z in its columns.
    pub z_at: u32,
    /// One gate per row rather than per value.
    pub z_row: bool,
    /// Add the result to y.
    pub add: bool,
    /// Activation of z.
    pub act: GateAct,
    /// Position of the norm if there is one, a flag for separate weights of each row of a column in `aux`, and the
    /// epsilon.
    pub norm: Option<(NormAt, bool, f32)>,
}

impl GatedNorm {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if there is none.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let teams = Teams::whole(caps, if self.k <= 512 { 64 } else { 256 });
        let n = self.per * self.n_col;
        let mut constants = teams.rows(caps, n);
        let [ldx, ldz, ldy] = self.ld;
        constants.extend([
            ("K", self.k.into()),
            ("PER", self.per.into()),
            ("LDX", ldx.into()),
            ("LDZ", ldz.into()),
            ("LDY", ldy.into()),
            ("Z_AT", self.z_at.into()),
            ("Z_ROW", f64::from(u8::from(self.z_row))),
            ("ADD", f64::from(u8::from(self.add))),
            ("ACT", f64::from(self.act as u8)),
        ]);
        if let Some((_, own, eps)) = self.norm {
            constants.extend([("W_ROW", f64::from(if own { self.k } else { 0 })), ("EPS", eps.into())]);
        } else {
            // Without a sum the kernel does not use the subgroup size.
            constants.retain(|(name, _)| *name != "SG_MIN");
        }
        let norm = match self.norm {
            None => "none",
            Some((NormAt::First, ..)) => "first",
            Some((NormAt::Last, ..)) => "last",
        };
        // One workgroup per row, columns along y.
        let grid = [self.per, self.n_col, 1];
        let why = format!("{} threads per row", teams.team);
        dispatch(&OP, &[Value::Word(caps.set().word()), Value::Word(norm)], constants, grid, why)
    }
}
