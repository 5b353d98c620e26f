//! q5_1: 32 values as 5-bit steps above a minimum.

use bytemuck::{Pod, Zeroable};

use super::q4_1::steps_above_minimum;
use super::q5_0::{codes, codes_less, split_codes};
use crate::blocks::codes::Coded;
use crate::blocks::search::{Affine, affine_by_importance, mean_square};
use crate::blocks::{Block, F16, quantize_blocks};

/// `x[i] = code[i] * d + m`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ5_1 {
    /// Scale.
    pub d: F16,
    /// Minimum, the value of code 0.
    pub m: F16,
    /// The fifth bits: bit `i` of this little-endian u32 belongs to value `i`.
    pub qh: [u8; 4],
    /// The low four bits: value `j` in the low half of byte `j`, value `j + 16` in the high half.
    pub qs: [u8; 16],
}

const _: () = assert!(size_of::<BlockQ5_1>() == 24);

impl Block for BlockQ5_1 {
    const N_ELEM: usize = 32;

    fn dequantize(&self, y: &mut [f32]) {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        for (y, code) in y.iter_mut().zip(codes(self.qh, &self.qs)) {
            *y = f32::from(code) * d + m;
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite() && self.m.is_finite()
    }
}

impl Coded for BlockQ5_1 {
    const GROUP: usize = 32;
    const HAS_MIN: bool = true;
    const BITS: u32 = 5;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], min: &mut [f32]) {
        codes_less(self.qh, &self.qs, 0, code);
        scale[0] = self.d.scale();
        min[0] = -self.m.scale();
    }
}

/// Without importance: the range of the block in 31 steps. With importance: a search for scale and minimum.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    let sigma2 = mean_square(row);
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockQ5_1| {
        let mut code = [0u8; 32];
        let (d, min) = if let Some(w) = importance {
            let weight: [f32; 32] = std::array::from_fn(|j| w[j] * (sigma2 + x[j] * x[j]).sqrt());
            let Affine { scale, offset } = affine_by_importance(31, x, &weight, &mut code);
            (scale, -offset)
        } else {
            steps_above_minimum(31, x, &mut code)
        };
        block.d = F16::from_f32(d);
        block.m = F16::from_f32(min);
        (block.qh, block.qs) = split_codes(&code);
    });
}
