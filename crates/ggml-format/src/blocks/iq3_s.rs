//! iq3_s: fours of magnitudes from a codebook of 512, a sign bit each, a 4-bit scale per 32.

use bytemuck::{Pod, Zeroable};

use super::codebook::IQ3_S_GRID;
use super::iq2_xxs::signed_magnitudes;
use super::{Block, F16, QK_K};

/// `x[i] = d * (1 + 2 * scale[i / 32]) * magnitude[i] * sign[i]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq3S {
    /// Scale of the scales.
    pub d: F16,
    /// Low eight bits of the codebook index of each 4 values.
    pub qs: [u8; QK_K / 4],
    /// Ninth bits of the codebook indices, eight in a byte.
    pub qh: [u8; QK_K / 32],
    /// Signs: bit `i % 8` of byte `i / 8`; a set bit is a minus.
    pub signs: [u8; QK_K / 8],
    /// Scales of 4 bits, two in a byte.
    pub scales: [u8; QK_K / 64],
}

const _: () = assert!(size_of::<BlockIq3S>() == 110);

impl Block for BlockIq3S {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, y) in y.chunks_exact_mut(4).enumerate() {
            let g = i / 8;
            let high = (self.qh[g] >> (i % 8)) & 1;
            let index = usize::from(self.qs[i]) | usize::from(high) << 8;
            let scale = (self.scales[g / 2] >> (4 * (g % 2))) & 15;
            let db = d * f32::from(1 + 2 * scale);
            signed_magnitudes(db, &IQ3_S_GRID[index], self.signs[i / 2] >> (4 * (i % 2)), y);
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}
