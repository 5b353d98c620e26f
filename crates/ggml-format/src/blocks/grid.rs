//! Codebook quantisation: the nearest entries of a grid, and the scales of a block that fit them best.
//!
//! All formats with a codebook share one structure: a block of 256 values is divided into groups, a group's
//! scale is an odd multiple of the block's, and the group's values are codebook vectors times that scale. One
//! search therefore serves them all; a format defines how a group is encoded at a given scale, and packs the
//! result.

use super::search::{EPSILON, largest, mean_square};
use super::{F16, QK_K};

/// A group has at most this many vectors, and a block at most 16 groups.
pub(crate) const MAX_VECTOR: usize = 8;
const MAX_GROUP: usize = 16;

/// A codebook prepared for search: the vectors, and for every point of their lattice the few entries that may
/// be nearest.
#[derive(Debug)]
pub(crate) struct Codebook<const D: usize> {
    entries: Vec<[f32; D]>,
    /// Midpoints between adjacent levels of the lattice.
    bounds: Vec<f32>,
    /// The entries near point `p` are `near[starts[p]..starts[p + 1]]`.
    starts: Vec<u32>,
    near: Vec<u16>,
}

impl<const D: usize> Codebook<D> {
    /// A codebook of vectors whose coordinates are all in `levels`, which are ascending.
    ///
    /// A point that is not an entry gets the entries at the `n_shell` smallest distances from it. Distances
    /// are unweighted, in levels; more shells find the nearest entry by weight more often, and take longer.
    pub(crate) fn new(entries: Vec<[f32; D]>, levels: &[f32], n_shell: usize) -> Codebook<D> {
        let level_of = |x: &f32| levels.iter().position(|l| l == x).expect("entries consist of levels");
        let coordinates: Vec<[u8; D]> =
            entries.iter().map(|e| std::array::from_fn(|j| level_of(&e[j]) as u8)).collect();
        let bounds = levels.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        let (mut starts, mut near) = (vec![0], Vec::new());
        let mut distances = vec![0u16; entries.len()];
        for point in 0..levels.len().pow(D as u32) {
            let digits: [u8; D] =
                std::array::from_fn(|j| (point / levels.len().pow(j as u32) % levels.len()) as u8);
            for (distance, entry) in distances.iter_mut().zip(&coordinates) {
                *distance = (0..D).map(|j| u16::from(digits[j].abs_diff(entry[j])).pow(2)).sum();
            }
            let radius = shell(&distances, n_shell);
            let within = |(i, &distance): (usize, &u16)| (distance <= radius).then_some(i as u16);
            near.extend(distances.iter().enumerate().filter_map(within));
            starts.push(near.len() as u32);
        }
        Codebook { entries, bounds, starts, near }
    }

    /// The entry with this index.
    pub(crate) fn entry(&self, index: u16) -> &[f32; D] {
        &self.entries[usize::from(index)]
    }

    /// The index of an entry with a small weighted square distance from `x`, mostly the smallest.
    pub(crate) fn nearest(&self, x: &[f32; D], w: &[f32; D]) -> u16 {
        let n_level = self.bounds.len() + 1;
        let mut point = 0;
        for &x in x.iter().rev() {
            let level: usize = self.bounds.iter().map(|&bound| usize::from(x > bound)).sum();
            point = point * n_level + level;
        }
        let near = &self.near[self.starts[point] as usize..self.starts[point + 1] as usize];
        if let [only] = near {
            return *only;
        }
        // Distances minus the square of x, which all of them share.
        let twice: [f32; D] = std::array::from_fn(|j| 2.0 * w[j] * x[j]);
        let (mut best, mut nearest) = (f32::INFINITY, near[0]);
        for &index in near {
            let entry = self.entry(index);
            let terms: [f32; D] = std::array::from_fn(|j| entry[j] * (w[j] * entry[j] - twice[j]));
            let distance = pairwise_sum(&terms);
            if distance < best {
                (best, nearest) = (distance, index);
            }
        }
        nearest
    }
}

/// The `n_shell`-th smallest distance, 0 if any distance is 0.
fn shell(distances: &[u16], n_shell: usize) -> u16 {
    let mut radius = *distances.iter().min().expect("a codebook has entries");
    for _ in 1..n_shell {
        if radius > 0 {
            radius = distances.iter().copied().filter(|&d| d > radius).min().unwrap_or(radius);
        }
    }
    radius
}

/// The sum of a power-of-two number of terms, by pairwise halving, which CPUs execute well.
fn pairwise_sum<const D: usize>(terms: &[f32; D]) -> f32 {
    let mut terms = *terms;
    let mut n = D / 2;
    while n > 0 {
        for j in 0..n {
            terms[j] += terms[j + n];
        }
        n /= 2;
    }
    terms[0]
}

/// The sums that determine the scale for values `x` and vectors `q`: `w x q` and `w q q`.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Sums {
    xq: f32,
    q2: f32,
}

impl Sums {
    /// Adds a vector; `shift` is added to each of its coordinates.
    pub(crate) fn add<const D: usize>(&mut self, w: &[f32; D], x: &[f32; D], entry: &[f32; D], shift: f32) {
        let wq: [f32; D] = std::array::from_fn(|j| w[j] * (entry[j] + shift));
        self.xq += pairwise_sum(&std::array::from_fn::<_, D, _>(|j| wq[j] * x[j]));
        self.q2 += pairwise_sum(&std::array::from_fn::<_, D, _>(|j| wq[j] * (entry[j] + shift)));
    }

    /// Adds the sums of other vectors.
    pub(crate) fn join(self, other: Sums) -> Sums {
        Sums { xq: self.xq + other.xq, q2: self.q2 + other.q2 }
    }

