//! q1_0: 128 signs times one scale.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, add_bits};
use crate::blocks::{Block, F16, quantize_blocks};

/// `x[i] = d` where bit `i` is set, else `-d`; there is no zero.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ1_0 {
    /// Scale.
    pub d: F16,
    /// Signs: bit `j % 8` of byte `j / 8` belongs to value `j`.
    pub qs: [u8; 16],
}

const _: () = assert!(size_of::<BlockQ1_0>() == 18);

impl Block for BlockQ1_0 {
    const N_ELEM: usize = 128;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in y.iter_mut().enumerate() {
            *y = if (self.qs[j / 8] >> (j % 8)) & 1 == 1 { d } else { -d };
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

impl Coded for BlockQ1_0 {
    const GROUP: usize = 32;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        code.fill(-1);
        for (bits, code) in self.qs.chunks_exact(2).zip(code.chunks_exact_mut(16)) {
            add_bits([bits[0], bits[1]], 2, code);
        }
        scale.fill(self.d.scale());
    }
}

/// The scale is the mean magnitude.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, block: &mut BlockQ1_0| {
        let sum: f32 = x.iter().fold(0.0, |sum, x| sum + x.abs());
        block.d = F16::from_f32(sum / 128.0);
        block.qs = [0; 16];
        for (j, &x) in x.iter().enumerate() {
            block.qs[j / 8] |= u8::from(x >= 0.0) << (j % 8);
        }
    });
}
