//! softmax(scale q k^T) v, in f64.

/// One query against keys and values given by functions.
///
/// # Shapes
/// `q`: `[d]`; `key(j)` and `value(j)`: `[d]` of key `j`, for `j < n_key`; returns `[d]`.
pub fn attention<'a>(
    q: &[f32],
    n_key: usize,
    key: impl Fn(usize) -> &'a [f32],
    value: impl Fn(usize) -> &'a [f32],
    scale: f32,
) -> Vec<f32> {
    let mut out = sums(q, 0..n_key, key, value, scale);
    let (_, den) = (out.pop(), out.pop().expect("sums have a denominator"));
    out.into_iter().map(|o| (o / den) as f32).collect()
}

/// What a split leaves of some keys: `[d]` unnormalised sums, the maximum of the scores, the denominator, two zeros.
pub fn part<'a>(
    q: &[f32],
    keys: impl Iterator<Item = usize> + Clone,
    key: impl Fn(usize) -> &'a [f32],
    value: impl Fn(usize) -> &'a [f32],
    scale: f32,
) -> Vec<f32> {
    let mut out = sums(q, keys, key, value, scale);
    let n = out.len();
    out.swap(n - 2, n - 1);
    out.extend([0.0; 2]);
    out.into_iter().map(|v| v as f32).collect()
}

/// Sums, denominator and maximum.
fn sums<'a>(
    q: &[f32],
    keys: impl Iterator<Item = usize> + Clone,
    key: impl Fn(usize) -> &'a [f32],
    value: impl Fn(usize) -> &'a [f32],
    scale: f32,
) -> Vec<f64> {
    let dot = |k: &[f32]| q.iter().zip(k).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let scores: Vec<f64> = keys.clone().map(|j| dot(key(j)) * f64::from(scale)).collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut den, mut out) = (0.0, vec![0.0f64; q.len()]);
    for (j, s) in keys.zip(scores) {
        let p = (s - max).exp();
        den += p;
        out.iter_mut().zip(value(j)).for_each(|(o, v)| *o += p * f64::from(*v));
    }
    out.extend([den, max]);
    out
}
