//! Products of rows and columns, sums in f64.

/// Scalar product.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// One column through rows given one at a time: `row(i)` is row i, dequantised.
pub fn mul_mat_vec(n_row: usize, row: impl Fn(usize) -> Vec<f32>, x: &[f32]) -> Vec<f32> {
    (0..n_row).map(|i| dot(&row(i), x) as f32).collect()
}
