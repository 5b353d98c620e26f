//! `short_conv`: the short causal convolution before a recurrence, over the columns of a batch, with its state updated
//! in place.

mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;

/// The row of this operation.
pub const OP: Op = Op {
    name: "short_conv",
    template: template!("short_conv/short_conv.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases::cases),
    ggml: &["SSM_CONV"],
    grid: None,
};

/// Columns per thread if there are many.
const TILE: u32 = 8;

/// Channels of x that gate inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// First channel of the gate of the inputs.
    pub before: u32,
    /// First channel of the gate of the outputs.
    pub after: u32,
}

/// A call. The state is `[n_seq, taps - 1, channels]` f32, the oldest inputs first; inputs before position 0 are zeros.
#[derive(Clone, Copy, Debug)]
pub struct ShortConv {
    /// Channels.
    pub n: u32,
    /// Weights per channel; the last is that of the current column.
    pub taps: u32,
    /// First channel of x in its columns.
    pub at: u32,
    /// Column stride of x, in values.
    pub ldx: u32,
    /// Column stride of y, in values.
    pub ldy: u32,
    /// Maximum number of columns; those of a sequence are consecutive.
    pub n_col: u32,
    /// Sequences.
    pub n_seq: u32,
    /// Gates, if any.
    pub gates: Option<Gates>,
    /// `aux` has a bias per channel after the `[channels, taps]` weights.
    pub bias: bool,
    /// SiLU after the sum, before the gate.
    pub silu: bool,
}

impl ShortConv {
    /// The kernels and their grids: one, or for many columns first the outputs, then the state. The flag is true if the
    /// grid grows with the columns, in tiles of [`Self::tile`] along y.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] for less than two taps.
    pub fn dispatch(&self) -> Result<Vec<(Dispatch, bool)>, DispatchError> {
        if self.taps < 2 {
            let expected = "at least 2".into();
            return Err(DispatchError::Shape {
                op: OP.name,
                what: "taps",
                expected,
                found: self.taps.into(),
            });
        }
        if self.n_col == 1 {
            return Ok(vec![(self.pass(1, true, "one channel a thread")?, false)]);
        }
        let out = self.pass(TILE, false, "some columns of a channel a thread")?;
        Ok(vec![(out, true), (self.pass(0, true, "the state after many columns")?, false)])
    }

    /// Columns per thread if there are many.
    pub const fn tile() -> u32 {
        TILE
    }

    fn pass(&self, tile: u32, keep: bool, why: &str) -> Result<Dispatch, DispatchError> {
        let flag = |b: bool| f64::from(u8::from(b));
        let gates = self.gates.unwrap_or(Gates { before: 0, after: 0 });
        let constants = vec![
            ("C", self.n.into()),
            ("TAPS", self.taps.into()),
            ("TILE", tile.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("X_AT", self.at.into()),
            ("GATED", flag(self.gates.is_some())),
            ("BEFORE_AT", gates.before.into()),
            ("AFTER_AT", gates.after.into()),
            ("BIAS", flag(self.bias)),
            ("SILU", flag(self.silu)),
            ("KEEP", flag(keep)),
            ("N_SEQ", self.n_seq.into()),
        ];
        let tiles = if tile > 0 { self.n_col.div_ceil(tile) } else { 1 };
        dispatch(&OP, &[], constants, [self.n.div_ceil(64), tiles, 1], why.into())
    }
}
