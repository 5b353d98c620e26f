//! Integer codes and scales: the values of most formats are products of the two, and CPUs are fastest at
//! integer dot products.

use wide::{i16x8, u8x16};

use super::Block;

/// A block whose values are `scale * code - min`: an integer code per value, and a scale and a minimum per
/// group.
pub trait Coded: Block {
    /// Group length in values: 16 or 32.
    const GROUP: usize;

    /// True if the groups have minima; otherwise all are 0 and are not written.
    const HAS_MIN: bool = false;

    /// Writes the codes, which all fit 8 bits, and for each group its scale and, with [`Self::HAS_MIN`], its
    /// minimum. `scale * code - min`, in this order and in f32, equals the output of [`Block::dequantize`].
    fn codes(&self, code: &mut [i16], scale: &mut [f32], min: &mut [f32]);
}

/// Unpacks consecutive whole blocks: codes, scales, minima (an empty slice if there are none).
pub type CodesFn = fn(&[u8], &mut [i16], &mut [f32], &mut [f32]);

/// Access to the codes of a format.
#[derive(Copy, Clone, Debug)]
pub struct Codes {
    /// Values that share a scale: 16 or 32.
    pub group: usize,
    /// True if groups have minima.
    pub has_min: bool,
    /// Unpacks blocks.
    pub unpack: CodesFn,
}

impl Codes {
    pub(crate) const fn of<B: Coded>() -> Codes {
        const { assert!(B::GROUP == 16 || B::GROUP == 32, "products take codes in groups of 16 or 32") };
        Codes { group: B::GROUP, has_min: B::HAS_MIN, unpack: unpack::<B> }
    }
}

/// # Panics
/// If `bytes` is not a whole number of blocks, or an output slice has the wrong length.
fn unpack<B: Coded>(bytes: &[u8], code: &mut [i16], scale: &mut [f32], min: &mut [f32]) {
    let blocks: &[B] = bytemuck::cast_slice(bytes);
    let n_group = B::N_ELEM / B::GROUP;
    assert_eq!(blocks.len() * B::N_ELEM, code.len(), "as many codes as the blocks hold");
    assert_eq!(blocks.len() * n_group, scale.len(), "a scale for each group");
    if B::HAS_MIN {
        assert_eq!(scale.len(), min.len(), "a minimum for each group");
    }
    let parts = code.chunks_exact_mut(B::N_ELEM).zip(scale.chunks_exact_mut(n_group));
    for (i, (block, (code, scale))) in blocks.iter().zip(parts).enumerate() {
        let min = if B::HAS_MIN { &mut min[i * n_group..][..n_group] } else { &mut [][..] };
        block.codes(code, scale, min);
    }
}

/// Sixteen bytes as numbers. Loops over all weights use vector types explicitly: compilers do not vectorise
/// loops when they optimise for size, as for browsers.
pub(crate) fn numbers(bytes: &[u8]) -> [i16x8; 2] {
    let bytes = u8x16::from(*bytes.first_chunk::<16>().expect("sixteen bytes"));
    [u8x16::unpack_low(bytes, u8x16::ZERO), u8x16::unpack_high(bytes, u8x16::ZERO)].map(bytemuck::cast)
}

/// Writes sixteen codes.
pub(crate) fn put(codes: [i16x8; 2], to: &mut [i16]) {
    to[..16].copy_from_slice(codes.map(|c| c.to_array()).as_flattened());
}

/// The two codes of each byte, first all low nibbles, then all high nibbles, minus `zero`.
pub(crate) fn nibbles(qs: &[u8], zero: i16, code: &mut [i16]) {
    let zero = i16x8::splat(zero);
    let (low, high) = code.split_at_mut(qs.len());
    for ((q, low), high) in qs.chunks_exact(16).zip(low.chunks_exact_mut(16)).zip(high.chunks_exact_mut(16)) {
        let q = numbers(q);
        put(q.map(|q| (q & i16x8::splat(15)) - zero), low);
        put(q.map(|q| (q >> 4u32) - zero), high);
    }
}

/// Codes of two bits, four per byte: byte `32 h + l` of `qs` holds those of the values `128 h + 32 k + l`,
/// lowest bits first.
pub(crate) fn pairs_of_bits(qs: &[u8], zero: i16, code: &mut [i16]) {
    let zero = i16x8::splat(zero);
    for (qs, code) in qs.chunks_exact(32).zip(code.chunks_exact_mut(128)) {
        for (i, q) in qs.chunks_exact(16).enumerate() {
            let q = numbers(q);
            for k in 0..4 {
                let codes = q.map(|q| ((q >> (2 * k) as u32) & i16x8::splat(3)) - zero);
                put(codes, &mut code[32 * k + 16 * i..]);
            }
        }
    }
}

/// Adds `value` to each of 16 codes whose bit is set.
pub(crate) fn add_bits(bits: [u8; 2], value: i16, code: &mut [i16]) {
    let each = i16x8::new([1, 2, 4, 8, 16, 32, 64, 128]);
    for (bits, code) in bits.into_iter().zip(code.as_chunks_mut::<8>().0) {
        let set = (i16x8::splat(i16::from(bits)) & each).simd_eq(each);
        *code = (i16x8::new(*code) + (set & i16x8::splat(value))).to_array();
    }
}

/// Looks up the two codes of each byte in a table, in the order of [`nibbles`].
pub(crate) fn of_table(qs: &[u8], table: &[i8; 16], code: &mut [i16]) {
    let (low, high) = code.split_at_mut(qs.len());
    for ((l, h), q) in low.iter_mut().zip(high).zip(qs) {
        *l = i16::from(table[usize::from(q & 15)]);
        *h = i16::from(table[usize::from(q >> 4)]);
    }
}
