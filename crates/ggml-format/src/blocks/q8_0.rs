//! q8_0: 32 values as signed bytes times one scale.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::Coded;
use crate::blocks::search::largest_magnitude;
use crate::blocks::{Block, F16, quantize_blocks};

/// `x[i] = qs[i] * d`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ8_0 {
    /// Scale.
    pub d: F16,
    /// Codes, in order.
    pub qs: [i8; 32],
}

const _: () = assert!(size_of::<BlockQ8_0>() == 34);

impl Block for BlockQ8_0 {
    const N_ELEM: usize = 32;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (y, &q) in y.iter_mut().zip(&self.qs) {
            *y = f32::from(q) * d;
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

impl Coded for BlockQ8_0 {
    const GROUP: usize = 32;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        for (code, q) in code.iter_mut().zip(self.qs) {
            *code = i16::from(q);
        }
        scale[0] = self.d.scale();
    }
}

/// Rounds to 127 steps of the largest magnitude; importance has no effect.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, block: &mut BlockQ8_0| {
        let d;
        (d, block.qs) = codes(x);
        block.d = F16::from_f32(d);
    });
}

/// The unrounded scale and the codes of 32 values; ties are rounded away from zero.
pub(super) fn codes(x: &[f32]) -> (f32, [i8; 32]) {
    let d = largest_magnitude(x) / 127.0;
    let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
    (d, std::array::from_fn(|j| (x[j] * inverse).round() as i8))
}
