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
    let dot = |k: &[f32]| q.iter().zip(k).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let scores: Vec<f64> = (0..n_key).map(|j| dot(key(j)) * f64::from(scale)).collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut out) = (0.0, vec![0.0f64; q.len()]);
    for (j, s) in scores.into_iter().enumerate() {
        let p = (s - max).exp();
        sum += p;
        out.iter_mut().zip(value(j)).for_each(|(o, v)| *o += p * f64::from(*v));
    }
    out.into_iter().map(|o| (o / sum) as f32).collect()
}
