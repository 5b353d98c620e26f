//! iq2_xs: groups of 8 magnitudes from a codebook of 512, signs of even parity, a 4-bit scale per 16.

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};

use super::iq2_xxs::{LEVELS, TOPS, signed_magnitudes};
use crate::blocks::codebook::{IQ2_XS_GRID, even_signs};
use crate::blocks::grid::{Codebook, block_weights};
use crate::blocks::magnitudes::Magnitudes;
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * (0.5 + scale[i / 16]) / 4 * magnitude[i] * sign[i]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq2Xs {
    /// Scale of the scales.
    pub d: F16,
    /// A little-endian u16 per 8 values: codebook index in 9 bits, sign index in 7.
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

static SEARCH: LazyLock<Magnitudes<8>> = LazyLock::new(|| Magnitudes {
    codebook: Codebook::new(Magnitudes::entries(&IQ2_XS_GRID, 8.0), &LEVELS, 2),
    group_len: 16,
    even_signs: true,
    tops: TOPS,
});

/// Searches scales and codes with the least weighted error.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockIq2Xs| {
        let weight = block_weights(x, importance);
        let (fitted, signs) = SEARCH.fit(x, &weight);
        *block = BlockIq2Xs { d: fitted.d, ..BlockIq2Xs::zeroed() };
        for i in 0..QK_K / 8 {
            let (scale, indices) = fitted.groups[i / 2];
            block.qs[i] = (indices[i % 2] | u16::from(signs[i] & 127) << 9).to_le_bytes();
            if i % 2 == 0 {
                block.scales[i / 4] |= scale << (4 * (i / 2 % 2));
            }
        }
    });
}
