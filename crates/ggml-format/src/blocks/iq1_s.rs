//! iq1_s: eights of ternary values from a codebook of 2048, shifted a little, a 3-bit scale per 32.

use bytemuck::{Pod, Zeroable};

use super::codebook::IQ1_S_GRID;
use super::{Block, F16, QK_K};

/// How far iq1_s and iq1_m shift the ternary values, up or down.
pub(super) const DELTA: f32 = 0.125;

/// `x[i] = d * (2 * scale[i / 32] + 1) * (ternary[i] + delta[i / 32])`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq1S {
    /// Scale of the scales.
    pub d: F16,
    /// Low eight bits of the codebook index of each 8 values.
    pub qs: [u8; QK_K / 8],
    /// For each 32 values a little-endian u16: high three bits of four indices, 3 bits of scale, and the sign
    /// of the shift (set for down).
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
