//! `mul_mat`: tiled product of a matrix with many columns.

mod alone;
pub(crate) mod cases;
mod coop;
mod expert_cases;
mod nd;
mod nd_cases;
mod ranges;

pub use alone::ALONE;
use coop::EXPERT_TILES;
pub use nd::MulMatNd;
use ranges::range_len;

use crate::affine::Affine;
use crate::call::dispatch;
use crate::caps::{Caps, Features};
use crate::dispatch::{Dispatch, DispatchError};
use crate::format::{FORMATS, Format, Matrix};
use crate::grid::Grid;
use crate::op::{Op, Value, Variant};
use crate::ops::mul_mat_join::MulMatJoin;
use crate::ops::mul_mat_vec::{ActivationPrecision, Epilogue, FewColumns, MulMatVec, few};
use crate::route::Experts;

/// The same product with cooperative matrices; a separate row because its template is separate.
pub const COOP: Op = Op {
    name: "mul_mat_coop",
    template: template!("mul_mat/coop.wgsl.jinja"),
    variants: coop::variants,
    cases: Op::cases(|| cases::coop_cases().into_iter().chain(expert_cases::coop_cases()).collect()),
    ggml: &["MUL_MAT", "MUL_MAT_ID"],
    grid: None,
};

/// The row of this operation. Its reference is that of `mul_mat_vec`, column by column; its grid includes products of
/// few columns, which `mul_mat_vec` computes.
pub const OP: Op = Op {
    name: "mul_mat",
    template: template!("mul_mat/mul_mat.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for f in FORMATS {
            for tile in TILE_TYPES {
                out.push(tile_variant(f, tile, "none"));
            }
        }
        out
    },
    cases: Op::cases(cases::cases),
    ggml: &["MUL_MAT"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// The same over tensors of any stride and type.
pub const ND: Op = Op {
    name: "mul_mat_nd",
    template: template!("mul_mat/nd.wgsl.jinja"),
    variants: || {
        let pairs = FORMATS.iter().flat_map(|f| nd::INPUTS.map(|b| (f.name, b.name())));
        pairs.map(|(a, b)| vec![("a", Value::Word(a)), ("b", Value::Word(b))]).collect()
    },
    cases: Op::cases(nd_cases::cases),
    ggml: &["MUL_MAT", "MUL_MAT_HADAMARD"],
    grid: Some(Grid::new(include_str!("nd_grid.txt"), nd_cases::of).random(nd_cases::random)),
};

/// The same with x in 8 bits and int8 dot products, for formats of integers with scales.
pub const Q8: Op = Op {
    name: "mul_mat_q8",
    template: template!("mul_mat/bytes.wgsl.jinja"),
    variants: || {
        let some = FORMATS.iter().filter(|f| f.run > 0);
        some.map(|f| vec![("a", Value::Word(f.name))]).collect()
    },
    cases: Op::cases(cases::byte_cases),
    ggml: &["MUL_MAT"],
    grid: None,
};

/// The same by expert; its grid includes products of one column, which `mul_mat_vec` computes.
pub const ID: Op = Op {
    name: "mul_mat_id",
    template: template!("mul_mat/mul_mat.wgsl.jinja"),
    variants: || {
        let both = |f| TILE_TYPES.map(|tile| tile_variant(f, tile, "each"));
        FORMATS.iter().flat_map(both).collect()
    },
    cases: Op::cases(expert_cases::cases),
    ggml: &["MUL_MAT_ID"],
    grid: Some(Grid::new(include_str!("expert_grid.txt"), expert_cases::of).random(expert_cases::random)),
};

/// Element types of staged tiles; `loop` is f32 for software renderers.
const TILE_TYPES: [Value; 3] = [Value::Word("f32"), Value::With("f16", Features::F16), Value::Word("loop")];

fn tile_variant(f: &Format, tile: Value, ids: &'static str) -> Variant {
    vec![("a", Value::Word(f.name)), ("tile", tile), ("ids", Value::Word(ids))]
}

/// Rows and columns of a workgroup's register tile.
const SIDE: u32 = 64;

/// Layout of the columns of a product by experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One column of x, shared by all slots of a token.
    Shared,
    /// One column for each (column, slot) pair.
    Pair,
    /// The same, sorted by expert.
    Sorted,
}

/// The mapping of columns to rows of a matrix of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatExperts {
    /// The experts of the matrix.
    pub experts: Experts,
    /// Columns of x.
    pub x: Place,
    /// Columns of y are sorted by expert; otherwise they are in pair order.
    pub y_sorted: bool,
}

impl MatExperts {
    /// Pairs of one expert per tile, where `n_col` columns choose `n_used` experts each: small if the average is small.
    pub fn tile(n_col: u32, n_used: u32, n_expert: u32) -> u32 {
        let [(_, wide), (_, narrow)] = EXPERT_TILES;
        if n_col * n_used >= n_expert * (wide - narrow / 2) { wide } else { narrow }
    }

