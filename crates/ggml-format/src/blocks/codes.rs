//! Integer codes and scales: the values of most formats are products of the two, and CPUs are fastest at
//! integer dot products.

use wide::{i16x8, u8x16};

use super::isa::{Compiled, compiled};
use super::{Block, F16};

/// A block whose values are `scale * code - min`: an integer code per value, and a scale and a minimum per
/// group.
pub trait Coded: Block {
    /// Group length in values: 16 or 32.
    const GROUP: usize;

    /// True if the groups have minima; otherwise all are 0 and are not written.
    const HAS_MIN: bool = false;

    /// The values of 4-bit codes, if these are indices.
    const TABLE: Option<&'static [i8; 16]> = None;

    /// Bits of a code plus [`Self::ZERO`], which is not negative: 1 to 6, or 8.
    const BITS: u32 = 8;

    /// Added to codes where they are stored without a sign.
    const ZERO: i16 = if Self::BITS == 8 { 128 } else { 0 };

    /// Form of the scales and minima.
    const SCALES: Scales = Scales::Half;

    /// Writes the codes, which all fit 8 bits, and for each group its scale and, with [`Self::HAS_MIN`], its
    /// minimum. `scale * code - min`, in this order and in f32, equals the output of [`Block::dequantize`].
    fn codes(&self, code: &mut [i16], scale: &mut [f32], min: &mut [f32]);

    /// With [`Scales::Steps`] the value of a step of the scales and of the minima, in a block of 256 values.
    fn steps(&self) -> [F16; 2] {
        [F16::default(); 2]
    }
}

/// Forms in which scales and minima are exact.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scales {
    /// Half floats.
    Half,
    /// Signed bytes times half floats, one for all scales of a block and one for all minima.
    Steps,
    /// Scales are f32, and there are no minima.
    Single,
}

/// Access to the codes of a format.
#[derive(Copy, Clone, Debug)]
pub struct Codes {
    /// Values that share a scale: 16 or 32.
    pub group: usize,
    /// True if groups have minima.
    pub has_min: bool,
    /// Unpacks blocks into a chunk, also compiled for other instruction sets.
    pub(crate) chunk: fn(&[u8], &mut Chunk),
    pub(crate) compiled: Compiled<ChunkFor>,
    /// [`Coded::TABLE`]
    pub(crate) table: Option<&'static [i8; 16]>,
    /// Values and bytes of a block.
    block: (usize, usize),
}

/// [`Codes::chunk`] with instructions that the CPU may lack.
pub(crate) type ChunkFor = unsafe fn(&[u8], &mut Chunk);

impl Codes {
    pub(crate) const fn of<B: Coded>() -> Codes {
        const { assert!(B::GROUP == 16 || B::GROUP == 32, "products take codes in groups of 16 or 32") };
        let compiled = compiled!(ChunkFor, chunk::<B>, (bytes: &[u8], to: &mut Chunk), B: Coded);
        let (group, has_min, table) = (B::GROUP, B::HAS_MIN, B::TABLE);
        Codes { group, has_min, chunk: chunk::<B>, compiled, table, block: (B::N_ELEM, size_of::<B>()) }
    }

    /// Unpacks consecutive whole blocks: codes, scales, minima (an empty slice if there are none).
    ///
    /// # Panics
    /// If `bytes` is not a whole number of blocks, or an output slice has the wrong length.
    pub fn unpack(&self, bytes: &[u8], code: &mut [i16], scale: &mut [f32], min: &mut [f32]) {
        let (block_len, block_bytes) = self.block;
        assert_eq!(bytes.len() % block_bytes, 0, "whole blocks");
        assert_eq!(bytes.len() / block_bytes * block_len, code.len(), "as many codes as the blocks hold");
        assert_eq!(code.len() / self.group, scale.len(), "a scale for each group");
        assert_eq!(
            if self.has_min { scale.len() } else { 0 },
            min.len(),
            "a minimum for each group that has one"
        );
        let mut chunk = Chunk::ZERO;
        for (i, bytes) in bytes.chunks(CHUNK / block_len * block_bytes).enumerate() {
            (self.chunk)(bytes, &mut chunk);
            let codes = i * CHUNK..(i * CHUNK + bytes.len() / block_bytes * block_len);
            let groups = codes.start / self.group..codes.end / self.group;
            let n_group = groups.len();
            for (to, from) in code[codes].iter_mut().zip(chunk.code) {
                *to = self.table.map_or(from, |table| i16::from(table[from as usize]));
            }
            scale[groups.clone()].copy_from_slice(&chunk.scale[..n_group]);
            if self.has_min {
                min[groups].copy_from_slice(&chunk.min[..n_group]);
            }
        }
    }
}

