//! Products of rows and columns, summed in f64.

/// Scalar product.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// One column times rows given by a function: `row(i)` is row i, dequantised.
pub fn mul_mat_vec(n_row: usize, row: impl Fn(usize) -> Vec<f32>, x: &[f32]) -> Vec<f32> {
    (0..n_row).map(|i| dot(&row(i), x) as f32).collect()
}

/// `x` rounded to 8 bits with one scale per `run` values: the largest becomes 127.
pub fn round8(x: &[f32], run: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(x.len());
    for run in x.chunks(run) {
        let top = run.iter().fold(0.0f32, |m, v| m.max(v.abs()));
        let inverse = if top > 0.0 { 127.0 / top } else { 0.0 };
        out.extend(run.iter().map(|v| (v * inverse).round_ties_even() * (top / 127.0)));
    }
    out
}
