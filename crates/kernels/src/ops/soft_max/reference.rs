//! y = exp(scale x - max) / sum, sums in f64.

/// Softmax of one row.
pub fn soft_max(x: &[f32], scale: f32) -> Vec<f32> {
    let x: Vec<f64> = x.iter().map(|v| f64::from(*v) * f64::from(scale)).collect();
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let e: Vec<f64> = x.iter().map(|v| (v - max).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.iter().map(|v| (v / sum) as f32).collect()
}
