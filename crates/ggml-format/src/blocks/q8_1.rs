//! q8_1: q8_0 with the sum of the values; ggml's format for activations, not found in model files.

use bytemuck::{Pod, Zeroable};

use super::q8_0;
use crate::blocks::{Block, F16, quantize_blocks};

/// `x[i] = qs[i] * d`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ8_1 {
    /// Scale.
    pub d: F16,
    /// `d` times the sum of the codes, for products with formats that have a minimum.
    pub s: F16,
    /// Codes, in order.
    pub qs: [i8; 32],
}

const _: () = assert!(size_of::<BlockQ8_1>() == 36);

impl Block for BlockQ8_1 {
    const N_ELEM: usize = 32;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (y, &q) in y.iter_mut().zip(&self.qs) {
            *y = f32::from(q) * d;
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite() && self.s.is_finite()
    }
}

/// Like q8_0, plus the sum.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, block: &mut BlockQ8_1| {
        let d;
        (d, block.qs) = q8_0::codes(x);
        let sum: i32 = block.qs.iter().map(|&q| i32::from(q)).sum();
        block.d = F16::from_f32(d);
        block.s = F16::from_f32(sum as f32 * d);
    });
}
