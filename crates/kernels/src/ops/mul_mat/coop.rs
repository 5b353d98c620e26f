//! The product with cooperative matrices: their tiles, by shape of the matrices, and the choice of one.

use super::{COOP, MatExperts, MulMat};
use crate::caps::{Caps, CoopShape};
use crate::dispatch::{Dispatch, DispatchError};
use crate::format::{FORMATS, Format};
use crate::op::{Value, Variant, shape_values};

/// The variants of the operation, by shape, format and tile.
pub(super) fn variants() -> Vec<Variant> {
    let mut out = Vec::new();
    for shape in CoopShape::ALL {
        for f in FORMATS {
            for x in ["f32", "f16"] {
                let mut add = |epi, tile, ids, has_border| {
                    let variant = coop_variant(f, x, epi, tile, ids, has_border);
                    out.push(variant.into_iter().chain(shape_values(shape)).collect());
                };
                for epi in ["store", "add"] {
                    coop_tiles(shape).iter().for_each(|tile| add(epi, *tile, "none", true));
                    whole_tiles(shape).iter().for_each(|tile| add(epi, *tile, "none", false));
                }
                EXPERT_TILES.into_iter().for_each(|tile| add("store", tile, "each", true));
            }
        }
    }
    out
}

fn coop_variant(
    f: &Format,
    x: &'static str,
    epi: &'static str,
    (bm, bn): (u32, u32),
    ids: &'static str,
    has_border: bool,
) -> Variant {
    vec![
        ("a", Value::Word(f.name)),
        ("x", Value::Word(x)),
        ("epi", Value::Word(epi)),
        ("bm", Value::Int(bm)),
        ("bn", Value::Int(bn)),
        ("ids", Value::Word(ids)),
        ("border", Value::Word(if has_border { "yes" } else { "no" })),
    ]
}

/// Tiles where columns are grouped by expert, which leaves few columns per expert.
pub(super) const EXPERT_TILES: [(u32, u32); 2] = [(64, 64), (64, 32)];

/// Rows and columns of a workgroup's tile with cooperative matrices, large to small.
pub(super) const COOP_TILES: [(u32, u32); 5] = [(128, 128), (64, 128), (64, 64), (32, 32), (32, 16)];

/// Those that kernels of a shape have. With squares of 8 the largest would need 38 KiB; the second fills the
/// multiprocessors of the devices that were measured.
fn coop_tiles(shape: CoopShape) -> Vec<(u32, u32)> {
    let [large, middle, small, few, narrow] = COOP_TILES;
    match shape {
        CoopShape::WARP => vec![large, middle, small, few, narrow],
        _ if shape.side == 16 => vec![large, small, few, narrow],
        _ => vec![small, few, narrow],
    }
}

/// Those of products of which all tiles are whole: kernels without a border need less workgroup memory.
pub(super) const WHOLE_TILES: [(u32, u32); 4] = [(256, 64), (64, 64), (64, 32), (32, 16)];

/// They are best on the devices where they were measured, and not worth compiling for others.
const fn whole_tiles(shape: CoopShape) -> &'static [(u32, u32)] {
    match shape {
        CoopShape::WARP => &WHOLE_TILES,
        _ => &[],
    }
}

/// Bytes of workgroup memory for a row or column of a tile: 64 values and padding.
const STAGED_BYTES: u32 = 144;
/// Rows for which the first of them is best: tiles for most multiprocessors (measured on an H100).
const WHOLE_MANY_ROWS: u32 = 24_576;

/// Rows and columns of a subgroup's part of a tile with borders; the template chooses the same.
const fn coop_part((bm, bn): (u32, u32)) -> (u32, u32) {
    let rows = match bm {
        128 => 64,
        32 => 16,
        _ => 32,
    };
    (rows, if bn == 16 { 16 } else { 32 })
}

/// Subgroups per workgroup for a tile.
const fn coop_subgroups((bm, bn): (u32, u32)) -> u32 {
    let (rows, cols) = coop_part((bm, bn));
    bm / rows * (bn / cols)
}

/// Threads per workgroup for a tile.
pub(super) const fn coop_threads(tile: (u32, u32), shape: CoopShape) -> u32 {
    coop_subgroups(tile) * shape.lanes
}

/// Bytes of workgroup memory for a tile with borders.
const fn coop_bytes((bm, bn): (u32, u32), shape: CoopShape) -> u32 {
    // More than eight subgroups store their sums in turn, and one square takes those that are not used.
    let squares = match coop_subgroups((bm, bn)) {
        n @ ..=8 => n,
        _ => 9,
    };
    STAGED_BYTES * (bm + bn) + 4 * shape.side * shape.side * squares
}

/// Fewest of the largest tiles that are better than smaller ones.
const MANY_LARGE: u32 = 64;

impl MulMat {
    /// The cooperative matrices that compute it, if any do.
    pub(super) fn coop_shape(&self, caps: &Caps) -> Option<CoopShape> {
        let can = Self::can_coop(caps, self.w.n_col) && self.w.n_row > 0 && self.ldx % 8 == 0;
        caps.coop_shape().filter(|_| can)
    }

