//! y = x / sqrt(mean(x^2) + eps) * w, sums in f64.

/// Normalises one row.
pub fn rms_norm(x: &[f32], w: Option<&[f32]>, eps: f32) -> Vec<f32> {
    let ss: f64 = x.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    let scale = 1.0 / (ss / x.len() as f64 + f64::from(eps)).sqrt();
    x.iter()
        .enumerate()
        .map(|(i, v)| (f64::from(*v) * scale * w.map_or(1.0, |w| f64::from(w[i]))) as f32)
        .collect()
}
