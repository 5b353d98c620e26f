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
            for x in ["f32", "f16"] {
                for epi in ["store", "add"] {
                    for (bm, bn) in COOP_TILES {
                        out.push(vec![
                            ("a", Value::Word(f.name)),
                            ("x", Value::Word(x)),
                            ("epi", Value::Word(epi)),
                            ("bm", Value::Int(bm)),
                            ("bn", Value::Int(bn)),
                        ]);
                    }
                }
            }
        }
        out
    },
    cases: cases::coop_cases,
    ggml: &["MUL_MAT"],
    grid: None,
};

/// Rows and columns of a workgroup's tile of cooperative matrices, large to small.
const COOP_TILES: [(u32, u32); 4] = [(128, 128), (64, 128), (64, 64), (32, 16)];

/// The row of this operation. Its reference is that of `mul_mat_vec`, column by column.
pub const OP: Op = Op {
    name: "mul_mat",
    template: include_str!("mul_mat.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for f in FORMATS {
            for tile in ["f32", "f16"] {
                out.push(vec![("a", Value::Word(f.name)), ("tile", Value::Word(tile))]);
            }
        }
        out
    },
    cases: cases::cases,
    ggml: &["MUL_MAT"],
    grid: None,
};

/// Rows and columns of a workgroup's register tile.
const SIDE: u32 = 64;

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
    /// x is f16, two a word, which [`Self::takes_f16`] allows; else f32.
    pub x_f16: bool,
    /// Rows and columns of the tiles of cooperative matrices; `None` chooses by the shape.
    pub tile: Option<(u32, u32)>,
}

impl MulMat {
    /// The kernel, its grid, and how many columns of y a step of the grid along x makes.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if no kernel reads the format.
    pub fn dispatch(&self, caps: &Caps) -> Result<(Dispatch, u32), DispatchError> {
        let coop = Self::takes_f16(caps, self.w.n_col) && self.w.n_row > 0 && self.ldx % 8 == 0;
        if coop { self.coop(caps) } else { self.tiles(caps) }
    }

    /// Whether cooperative matrices do products over `k` values, in columns that begin on 16 bytes. They round x to
    /// f16, so they take it in that form too.
    pub fn takes_f16(caps: &Caps, k: u32) -> bool {
        caps.coop && k % 64 == 0
    }

    /// The tile of cooperative matrices for this shape.
    fn coop_tile(&self, caps: &Caps) -> (u32, u32) {
        // Large tiles read less for each product; small ones keep the device busy when there are few.
        let [large, middle, small, narrow] = COOP_TILES;
        let n_large = self.w.n_row.div_ceil(large.0) * self.n_col.div_ceil(large.1);
        let has = |n_thread, n_byte| caps.max_threads >= n_thread && caps.max_workgroup_bytes >= n_byte;
        if self.n_col <= narrow.1 {
            narrow
        } else if n_large >= 80 && has(512, 46080) {
            large
        } else if self.n_col > small.1 && has(256, 35840) {
            middle
        } else {
            small
        }
    }

    /// The cooperative kernel.
    fn coop(&self, caps: &Caps) -> Result<(Dispatch, u32), DispatchError> {
        let layout = self.w.layout();
        let (bm, bn) = self.tile.unwrap_or_else(|| self.coop_tile(caps));
        let mut constants = layout.plane_constants(["w_p1", "w_p2", "w_p3", "w_table"]);
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
        let grid = [self.n_col.div_ceil(bn), self.w.n_row.div_ceil(bm), 1];
        let why = format!("cooperative matrices in tiles of {bm} x {bn}");
        let values = [
            Value::Word(self.w.format.name),
            Value::Word(if self.x_f16 { "f16" } else { "f32" }),
            Value::Word(if self.add { "add" } else { "store" }),
            Value::Int(bm),
            Value::Int(bn),
        ];
        Ok((dispatch(COOP.name, &values, constants, grid, why)?, bn))
    }

    /// Register tiles.
    fn tiles(&self, caps: &Caps) -> Result<(Dispatch, u32), DispatchError> {
        if self.x_f16 {
            let expected = "f32 without cooperative matrices".into();
            return Err(DispatchError::Shape {
                op: OP.name,
                what: "bits of a value of x",
                expected,
                found: 16,
            });
        }
        let f16 = self.f16_tiles && caps.f16;
        let layout = self.w.layout();
        let mut constants = layout.plane_constants(["w_p1", "w_p2", "w_p3", "w_table"]);
        constants.extend([
            ("K", self.w.n_col.into()),
            ("M", self.w.n_row.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("Y0", self.y0.into()),
            ("BLOCKS", layout.blocks_per_row.into()),
            ("ADD", f64::from(u8::from(self.add))),
            ("RAGGED", f64::from(u8::from(self.w.n_col % if f16 { 32 } else { 16 } != 0))),
        ]);
        if let Some(at) = self.affine {
            constants.extend([("AFFINE", 1.0), ("AFF", at.into())]);
        }
        let tile = if f16 { "f16" } else { "f32" };
        let grid = [self.n_col.div_ceil(SIDE), self.w.n_row.div_ceil(SIDE), 1];
        let why = format!("tiles of {SIDE} x {SIDE} in {tile}");
        let values = [Value::Word(self.w.format.name), Value::Word(tile)];
        Ok((dispatch(OP.name, &values, constants, grid, why)?, SIDE))
    }
}
