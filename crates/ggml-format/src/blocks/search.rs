//! The quantiser searches of ggml: scales, and scales with offsets, with the least weighted square error.
//!
//! The order of the f32 operations is part of each algorithm, so that the codes equal ggml's.

use super::kscale::{pack_scale_min_k4, scale_min_k4};
use super::{F16, QK_K};

/// Groups whose largest magnitude is below this are treated as zero.
pub(crate) const EPSILON: f32 = 1e-15;

/// The nearest integer, halves to even; defined for magnitudes below 2^22.
///
/// Adding 1.5 * 2^23 leaves no fraction bits, so that the addition itself rounds; on CPUs whose base
/// instruction set has no rounding this is much faster than `round_ties_even`.
pub(crate) fn nearest_int(x: f32) -> i32 {
    let shifted = x + 12_582_912.0;
    (shifted.to_bits() & 0x007f_ffff) as i32 - 0x0040_0000
}

/// The value of largest magnitude, with its sign; the first one in a tie; 0 if empty.
pub(crate) fn signed_extreme(x: &[f32]) -> f32 {
    let (mut extreme, mut magnitude) = (0.0, 0.0);
    for &x in x {
        if x.abs() > magnitude {
            (extreme, magnitude) = (x, x.abs());
        }
    }
    extreme
}

/// The largest magnitude.
pub(crate) fn largest_magnitude(x: &[f32]) -> f32 {
    signed_extreme(x).abs()
}

/// The largest value, at least 0.
pub(crate) fn largest(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |max, &x| if x > max { x } else { max })
}

/// The smallest and the largest value.
pub(crate) fn min_max(x: &[f32]) -> (f32, f32) {
    x[1..]
        .iter()
        .fold((x[0], x[0]), |(min, max), &x| (if x < min { x } else { min }, if x > max { x } else { max }))
}

/// The sum of the squares, added up in order.
pub(crate) fn sum_squares(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |sum, x| sum + x * x)
}

/// The mean of the squares.
pub(crate) fn mean_square(x: &[f32]) -> f32 {
    sum_squares(x) / x.len() as f32
}

/// Weight of the error of each value: its importance if known, otherwise its square.
pub(crate) fn square_weights<const N: usize>(x: &[f32], importance: Option<&[f32]>, sigma2: f32) -> [f32; N] {
    match importance {
        Some(w) => std::array::from_fn(|j| w[j] * (sigma2 + x[j] * x[j]).sqrt()),
        None => std::array::from_fn(|j| x[j] * x[j]),
    }
}

/// The sums that determine a scale: `w x l` and `w l l` for integers `l`.
#[derive(Copy, Clone, Default)]
struct Sums {
    xl: f32,
    l2: f32,
}

impl Sums {
    fn add(&mut self, w: f32, x: f32, l: i32) {
        let l = l as f32;
        self.xl += w * x * l;
        self.l2 += w * l * l;
    }

    fn sub(&mut self, w: f32, x: f32, l: i32) {
        let l = l as f32;
        self.xl -= w * x * l;
        self.l2 -= w * l * l;
    }

    fn scale(&self) -> f32 {
        if self.l2 > 0.0 { self.xl / self.l2 } else { 0.0 }
    }
}

/// Finds a scale for `x = scale * (code - n_max)`, with codes from 0 to `2 n_max - 1` (ggml's
/// `make_qx_quants`).
pub(crate) fn symmetric(n_max: i32, x: &[f32], weight: &[f32], code: &mut [u8]) -> f32 {
    let max = signed_extreme(x);
    if max.abs() < EPSILON {
        code.fill(0);
        return 0.0;
    }
    let level = |inverse: f32, x: f32| nearest_int(inverse * x).clamp(-n_max, n_max - 1);
    let sums = |inverse: f32| {
        let mut sums = Sums::default();
        for (&x, &w) in x.iter().zip(weight) {
            sums.add(w, x, level(inverse, x));
        }
        sums
    };
    let mut best_inverse = -(n_max as f32) / max;
    let first = sums(best_inverse);
    let mut scale = first.scale();
    let mut best = scale * first.xl;
    for step in (-9..=9).filter(|&step| step != 0) {
        let inverse = -(n_max as f32 + 0.1 * step as f32) / max;
        let sums = sums(inverse);
        if sums.l2 > 0.0 && sums.xl * sums.xl > best * sums.l2 {
            best_inverse = inverse;
            scale = sums.xl / sums.l2;
            best = scale * sums.xl;
        }
    }
    for (code, &x) in code.iter_mut().zip(x) {
        *code = (level(best_inverse, x) + n_max) as u8;
    }
    scale
}