    fn constants(&self, n_row: u32) -> Vec<(&'static str, f64)> {
        let (e, r) = (&self.experts, &self.experts.route);
        let flag = |b: bool| f64::from(u8::from(b));
        vec![
            ("E0", e.first.into()),
            ("N_E", e.count(n_row).into()),
            ("E_ROWS", e.stride.into()),
            ("TILES", r.tiles_at().into()),
            ("PAIRS", r.pairs_at().into()),
            ("X_SORTED", flag(self.x == Place::Sorted)),
            ("Y_SORTED", flag(self.y_sorted)),
            ("DIV", if self.x == Place::Shared { r.n_used } else { 1 }.into()),
            ("BY_SLOT", flag(e.by_slot)),
            ("N_SLOT", r.n_used.into()),
            ("TILE_COLS", r.tile.into()),
        ]
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct MulMat {
    /// The matrix.
    pub w: Matrix,
    /// The matrix holds experts, and columns are pairs of a column and a slot.
    pub experts: Option<MatExperts>,
    /// Precision of x: [`ActivationPrecision::I8`] uses int8 dot products for formats of integers with scales, without
    /// cooperative matrices and experts. The others apply to a few columns only; `None` leaves those to the tuning.
    pub act: Option<ActivationPrecision>,
    /// y += r rather than y = r; not supported by experts.
    pub add: bool,
    /// Scales and biases in `aux`.
    pub affine: Option<Affine>,
    /// Stage tiles in f16: faster, but rounds the inputs.
    pub f16_tiles: bool,
    /// Column stride of x, in values.
    pub ldx: u32,
    /// Column stride of y, in values.
    pub ldy: u32,
    /// Offset of row 0 in a column of y.
    pub y0: u32,
    /// Maximum number of columns, for which y has room; the step buffer holds the actual number, and columns past it
    /// may be overwritten. By experts, [`Route`](crate::Route) holds
    /// it.
    pub n_col: u32,
    /// x is f16, two per word, if [`Self::takes_f16`] allows it; otherwise f32.
    pub x_f16: bool,
    /// Rows and columns of cooperative-matrix tiles; `None` chooses by shape.
    pub tile: Option<(u32, u32)>,
    /// Split-K: ranges of K for separate workgroups, 1 or a value from [`Self::in_ranges`]. With more than one, y
    /// receives the partial sums of each range, [`Self::parts_len`] words in total, and [`Self::join`] reduces them.
    pub splits: u32,
}

impl MulMat {
    /// The kernel, its grid, and the columns of y per step of grid.x; `None` if the grid does not depend on the
    /// columns.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if no kernel reads the format.
    pub fn dispatch(&self, caps: &Caps) -> Result<(Dispatch, Option<u32>), DispatchError> {
        if let Some(e) = &self.experts {
            let r = e.experts.route;
            if EXPERT_TILES.iter().all(|(_, bn)| *bn != r.tile) || self.add {
                let expected = format!("those of {EXPERT_TILES:?}, and a plain result");
                return Err(DispatchError::Shape {
                    op: OP.name,
                    what: "columns of a tile of an expert",
                    expected,
                    found: r.tile.into(),
                });
            }
        }
        if let Some(alone) = alone::columns(self, caps) {
            return alone.map(|(dispatch, cols)| (dispatch, Some(cols)));
        }
        if self.goes_by_teams(caps) {
            return Ok((self.teams(caps)?, None));
        }
        let call = if self.splits > 1 { self.of_ranges() } else { *self };
        let (dispatch, tile) = match self.coop_shape(caps) {
            Some(shape) => call.coop(caps, shape)?,
            None if self.goes_by_bytes() => call.bytes()?,
            None => call.tiles(caps)?,
        };
        Ok((dispatch, Some(tile)))
    }

    fn goes_by_teams(&self, caps: &Caps) -> bool {
        let few = self.n_col <= Self::few(caps) && self.tile.is_none() && !self.x_f16 && self.ldx % 4 == 0;
        few && self.experts.is_none() && self.splits == 1
    }

    fn goes_by_bytes(&self) -> bool {
        let format = self.w.format;
        // Runs have 16 values, two runs per stage.
        let fits = format.run == 4 && self.w.n_col % 32 == 0 && self.ldx % 4 == 0 && !self.x_f16;
        self.act == Some(ActivationPrecision::I8) && fits && self.experts.is_none()
    }

    /// Words between the partial sums of ranges of K, and between columns.
    fn part(&self) -> [u32; 2] {
        let ld = self.w.n_row.next_multiple_of(4);
        [ld * self.n_col, ld]
    }

    /// Words of all partial sums.
    pub fn parts_len(&self) -> u64 {
        u64::from(self.part()[0]) * u64::from(self.splits)
    }

    /// The reduction of the partial sums, bound as `x`, to the result that the product would have without ranges.
    pub fn join(&self) -> MulMatJoin {
        let [part, ldx] = self.part();
        MulMatJoin {
            n_row: self.w.n_row,
            n_col: self.n_col,
            splits: self.splits,
            part,
            ldx,
            ldy: self.ldy,
            y0: self.y0,
            add: self.add,
            affine: self.affine,
        }
    }

    /// The product of each range, without the epilogue.
    fn of_ranges(&self) -> MulMat {
        MulMat { add: false, affine: None, y0: 0, ldy: self.part()[1], ..*self }
    }

    fn range_constants(&self) -> Vec<(&'static str, f64)> {
        match self.splits {
            1 => vec![("K_RUN", self.w.n_col.max(1).into())],
            n => vec![("K_RUN", range_len(self.w.n_col, n).into()), ("PART", self.part()[0].into())],
        }
    }

    /// Few columns: weights are read once for all of them, and nothing is staged but x.
    fn teams(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let call = MulMatVec {
            columns: Some(FewColumns { n_col: self.n_col, ldx: self.ldx, ldy: self.ldy }),
            affine: self.affine,
            y0: self.y0,
            act: self.act,
            ..MulMatVec::new(self.w, if self.add { Epilogue::Add } else { Epilogue::Store })
        };
        few::columns(&call, caps).unwrap_or_else(|| call.dispatch(caps))
    }

    /// Rows of the product: all, or those of one expert.
    fn n_row(&self) -> u32 {
        self.experts.map_or(self.w.n_row, |e| e.experts.n_row)
    }

    /// Number of tiles along the columns, `bn` columns each or as routed.
    fn n_tile(&self, bn: u32) -> u32 {
        self.experts.map_or(self.n_col.div_ceil(bn), |e| match e.experts.by_slot {
            true => e.experts.route.tiles_by_slot(self.n_col),
            false => e.experts.route.n_tile(),
        })
    }

    fn ids(&self) -> &'static str {
        if self.experts.is_some() { "each" } else { "none" }
    }

    /// True if they are used for `n_col` columns. They round x to f16, so they accept it in f16.
    pub fn takes_f16(caps: &Caps, k: u32, n_col: u32) -> bool {
        n_col > Self::few(caps) && Self::can_coop(caps, k)
    }

    /// Up to this many columns, teams of `mul_mat_vec` replace tiles: they read as many weights and stage none. Tiles
    /// of 16 columns with cooperative matrices take as long for any number (on an H200, a step of 8B Q4_K: teams 7 ms
    /// for 2 to 4 columns and 11 for 8, tiles 9).
    pub fn few(caps: &Caps) -> u32 {
        if caps.uses_coop() { 4 } else { FewColumns::MAX }
    }

    /// Register tiles of int8.
    fn bytes(&self) -> Result<(Dispatch, u32), DispatchError> {
        let more = [("UNITS", self.w.layout().units_per_row.into()), ("ADD", f64::from(u8::from(self.add)))];
        let why = format!("tiles of {SIDE} x {SIDE} in bytes");
        self.tiled(&Q8, &[Value::Word(self.w.format.name)], (SIDE, SIDE), &more, why)
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
        let more = [
            ("BLOCKS", self.w.layout().blocks_per_row.into()),
            ("ADD", f64::from(u8::from(self.add))),
            ("RAGGED", f64::from(u8::from(self.w.n_col % if f16 { 32 } else { 16 } != 0))),
        ];
        let tile = match (f16, caps.software) {
            (true, _) => "f16",
            (false, false) => "f32",
            (false, true) => "loop",
        };
        let values = [Value::Word(self.w.format.name), Value::Word(tile), Value::Word(self.ids())];
        let op = if self.experts.is_some() { &ID } else { &OP };
        let why = format!("tiles of {SIDE} x {SIDE} in {}", if f16 { "f16" } else { "f32" });
        self.tiled(op, &values, (SIDE, SIDE), &more, why)
    }

    /// A kernel with workgroup tiles of `bm` rows and `bn` columns, its own constants and those common to tiled
    /// kernels. Also returns the columns per tile.
    fn tiled(
        &self,
        op: &'static Op,
        values: &[Value],
        (bm, bn): (u32, u32),
        more: &[(&'static str, f64)],
        why: String,
    ) -> Result<(Dispatch, u32), DispatchError> {
        let mut constants = self.w.layout().plane_constants(["w_p1", "w_p2", "w_p3", "w_table"]);
        constants.extend([
            ("K", self.w.n_col.into()),
            ("M", self.n_row().into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("Y0", self.y0.into()),
        ]);
        constants.extend(more);
        constants.extend(self.experts.iter().flat_map(|e| e.constants(self.w.n_row)));
        constants.extend(self.affine.into_iter().flat_map(Affine::of_many));
        constants.extend(self.range_constants());
        let grid = [self.n_tile(bn), self.n_row().div_ceil(bm), self.splits];
        Ok((dispatch(op, values, constants, grid, why)?, bn))
    }
}
