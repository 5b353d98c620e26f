//! q8_K: 256 values as signed bytes times an f32 scale; ggml's format for activations, not found in files.

use bytemuck::{Pod, Zeroable};

use crate::blocks::search::{nearest_int, signed_extreme};
use crate::blocks::{Block, QK_K, quantize_blocks};

/// `x[i] = qs[i] * d`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ8K {
    /// Scale, a little-endian f32.
    pub d: [u8; 4],
    /// Codes, in order.
    pub qs: [i8; QK_K],
    /// Sums of 16 codes each, little-endian i16.
    pub bsums: [[u8; 2]; 16],
}

const _: () = assert!(size_of::<BlockQ8K>() == 292);

impl Block for BlockQ8K {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = f32::from_le_bytes(self.d);
        for (y, &q) in y.iter_mut().zip(&self.qs) {
            *y = d * f32::from(q);
        }
    }

    fn is_valid(&self) -> bool {
        f32::from_le_bytes(self.d).is_finite()
    }
}

/// Gives the value of largest magnitude the code -127.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, block: &mut BlockQ8K| {
        *block = BlockQ8K::zeroed();
        let max = signed_extreme(x);
        if max == 0.0 {
            return;
        }
        let inverse = -127.0 / max;
        for j in 0..QK_K {
            block.qs[j] = nearest_int(inverse * x[j]).min(127) as i8;
        }
        for (sum, qs) in block.bsums.iter_mut().zip(block.qs.chunks_exact(16)) {
            *sum = qs.iter().map(|&q| i16::from(q)).sum::<i16>().to_le_bytes();
        }
        block.d = (1.0 / inverse).to_le_bytes();
    });
}
