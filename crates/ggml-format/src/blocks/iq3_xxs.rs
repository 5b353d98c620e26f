//! iq3_xxs: fours of magnitudes from a codebook of 256, signs of even parity, a 4-bit scale per 32.

use bytemuck::{Pod, Zeroable};

use super::codebook::{IQ3_XXS_GRID, even_signs};
use super::iq2_xxs::signed_magnitudes;
use super::{Block, F16, QK_K};

/// `x[i] = d * (0.5 + scale[i / 32]) / 2 * magnitude[i] * sign[i]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq3Xxs {
    /// Scale of the scales.
    pub d: F16,
    /// Codebook index of each 4 values.
    pub qs: [u8; QK_K / 4],
    /// For each 32 values a little-endian u32: four 7-bit sign indices and, in the top four bits, the scale.
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
