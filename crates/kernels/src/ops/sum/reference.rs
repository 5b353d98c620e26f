//! Sums in f64.

use crate::data::{Data, each};

/// The sum of every row, or of all values, times `scale`.
pub fn sum(x: &Data, all: bool, scale: f64) -> Vec<f64> {
    let values: Vec<f64> = each(&x.tensor).map(|c| x.at(c)).collect();
    let len = if all { values.len() } else { x.tensor.ne[0] as usize };
    values.chunks(len).map(|row| row.iter().sum::<f64>() * scale).collect()
}