/// Finds a scale as [`symmetric`] does, improving one code at a time in up to five sweeps; errors are
/// weighted by the square of the value (ggml's `make_q3_quants`).
pub(crate) fn symmetric_by_sweeps(n_max: i32, x: &[f32], code: &mut [u8]) -> f32 {
    let max = signed_extreme(x);
    if max.abs() < EPSILON {
        code.fill(0);
        return 0.0;
    }
    let inverse = -(n_max as f32) / max;
    let mut level: Vec<i32> = x.iter().map(|&x| nearest_int(inverse * x).clamp(-n_max, n_max - 1)).collect();
    let mut sums = Sums::default();
    for (&x, &l) in x.iter().zip(&level) {
        sums.add(x * x, x, l);
    }
    for _ in 0..5 {
        let mut changed = false;
        for (&x, l) in x.iter().zip(&mut level) {
            let w = x * x;
            let mut without = sums;
            without.sub(w, x, *l);
            if without.xl > 0.0 {
                let new = nearest_int(x * without.l2 / without.xl).clamp(-n_max, n_max - 1);
                changed |= replace_if_better(&mut sums, without, w, x, l, new);
            }
        }
        if !changed {
            break;
        }
    }
    for (code, l) in code.iter_mut().zip(level) {
        *code = (l + n_max) as u8;
    }
    sums.scale()
}

/// Replaces one level if that lowers the error; `without` holds the sums without this value.
fn replace_if_better(sums: &mut Sums, mut without: Sums, w: f32, x: f32, level: &mut i32, new: i32) -> bool {
    if new == *level {
        return false;
    }
    without.add(w, x, new);
    let better = without.l2 > 0.0 && without.xl * without.xl * sums.l2 > sums.xl * sums.xl * without.l2;
    if better {
        *level = new;
        *sums = without;
    }
    better
}

/// Finds a scale for non-negative `x = scale * code`, with codes up to `n_max` (ggml's `make_qp_quants`).
pub(crate) fn non_negative(n_max: i32, x: &[f32], weight: &[f32], code: &mut [u8]) -> f32 {
    let max = largest(x);
    if max < EPSILON {
        code.fill(0);
        return 0.0;
    }
    let level = |inverse: f32, x: f32| nearest_int(inverse * x).min(n_max);
    let error = |inverse: f32| {
        let scale = 1.0 / inverse;
        x.iter().zip(weight).fold(0.0, |sum, (&x, &w)| {
            let diff = x - scale * level(inverse, x) as f32;
            sum + w * diff * diff
        })
    };
    let mut inverse = n_max as f32 / max;
    let mut best = error(inverse);
    for step in (-4..=4).filter(|&step| step != 0) {
        let candidate = (0.1 * step as f32 + n_max as f32) / max;
        let error = error(candidate);
        if error < best {
            (best, inverse) = (error, candidate);
        }
    }
    let mut levels: Vec<i32> = x.iter().map(|&x| level(inverse, x)).collect();
    let mut sums = Sums::default();
    for ((&x, &w), &l) in x.iter().zip(weight).zip(&levels) {
        sums.add(w, x, l);
    }
    for _ in 0..5 {
        let mut changed = false;
        for ((&x, &w), l) in x.iter().zip(weight).zip(&mut levels) {
            let mut without = sums;
            without.sub(w, x, *l);
            if without.xl > 0.0 && without.l2 > 0.0 {
                let new = nearest_int(x * without.l2 / without.xl).min(n_max);
                changed |= replace_if_better(&mut sums, without, w, x, l, new);
            }
        }
        if !changed {
            break;
        }
    }
    for (code, l) in code.iter_mut().zip(levels) {
        *code = l as u8;
    }
    sums.scale()
}

/// A scale and an offset: `x = scale * code - offset`, with a non-negative offset.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Affine {
    pub(crate) scale: f32,
    pub(crate) offset: f32,
}

/// The candidates of [`affine`]: inverse scales `(first + step * i + n_max) / range` for i = 0..=n_step.
#[derive(Copy, Clone, Debug)]
pub(crate) struct AffineSearch {
    /// Largest code.
    pub(crate) n_max: i32,
    /// Offset of the first candidate.
    pub(crate) first: f32,
    /// Distance between candidates.
    pub(crate) step: f32,
    /// Number of candidates minus one.
    pub(crate) n_step: i32,
    /// Compare absolute instead of square errors.
    pub(crate) absolute_error: bool,
}

