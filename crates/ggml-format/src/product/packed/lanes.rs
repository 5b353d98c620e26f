//! Operations of vectors that products of tiles need beside those of [`Lanes`].

use wide::{f32x4, i8x16, i16x8, i32x4};

use crate::blocks::F16;
use crate::product::activations::Run;
use crate::product::lanes::Lanes;
use crate::product::portable::Portable;

/// Vectors whose lanes are rows of a tile. A *quad* is four codes, as the bytes of a lane.
pub(super) trait TileLanes: Lanes {
    /// Quads, as their products take them.
    type Quads: Copy;
    /// Sums of products of quads.
    type Dots: Copy;

    /// Loads a word for each lane.
    fn words(self, at: &[u8]) -> Self::Ints;
    /// Shifts the bits of each lane; a mask has to clear those that come from above.
    fn shift_right(self, a: Self::Ints, n: u32) -> Self::Ints;
    /// Shifts the bits of each lane.
    fn shift_left(self, a: Self::Ints, n: u32) -> Self::Ints;
    /// The bits of a mask in each lane.
    fn and(self, a: Self::Ints, mask: i32) -> Self::Ints;
    /// The bits of both.
    fn or(self, a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// Bytes of a table from indices in bytes.
    fn look_up_bytes(self, indices: Self::Ints, table: &[u8; 16]) -> Self::Ints;
    /// Quads from bytes; all are below 128 unless `are_wide`.
    fn quads(self, bytes: Self::Ints, are_wide: bool) -> Self::Quads;
    /// No products.
    fn no_dots(self) -> Self::Dots;
    /// Adds the products with a quad of a column.
    fn add_dots(self, dots: Self::Dots, w: Self::Quads, x: &[i32; 2]) -> Self::Dots;
    /// The sums of `(w - zero) * x` over the halves of a run from `half`, `n` of them; `zero` is 128 if quads are wide.
    fn totals(self, dots: Self::Dots, zero: i32, x: &Run, half: usize, n: usize) -> Self::Ints;
    /// Loads a half float for each lane.
    fn halves(self, at: &[u8]) -> Self::Floats;
    /// Loads a bf16 for each lane.
    fn bf16(self, at: &[u8]) -> Self::Floats;
    /// Loads a signed byte for each lane.
    fn bytes(self, at: &[u8]) -> Self::Floats;
    /// Loads an f32 for each lane.
    fn singles(self, at: &[u8]) -> Self::Floats;
}

/// The first bytes.
#[inline(always)]
fn first<const N: usize>(at: &[u8]) -> [u8; N] {
    *at.first_chunk().expect("as many bytes as lanes need")
}

impl TileLanes for Portable {
    /// The first and the last two codes.
    type Quads = [i16x8; 2];
    type Dots = i32x4;

