//! A weighted sum of rows, in f64.

/// `sum_s weights[s] * rows[s]`
pub fn moe_reduce(rows: &[&[f32]], weights: &[f32]) -> Vec<f32> {
    let n = rows.first().map_or(0, |r| r.len());
    let at = |i: usize| rows.iter().zip(weights).map(|(r, w)| f64::from(r[i]) * f64::from(*w)).sum::<f64>();
    (0..n).map(|i| at(i) as f32).collect()
}
