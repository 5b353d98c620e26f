//! Ranges of K for separate workgroups, whose partial sums a join reduces.

use super::coop::{COOP_TILES, WHOLE_TILES, coop_threads};
use super::{MulMat, SIDE};
use crate::caps::{Caps, CoopShape};

/// Length of each of `n` ranges of K, in whole stages of 64 values.
pub(super) const fn range_len(k: u32, n: u32) -> u32 {
    k.div_ceil(n).next_multiple_of(64)
}

/// Threads that saturate a device: with tiles of cooperative matrices of more and of at most 64 columns, and with
/// register tiles (measured on an H200).
const ENOUGH_THREADS: [u32; 3] = [1 << 16, 1 << 15, 1 << 17];
/// Minimum length of a range of K: the reduction of shorter ranges costs more than they save.
const LEAST_RUN: u32 = 256;
/// Minimum number of ranges where two or three cost as much as they gain, in register tiles and in tiles of many
/// columns, and maximum for all.
const SPLITS: [u32; 2] = [4, 16];
/// For each of the tiles of whole products: workgroups that saturate a device, and the maximum number of ranges
/// (measured on an H100: 4096 x 14336 by 16 columns takes 34 us in seven ranges, 42 in four).
const WHOLE: [(u32, u32); 4] = [(128, 1), (900, 4), (900, 4), (900, 8)];
/// Number of the largest tiles of cooperative matrices that run at once on an H200.
const AT_ONCE: u32 = 132;
/// Microseconds that such a tile takes for each value of K, and besides.
const TILE: (f64, f64) = (1.0 / 49.0, 10.0);
/// Microseconds that a join takes for each byte, and besides.
const JOIN: (f64, f64) = (1.0 / 6e6, 4.0);
/// Maximum number of ranges of the largest tiles.
const MOST_LARGE: u32 = 4;

impl MulMat {
    /// Splits K into at most `n` ranges of whole stages.
    pub fn in_ranges(self, n: u32) -> MulMat {
        let splits = self.w.n_col.div_ceil(range_len(self.w.n_col, n));
        MulMat { splits: splits.max(1), ..self }
    }

    /// Splits K into enough ranges to saturate the device.
    pub fn spread(self, caps: &Caps) -> MulMat {
        if self.experts.is_some() || self.goes_by_teams(caps) || caps.alone {
            return self;
        }
        // The partial sums of all ranges are one binding.
        let bound = caps.max_binding_bytes / 4 / u64::from(self.part()[0].max(1));
        let [least, most] = SPLITS;
        let most = (self.w.n_col / LEAST_RUN).min(bound.min(u64::from(most)) as u32);
        let [enough_many, enough_few, enough] = ENOUGH_THREADS;
        let Some(shape) = self.coop_shape(caps) else {
            let busy = self.w.n_row.div_ceil(SIDE) * self.n_col.div_ceil(SIDE) * 64;
            let n = (enough / busy.max(1)).min(most);
            return if n < least { self } else { self.in_ranges(n) };
        };
        if let Some(n) = self.whole_ranges(caps, shape, most) {
            return self.in_ranges(n);
        }
        let (bm, bn) = self.asked_tile(shape).unwrap_or_else(|| self.coop_tile(caps, shape));
        let n_tile = self.w.n_row.div_ceil(bm) * self.n_col.div_ceil(bn);
        if (bm, bn) == COOP_TILES[0] && shape == CoopShape::WARP {
            return self.in_waves(n_tile, most);
        }
        let busy = n_tile * coop_threads((bm, bn), shape);
        let (enough, least) = if bn > 64 { (enough_many, least) } else { (enough_few, 2) };
        // The narrowest tiles do little per stage: many stages are better halved.
        let is_long = bn == 16 && self.w.n_col >= 4096 && busy < 2 * enough;
        let n = (enough / busy.max(1)).max(if is_long { 2 } else { 1 }).min(most);
        if n < least { self } else { self.in_ranges(n) }
    }

    /// The number of ranges if all tiles of the product, or of its ranges, are whole: ranges have one length, so that
    /// the kernel's loop has constant bounds.
    fn whole_ranges(self, caps: &Caps, shape: CoopShape, most: u32) -> Option<u32> {
        let tile = self.of_ranges().whole_tile(caps, shape)?;
        let (enough, most_whole) = WHOLE[WHOLE_TILES.iter().position(|t| *t == tile)?];
        let wanted = (enough / (self.w.n_row / tile.0).max(1)).min(most).min(most_whole).max(1);
        let n = (1..=wanted).rev().find(|n| self.w.n_col % (64 * n) == 0)?;
        (n > 1 || self.whole_tile(caps, shape).is_some()).then_some(n)
    }

    /// Splits K so that the last wave of large tiles leaves few multiprocessors idle, if that gains more than the join
    /// costs.
    fn in_waves(self, n_tile: u32, most: u32) -> MulMat {
        let sums = 4.0 * f64::from(self.w.n_row) * f64::from(self.n_col);
        let time = |n: u32| {
            let tile = TILE.0 * f64::from(self.w.n_col) / f64::from(n) + TILE.1;
            let join = JOIN.0 * f64::from(n + 2) * sums + JOIN.1;
            f64::from((n_tile * n).div_ceil(AT_ONCE)) * tile + if n > 1 { join } else { 0.0 }
        };
        let best = (1..=most.clamp(1, MOST_LARGE)).min_by(|a, b| time(*a).total_cmp(&time(*b)));
        best.map_or(self, |n| self.in_ranges(n))
    }
}

#[cfg(test)]
mod tests {
    use ggml_format::GgmlType;

    use super::*;
    use crate::format::{Format, Matrix};

    /// Ranges of a product of `n_row` x `k` with 512 columns on a device with cooperative matrices.
    fn ranges(n_row: u32, k: u32, max_binding_bytes: u64) -> u32 {
        let format = Format::of(GgmlType::Q4_K).expect("a weight format");
        let call = MulMat {
            w: Matrix { format, n_row, n_col: k },
            experts: None,
            act: None,
            add: false,
            affine: None,
            f16_tiles: true,
            ldx: k,
            ldy: n_row,
            y0: 0,
            n_col: 512,
            x_f16: true,
            tile: None,
            splits: 1,
        };
        let large = Caps { max_workgroup_bytes: 49152, max_threads: 1024, max_binding_bytes, ..Caps::base() };
        let caps = Caps { subgroup: Some((32, 32)), f16: true, coop: Some(CoopShape::WARP), ..large };
        call.spread(&caps).splits
    }

    #[test]
    fn large_tiles_fill_their_last_wave() {
        let much = 1 << 30;
        // 128 tiles are a wave of 132.
        assert_eq!(ranges(4096, 4096, much), 1);
        // 192 are a wave and a half: two ranges make it three, of half the length each.
        assert_eq!(ranges(6144, 4096, much), 2);
        // 64 leave half of the device idle.
        assert_eq!(ranges(2048, 8192, much), 2);
        // Short ranges would not pay for the join.
        assert_eq!(ranges(2048, 512, much), 1);
        // The sums of two ranges do not fit a binding.
        assert_eq!(ranges(6144, 4096, 4 * 6144 * 512), 1);
    }

    #[test]
    fn ranges_cover_k_in_whole_stages() {
        for k in [64, 576, 4096, 14336] {
            for n in 1..=SPLITS[1] {
                let len = range_len(k, n);
                assert!(len % 64 == 0 && len * n >= k, "{k} in {n} ranges of {len}");
            }
        }
    }
}
