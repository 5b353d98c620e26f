//! The formula of `mul_mat_join`.

/// The sum of `x[s * part + at]` over all ranges s, in f64.
pub fn sum(x: &[f32], splits: usize, part: usize, at: usize) -> f32 {
    (0..splits).map(|s| f64::from(x[s * part + at])).sum::<f64>() as f32
}
