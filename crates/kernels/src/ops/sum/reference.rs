//! Sums in f64.

use crate::data::{Data, each};

/// The sum of every row, or of all values, times `scale`.
pub fn sum(x: &Data, all: bool, scale: f64) -> Vec<f64> {
    let values: Vec<f64> = each(&x.tensor).map(|c| x.at(c)).collect();
    if all {
        return vec![values.iter().sum::<f64>() * scale];
    }
    let [n, ne1, ne2, ne3] = x.tensor.ne.map(|n| n as usize);
    (0..ne1 * ne2 * ne3).map(|r| values[r * n..][..n].iter().sum::<f64>() * scale).collect()
}
