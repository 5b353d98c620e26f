//! Merges partial softmax sums, in f64.

/// One head: `parts` holds for each split `d` sums, the maximum, the denominator and two values of padding.
pub fn merge(parts: &[f32], d: usize) -> Vec<f32> {
    let top = parts.chunks_exact(d + 4).map(|p| f64::from(p[d])).fold(f64::NEG_INFINITY, f64::max);
    let (mut den, mut out) = (0.0, vec![0.0f64; d]);
    for p in parts.chunks_exact(d + 4) {
        let fade = (f64::from(p[d]) - top).exp();
        den += fade * f64::from(p[d + 1]);
        out.iter_mut().zip(p).for_each(|(o, v)| *o += fade * f64::from(*v));
    }
    out.into_iter().map(|o| (o / den) as f32).collect()
}
