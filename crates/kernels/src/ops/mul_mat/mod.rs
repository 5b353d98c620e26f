//! `mul_mat`: a matrix times many columns, by tiles.

mod cases;

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::format::{FORMATS, Matrix};
use crate::op::{Op, Value, dispatch};

/// The same product by cooperative matrices; a row of its own, since it is a template of its own.
pub const COOP: Op = Op {
    name: "mul_mat_coop",
    template: include_str!("coop.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for f in FORMATS {
            for epi in ["store", "add"] {
                for side in SIDES {
                    out.push(vec![
                        ("a", Value::Word(f.name)),
                        ("epi", Value::Word(epi)),
                        ("side", Value::Int(side)),
                    ]);
                }
            }
        }
        out
    },
    cases: cases::coop_cases,
};

/// Rows and columns of a workgroup's tile of cooperative matrices.
const SIDES: [u32; 2] = [64, 128];

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

/// Rows and columns of a workgroup's register tile.
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
    /// Side of the tiles of cooperative matrices, 64 or 128; `None` chooses by the shape.
    pub side: Option<u32>,
}

impl MulMat {
    /// Columns of one workgroup in a dispatch of [`Self::dispatch`].
    pub fn tile_cols(dispatch: &Dispatch) -> u32 {
        if dispatch.kernel.name.ends_with(".128") { 128 } else { TILE }
    }

    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if no kernel reads the format.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        if self.fits_coop(caps) { self.coop(caps) } else { self.tiles(caps) }
    }

    /// Whether cooperative matrices can do it: whole tiles along K.
    fn fits_coop(&self, caps: &Caps) -> bool {
        caps.coop && self.w.n_col % 64 == 0 && self.w.n_row > 0 && self.ldx % 4 == 0
    }

    /// The cooperative kernel.
    fn coop(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let layout = self.w.layout();
        // Large tiles reuse more; small ones keep the device busy when there are few.
        let tiles = self.w.n_row.div_ceil(128) * self.n_col.div_ceil(128);
        let fits = caps.max_workgroup_bytes >= 45056;
        let side = self.side.unwrap_or(if tiles >= 192 && fits { 128 } else { 64 });
        let mut constants = layout.plane_constants(["w_p1", "w_p2", "w_p3"]);
        constants.extend([
            ("K", self.w.n_col.into()),
            ("M", self.w.n_row.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("Y0", self.y0.into()),
            ("BLOCKS", layout.blocks_per_row.into()),
        ]);
        if let Some(at) = self.affine {
            constants.extend([("AFFINE", 1.0), ("AFF", at.into())]);
        }
        let epi = if self.add { "add" } else { "store" };
        let grid = [self.w.n_row.div_ceil(side), self.n_col.div_ceil(side), 1];
        let why = format!("cooperative matrices in tiles of {side} x {side}");
        let values = [Value::Word(self.w.format.name), Value::Word(epi), Value::Int(side)];
        dispatch(COOP.name, &values, constants, grid, why)
    }

    /// Register tiles.
    fn tiles(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
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
