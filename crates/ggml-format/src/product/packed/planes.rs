//! Codes of a tile in planes of bits.
//!
//! A run of 32 codes of each row, `BITS` bits each, takes `BITS` words of 32 bits a row; the words of all rows lie side
//! by side. Codes of 3, 5 and 6 bits are split into two planes. In a plane of `p` bits a word has four codes for each
//! multiple of `p` below 8: a shift and a mask give them as bytes ([`quad`]).

use super::TILE_ROWS;
use super::lanes::TileLanes;
use crate::product::activations::QUAD_ORDER;
use crate::product::lanes::RUN;

/// Bytes of a word of all rows.
const WORDS: usize = 4 * TILE_ROWS;

/// Bytes of a run of codes.
pub(super) const fn run_bytes(bits: u32) -> usize {
    WORDS * bits as usize
}

/// Bits of the planes, the lower plane first.
const fn planes(bits: u32) -> [u32; 2] {
    match bits {
        3 => [2, 1],
        5 => [4, 1],
        6 => [4, 2],
        whole => [whole, 0],
    }
}

/// Puts the codes of a row into a run.
pub(super) fn put(bits: u32, codes: &[u8; RUN], row: usize, run: &mut [u8]) {
    let mut words = run[4 * row..].chunks_mut(WORDS);
    let mut above = 0;
    for p in planes(bits) {
        let quads = 8 / p.max(1) as usize;
        for (word, codes) in words.by_ref().zip(codes.chunks_exact(4 * quads)).take(p as usize) {
            let mut value = 0;
            for (j, quad) in codes.as_chunks::<4>().0.iter().enumerate() {
                let bytes = QUAD_ORDER.map(|i| (quad[i] >> above) & ((1u16 << p) - 1) as u8);
                value |= u32::from_le_bytes(bytes) << (p as usize * j);
            }
            word[..4].copy_from_slice(&value.to_le_bytes());
        }
        above += p;
    }
}

/// Codes `4 j` to `4 j + 3` of a run, as bytes in [`QUAD_ORDER`], of each row of a vector whose first row is `4 * at`
/// bytes from the start.
#[inline(always)]
pub(super) fn quad<S: TileLanes>(s: S, bits: u32, run: &[u8], at: usize, j: usize) -> S::Ints {
    let [low, high] = planes(bits);
    let below = bits_of(s, low, run, at, j);
    if high == 0 {
        return below;
    }
    let above = bits_of(s, high, &run[WORDS * low as usize..], at, j);
    s.or(below, s.shift_left(above, low))
}

/// Bits of a plane.
#[inline(always)]
fn bits_of<S: TileLanes>(s: S, bits: u32, plane: &[u8], at: usize, j: usize) -> S::Ints {
    let quads = 8 / bits as usize;
    let word = s.words(&plane[WORDS * (j / quads) + 4 * at..]);
    if bits == 8 {
        return word;
    }
    let shift = bits * (j % quads) as u32;
    let shifted = if shift == 0 { word } else { s.shift_right(word, shift) };
    s.and(shifted, ((1 << bits) - 1) * 0x0101_0101)
}
