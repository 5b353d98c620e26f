//! q4_1: 32 values as 4-bit steps above a minimum.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, nibbles};
use crate::blocks::search::{Affine, affine_by_importance, mean_square, min_max};
use crate::blocks::{Block, F16, quantize_blocks};

/// `x[i] = code[i] * d + m`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ4_1 {
    /// Scale.
    pub d: F16,
    /// Minimum, the value of code 0.
    pub m: F16,
    /// Codes: value `j` in the low half of byte `j`, value `j + 16` in the high half.
    pub qs: [u8; 16],
}

const _: () = assert!(size_of::<BlockQ4_1>() == 20);

impl Block for BlockQ4_1 {
    const N_ELEM: usize = 32;

    fn dequantize(&self, y: &mut [f32]) {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        for j in 0..16 {
            y[j] = f32::from(self.qs[j] & 15) * d + m;
            y[j + 16] = f32::from(self.qs[j] >> 4) * d + m;
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite() && self.m.is_finite()
    }
}

impl Coded for BlockQ4_1 {
    const GROUP: usize = 32;
    const HAS_MIN: bool = true;
    const BITS: u32 = 4;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], min: &mut [f32]) {
        nibbles(&self.qs, 0, code);
        scale[0] = self.d.scale();
        min[0] = -self.m.scale();
    }
}

/// Without importance: the range of the block in 15 steps. With importance: a search for scale and minimum.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    let sigma2 = mean_square(row);
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockQ4_1| {
        let mut code = [0u8; 32];
        let (d, min) = if let Some(w) = importance {
            let weight: [f32; 32] = std::array::from_fn(|j| w[j] * (sigma2 + x[j] * x[j]).sqrt());
            let Affine { scale, offset } = affine_by_importance(15, x, &weight, &mut code);
            (scale, -offset)
        } else {
            steps_above_minimum(15, x, &mut code)
        };
        block.d = F16::from_f32(d);
        block.m = F16::from_f32(min);
        block.qs = std::array::from_fn(|j| code[j] | (code[j + 16] << 4));
    });
}

/// Divides the range of `x` into `n_max` steps; returns the step and the minimum.
pub(super) fn steps_above_minimum(n_max: u8, x: &[f32], code: &mut [u8]) -> (f32, f32) {
    let (min, max) = min_max(x);
    let d = (max - min) / f32::from(n_max);
    let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
    for (code, &x) in code.iter_mut().zip(x) {
        *code = (((x - min) * inverse + 0.5) as u8).min(n_max);
    }
    (d, min)
}
