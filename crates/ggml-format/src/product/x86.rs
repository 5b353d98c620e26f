//! Vectors of x86-64: AVX2 and AVX-512.
#![allow(unsafe_code, reason = "instructions that a CPU may lack are unsafe")]

use std::arch::x86_64::*;

use super::kernels::{self, Dequantize, Job, Unpack};
use super::lanes::{Lanes, PAIRS, Pair, codes};
use crate::blocks::codes::{CHUNK, Chunk, Codes as Format};
use crate::blocks::isa::{with_avx2, with_avx512};

/// [`Isa::Avx2`](crate::Isa::Avx2).
#[derive(Copy, Clone)]
pub(super) struct Avx2(());

/// [`Isa::Avx512`](crate::Isa::Avx512).
#[derive(Copy, Clone)]
pub(super) struct Avx512(());

impl Avx2 {
    /// # Safety
    /// The CPU has [`Isa::Avx2`](crate::Isa::Avx2).
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        Avx2(())
    }
}

impl Avx512 {
    /// # Safety
    /// The CPU has [`Isa::Avx512`](crate::Isa::Avx512).
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        Avx512(())
    }
}

/// The address of the first `n` values.
#[inline(always)]
pub(super) fn whole<T, U>(at: &[T], n: usize) -> *const U {
    at[..n].as_ptr().cast()
}

// SAFETY of all blocks below: a value of the type exists only if the CPU has the instructions, and `whole` checks that
// there are as many values as are loaded or stored. Loads and stores are unaligned.

// The kernels of the instruction sets, compiled. SAFETY: The CPU has the instructions of the function that is passed.

with_avx2! {
    pub(super) unsafe fn coded_avx2(format: Format, unpack: Unpack, job: Job<'_>) {
        // SAFETY: The function has the features.
        kernels::coded::<_, 4>(unsafe { Avx2::new() }, format, unpack, job);
    }
}

with_avx2! {
    pub(super) unsafe fn plain_avx2(dequantize: Dequantize, job: Job<'_>) {
        // SAFETY: The function has the features.
        kernels::plain::<_, 8>(unsafe { Avx2::new() }, dequantize, job);
    }
}

with_avx512! {
    pub(super) unsafe fn coded_avx512(format: Format, unpack: Unpack, job: Job<'_>) {
        // SAFETY: The function has the features.
        kernels::coded::<_, 8>(unsafe { Avx512::new() }, format, unpack, job);
    }
}

with_avx512! {
    pub(super) unsafe fn plain_avx512(dequantize: Dequantize, job: Job<'_>) {
        // SAFETY: The function has the features.
        kernels::plain::<_, 16>(unsafe { Avx512::new() }, dequantize, job);
    }
}

/// The operations that are one instruction: width and types; of integers load, splat, zero, add and conversion; of
/// floats load, store, splat, product, `a * b + c`, `c - a * b`.
macro_rules! operations {
    ($n:literal, $ints:ty, $floats:ty;
     $load_ints:ident, $splat_ints:ident, $zero:ident, $add:ident, $float:ident;
     $load:ident, $store:ident, $splat:ident, $mul:ident, $mul_add:ident, $mul_sub:ident) => {
        const N: usize = $n;
        type Pairs = $ints;
        type Ints = $ints;
        type Floats = $floats;

        operations!(pairs(at: &[Pair]) -> $ints, $load_ints(whole(at, $n)));
        operations!(pair(value: Pair) -> $ints, $splat_ints(value));
        operations!(zero() -> $ints, $zero());
        operations!(add(a: $ints, b: $ints) -> $ints, $add(a, b));
        operations!(float(ints: $ints) -> $floats, $float(ints));
        operations!(splat(value: f32) -> $floats, $splat(value));
        operations!(load(at: &[f32]) -> $floats, $load(whole(at, $n)));
        operations!(store(value: $floats, at: &mut [f32]) -> (), $store(at[..$n].as_mut_ptr(), value));
        operations!(mul(a: $floats, b: $floats) -> $floats, $mul(a, b));
        operations!(mul_add(a: $floats, b: $floats, c: $floats) -> $floats, $mul_add(a, b, c));
        operations!(mul_sub(a: $floats, b: $floats, c: $floats) -> $floats, $mul_sub(a, b, c));
    };
    ($name:ident($($arg:ident: $ty:ty),*) -> $out:ty, $call:expr) => {
        #[inline(always)]
        fn $name(self, $($arg: $ty),*) -> $out {
            // SAFETY: see above.
            unsafe { $call }
        }
    };
}

