//! q2_K: 256 values as 2-bit steps, with a 4-bit scale and a 4-bit minimum per 16.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, Scales, pairs_of_bits};
use crate::blocks::search::{
    Affine, AffineSearch, affine, affine_by_importance, largest, nearest_int, non_negative, sum_squares,
};
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * scale[i / 16] * code[i] - dmin * min[i / 16]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ2K {
    /// Scale in the low half of a byte, minimum in the high half.
    pub scales: [u8; QK_K / 16],
    /// Codes of 2 bits: byte `32 h + l` holds the values `128 h + 32 k + l` for k = 0..4, lowest bits first.
    pub qs: [u8; QK_K / 4],
    /// Scale of the scales.
    pub d: F16,
    /// Scale of the minima.
    pub dmin: F16,
}

const _: () = assert!(size_of::<BlockQ2K>() == 84);

impl Block for BlockQ2K {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        for (e, y) in y.iter_mut().enumerate() {
            let (h, k, l) = (e / 128, e / 32 % 4, e % 32);
            let scale = self.scales[e / 16];
            let code = (self.qs[32 * h + l] >> (2 * k)) & 3;
            *y = d * f32::from(scale & 15) * f32::from(code) - dmin * f32::from(scale >> 4);
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite() && self.dmin.is_finite()
    }
}

impl Coded for BlockQ2K {
    const GROUP: usize = 16;
    const HAS_MIN: bool = true;
    const BITS: u32 = 2;
    const SCALES: Scales = Scales::Steps;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], min: &mut [f32]) {
        let (d, dmin) = (self.d.scale(), self.dmin.scale());
        pairs_of_bits(&self.qs, 0, code);
        for ((s, m), byte) in scale.iter_mut().zip(min).zip(self.scales) {
            *s = d * f32::from(byte & 15);
            *m = dmin * f32::from(byte >> 4);
        }
    }

    fn steps(&self) -> [F16; 2] {
        [self.d, self.dmin]
    }
}

/// Searches scale and minimum of each group, rounds them to 4 bits, and recomputes the codes.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockQ2K| {
        let mut code = [0u8; QK_K];
        let (mut scales, mut mins, mut weights) = ([0f32; 16], [0f32; 16], [0f32; 16]);
        let sigma2 = sum_squares(x) / QK_K as f32;
        for g in 0..16 {
            let group = 16 * g..16 * (g + 1);
            let (x, code) = (&x[group.clone()], &mut code[group.clone()]);
            Affine { scale: scales[g], offset: mins[g] } = match importance {
                Some(w) => {
                    let w = &w[group];
                    let weight: [f32; 16] = std::array::from_fn(|j| w[j] * (sigma2 + x[j] * x[j]).sqrt());
                    weights[g] = weight.iter().fold(0.0, |sum, w| sum + w);
                    affine_by_importance(3, x, &weight, code)
                }
                None => {
                    let weight: [f32; 16] = std::array::from_fn(|j| x[j].abs());
                    let search =
                        AffineSearch { n_max: 3, first: -0.5, step: 0.1, n_step: 15, absolute_error: true };
                    affine(search, x, &weight, code)
                }
            };
        }
        let mut scale_codes = [0u8; 16];
        let mut min_codes = [0u8; 16];
        let (d, dmin) = if importance.is_some() {
            (
                non_negative(15, &scales, &weights, &mut scale_codes),
                non_negative(15, &mins, &weights, &mut min_codes),
            )
        } else {
            (fifteenths(&scales, &mut scale_codes), fifteenths(&mins, &mut min_codes))
        };
        block.d = F16::from_f32(d);
        block.dmin = F16::from_f32(dmin);
        for g in 0..16 {
            block.scales[g] = scale_codes[g] | (min_codes[g] << 4);
            let scale = block.d.to_f32() * f32::from(scale_codes[g]);
            if scale != 0.0 {
                let min = block.dmin.to_f32() * f32::from(min_codes[g]);
                for e in 16 * g..16 * (g + 1) {
                    code[e] = nearest_int((x[e] + min) / scale).clamp(0, 3) as u8;
                }
            }
        }
        block.qs = [0; QK_K / 4];
        for (e, code) in code.into_iter().enumerate() {
            block.qs[32 * (e / 128) + e % 32] |= code << (2 * (e / 32 % 4));
        }
    });
}

/// Rounds to fifteenths of the largest value; returns the step size.
fn fifteenths(values: &[f32; 16], code: &mut [u8; 16]) -> f32 {
    let max = largest(values);
    if max <= 0.0 {
        return 0.0;
    }
    let inverse = 15.0 / max;
    for (code, value) in code.iter_mut().zip(values) {
        *code = nearest_int(inverse * value) as u8;
    }
    max / 15.0
}
