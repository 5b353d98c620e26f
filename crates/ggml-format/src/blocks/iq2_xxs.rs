//! iq2_xxs: groups of 8 magnitudes from a codebook of 256, signs of even parity, a 4-bit scale per 32.

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};

use crate::blocks::codebook::{IQ2_XXS_GRID, even_signs};
use crate::blocks::grid::{Codebook, block_weights};
use crate::blocks::magnitudes::Magnitudes;
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * (0.5 + scale[i / 32]) / 4 * magnitude[i] * sign[i]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq2Xxs {
    /// Scale of the scales.
    pub d: F16,
    /// Per 32 values: four codebook indices, then a little-endian u32 with four 7-bit sign indices and, in
    /// its top four bits, the scale.
    pub qs: [[u8; 8]; QK_K / 32],
}

const _: () = assert!(size_of::<BlockIq2Xxs>() == 66);

impl Block for BlockIq2Xxs {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (qs, y) in self.qs.iter().zip(y.chunks_exact_mut(32)) {
            let a = u32::from_le_bytes([qs[4], qs[5], qs[6], qs[7]]);
            let db = d * (0.5 + (a >> 28) as f32) * 0.25;
            for l in 0..4 {
                let signs = even_signs(((a >> (7 * l)) & 127) as u8);
                signed_magnitudes(db, &IQ2_XXS_GRID[usize::from(qs[l])], signs, &mut y[8 * l..]);
            }
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

/// Levels of the iq2 formats, in eighths of the magnitudes.
pub(super) const LEVELS: [f32; 3] = [1.0, 25.0 / 8.0, 43.0 / 8.0];

static SEARCH: LazyLock<Magnitudes<8>> = LazyLock::new(|| Magnitudes {
    codebook: Codebook::new(Magnitudes::entries(&IQ2_XXS_GRID, 8.0), &LEVELS, 2),
    group_len: 32,
    even_signs: true,
    tops: TOPS,
});

/// Positions of the largest magnitude of a group that the searches of the iq2 formats try.
pub(super) const TOPS: &[f32] = &[3.4, 3.9, 4.4, 4.9, 5.4, 5.9, 6.5, 7.2];

/// Searches scales and codes with the least weighted error.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockIq2Xxs| {
        let weight = block_weights(x, importance);
        let (fitted, signs) = SEARCH.fit(x, &weight);
        block.d = fitted.d;
        for (g, qs) in block.qs.iter_mut().enumerate() {
            let (scale, indices) = fitted.groups[g];
            let mut a = u32::from(scale) << 28;
            for l in 0..4 {
                qs[l] = indices[l] as u8;
                a |= u32::from(signs[4 * g + l] & 127) << (7 * l);
            }
            qs[4..].copy_from_slice(&a.to_le_bytes());
        }
    });
}

/// Writes `d` times the magnitudes; where bit `j` of `signs` is set, value `j` is negated.
pub(super) fn signed_magnitudes(d: f32, magnitudes: &[u8], signs: u8, y: &mut [f32]) {
    for (j, &magnitude) in magnitudes.iter().enumerate() {
        let sign = if (signs >> j) & 1 == 1 { -1.0 } else { 1.0 };
        y[j] = d * f32::from(magnitude) * sign;
    }
}
