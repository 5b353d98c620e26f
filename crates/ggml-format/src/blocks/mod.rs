//! The bytes of every tensor format: one file per format, with its block struct, its reference
//! dequantiser and, where we have one, its quantiser.
//!
//! Blocks are plain structs of bytes with alignment 1, so that a tensor anywhere in a mapped file can be
//! viewed as blocks without a copy. Numbers wider than a byte are little endian; [`F16`] is a half float.
//! The dequantisers are the oracle for the GPU kernels: each is the formula itself, in f32, in ggml's
//! order of operations, so that results are equal to ggml's bit by bit.

use bytemuck::{Pod, Zeroable};

pub mod codebook;
pub(crate) mod float;
mod grid;
mod integer;
pub(crate) mod iq1_m;
pub(crate) mod iq1_s;
pub(crate) mod iq2_s;
pub(crate) mod iq2_xs;
pub(crate) mod iq2_xxs;
pub(crate) mod iq3_s;
pub(crate) mod iq3_xxs;
pub(crate) mod iq4_nl;
pub(crate) mod iq4_xs;
mod kscale;
mod magnitudes;
pub(crate) mod mxfp4;
pub(crate) mod nvfp4;
pub(crate) mod q1_0;
pub(crate) mod q2_0;
pub(crate) mod q2_k;
pub(crate) mod q3_k;
pub(crate) mod q4_0;
pub(crate) mod q4_1;
pub(crate) mod q4_k;
pub(crate) mod q5_0;
pub(crate) mod q5_1;
pub(crate) mod q5_k;
pub(crate) mod q6_k;
pub(crate) mod q8_0;
pub(crate) mod q8_1;
pub(crate) mod q8_k;
mod search;
pub(crate) mod tq1_0;
pub(crate) mod tq2_0;

pub use float::{ValueBf16, ValueF16, ValueF32, ValueF64};
pub use integer::{ValueI8, ValueI16, ValueI32, ValueI64};
pub use iq1_m::BlockIq1M;
pub use iq1_s::BlockIq1S;
pub use iq2_s::BlockIq2S;
pub use iq2_xs::BlockIq2Xs;
pub use iq2_xxs::BlockIq2Xxs;
pub use iq3_s::BlockIq3S;
pub use iq3_xxs::BlockIq3Xxs;
pub use iq4_nl::{BlockIq4Nl, IQ4_NL_VALUES};
pub use iq4_xs::BlockIq4Xs;
pub use kscale::scale_min_k4;
pub use mxfp4::{BlockMxfp4, E2M1_DOUBLED, e8m0_half};
pub use nvfp4::{BlockNvfp4, ue4m3_half};
pub use q1_0::BlockQ1_0;
pub use q2_0::BlockQ2_0;
pub use q2_k::BlockQ2K;
pub use q3_k::BlockQ3K;
pub use q4_0::BlockQ4_0;
pub use q4_1::BlockQ4_1;
pub use q4_k::BlockQ4K;
pub use q5_0::BlockQ5_0;
pub use q5_1::BlockQ5_1;
pub use q5_k::BlockQ5K;
pub use q6_k::BlockQ6K;
pub use q8_0::BlockQ8_0;
pub use q8_1::BlockQ8_1;
pub use q8_k::BlockQ8K;
pub use tq1_0::BlockTq1_0;
pub use tq2_0::BlockTq2_0;

/// Values in a block of the K, IQ and ternary formats.
pub const QK_K: usize = 256;

/// One block of a format, as it lies in a file.
pub trait Block: Pod {
    /// Values in the block.
    const N_ELEM: usize;

    /// Writes the block's values to `y`, which has [`Self::N_ELEM`] elements.
    fn dequantize(&self, y: &mut [f32]);

    /// Whether no scale of the block is infinite or NaN.
    fn is_valid(&self) -> bool {
        true
    }
}

/// A half float (IEEE binary16) in a file: two bytes, little endian, at any address.
#[repr(transparent)]
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Pod, Zeroable)]
pub struct F16(pub [u8; 2]);

impl F16 {
    /// The value, exactly; subnormal numbers are kept.
    pub fn to_f32(self) -> f32 {
        half::f16::from_le_bytes(self.0).to_f32()
    }

    /// The nearest half float, ties to even; too large values become infinite.
    pub fn from_f32(x: f32) -> F16 {
        F16(half::f16::from_f32(x).to_le_bytes())
    }

    /// Whether the value is neither infinite nor NaN.
    pub fn is_finite(self) -> bool {
        u16::from_le_bytes(self.0) & 0x7c00 != 0x7c00
    }
}

/// Dequantises whole blocks, one after the other.
///
/// # Panics
/// If `bytes` is not a whole number of blocks, or `y` has another number of values.
pub(crate) fn dequantize_blocks<B: Block>(bytes: &[u8], y: &mut [f32]) {
    let blocks: &[B] = bytemuck::cast_slice(bytes);
    assert_eq!(blocks.len() * B::N_ELEM, y.len(), "as many values as the blocks hold");
    for (block, y) in blocks.iter().zip(y.chunks_exact_mut(B::N_ELEM)) {
        block.dequantize(y);
    }
}

/// The index of the first block that [`Block::is_valid`] refuses.
pub(crate) fn invalid_block<B: Block>(bytes: &[u8]) -> Option<usize> {
    bytemuck::cast_slice::<u8, B>(bytes).iter().position(|b| !b.is_valid())
}

/// Quantises a row block by block: `quantize(values of a block, their importance, the block)`.
pub(crate) fn quantize_blocks<B: Block>(
    row: &[f32],
    importance: Option<&[f32]>,
    out: &mut [u8],
    quantize: impl Fn(&[f32], Option<&[f32]>, &mut B),
) {
    let blocks: &mut [B] = bytemuck::cast_slice_mut(out);
    assert_eq!(blocks.len() * B::N_ELEM, row.len(), "as many blocks as the row's values fill");
    if let Some(w) = importance {
        assert_eq!(w.len(), row.len(), "one importance for each column");
    }
    for (i, block) in blocks.iter_mut().enumerate() {
        let range = i * B::N_ELEM..(i + 1) * B::N_ELEM;
        quantize(&row[range.clone()], importance.map(|w| &w[range]), block);
    }
}