impl Lanes for Avx2 {
    type Square = [__m256; 8];

    operations! {
        8, __m256i, __m256;
        _mm256_loadu_si256, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_add_epi32, _mm256_cvtepi32_ps;
        _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_mul_ps, _mm256_fmadd_ps, _mm256_fnmadd_ps
    }

    #[inline(always)]
    fn dot(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)) }
    }

    #[inline(always)]
    fn run_dots(self, rows: &[Chunk], run: usize, x: &[Pair; PAIRS]) -> [__m256i; 2] {
        // SAFETY: see above.
        unsafe {
            let mut sums = [_mm256_setzero_si256(); 2];
            for half in 0..2 {
                let x = self.pairs(&x[8 * half..]);
                let mut d = [_mm256_setzero_si256(); 8];
                for r in 0..8 {
                    d[r] = _mm256_madd_epi16(self.pairs(&codes(&rows[r])[run][8 * half..]), x);
                }
                // Each addition of neighbours halves the vectors; the last one joins the halves of two.
                let four: [_; 4] = std::array::from_fn(|i| _mm256_hadd_epi32(d[2 * i], d[2 * i + 1]));
                let [a, b] = [_mm256_hadd_epi32(four[0], four[1]), _mm256_hadd_epi32(four[2], four[3])];
                let [low, high] =
                    [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)];
                sums[half] = _mm256_add_epi32(low, high);
            }
            sums
        }
    }
    #[inline(always)]
    fn transposed<'a>(self, row: impl Fn(usize) -> &'a [f32]) -> [__m256; 8] {
        // SAFETY: see above.
        unsafe {
            let mut r = [_mm256_setzero_ps(); 8];
            for i in 0..8 {
                r[i] = self.load(row(i));
            }
            let mut two = r;
            for i in 0..4 {
                two[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
                two[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
            }
            let pair = |v| _mm256_castps_pd(v);
            let mut four = two;
            for i in 0..2 {
                for j in 0..2 {
                    let (a, b) = (pair(two[4 * i + j]), pair(two[4 * i + j + 2]));
                    four[4 * i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
                    four[4 * i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
                }
            }
            let mut all = four;
            for i in 0..4 {
                all[i] = _mm256_permute2f128_ps::<0x20>(four[i], four[i + 4]);
                all[i + 4] = _mm256_permute2f128_ps::<0x31>(four[i], four[i + 4]);
            }
            all
        }
    }
    #[inline(always)]
    fn look_up(self, codes: &mut [i16; CHUNK], table: &[i8; 16]) {
        // SAFETY: see above.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            for codes in codes.as_chunks_mut::<16>().0 {
                // The high byte of an index with its top bit set is looked up as 0.
                let index = _mm256_loadu_si256(codes.as_ptr().cast());
                let index = _mm256_or_si256(index, _mm256_set1_epi16(i16::MIN));
                let value = _mm256_slli_epi16::<8>(_mm256_shuffle_epi8(table, index));
                _mm256_storeu_si256(codes.as_mut_ptr().cast(), _mm256_srai_epi16::<8>(value));
            }
        }
    }
}

impl Lanes for Avx512 {
    type Square = [__m512; 16];

    operations! {
        16, __m512i, __m512;
        _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_add_epi32, _mm512_cvtepi32_ps;
        _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_mul_ps, _mm512_fmadd_ps, _mm512_fnmadd_ps
    }

    #[inline(always)]
    fn dot(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_dpwssd_epi32(sum, a, b) }
    }

    #[inline(always)]
    fn run_dots(self, rows: &[Chunk], run: usize, x: &[Pair; PAIRS]) -> [__m512i; 2] {
        // SAFETY: see above.
        unsafe {
            let x = self.pairs(x);
            // Four rows in each vector: their sums over every fourth lane, in each quarter of the run.
            let mut four = [_mm512_setzero_si512(); 4];
            for (i, four) in four.iter_mut().enumerate() {
                let mut d = [_mm512_setzero_si512(); 4];
                for j in 0..4 {
                    d[j] = _mm512_madd_epi16(self.pairs(&codes(&rows[4 * i + j])[run]), x);
                }
                let add = |a, b| _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
                let (a, b) = (add(d[0], d[1]), add(d[2], d[3]));
                *four = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
            }
            // Eight rows: each of the quarters 0 and 2, then 1 and 3.
            let mut eight = [_mm512_setzero_si512(); 2];
            for i in 0..2 {
                let (a, b) = (four[2 * i], four[2 * i + 1]);
                let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
                let odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b);
                eight[i] = _mm512_add_epi32(even, odd);
            }
            [
                _mm512_shuffle_i32x4::<0b10_00_10_00>(eight[0], eight[1]),
                _mm512_shuffle_i32x4::<0b11_01_11_01>(eight[0], eight[1]),
            ]
        }
    }
    #[inline(always)]
    fn transposed<'a>(self, row: impl Fn(usize) -> &'a [f32]) -> [__m512; 16] {
        // SAFETY: see above.
        unsafe {
            let mut four = [_mm512_setzero_ps(); 16];
            // Four rows at once: vector `4 i + j` holds column `j` of each of four columns of the rows from `4 i`.
            for i in 0..4 {
                let mut r = [_mm512_setzero_ps(); 4];
                for j in 0..4 {
                    r[j] = self.load(row(4 * i + j));
                }
                let pair = |v| _mm512_castps_pd(v);
                let [a, b] = [_mm512_unpacklo_ps(r[0], r[1]), _mm512_unpackhi_ps(r[0], r[1])].map(pair);
                let [c, d] = [_mm512_unpacklo_ps(r[2], r[3]), _mm512_unpackhi_ps(r[2], r[3])].map(pair);
                four[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
                four[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
                four[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
                four[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
            }
            let mut all = four;
            for j in 0..4 {
                let (a, b, c, d) = (four[j], four[4 + j], four[8 + j], four[12 + j]);
                let [low, high] = [
                    _mm512_shuffle_f32x4::<0b01_00_01_00>(a, b),
                    _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b),
                ];
                let [low2, high2] = [
                    _mm512_shuffle_f32x4::<0b01_00_01_00>(c, d),
                    _mm512_shuffle_f32x4::<0b11_10_11_10>(c, d),
                ];
                all[j] = _mm512_shuffle_f32x4::<0b10_00_10_00>(low, low2);
                all[4 + j] = _mm512_shuffle_f32x4::<0b11_01_11_01>(low, low2);
                all[8 + j] = _mm512_shuffle_f32x4::<0b10_00_10_00>(high, high2);
                all[12 + j] = _mm512_shuffle_f32x4::<0b11_01_11_01>(high, high2);
            }
            all
        }
    }
    #[inline(always)]
    fn look_up(self, codes: &mut [i16; CHUNK], table: &[i8; 16]) {
        // SAFETY: see above.
        unsafe {
            let table = _mm256_cvtepi8_epi16(_mm_loadu_si128(table.as_ptr().cast()));
            let table = _mm512_broadcast_i64x4(table);
            for codes in codes.as_chunks_mut::<32>().0 {
                let value = _mm512_permutexvar_epi16(_mm512_loadu_si512(codes.as_ptr().cast()), table);
                _mm512_storeu_si512(codes.as_mut_ptr().cast(), value);
            }
        }
    }
}
