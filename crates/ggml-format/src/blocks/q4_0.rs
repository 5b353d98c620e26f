//! q4_0: 32 values as signed 4-bit steps with one scale.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, nibbles};
use crate::blocks::search::{mean_square, signed_extreme, symmetric};
use crate::blocks::{Block, F16, quantize_blocks};

/// `x[i] = (code[i] - 8) * d`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ4_0 {
    /// Scale; often negative, because the value of largest magnitude gets code 0.
    pub d: F16,
    /// Codes: value `j` in the low half of byte `j`, value `j + 16` in the high half.
    pub qs: [u8; 16],
}

const _: () = assert!(size_of::<BlockQ4_0>() == 18);

impl Block for BlockQ4_0 {
    const N_ELEM: usize = 32;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for j in 0..16 {
            y[j] = (i32::from(self.qs[j] & 15) - 8) as f32 * d;
            y[j + 16] = (i32::from(self.qs[j] >> 4) - 8) as f32 * d;
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

impl Coded for BlockQ4_0 {
    const GROUP: usize = 32;
    const BITS: u32 = 4;
    const ZERO: i16 = 8;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        nibbles(&self.qs, 8, code);
        scale[0] = self.d.scale();
    }
}

/// Without importance: one scale from the extreme value. With importance: a search for the scale with the
/// least error.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    let sigma2 = mean_square(row);
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockQ4_0| {
        let mut code = [0u8; 32];
        if let Some(w) = importance {
            let weight: [f32; 32] = std::array::from_fn(|j| w[j] * (sigma2 + x[j] * x[j]).sqrt());
            block.d = F16::from_f32(symmetric(8, x, &weight, &mut code));
        } else {
            let d = signed_extreme(x) / -8.0;
            let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
            block.d = F16::from_f32(d);
            for j in 0..32 {
                code[j] = ((x[j] * inverse + 8.5) as u8).min(15);
            }
        }
        block.qs = std::array::from_fn(|j| code[j] | (code[j + 16] << 4));
    });
}