    /// True if cooperative matrices support products over `k` values, in columns aligned to 16 bytes.
    pub(super) fn can_coop(caps: &Caps, k: u32) -> bool {
        caps.uses_coop() && k % 64 == 0
    }

    /// The tile that the caller asks for, if there are kernels with it.
    pub(super) fn asked_tile(&self, shape: CoopShape) -> Option<(u32, u32)> {
        self.tile.filter(|tile| coop_tiles(shape).contains(tile))
    }

    /// Size of cooperative-matrix tiles for this shape.
    pub(super) fn coop_tile(&self, caps: &Caps, shape: CoopShape) -> (u32, u32) {
        // Large tiles read less per product; small ones keep the device busy when there are few.
        let [large, middle, small, few, narrow] = COOP_TILES;
        let n_large = self.w.n_row.div_ceil(large.0) * self.n_col.div_ceil(large.1);
        let has = |tile| {
            let (n_thread, n_byte) = (coop_threads(tile, shape), coop_bytes(tile, shape));
            let fits = caps.max_threads >= n_thread && caps.max_workgroup_bytes >= n_byte;
            fits && coop_tiles(shape).contains(&tile)
        };
        match self.n_col {
            n if n <= narrow.1 => narrow,
            n if n <= few.1 => few,
            n if n <= small.1 => small,
            _ if n_large >= MANY_LARGE && has(large) => large,
            _ if has(middle) => middle,
            _ => small,
        }
    }

    /// The tile if all tiles are whole and aligned as matrix stores require, and there are few columns: with many, one
    /// workgroup runs at once, and a border costs nothing.
    pub(super) fn whole_tile(&self, caps: &Caps, shape: CoopShape) -> Option<(u32, u32)> {
        let aligned = self.affine.is_none() && self.ldy % 4 == 0 && self.y0 % 4 == 0;
        if !aligned || self.tile.is_some() || self.experts.is_some() || caps.max_threads < 512 {
            return None;
        }
        let first = if self.n_row() >= WHOLE_MANY_ROWS { 0 } else { 1 };
        let fits = |(bm, bn): &(u32, u32)| {
            let n_byte = STAGED_BYTES * (bm + bn);
            self.n_col == *bn && self.n_row() % bm == 0 && n_byte <= caps.max_workgroup_bytes
        };
        whole_tiles(shape).iter().skip(first).copied().find(fits)
    }

    /// The cooperative-matrix kernel.
    pub(super) fn coop(&self, caps: &Caps, shape: CoopShape) -> Result<(Dispatch, u32), DispatchError> {
        let by_expert = |e: &MatExperts| {
            EXPERT_TILES.into_iter().find(|t| t.1 == e.experts.route.tile).expect("a tile that was checked")
        };
        let tile = self.experts.as_ref().map(by_expert).or(self.asked_tile(shape));
        let whole = self.whole_tile(caps, shape);
        let (bm, bn) = tile.or(whole).unwrap_or_else(|| self.coop_tile(caps, shape));
        let (x, epi) = (if self.x_f16 { "f16" } else { "f32" }, if self.add { "add" } else { "store" });
        let values = coop_variant(self.w.format, x, epi, (bm, bn), self.ids(), whole.is_none());
        let values: Vec<Value> = values.into_iter().chain(shape_values(shape)).map(|(_, v)| v).collect();
        let more = [("BLOCKS", self.w.layout().blocks_per_row.into())];
        let why = format!("cooperative matrices in tiles of {bm} x {bn}");
        self.tiled(&COOP, &values, (bm, bn), &more, why)
    }
}

#[cfg(all(test, feature = "check"))]
mod tests {
    use super::*;
    use crate::Kernel;
    use crate::check::{Size, workgroup};

    #[test]
    fn kernels_have_the_threads_and_the_memory_that_the_choice_of_a_tile_expects() {
        let names = Kernel::names().into_iter().filter(|n| n.starts_with("mul_mat_coop.q4_K.f32."));
        let mut n_seen = 0;
        for name in names.filter(|n| n.contains(".yes")) {
            let words: Vec<&str> = name.split('.').collect();
            let number = |i: usize| words[i].parse::<u32>().expect("a number");
            let tile = (number(4), number(5));
            let shape = match words.len() {
                8 => CoopShape::WARP,
                _ => CoopShape { side: number(8), lanes: number(9) },
            };
            let kernel = Kernel::find(name).expect("a name of the list");
            let size = workgroup(kernel).unwrap_or_else(|e| panic!("{e}")).size(&[]);
            let expected = Size { threads: coop_threads(tile, shape), n_byte: coop_bytes(tile, shape) };
            assert_eq!(size, Some(expected), "{name}");
            n_seen += 1;
        }
        let of = |shape| 2 * coop_tiles(shape).len() + EXPERT_TILES.len();
        assert_eq!(n_seen, CoopShape::ALL.into_iter().map(of).sum::<usize>());
    }
}
