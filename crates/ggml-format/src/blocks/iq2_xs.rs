//! iq2_xs: eights of magnitudes from a codebook of 512, signs of even parity, a 4-bit scale per 16.

use bytemuck::{Pod, Zeroable};

use super::codebook::{IQ2_XS_GRID, even_signs};
use super::iq2_xxs::signed_magnitudes;
use super::{Block, F16, QK_K};

/// `x[i] = d * (0.5 + scale[i / 16]) / 4 * magnitude[i] * sign[i]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq2Xs {
    /// Scale of the scales.
    pub d: F16,
    /// For each 8 values a little-endian u16: codebook index in 9 bits, sign index in 7.
    pub qs: [[u8; 2]; QK_K / 8],
    /// Scales of 4 bits, two in a byte.
    pub scales: [u8; QK_K / 32],
}

const _: () = assert!(size_of::<BlockIq2Xs>() == 74);

impl Block for BlockIq2Xs {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, y) in y.chunks_exact_mut(8).enumerate() {
            let q = u16::from_le_bytes(self.qs[i]);
            let scale = (self.scales[i / 4] >> (4 * (i / 2 % 2))) & 15;
            let db = d * (0.5 + f32::from(scale)) * 0.25;
            signed_magnitudes(db, &IQ2_XS_GRID[usize::from(q & 511)], even_signs((q >> 9) as u8), y);
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}
