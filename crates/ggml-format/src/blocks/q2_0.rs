//! q2_0: 64 values from -1, 0, 1 and 2 times one scale.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::Coded;
use crate::blocks::search::largest_magnitude;
use crate::blocks::{Block, F16, quantize_blocks};

/// `x[i] = (code[i] - 1) * d`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ2_0 {
    /// Scale.
    pub d: F16,
    /// Codes of 2 bits, in order, lowest bits first.
    pub qs: [u8; 16],
}

const _: () = assert!(size_of::<BlockQ2_0>() == 18);

impl Block for BlockQ2_0 {
    const N_ELEM: usize = 64;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in y.iter_mut().enumerate() {
            let code = (self.qs[j / 4] >> (2 * (j % 4))) & 3;
            *y = (i32::from(code) - 1) as f32 * d;
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

impl Coded for BlockQ2_0 {
    const GROUP: usize = 32;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        for (code, q) in code.chunks_exact_mut(4).zip(self.qs) {
            for (k, c) in code.iter_mut().enumerate() {
                *c = i16::from((q >> (2 * k)) & 3) - 1;
            }
        }
        scale.fill(self.d.scale());
    }
}

/// Rounds to -1, 0 and 1 times the largest magnitude; the code for 2 is never produced.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, block: &mut BlockQ2_0| {
        let d = largest_magnitude(x);
        let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
        block.d = F16::from_f32(d);
        block.qs = [0; 16];
        for (j, &x) in x.iter().enumerate() {
            let code = (((x * inverse).round() as i32).clamp(-1, 2) + 1) as u8;
            block.qs[j / 4] |= code << (2 * (j % 4));
        }
    });
}
