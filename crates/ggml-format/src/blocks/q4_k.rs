//! q4_K: 256 values as 4-bit steps, with a 6-bit scale and a 6-bit minimum per 32.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, Scales, nibbles};
use crate::blocks::kscale::scale_min_k4;
use crate::blocks::search::{KGroups, k_groups};
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * scale[i / 32] * code[i] - dmin * min[i / 32]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ4K {
    /// Scale of the scales.
    pub d: F16,
    /// Scale of the minima.
    pub dmin: F16,
    /// Eight scales and eight minima of 6 bits, see [`scale_min_k4`].
    pub scales: [u8; 12],
    /// Codes: byte `32 c + l` holds value `64 c + l` in its low half, value `64 c + 32 + l` in its high half.
    pub qs: [u8; QK_K / 2],
}

const _: () = assert!(size_of::<BlockQ4K>() == 144);

impl Block for BlockQ4K {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        for g in 0..8 {
            let (scale, min) = scale_min_k4(&self.scales, g);
            let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
            for l in 0..32 {
                let code = (self.qs[32 * (g / 2) + l] >> (4 * (g % 2))) & 15;
                y[32 * g + l] = scale * f32::from(code) - min;
            }
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite() && self.dmin.is_finite()
    }
}

impl Coded for BlockQ4K {
    const GROUP: usize = 32;
    const HAS_MIN: bool = true;
    const BITS: u32 = 4;
    const SCALES: Scales = Scales::Steps;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], min: &mut [f32]) {
        let (d, dmin) = (self.d.scale(), self.dmin.scale());
        for (qs, code) in self.qs.chunks_exact(32).zip(code.chunks_exact_mut(64)) {
            nibbles(qs, 0, code);
        }
        for (g, (s, m)) in scale.iter_mut().zip(min).enumerate() {
            let (scale, min) = scale_min_k4(&self.scales, g);
            (*s, *m) = (d * f32::from(scale), dmin * f32::from(min));
        }
    }

    fn steps(&self) -> [F16; 2] {
        [self.d, self.dmin]
    }
}

/// Searches scale and minimum of each group, rounds them, and recomputes the codes.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockQ4K| {
        let KGroups { d, dmin, scales, code } = k_groups(15, -1.0, 20, x, importance);
        block.d = d;
        block.dmin = dmin;
        block.scales = scales;
        block.qs = std::array::from_fn(|i| {
            let e = 64 * (i / 32) + i % 32;
            code[e] | (code[e + 32] << 4)
        });
    });
}