    /// The scale with the least square error.
    fn scale(self) -> f32 {
        if self.q2 > 0.0 { self.xq / self.q2 } else { 0.0 }
    }

    /// The reduction of the square error by the best scale.
    fn gain(self) -> f32 {
        self.scale().max(0.0) * self.xq
    }

    /// The square error at a scale, minus that at scale 0.
    pub(crate) fn error(self, scale: f32) -> f32 {
        scale * (scale * self.q2 - 2.0 * self.xq)
    }
}

/// Parameters of the search over the groups of a block.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Search<'a> {
    /// Number of scales that a group can have: odd multiples of the block's, from 1 to `2 n_scale - 1`.
    pub(crate) n_scale: u8,
    /// An initial scale per group.
    pub(crate) first: &'a [f32],
    /// Factors on the initial scale, one per trial.
    pub(crate) factors: &'a [f32],
}

/// A quantised block before packing: its scale, and for each group the index of its scale, `(multiple - 1) /
/// 2`, and the code.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Fitted<C> {
    pub(crate) d: F16,
    pub(crate) groups: [(u8, C); MAX_GROUP],
}

/// Finds scales and codes with the least square error. `encode(g, scale)` returns the best code of group `g`
/// at a positive scale, and the code's sums.
///
/// Each group is first searched on its own; then the scales are rounded to odd multiples, each group tries
/// the multiples around its own, and finally the block's scale is fitted to the codes.
pub(crate) fn fit<C: Copy + Default>(
    search: Search<'_>,
    encode: impl Fn(usize, f32) -> (Sums, C),
) -> Fitted<C> {
    let n_group = search.first.len();
    let mut scales = [0f32; MAX_GROUP];
    let mut weights = [0f32; MAX_GROUP];
    for (g, &first) in search.first.iter().enumerate() {
        // NaN and scales that the half floats of a block cannot represent count as zero.
        if first > EPSILON {
            (scales[g], weights[g]) = best_scale(first, search.factors, |scale| encode(g, scale).0);
        }
    }
    let mut fitted = Fitted { d: F16::default(), groups: [(0, C::default()); MAX_GROUP] };
    let d = odd_multiples(search.n_scale, &scales[..n_group], &weights[..n_group]);
    if d <= 0.0 {
        return fitted;
    }
    let mut all = Sums::default();
    for g in 0..n_group {
        let near = odd_code(search.n_scale, scales[g] / d);
        let tries = near.saturating_sub(1)..=(near + 1).min(search.n_scale - 1);
        let (mut best, mut best_sums) = (f32::INFINITY, Sums::default());
        for code in tries {
            let multiple = f32::from(2 * code + 1);
            let (sums, codes) = encode(g, d * multiple);
            let error = sums.error(d * multiple);
            if error < best {
                best = error;
                best_sums = Sums { xq: multiple * sums.xq, q2: multiple * multiple * sums.q2 };
                fitted.groups[g] = (code, codes);
            }
        }
        all = all.join(best_sums);
    }
    fitted.d = F16::from_f32(all.scale().max(0.0));
    fitted
}

/// The scale with the largest gain among the trials, refined by alternation, and the weight of its error.
fn best_scale(first: f32, factors: &[f32], sums_at: impl Fn(f32) -> Sums) -> (f32, f32) {
    let mut best = Sums::default();
    for &factor in factors {
        let sums = sums_at(first * factor);
        if sums.gain() > best.gain() {
            best = sums;
        }
    }
    // The best scale of a code may have another best code; alternate until neither changes.
    for _ in 0..3 {
        let scale = best.scale();
        if scale <= 0.0 {
            break;
        }
        let sums = sums_at(scale);
        if sums.gain() <= best.gain() {
            break;
        }
        best = sums;
    }
    (best.scale().max(0.0), best.q2)
}

/// A scale whose odd multiples are close to the given ones, by weighted square distance.
fn odd_multiples(n: u8, scales: &[f32], weights: &[f32]) -> f32 {
    let max = largest(scales);
    let top = f32::from(2 * n - 1);
    let (mut best, mut best_d) = (f32::INFINITY, 0.0);
    if max <= 0.0 {
        return 0.0;
    }
    for step in -8..=4 {
        let d = max / (top * (1.0 + step as f32 / 32.0));
        let (mut error, mut sum_ml, mut sum_ll) = (0.0, 0.0, 0.0);
        for (&scale, &w) in scales.iter().zip(weights) {
            let multiple = f32::from(2 * odd_code(n, scale / d) + 1);
            error += w * (scale - d * multiple).powi(2);
            sum_ml += w * scale * multiple;
            sum_ll += w * multiple * multiple;
        }
        if error < best && sum_ll > 0.0 {
            (best, best_d) = (error, sum_ml / sum_ll);
        }
    }
    best_d
}

/// The `code` below `n` for which `2 code + 1` is nearest to a multiple.
fn odd_code(n: u8, multiple: f32) -> u8 {
    // The conversion rounds down, maps negative numbers and NaN to 0, and large numbers to 255.
    ((multiple / 2.0) as u8).min(n - 1)
}

/// Weight of the error of each value of a block: by importance, and more for large values.
///
/// If all importance is zero, as for an expert that was never selected, only the values count.
pub(crate) fn block_weights(x: &[f32], importance: Option<&[f32]>) -> [f32; QK_K] {
    let mean_square = mean_square(x);
    match importance.filter(|w| w.iter().any(|&w| w > 0.0)) {
        Some(w) => std::array::from_fn(|j| w[j] * (2.0 * mean_square + x[j] * x[j]).sqrt()),
        None => std::array::from_fn(|j| 0.5 * mean_square + x[j] * x[j]),
    }
}
