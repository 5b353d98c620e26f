//! iq4_nl: 32 values from sixteen unevenly spaced levels times one scale.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, nibbles};
use crate::blocks::search::{signed_extreme, square_weights, sum_squares};
use crate::blocks::{Block, F16, quantize_blocks};

/// The values of the codes of iq4_nl and iq4_xs.
pub static IQ4_NL_VALUES: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// `x[i] = d * IQ4_NL_VALUES[code[i]]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq4Nl {
    /// Scale; may be negative.
    pub d: F16,
    /// Codes: value `j` in the low half of byte `j`, value `j + 16` in the high half.
    pub qs: [u8; 16],
}

const _: () = assert!(size_of::<BlockIq4Nl>() == 18);

impl Block for BlockIq4Nl {
    const N_ELEM: usize = 32;

    fn dequantize(&self, y: &mut [f32]) {
        dequantize_codes(self.d.to_f32(), &self.qs, y);
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

impl Coded for BlockIq4Nl {
    const GROUP: usize = 32;
    const TABLE: Option<&'static [i8; 16]> = Some(&IQ4_NL_VALUES);
    const BITS: u32 = 4;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        nibbles(&self.qs, 0, code);
        scale[0] = self.d.scale();
    }
}

/// Writes the 32 values of 16 bytes of codes.
pub(super) fn dequantize_codes(d: f32, qs: &[u8], y: &mut [f32]) {
    for j in 0..16 {
        y[j] = d * f32::from(IQ4_NL_VALUES[usize::from(qs[j] & 15)]);
        y[j + 16] = d * f32::from(IQ4_NL_VALUES[usize::from(qs[j] >> 4)]);
    }
}

/// Searches the scale with the least weighted error.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockIq4Nl| {
        let sigma2 = sum_squares(x) * 2.0 / 32.0;
        let scale = best_scale(x, &square_weights::<32>(x, importance, sigma2));
        let inverse = if scale != 0.0 { 1.0 / scale } else { 0.0 };
        block.d = F16::from_f32(scale);
        block.qs = pack(&std::array::from_fn(|j| nearest_code(inverse * x[j])));
    });
}

/// Maps the extreme value to code 0 to get the codes, then fits the scale with the least error to them:
/// little worse than a search, and fast enough for values that are written all the time, such as the KV
/// cache.
pub(crate) fn quantize_fast(row: &[f32], out: &mut [u8]) {
    quantize_blocks(row, None, out, |x, _, block: &mut BlockIq4Nl| {
        let max = signed_extreme(x);
        let is_some = max.abs() >= crate::blocks::search::EPSILON;
        let inverse = if is_some { f32::from(IQ4_NL_VALUES[0]) / max } else { 0.0 };
        let code: [u8; 32] = std::array::from_fn(|j| nearest_code(inverse * x[j]));
        let (mut sum_qx, mut sum_q2) = (0.0f32, 0.0f32);
        for (&x, &code) in x.iter().zip(&code) {
            let q = f32::from(IQ4_NL_VALUES[usize::from(code)]);
            sum_qx += x * x * q * x;
            sum_q2 += x * x * q * q;
        }
        block.d = F16::from_f32(if is_some { sum_qx / sum_q2 } else { 0.0 });
        block.qs = pack(&code);
    });
}

/// Two codes per byte, in the order of [`BlockIq4Nl::qs`].
pub(super) fn pack(code: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|j| code[j] | (code[j + 16] << 4))
}

/// The code whose value is nearest to `x`, the larger one in a tie.
pub(super) fn nearest_code(x: f32) -> u8 {
    let above = IQ4_NL_VALUES.partition_point(|&v| f32::from(v) <= x);
    match above {
        0 => 0,
        16 => 15,
        _ => {
            let (low, high) = (f32::from(IQ4_NL_VALUES[above - 1]), f32::from(IQ4_NL_VALUES[above]));
            (if x - low < high - x { above - 1 } else { above }) as u8
        }
    }
}

/// The scale with the least weighted square error among 15 that map the extreme value near code 0.
///
/// If all weights are zero, errors are weighted by the squares of the values.
pub(super) fn best_scale(x: &[f32], weight: &[f32]) -> f32 {
    const N_TRY: i32 = 7;
    let max = signed_extreme(x);
    if max.abs() < crate::blocks::search::EPSILON {
        return 0.0;
    }
    if weight.iter().all(|&w| w == 0.0) {
        return best_scale(x, &square_weights::<32>(x, None, 0.0));
    }
    let sums = |inverse: f32| {
        let (mut sum_qx, mut sum_q2) = (0.0f32, 0.0f32);
        for (&x, &w) in x.iter().zip(weight) {
            let q = f32::from(IQ4_NL_VALUES[usize::from(nearest_code(inverse * x))]);
            sum_qx += w * q * x;
            sum_q2 += w * q * q;
        }
        (sum_qx, sum_q2)
    };
    let first = f32::from(IQ4_NL_VALUES[0]);
    let (sum_qx, sum_q2) = sums(1.0 / (-max / first));
    let mut scale = if sum_q2 > 0.0 { sum_qx / sum_q2 } else { 0.0 };
    let mut best = scale * sum_qx;
    for step in -N_TRY..=N_TRY {
        let (sum_qx, sum_q2) = sums((step as f32 + first) / max);
        if sum_q2 > 0.0 && sum_qx * sum_qx > best * sum_q2 {
            scale = sum_qx / sum_q2;
            best = scale * sum_qx;
        }
    }
    scale
}
