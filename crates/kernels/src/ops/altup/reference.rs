//! The steps of one column, in f64.

use chaski_graph::altup::Kind;

/// `x`: all rows, or the only one; `b`: the addend; `router` and `weights`: inputs of the coefficients.
pub fn altup(kind: Kind, rows: usize, x: &[f32], b: &[f32], router: &[f32], weights: &[f32]) -> Vec<f32> {
    let n = if kind == Kind::Spread { x.len() } else { x.len() / rows };
    let wide = |v: &[f32]| v.iter().map(|v| f64::from(*v)).collect::<Vec<_>>();
    let (x, b) = (wide(x), wide(b));
    let modes: Vec<f64> = router.iter().take(rows).map(|m| f64::from(*m).tanh()).collect();
    let coefficient =
        |at: usize| -> f64 { weights[at * rows..].iter().zip(&modes).map(|(w, m)| f64::from(*w) * m).sum() };
    let row = |r: usize| &x[r * n..][..n];
    // Row r - 1 of b, as long as the first row of x.
    let scaled = |r: usize| {
        let of = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
        let b = &b[(r - 1) * n..][..n];
        let scale = if of(b) > 0.0 { (of(row(0)) / of(b)).sqrt() } else { 0.0 };
        b.iter().map(|v| v * scale).collect::<Vec<_>>()
    };
    let of_row = |r: usize| -> Vec<f64> {
        match kind {
            Kind::Spread if r == 0 => row(0).to_vec(),
            Kind::Spread => scaled(r),
            Kind::Predict => {
                let of = |i: usize| {
                    row(r)[i] + (0..rows).map(|j| coefficient(r * rows + j) * row(j)[i]).sum::<f64>()
                };
                (0..n).map(of).collect()
            }
            Kind::Correct => {
                (0..n).map(|i| row(r)[i] + (1.0 + coefficient(r)) * (b[i] - row(0)[i])).collect()
            }
            Kind::Inject => (0..n).map(|i| row(r)[i] + if r > 0 { b[i] } else { 0.0 }).collect(),
            Kind::Merge => {
                let mut sum = row(0).to_vec();
                for r in 1..rows {
                    sum.iter_mut().zip(scaled(r)).for_each(|(s, v)| *s += v);
                }
                sum.into_iter().map(|v| v / rows as f64).collect()
            }
        }
    };
    let made = if kind == Kind::Merge { 1 } else { rows };
    (0..made).flat_map(of_row).map(|v| v as f32).collect()
}