/// Finds scale and offset by weighted least squares over a series of candidates (ggml's `make_qkx2_quants`).
pub(crate) fn affine(search: AffineSearch, x: &[f32], weight: &[f32], code: &mut [u8]) -> Affine {
    let n_max = search.n_max;
    let (lowest, max) = min_max(x);
    let mut min = if lowest > 0.0 { 0.0 } else { lowest };
    if max <= min {
        code.fill(0);
        return Affine { scale: 0.0, offset: -min };
    }
    let (mut sum_w, mut sum_x) = (weight[0], weight[0] * x[0]);
    for (&x, &w) in x.iter().zip(weight).skip(1) {
        sum_w += w;
        sum_x += w * x;
    }
    let level = |(inverse, start): (f32, f32), x: f32| nearest_int(inverse * (x - start)).clamp(0, n_max);
    let error = |grid: (f32, f32), scale: f32, min: f32| {
        x.iter().zip(weight).fold(0.0f32, |sum, (&x, &w)| {
            let diff = scale * level(grid, x) as f32 + min - x;
            sum + w * if search.absolute_error { diff.abs() } else { diff * diff }
        })
    };
    let mut best_grid = (n_max as f32 / (max - min), min);
    let mut scale = 1.0 / best_grid.0;
    let mut best = error(best_grid, scale, min);
    for i in 0..=search.n_step {
        // A better minimum, once found, becomes the start of the next candidates.
        let inverse = (search.first + search.step * i as f32 + n_max as f32) / (max - min);
        let grid = (inverse, min);
        let (mut sum_l, mut sum_l2, mut sum_xl) = (0.0f32, 0.0f32, 0.0f32);
        for (&x, &w) in x.iter().zip(weight) {
            let l = level(grid, x) as f32;
            sum_l += w * l;
            sum_l2 += w * l * l;
            sum_xl += w * l * x;
        }
        let determinant = sum_w * sum_l2 - sum_l * sum_l;
        if determinant > 0.0 {
            let mut new_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
            let mut new_min = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
            if new_min > 0.0 {
                new_min = 0.0;
                new_scale = sum_xl / sum_l2;
            }
            let error = error(grid, new_scale, new_min);
            if error < best {
                (best, best_grid, scale, min) = (error, grid, new_scale, new_min);
            }
        }
    }
    for (code, &x) in code.iter_mut().zip(x) {
        *code = level(best_grid, x) as u8;
    }
    Affine { scale, offset: -min }
}

/// [`affine`] with the candidates that ggml tries if importance is known (ggml's `make_qkx3_quants`).
pub(crate) fn affine_by_importance(n_max: i32, x: &[f32], weight: &[f32], code: &mut [u8]) -> Affine {
    let search = AffineSearch { n_max, first: -0.9, step: 0.05, n_step: 36, absolute_error: false };
    affine(search, x, weight, code)
}

/// Scales, minima and codes of a block of q4_K or q5_K.
pub(crate) struct KGroups {
    pub(crate) d: F16,
    pub(crate) dmin: F16,
    pub(crate) scales: [u8; 12],
    pub(crate) code: [u8; QK_K],
}

/// Quantises a block to 8 groups of 32 with 6-bit scales and minima, and codes up to `n_max`.
pub(crate) fn k_groups(
    n_max: i32,
    first: f32,
    n_step: i32,
    x: &[f32],
    importance: Option<&[f32]>,
) -> KGroups {
    let mut code = [0u8; QK_K];
    let (mut scales, mut mins, mut weights) = ([0f32; 8], [0f32; 8], [0f32; 8]);
    let sigma2 = 2.0 * sum_squares(x) / QK_K as f32;
    for g in 0..8 {
        let group = 32 * g..32 * (g + 1);
        let (x, code) = (&x[group.clone()], &mut code[group.clone()]);
        let found = match importance {
            Some(w) => {
                let w = &w[group];
                let weight: [f32; 32] = std::array::from_fn(|j| w[j] * (sigma2 + x[j] * x[j]).sqrt());
                weights[g] = weight.iter().fold(0.0, |sum, w| sum + w);
                affine_by_importance(n_max, x, &weight, code)
            }
            None => {
                let rms = mean_square(x).sqrt();
                let weight: [f32; 32] = std::array::from_fn(|j| rms + x[j].abs());
                affine(
                    AffineSearch { n_max, first, step: 0.1, n_step, absolute_error: false },
                    x,
                    &weight,
                    code,
                )
            }
        };
        (scales[g], mins[g]) = (found.scale, found.offset);
    }
    let (mut scale_codes, mut min_codes) = ([0u8; 8], [0u8; 8]);
    let (d, dmin) = if importance.is_some() {
        (
            non_negative(63, &scales, &weights, &mut scale_codes),
            non_negative(63, &mins, &weights, &mut min_codes),
        )
    } else {
        (sixty_thirds(&scales, &mut scale_codes), sixty_thirds(&mins, &mut min_codes))
    };
    let (d, dmin) = (F16::from_f32(d), F16::from_f32(dmin));
    let packed = pack_scale_min_k4(&scale_codes, &min_codes);
    for g in 0..8 {
        let (scale, min) = scale_min_k4(&packed, g);
        let scale = d.to_f32() * f32::from(scale);
        if scale != 0.0 {
            let min = dmin.to_f32() * f32::from(min);
            for e in 32 * g..32 * (g + 1) {
                code[e] = nearest_int((x[e] + min) / scale).clamp(0, n_max) as u8;
            }
        }
    }
    KGroups { d, dmin, scales: packed, code }
}

/// Rounds to 63rds of the largest value; returns the step size.
fn sixty_thirds(values: &[f32; 8], code: &mut [u8; 8]) -> f32 {
    let max = largest(values);
    let inverse = if max > 0.0 { 63.0 / max } else { 0.0 };
    for (code, value) in code.iter_mut().zip(values) {
        *code = nearest_int(inverse * value).min(63) as u8;
    }
    max / 63.0
}
