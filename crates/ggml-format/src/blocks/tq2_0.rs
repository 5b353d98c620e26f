//! tq2_0: 256 ternary values, four per byte, times one scale.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, pairs_of_bits};
use crate::blocks::search::largest_magnitude;
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = (code[i] - 1) * d`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockTq2_0 {
    /// Codes of 2 bits: byte `32 h + l` holds the values `128 h + 32 k + l` for k = 0..4, lowest bits first.
    pub qs: [u8; QK_K / 4],
    /// Scale.
    pub d: F16,
}

const _: () = assert!(size_of::<BlockTq2_0>() == 66);

impl Block for BlockTq2_0 {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (e, y) in y.iter_mut().enumerate() {
            let (h, k, l) = (e / 128, e / 32 % 4, e % 32);
            let code = (self.qs[32 * h + l] >> (2 * k)) & 3;
            *y = (i32::from(code) - 1) as f32 * d;
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

impl Coded for BlockTq2_0 {
    const GROUP: usize = 32;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        pairs_of_bits(&self.qs, 1, code);
        scale.fill(self.d.scale());
    }
}

/// Rounds to -1, 0 and 1 times the largest magnitude.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, block: &mut BlockTq2_0| {
        let d = largest_magnitude(x);
        let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
        block.d = F16::from_f32(d);
        block.qs = [0; QK_K / 4];
        for (e, &x) in x.iter().enumerate() {
            let (h, k, l) = (e / 128, e / 32 % 4, e % 32);
            let code = (((x * inverse).round() as i32).clamp(-1, 1) + 1) as u8;
            block.qs[32 * h + l] |= code << (2 * k);
        }
    });
}
