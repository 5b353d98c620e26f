//! q5_0: 32 values as signed 5-bit steps with one scale.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, add_bits, nibbles};
use crate::blocks::search::{mean_square, signed_extreme, symmetric};
use crate::blocks::{Block, F16, quantize_blocks};

/// `x[i] = (code[i] - 16) * d`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ5_0 {
    /// Scale; may be negative.
    pub d: F16,
    /// The fifth bits: bit `i` of this little-endian u32 belongs to value `i`.
    pub qh: [u8; 4],
    /// The low four bits: value `j` in the low half of byte `j`, value `j + 16` in the high half.
    pub qs: [u8; 16],
}

const _: () = assert!(size_of::<BlockQ5_0>() == 22);

/// Combines nibbles and fifth bits.
pub(super) fn codes(qh: [u8; 4], qs: &[u8; 16]) -> [u8; 32] {
    let qh = u32::from_le_bytes(qh);
    std::array::from_fn(|i| {
        let nibble = if i < 16 { qs[i] & 15 } else { qs[i - 16] >> 4 };
        nibble | (((qh >> i) & 1) << 4) as u8
    })
}

/// The inverse of [`codes`].
pub(super) fn split_codes(code: &[u8; 32]) -> ([u8; 4], [u8; 16]) {
    let qh = (0..32).fold(0u32, |qh, i| qh | (u32::from(code[i] >> 4) << i));
    (qh.to_le_bytes(), std::array::from_fn(|j| (code[j] & 15) | ((code[j + 16] & 15) << 4)))
}

impl Block for BlockQ5_0 {
    const N_ELEM: usize = 32;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (y, code) in y.iter_mut().zip(codes(self.qh, &self.qs)) {
            *y = (i32::from(code) - 16) as f32 * d;
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

/// The codes of [`codes`], minus `zero`.
pub(super) fn codes_less(qh: [u8; 4], qs: &[u8; 16], zero: i16, code: &mut [i16]) {
    nibbles(qs, zero, code);
    let (low, high) = code.split_at_mut(16);
    add_bits([qh[0], qh[1]], 16, low);
    add_bits([qh[2], qh[3]], 16, high);
}

impl Coded for BlockQ5_0 {
    const GROUP: usize = 32;
    const BITS: u32 = 5;
    const ZERO: i16 = 16;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        codes_less(self.qh, &self.qs, 16, code);
        scale[0] = self.d.scale();
    }
}

/// Without importance: one scale from the extreme value. With importance: a search for the scale with the
/// least error.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    let sigma2 = mean_square(row);
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockQ5_0| {
        let mut code = [0u8; 32];
        if let Some(w) = importance {
            let weight: [f32; 32] = std::array::from_fn(|j| w[j] * (sigma2 + x[j] * x[j]).sqrt());
            block.d = F16::from_f32(symmetric(16, x, &weight, &mut code));
        } else {
            let d = signed_extreme(x) / -16.0;
            let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
            block.d = F16::from_f32(d);
            for j in 0..32 {
                code[j] = ((x[j] * inverse + 16.5) as u8).min(31);
            }
        }
        (block.qh, block.qs) = split_codes(&code);
    });
}
