//! Code shared by the tensor formats: the definition of a block, conversion block by block, and the quantiser
//! searches. Each format has a file in this folder; the only list of them is in `types.rs`.
//!
//! Blocks are plain structs of bytes with alignment 1, so that a tensor anywhere in a mapped file can be
//! viewed as blocks without a copy. Numbers wider than a byte are little-endian; [`F16`] is a half float. The
//! dequantisers are the reference for the GPU kernels: each is the formula itself, in f32, in ggml's order of
//! operations, so that results equal ggml's bit by bit.

use bytemuck::{Pod, Zeroable};

pub mod codebook;
pub mod codes;
pub(crate) mod grid;
pub mod isa;
pub mod kscale;
pub(crate) mod magnitudes;
pub(crate) mod search;

/// Values in a block of the K, IQ and ternary formats.
pub const QK_K: usize = 256;

/// One block of a format, as stored in a file.
pub trait Block: Pod {
    /// Values in the block.
    const N_ELEM: usize;

    /// Writes the block's values to `y`, which has [`Self::N_ELEM`] elements.
    fn dequantize(&self, y: &mut [f32]);

    /// True if no scale of the block is infinite or NaN.
    fn is_valid(&self) -> bool {
        true
    }
}

/// A half float (IEEE binary16) in a file: two bytes, little-endian, at any address.
#[repr(transparent)]
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Pod, Zeroable)]
pub struct F16(pub [u8; 2]);

impl F16 {
    /// The exact value, including subnormal numbers.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        // Without branches, so that loops over it vectorise, and without operations on subnormal numbers, which take
        // CPUs a hundred times as long.
        const REBIAS: u32 = 127 - 15;
        let bits = u32::from(u16::from_le_bytes(self.0));
        let magnitude = (bits & 0x7fff) << 13;
        // 2^-14 (1 + m) - 2^-14 for the subnormal number 2^-14 m.
        let smallest = (REBIAS + 1) << 23;
        let subnormal = f32::from_bits(magnitude + smallest) - f32::from_bits(smallest);
        let normal = magnitude + (REBIAS << 23);
        let finite = if magnitude < 0x0400 << 13 { subnormal.to_bits() } else { normal };
        let value = if magnitude < 0x7c00 << 13 { finite } else { magnitude | 0x7f80_0000 };
        f32::from_bits(value | (bits & 0x8000) << 16)
    }

    /// The same for single values: faster, but loops over it do not vectorise.
    #[inline(always)]
    pub(crate) fn scale(self) -> f32 {
        let bits = u32::from(u16::from_le_bytes(self.0));
        // Normal numbers.
        if (bits & 0x7c00).wrapping_sub(0x0400) < 0x7800 {
            f32::from_bits((((bits & 0x7fff) << 13) + ((127 - 15) << 23)) | (bits & 0x8000) << 16)
        } else {
            self.to_f32()
        }
    }

    /// The nearest half float, ties to even; too large values become infinite.
    pub fn from_f32(x: f32) -> F16 {
        F16(half::f16::from_f32(x).to_le_bytes())
    }

    /// True if the value is neither infinite nor NaN.
    pub fn is_finite(self) -> bool {
        u16::from_le_bytes(self.0) & 0x7c00 != 0x7c00
    }
}

/// Dequantises consecutive whole blocks.
///
/// # Panics
/// If `bytes` is not a whole number of blocks, or `y` has a different number of values.
#[inline(always)]
pub(crate) fn dequantize_blocks<B: Block>(bytes: &[u8], y: &mut [f32]) {
    let blocks: &[B] = bytemuck::cast_slice(bytes);
    assert_eq!(blocks.len() * B::N_ELEM, y.len(), "as many values as the blocks hold");
    for (block, y) in blocks.iter().zip(y.chunks_exact_mut(B::N_ELEM)) {
        block.dequantize(y);
    }
}

/// The index of the first block that fails [`Block::is_valid`].
pub(crate) fn invalid_block<B: Block>(bytes: &[u8]) -> Option<usize> {
    bytemuck::cast_slice::<u8, B>(bytes).iter().position(|b| !b.is_valid())
}

/// Quantises a row block by block: `quantize(values of a block, their importance, the block)`.
///
/// A block whose columns all have zero importance is quantised without importance: otherwise any scale would
/// do, and the values would be lost.
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
        let importance = importance.map(|w| &w[range.clone()]).filter(|w| w.iter().any(|&w| w > 0.0));
        quantize(&row[range], importance, block);
    }
}
