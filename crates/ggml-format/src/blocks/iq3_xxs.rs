//! iq3_xxs: groups of 4 magnitudes from a codebook of 256, signs of even parity, a 4-bit scale per 32.

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};

use super::iq2_xxs::signed_magnitudes;
use crate::blocks::codebook::{IQ3_XXS_GRID, even_signs};
use crate::blocks::grid::{Codebook, block_weights};
use crate::blocks::magnitudes::Magnitudes;
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * (0.5 + scale[i / 32]) / 2 * magnitude[i] * sign[i]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq3Xxs {
    /// Scale of the scales.
    pub d: F16,
    /// Codebook index of each 4 values.
    pub qs: [u8; QK_K / 4],
    /// A little-endian u32 per 32 values: four 7-bit sign indices and, in the top four bits, the scale.
    pub scales_and_signs: [[u8; 4]; QK_K / 32],
}

const _: () = assert!(size_of::<BlockIq3Xxs>() == 98);

impl Block for BlockIq3Xxs {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (g, y) in y.chunks_exact_mut(32).enumerate() {
            let a = u32::from_le_bytes(self.scales_and_signs[g]);
            let db = d * (0.5 + (a >> 28) as f32) * 0.5;
            for (i, y) in y.chunks_exact_mut(4).enumerate() {
                let signs = even_signs(((a >> (7 * (i / 2))) & 127) as u8);
                let magnitudes = &IQ3_XXS_GRID[usize::from(self.qs[8 * g + i])];
                signed_magnitudes(db, magnitudes, signs >> (4 * (i % 2)), y);
            }
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

/// Levels in quarters of the magnitudes.
const LEVELS: [f32; 8] = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.5];

static SEARCH: LazyLock<Magnitudes<4>> = LazyLock::new(|| Magnitudes {
    codebook: Codebook::new(Magnitudes::entries(&IQ3_XXS_GRID, 4.0), &LEVELS, 2),
    group_len: 32,
    even_signs: true,
    tops: TOPS,
});

/// Positions of the largest magnitude of a group that the searches of the iq3 formats try.
pub(super) const TOPS: &[f32] = &[10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0];

/// Searches scales and codes with the least weighted error.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockIq3Xxs| {
        let weight = block_weights(x, importance);
        let (fitted, signs) = SEARCH.fit(x, &weight);
        block.d = fitted.d;
        for g in 0..QK_K / 32 {
            let (scale, indices) = fitted.groups[g];
            let mut a = u32::from(scale) << 28;
            for l in 0..4 {
                a |= u32::from(signs[4 * g + l] & 127) << (7 * l);
            }
            block.scales_and_signs[g] = a.to_le_bytes();
            block.qs[8 * g..8 * (g + 1)].copy_from_slice(&indices.map(|index| index as u8));
        }
    });
}
