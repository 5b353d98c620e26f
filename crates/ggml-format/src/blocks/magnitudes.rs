//! Code shared by the formats of magnitudes and signs: iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s.

use super::QK_K;
use super::grid::{Codebook, Fitted, MAX_VECTOR, Search, Sums, fit};
use super::search::largest_magnitude;

/// A format of magnitudes from a codebook of vectors of `D` values.
pub(crate) struct Magnitudes<const D: usize> {
    pub(crate) codebook: Codebook<D>,
    /// Values that share a scale.
    pub(crate) group_len: usize,
    /// True if the number of minus signs among 8 values is even, so that seven bits determine them all.
    pub(crate) even_signs: bool,
    /// Positions of the largest magnitude of a group that the search tries, in units of the codebook.
    pub(crate) tops: &'static [f32],
}

/// Codebook indices of the vectors of a group.
pub(crate) type Indices = [u16; MAX_VECTOR];

impl<const D: usize> Magnitudes<D> {
    /// The codebook's entries, with magnitudes in units of `unit`.
    pub(crate) fn entries<const N: usize>(grid: &[[u8; D]; N], unit: f32) -> Vec<[f32; D]> {
        grid.iter().map(|entry| entry.map(|v| f32::from(v) / unit)).collect()
    }

    /// Quantises a block; also returns the signs of each 8 values, a set bit for a minus.
    pub(crate) fn fit(&self, x: &[f32], weight: &[f32; QK_K]) -> (Fitted<Indices>, [u8; QK_K / 8]) {
        let mut magnitude: [f32; QK_K] = std::array::from_fn(|j| x[j].abs());
        let mut signs = [0; QK_K / 8];
        for i in 0..QK_K / 8 {
            let eight = 8 * i..8 * (i + 1);
            signs[i] = (0..8).fold(0, |signs, j| signs | (u8::from(x[8 * i + j] < 0.0) << j));
            if self.even_signs && signs[i].count_ones() % 2 == 1 {
                let j = least_harm(&x[eight.clone()], &weight[eight]);
                signs[i] ^= 1 << j;
                magnitude[8 * i + j] = -magnitude[8 * i + j];
            }
        }
        let (magnitude, _) = magnitude.as_chunks::<D>();
        let (weight, _) = weight.as_chunks::<D>();
        let n_vector = self.group_len / D;
        let encode = |g: usize, scale: f32| {
            let inverse = 1.0 / scale;
            let (mut sums, mut indices) = (Sums::default(), Indices::default());
            let vectors = g * n_vector..(g + 1) * n_vector;
            for (i, index) in vectors.zip(&mut indices) {
                *index = self.codebook.nearest(&magnitude[i].map(|x| x * inverse), &weight[i]);
                sums.add(&weight[i], &magnitude[i], self.codebook.entry(*index), 0.0);
            }
            (sums, indices)
        };
        let mut first = [0f32; 16];
        let first = &mut first[..QK_K / self.group_len];
        for (first, x) in first.iter_mut().zip(x.chunks_exact(self.group_len)) {
            *first = largest_magnitude(x);
        }
        let mut factors = [0f32; 16];
        let factors = &mut factors[..self.tops.len()];
        for (factor, top) in factors.iter_mut().zip(self.tops) {
            *factor = 1.0 / top;
        }
        (fit(Search { n_scale: 16, first, factors }, encode), signs)
    }
}

/// The value whose sign costs least if wrong.
fn least_harm(x: &[f32], weight: &[f32]) -> usize {
    let harm = |j: &usize| weight[*j] * x[*j] * x[*j];
    (0..8).min_by(|a, b| harm(a).total_cmp(&harm(b))).expect("eight values")
}
