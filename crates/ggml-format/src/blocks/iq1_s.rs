//! iq1_s: groups of 8 ternary values from a codebook of 2048, with a small shift, a 3-bit scale per 32.

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};

use crate::blocks::codebook::IQ1_S_GRID;
use crate::blocks::grid::{Codebook, Search, Sums, block_weights, fit};
use crate::blocks::search::mean_square;
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// Shift of the ternary values in iq1_s and iq1_m, positive or negative.
pub(super) const DELTA: f32 = 0.125;

/// `x[i] = d * (2 * scale[i / 32] + 1) * (ternary[i] + delta[i / 32])`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq1S {
    /// Scale of the scales.
    pub d: F16,
    /// Low eight bits of the codebook index of each 8 values.
    pub qs: [u8; QK_K / 8],
    /// A little-endian u16 per 32 values: high three bits of four indices, 3 bits of scale, and the sign of
    /// the shift (set for negative).
    pub qh: [[u8; 2]; QK_K / 32],
}

const _: () = assert!(size_of::<BlockIq1S>() == 50);

impl Block for BlockIq1S {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, y) in y.chunks_exact_mut(8).enumerate() {
            let h = u16::from_le_bytes(self.qh[i / 4]);
            let index = usize::from(self.qs[i]) | usize::from((h >> (3 * (i % 4))) & 7) << 8;
            let scale = d * f32::from(2 * ((h >> 12) & 7) + 1);
            let delta = if h & 0x8000 != 0 { -DELTA } else { DELTA };
            for (y, &ternary) in y.iter_mut().zip(&IQ1_S_GRID[index]) {
                *y = scale * (f32::from(ternary) + delta);
            }
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

/// The ternary vectors of iq1_s and iq1_m.
pub(super) static CODEBOOK: LazyLock<Codebook<8>> = LazyLock::new(|| {
    let entries = IQ1_S_GRID.iter().map(|entry| entry.map(f32::from)).collect();
    Codebook::new(entries, &[-1.0, 0.0, 1.0], 3)
});

/// Initial scales of the search of iq1_s and iq1_m, relative to the root mean square of a group.
pub(super) const FACTORS: &[f32] = &[0.7, 0.9, 1.1, 1.3, 1.5, 1.8, 2.2];

/// The nearest code of a vector at a scale and a shift, and its sums.
pub(super) fn encode_vector(x: &[f32; 8], w: &[f32; 8], scale: f32, shift: f32) -> (Sums, u16) {
    let inverse = 1.0 / scale;
    let index = CODEBOOK.nearest(&x.map(|x| x * inverse - shift), w);
    let mut sums = Sums::default();
    sums.add(w, x, CODEBOOK.entry(index), shift);
    (sums, index)
}

/// Searches scales, shifts and codes with the least weighted error.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockIq1S| {
        let weight = block_weights(x, importance);
        let (vectors, _) = x.as_chunks::<8>();
        let (weights, _) = weight.as_chunks::<8>();
        // The four vectors of a group share the shift.
        let encode = |g: usize, scale: f32| {
            let [up, down] = [DELTA, -DELTA].map(|shift| {
                let (mut sums, mut indices) = (Sums::default(), [0u16; 4]);
                for (l, index) in indices.iter_mut().enumerate() {
                    let i = 4 * g + l;
                    let (vector, found) = encode_vector(&vectors[i], &weights[i], scale, shift);
                    sums = sums.join(vector);
                    *index = found;
                }
                (sums, (indices, shift < 0.0))
            });
            if down.0.error(scale) < up.0.error(scale) { down } else { up }
        };
        let first: [f32; 8] = std::array::from_fn(|g| mean_square(&x[32 * g..32 * (g + 1)]).sqrt());
        let fitted = fit(Search { n_scale: 8, first: &first, factors: FACTORS }, encode);
        block.d = fitted.d;
        for g in 0..8 {
            let (scale, (indices, is_down)) = fitted.groups[g];
            let mut h = u16::from(scale) << 12 | u16::from(is_down) << 15;
            for (l, index) in indices.into_iter().enumerate() {
                block.qs[4 * g + l] = index as u8;
                h |= (index >> 8) << (3 * l);
            }
            block.qh[g] = h.to_le_bytes();
        }
    });
}