    #[inline(always)]
    fn words(self, at: &[u8]) -> i32x4 {
        i32x4::new(bytemuck::cast(first::<16>(at)))
    }
    #[inline(always)]
    fn shift_right(self, a: i32x4, n: u32) -> i32x4 {
        a >> n
    }
    #[inline(always)]
    fn shift_left(self, a: i32x4, n: u32) -> i32x4 {
        a << n
    }
    #[inline(always)]
    fn and(self, a: i32x4, mask: i32) -> i32x4 {
        a & i32x4::splat(mask)
    }
    #[inline(always)]
    fn or(self, a: i32x4, b: i32x4) -> i32x4 {
        a | b
    }
    #[inline(always)]
    fn look_up_bytes(self, indices: i32x4, table: &[u8; 16]) -> i32x4 {
        bytemuck::cast(bytemuck::cast::<_, i8x16>(*table).shuffle_zeroing(bytemuck::cast(indices)))
    }
    #[inline(always)]
    fn quads(self, bytes: i32x4, _: bool) -> [i16x8; 2] {
        let low = i32x4::splat(0x00ff_00ff);
        [bytes & low, (bytes >> 8u32) & low].map(bytemuck::cast)
    }
    #[inline(always)]
    fn no_dots(self) -> i32x4 {
        self.zero()
    }
    #[inline(always)]
    fn add_dots(self, dots: i32x4, w: [i16x8; 2], x: &[i32; 2]) -> i32x4 {
        self.dot(self.dot(dots, w[0], self.pair(x[0])), w[1], self.pair(x[1]))
    }
    #[inline(always)]
    fn totals(self, dots: i32x4, zero: i32, x: &Run, half: usize, n: usize) -> i32x4 {
        if zero == 0 { dots } else { dots - i32x4::splat(zero * sum(&x.whole, half, n)) }
    }
    #[inline(always)]
    fn halves(self, at: &[u8]) -> f32x4 {
        f32x4::from(bytemuck::cast::<_, [[u8; 2]; 4]>(first::<8>(at)).map(|v| F16(v).to_f32()))
    }
    #[inline(always)]
    fn bf16(self, at: &[u8]) -> f32x4 {
        let high = |v| f32::from_bits(u32::from(u16::from_le_bytes(v)) << 16);
        f32x4::from(bytemuck::cast::<_, [[u8; 2]; 4]>(first::<8>(at)).map(high))
    }
    #[inline(always)]
    fn bytes(self, at: &[u8]) -> f32x4 {
        f32x4::from(first::<4>(at).map(|v| f32::from(v as i8)))
    }
    #[inline(always)]
    fn singles(self, at: &[u8]) -> f32x4 {
        f32x4::from(bytemuck::cast::<_, [f32; 4]>(first::<16>(at)))
    }
}

/// The sum of `n` halves of a run.
#[inline(always)]
fn sum(halves: &[i32; 2], half: usize, n: usize) -> i32 {
    // Activations that are not finite may have any sums.
    if n == 1 { halves[half] } else { halves[0].wrapping_add(halves[1]) }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "instructions that a CPU may lack are unsafe")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Run, TileLanes, sum};
    use crate::product::lanes::Lanes;
    use crate::product::x86::{Avx2, Avx512, whole};

    /// The operations of a width that are one or two instructions: types; of integers load, splat, shifts, and, or, of
    /// bytes table and shuffle; of floats the loads and conversions.
    macro_rules! operations {
        ($ints:ty, $floats:ty;
         $words:ident, $splat:ident, $srl:ident, $sll:ident, $and:ident, $or:ident, $table:ident, $shuffle:ident;
         $load_half:ident, $load_quarter:ident, $from_half:ident, $widen_16:ident, $widen_8:ident, $float:ident, $as_float:ident,
         $load:ident) => {
            operations!(@ words(at: &[u8]) -> $ints, $words(whole(at, 4 * Self::N)));
            operations!(@ shift_right(a: $ints, n: u32) -> $ints, $srl(a, _mm_cvtsi32_si128(n as i32)));
            operations!(@ shift_left(a: $ints, n: u32) -> $ints, $sll(a, _mm_cvtsi32_si128(n as i32)));
            operations!(@ and(a: $ints, mask: i32) -> $ints, $and(a, $splat(mask)));
            operations!(@ or(a: $ints, b: $ints) -> $ints, $or(a, b));
            operations!(@ look_up_bytes(indices: $ints, table: &[u8; 16]) -> $ints, {
                $shuffle($table(_mm_loadu_si128(table.as_ptr().cast())), indices)
            });
            operations!(@ halves(at: &[u8]) -> $floats, $from_half($load_half(whole(at, 2 * Self::N))));
            operations!(@ bf16(at: &[u8]) -> $floats, {
                let high = $widen_16($load_half(whole(at, 2 * Self::N)));
                $as_float($sll(high, _mm_cvtsi32_si128(16)))
            });
            operations!(@ bytes(at: &[u8]) -> $floats, $float($widen_8($load_quarter(whole(at, Self::N)))));
            operations!(@ singles(at: &[u8]) -> $floats, $load(whole(at, 4 * Self::N)));
        };
        (@ $name:ident($($arg:ident: $ty:ty),*) -> $out:ty, $call:expr) => {
            #[inline(always)]
            fn $name(self, $($arg: $ty),*) -> $out {
                // SAFETY: A value of the type exists only if the CPU has the instructions, and `whole` checks that
                // there are as many bytes as are loaded. Loads are unaligned.
                unsafe { $call }
            }
        };
    }

    impl TileLanes for Avx2 {
        /// The first and the last two codes.
        type Quads = [__m256i; 2];
        type Dots = __m256i;

        operations! {
            __m256i, __m256;
            _mm256_loadu_si256, _mm256_set1_epi32, _mm256_srl_epi32, _mm256_sll_epi32, _mm256_and_si256, _mm256_or_si256,
            _mm256_broadcastsi128_si256, _mm256_shuffle_epi8;
            _mm_loadu_si128, _mm_loadl_epi64, _mm256_cvtph_ps, _mm256_cvtepu16_epi32, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps,
            _mm256_castsi256_ps, _mm256_loadu_ps
        }

        #[inline(always)]
        fn quads(self, bytes: __m256i, _: bool) -> [__m256i; 2] {
            // SAFETY: as above.
            unsafe {
                let low = _mm256_set1_epi32(0x00ff_00ff);
                [_mm256_and_si256(bytes, low), _mm256_srli_epi16::<8>(bytes)]
            }
        }
        #[inline(always)]
        fn no_dots(self) -> __m256i {
            self.zero()
        }
        #[inline(always)]
        fn add_dots(self, dots: __m256i, w: [__m256i; 2], x: &[i32; 2]) -> __m256i {
            self.dot(self.dot(dots, w[0], self.pair(x[0])), w[1], self.pair(x[1]))
        }
        #[inline(always)]
        fn totals(self, dots: __m256i, zero: i32, x: &Run, half: usize, n: usize) -> __m256i {
            if zero == 0 {
                return dots;
            }
            // SAFETY: as above.
            unsafe { _mm256_sub_epi32(dots, _mm256_set1_epi32(zero.wrapping_mul(sum(&x.whole, half, n)))) }
        }
    }

    impl TileLanes for Avx512 {
        /// The codes as unsigned and as signed bytes: these less 128 if they are wide.
        type Quads = [__m512i; 2];
        /// Products with the high and with the low bytes of the activations.
        type Dots = [__m512i; 2];

        operations! {
            __m512i, __m512;
            _mm512_loadu_si512, _mm512_set1_epi32, _mm512_srl_epi32, _mm512_sll_epi32, _mm512_and_si512, _mm512_or_si512,
            _mm512_broadcast_i32x4, _mm512_shuffle_epi8;
            _mm256_loadu_si256, _mm_loadu_si128, _mm512_cvtph_ps, _mm512_cvtepu16_epi32, _mm512_cvtepi8_epi32, _mm512_cvtepi32_ps,
            _mm512_castsi512_ps, _mm512_loadu_ps
        }

        #[inline(always)]
        fn quads(self, bytes: __m512i, are_wide: bool) -> [__m512i; 2] {
            // SAFETY: as above.
            let less = unsafe { _mm512_xor_si512(bytes, _mm512_set1_epi8(-128)) };
            [bytes, if are_wide { less } else { bytes }]
        }
        #[inline(always)]
        fn no_dots(self) -> [__m512i; 2] {
            [self.zero(); 2]
        }
        #[inline(always)]
        fn add_dots(self, dots: [__m512i; 2], w: [__m512i; 2], x: &[i32; 2]) -> [__m512i; 2] {
            // SAFETY: as above.
            unsafe {
                [
                    _mm512_dpbusd_epi32(dots[0], w[0], _mm512_set1_epi32(x[0])),
                    _mm512_dpbusd_epi32(dots[1], _mm512_set1_epi32(x[1]), w[1]),
                ]
            }
        }
        #[inline(always)]
        fn totals(self, dots: [__m512i; 2], zero: i32, x: &Run, half: usize, n: usize) -> __m512i {
            // SAFETY: as above.
            unsafe {
                let all = _mm512_add_epi32(_mm512_slli_epi32::<8>(dots[0]), dots[1]);
                // Wide codes are too large by 128 in the products with high bytes alone.
                let more = match zero {
                    0 => return all,
                    128 => sum(&x.high, half, n).wrapping_mul(128 << 8),
                    zero => sum(&x.whole, half, n).wrapping_mul(zero),
                };
                _mm512_sub_epi32(all, _mm512_set1_epi32(more))
            }
        }
    }
}
