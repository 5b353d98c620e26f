//! The formula, in f64.

/// The part of each value above the threshold of its row.
pub fn cutoff(row: &[f32], by: f32) -> Vec<f32> {
    let wide: Vec<f64> = row.iter().map(|v| f64::from(*v)).collect();
    let n = wide.len() as f64;
    let mean = wide.iter().sum::<f64>() / n;
    let squares: f64 = wide.iter().map(|v| (v - mean).powi(2)).sum();
    let least = mean + f64::from(by) * (squares / (n - 1.0).max(1.0)).sqrt();
    wide.into_iter().map(|v| (v - least).max(0.0) as f32).collect()
}