/// Values that products unpack at once: whole blocks of every format.
pub(crate) const CHUNK: usize = 256;

/// Part of a row as codes, which may be indices of [`Codes::table`].
#[repr(C, align(64))]
#[derive(Copy, Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) code: [i16; CHUNK],
    /// For each group.
    pub(crate) scale: [f32; CHUNK / 16],
    /// Likewise; unchanged for formats without.
    pub(crate) min: [f32; CHUNK / 16],
}

impl Chunk {
    pub(crate) const ZERO: Chunk =
        Chunk { code: [0; CHUNK], scale: [0.0; CHUNK / 16], min: [0.0; CHUNK / 16] };
}

/// Unpacks blocks into a chunk, without looking codes up.
///
/// # Panics
/// If `bytes` is not a whole number of blocks.
#[inline(always)]
pub(crate) fn chunk<B: Coded>(bytes: &[u8], to: &mut Chunk) {
    let blocks: &[B] = bytemuck::cast_slice(bytes);
    let n_group = B::N_ELEM / B::GROUP;
    let scales = to.scale.chunks_exact_mut(n_group).zip(to.min.chunks_exact_mut(n_group));
    for (block, (code, (scale, min))) in blocks.iter().zip(to.code.chunks_exact_mut(B::N_ELEM).zip(scales)) {
        block.codes(code, scale, if B::HAS_MIN { min } else { &mut [] });
    }
}

/// The two codes of each byte, first all low nibbles, then all high nibbles, minus `zero`, of 16 or 32 bytes. A loop
/// over 32 becomes vectors of any instruction set; one over 16 becomes vectors across blocks, which are slow.
#[inline(always)]
pub(crate) fn nibbles(qs: &[u8], zero: i16, code: &mut [i16]) {
    let (low, high) = code.split_at_mut(qs.len());
    if let ([qs], []) = qs.as_chunks::<32>() {
        let (low, high) = (&mut low[..32], &mut high[..32]);
        for i in 0..32 {
            low[i] = i16::from(qs[i] & 15) - zero;
            high[i] = i16::from(qs[i] >> 4) - zero;
        }
    } else {
        let halves = low.as_chunks_mut::<16>().0.iter_mut().zip(high.as_chunks_mut::<16>().0);
        for (q, (low, high)) in qs.as_chunks::<16>().0.iter().zip(halves) {
            let q = [i16x8::from_u8x16_low(u8x16::from(*q)), i16x8::from_u8x16_high(u8x16::from(*q))];
            *low = bytemuck::cast(q.map(|q| (q & i16x8::splat(15)) - i16x8::splat(zero)));
            *high = bytemuck::cast(q.map(|q| (q >> 4u32) - i16x8::splat(zero)));
        }
    }
}

/// Codes of two bits, four per byte: byte `32 h + l` of `qs` holds those of the values `128 h + 32 k + l`,
/// lowest bits first.
#[inline(always)]
pub(crate) fn pairs_of_bits(qs: &[u8], zero: i16, code: &mut [i16]) {
    for (qs, code) in qs.as_chunks::<32>().0.iter().zip(code.as_chunks_mut::<128>().0) {
        for (k, code) in code.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for l in 0..32 {
                code[l] = i16::from((qs[l] >> (2 * k)) & 3) - zero;
            }
        }
    }
}

/// Adds `value` to each of 16 codes whose bit is set.
#[inline(always)]
pub(crate) fn add_bits(bits: [u8; 2], value: i16, code: &mut [i16]) {
    let each = i16x8::new([1, 2, 4, 8, 16, 32, 64, 128]);
    for (bits, code) in bits.into_iter().zip(code.as_chunks_mut::<8>().0) {
        let set = (i16x8::splat(i16::from(bits)) & each).simd_eq(each);
        *code = (i16x8::new(*code) + (set & i16x8::splat(value))).to_array();
    }
}
