//! The three norms of a row, in f64.

use chaski_graph::NormKind;

/// One row, normalised.
pub fn norm(kind: NormKind, eps: f64, row: &[f64]) -> Vec<f64> {
    let n = row.len() as f64;
    let mean = if kind == NormKind::Norm { row.iter().sum::<f64>() / n } else { 0.0 };
    let squares: f64 = row.iter().map(|v| (v - mean).powi(2)).sum();
    let by = match kind {
        NormKind::L2 => squares.sqrt().max(eps),
        NormKind::Norm | NormKind::Rms => (squares / n + eps).sqrt(),
    };
    row.iter().map(|v| (v - mean) / by).collect()
}
