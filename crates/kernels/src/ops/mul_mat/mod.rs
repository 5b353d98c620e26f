//! `mul_mat`: a matrix times many columns, by tiles.

mod cases;

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::format::{FORMATS, Matrix};
use crate::op::{Op, Value, dispatch};

/// The row of this operation. Its reference is that of `mul_mat_vec`, column by column.
pub const OP: Op = Op {
    name: "mul_mat",
    template: include_str!("mul_mat.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for f in FORMATS {
            for epi in ["store", "add"] {
                for tile in ["f32", "f16"] {
                    out.push(vec![
                        ("a", Value::Word(f.name)),
                        ("epi", Value::Word(epi)),
                        ("tile", Value::Word(tile)),
                    ]);
                }
            }
        }
        out
    },
    cases: cases::cases,
};

/// Rows and columns of a workgroup's tile.
const TILE: u32 = 64;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct MulMat {
    /// The matrix.
    pub w: Matrix,
    /// y += r rather than y = r.
    pub add: bool,
    /// Word of `aux` where a (scale, bias) for each row begins.
    pub affine: Option<u32>,
    /// Stage tiles in f16: faster, inputs rounded.
    pub f16_tiles: bool,
    /// Values from column to column of x.
    pub ldx: u32,
    /// Values from column to column of y.
    pub ldy: u32,
    /// Index of row 0 in a column of y.
    pub y0: u32,
    /// Columns at most; the step buffer says how many there are.
    pub n_col: u32,
}

impl MulMat {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if no kernel reads the format.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let layout = self.w.layout();
        let mut constants = layout.plane_constants(["w_p1", "w_p2", "w_p3"]);
        constants.extend([
            ("K", self.w.n_col.into()),
            ("M", self.w.n_row.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("Y0", self.y0.into()),
            ("BLOCKS", layout.blocks_per_row.into()),
            ("RAGGED", f64::from(u8::from(self.w.n_col % 4 != 0))),
        ]);
        if let Some(at) = self.affine {
            constants.extend([("AFFINE", 1.0), ("AFF", at.into())]);
        }
        let tile = if self.f16_tiles && caps.f16 { "f16" } else { "f32" };
        let epi = if self.add { "add" } else { "store" };
        let grid = [self.w.n_row.div_ceil(TILE), self.n_col.div_ceil(TILE), 1];
        let why = format!("tiles of {TILE} x {TILE} in {tile}");
        let values = [Value::Word(self.w.format.name), Value::Word(epi), Value::Word(tile)];
        dispatch(OP.name, &values, constants, grid, why)
    }
}
