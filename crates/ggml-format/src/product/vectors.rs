//! Vectors in f32.

use super::Isa;
use super::lanes::Lanes;
use super::portable::Portable;
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};
#[cfg(target_arch = "x86_64")]
use crate::blocks::isa::{with_avx2, with_avx512};

/// Calls `$function(vectors, ...)`, which is inlined, compiled for the best instruction set of the CPU.
macro_rules! on_best_isa {
    ($function:path, ($($arg:ident: $ty:ty),*) $(-> $out:ty)?) => {
        match Isa::best() {
            Isa::Portable => $function(Portable, $($arg),*),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                with_avx2! {
                    fn avx2($($arg: $ty),*) $(-> $out)? {
                        // SAFETY: The function has the features.
                        $function(unsafe { Avx2::new() }, $($arg),*)
                    }
                }
                // SAFETY: The CPU has the instruction set.
                unsafe { avx2($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                with_avx512! {
                    fn avx512($($arg: $ty),*) $(-> $out)? {
                        // SAFETY: The function has the features.
                        $function(unsafe { Avx512::new() }, $($arg),*)
                    }
                }
                // SAFETY: The CPU has the instruction set.
                unsafe { avx512($($arg),*) }
            }
        }
    };
}

/// Adds weighted sums of the rows of `v`, `[n, d]`, to `out`, `[m, d]`: row `r` takes the weights `p[r * stride..]`.
///
/// # Panics
/// If there are too few weights.
#[allow(unsafe_code, reason = "instruction sets that the CPU has")]
pub fn add_weighted(out: &mut [f32], p: &[f32], stride: usize, v: &[f32], d: usize) {
    on_best_isa!(weighted, (out: &mut [f32], p: &[f32], stride: usize, v: &[f32], d: usize));
}

/// Rows of [`add_weighted`] at once.
const WEIGHTED: usize = 4;

#[inline(always)]
fn weighted<S: Lanes>(s: S, out: &mut [f32], p: &[f32], stride: usize, v: &[f32], d: usize) {
    let n = v.len() / d;
    for (i, out) in out.chunks_mut(WEIGHTED * d).enumerate() {
        // Rows that are not there take the weights of the last one.
        let last = out.len() / d - 1;
        let p: [&[f32]; WEIGHTED] = std::array::from_fn(|r| &p[(WEIGHTED * i + r.min(last)) * stride..][..n]);
        for at in (0..d).step_by(S::N) {
            let width = S::N.min(d - at);
            let mut sums = [s.splat(0.0); WEIGHTED];
            for r in 0..=last {
                sums[r] = s.load_some(&out[r * d + at..][..width]);
            }
            for (j, v) in v.chunks_exact(d).enumerate().take(n) {
                let v = s.load_some(&v[at..][..width]);
                for r in 0..WEIGHTED {
                    sums[r] = s.mul_add(s.splat(p[r][j]), v, sums[r]);
                }
            }
            for r in 0..=last {
                s.store_some(sums[r], &mut out[r * d + at..][..width]);
            }
        }
    }
}

/// Replaces scores by `exp(score - max)`, and returns their sum.
#[allow(unsafe_code, reason = "instruction sets that the CPU has")]
pub fn exp_of_scores(scores: &mut [f32], max: f32) -> f32 {
    on_best_isa!(exp_scores, (scores: &mut [f32], max: f32) -> f32)
}

#[inline(always)]
fn exp_scores<S: Lanes>(_: S, scores: &mut [f32], max: f32) -> f32 {
    // As many sums for any instruction set, so that all give the same.
    let mut sums = [0.0; 16];
    let (whole, rest) = scores.as_chunks_mut::<16>();
    for scores in whole {
        for i in 0..16 {
            scores[i] = exp(scores[i] - max);
            sums[i] += scores[i];
        }
    }
    for (score, sum) in rest.iter_mut().zip(&mut sums) {
        *score = exp(*score - max);
        *sum += *score;
    }
    sums.iter().sum()
}

/// `silu(gate) * up`, where `silu(x) = x / (1 + exp(-x))`.
#[allow(unsafe_code, reason = "instruction sets that the CPU has")]
pub fn swiglu(gate: &[f32], up: &[f32], out: &mut [f32]) {
    on_best_isa!(gated, (gate: &[f32], up: &[f32], out: &mut [f32]));
}

#[inline(always)]
fn gated<S: Lanes>(_: S, gate: &[f32], up: &[f32], out: &mut [f32]) {
    for ((g, u), out) in gate.iter().zip(up).zip(out) {
        *out = g / (1.0 + exp(-*g)) * u;
    }
}

/// `exp(x)` within two units of the last place; loops over it become vectors. NaN stays NaN.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// The largest power that is not infinite, and the smallest that is a normal number.
    const RANGE: (f32, f32) = (-87.336_54, 88.722_83);
    /// ln 2 in two parts, the first of few bits.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    /// Adding it rounds to a whole number.
    const WHOLE: f32 = 12_582_912.0;
    // `max` and `min` of NaN would be the other number.
    let bounded = if x < RANGE.0 { RANGE.0 } else { x };
    let bounded = if bounded > RANGE.1 { RANGE.1 } else { bounded };
    let shifted = bounded * std::f32::consts::LOG2_E + WHOLE;
    let n = shifted - WHOLE;
    let r = bounded - n * LN_2.0 - n * LN_2.1;
    let mut p = 1.987_569_1e-4;
    for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5] {
        p = p * r + c;
    }
    let p = p * r * r + r + 1.0;
    // 2^n in two factors, for n = 128.
    let half = (shifted.to_bits() as i32).wrapping_sub(WHOLE.to_bits() as i32) >> 1;
    let rest = (shifted.to_bits() as i32).wrapping_sub(WHOLE.to_bits() as i32) - half;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    p * power(half) * power(rest)
}
