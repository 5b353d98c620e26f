//! Vectors of an instruction set.

use crate::blocks::codes::{CHUNK, Chunk};

/// Values of a run: they share a scale of the activations.
pub(super) const RUN: usize = 32;
/// Rows that are unpacked at once.
pub(super) const ROWS: usize = 32;
/// Pairs of codes in a run.
pub(super) const PAIRS: usize = RUN / 2;

/// A pair of 16-bit codes, the first in the lower address.
pub(super) type Pair = i32;
/// The codes of a chunk, by runs.
pub(super) type Codes = [[Pair; PAIRS]; CHUNK / RUN];
/// A chunk of formats without codes.
pub(super) type Floats = [f32; CHUNK];

/// The codes of a chunk.
#[inline(always)]
pub(super) fn codes(chunk: &Chunk) -> &Codes {
    bytemuck::cast_ref(&chunk.code)
}

/// Vectors of [`Self::N`] lanes of 32 bits. A value is proof that the CPU has the instructions.
///
/// All methods are inlined into functions that are compiled for these instructions.
pub(super) trait Lanes: Copy {
    /// Lanes.
    const N: usize;
    /// A pair of codes in each lane.
    type Pairs: Copy;
    /// An integer in each lane.
    type Ints: Copy;
    /// An f32 in each lane.
    type Floats: Copy;
    /// [`Self::N`] vectors.
    type Square: AsRef<[Self::Floats]>;

    /// Loads [`Self::N`] pairs.
    fn pairs(self, at: &[Pair]) -> Self::Pairs;
    /// The same pair in all lanes.
    fn pair(self, value: Pair) -> Self::Pairs;
    /// Zeros.
    fn zero(self) -> Self::Ints;
    /// `sum + a.0 * b.0 + a.1 * b.1`
    fn dot(self, sum: Self::Ints, a: Self::Pairs, b: Self::Pairs) -> Self::Ints;
    /// Sum.
    fn add(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// The nearest f32.
    fn float(self, ints: Self::Ints) -> Self::Floats;
    /// The same value in all lanes.
    fn splat(self, value: f32) -> Self::Floats;
    /// Loads [`Self::N`] values.
    fn load(self, at: &[f32]) -> Self::Floats;
    /// Stores [`Self::N`] values.
    fn store(self, value: Self::Floats, at: &mut [f32]);
    /// Product.
    fn mul(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, rounded once where the instruction set can.
    fn mul_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// `c - a * b`, rounded as in [`Self::mul_add`].
    fn mul_sub(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// Dot products of a run of each of [`Self::N`] rows with `x`, a row in each lane: of the first and the second
    /// half.
    fn run_dots(self, rows: &[Chunk], run: usize, x: &[Pair; PAIRS]) -> [Self::Ints; 2];
    /// [`Self::N`] values of each of as many rows, a row in each lane.
    fn transposed<'a>(self, row: impl Fn(usize) -> &'a [f32]) -> Self::Square;

    /// Replaces codes, indices of `table`, by its values.
    fn look_up(self, codes: &mut [i16; CHUNK], table: &[i8; 16]);

    /// Loads at most [`Self::N`] values.
    #[inline(always)]
    fn load_some(self, at: &[f32]) -> Self::Floats {
        if at.len() >= Self::N {
            return self.load(at);
        }
        let mut all = [0.0; 16];
        all[..at.len()].copy_from_slice(at);
        self.load(&all)
    }

    /// Stores as many values as there is room for.
    #[inline(always)]
    fn store_some(self, value: Self::Floats, at: &mut [f32]) {
        if at.len() >= Self::N {
            return self.store(value, at);
        }
        let mut all = [0.0; 16];
        self.store(value, &mut all);
        at.copy_from_slice(&all[..at.len()]);
    }
}

/// Hints that these bytes will be read soon.
#[inline(always)]
#[allow(unsafe_code, reason = "an instruction")]
pub(super) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..bytes.len()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: Every CPU of the target has the instruction, and it only hints.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().wrapping_add(at).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
