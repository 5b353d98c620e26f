//! Forward substitution in f64.

use crate::data::{Data, each};

/// Values of y in ggml's order.
pub fn solve_tri(a: &Data, b: &Data) -> Vec<f64> {
    let [m, n, ..] = b.tensor.ne;
    let mut y: Vec<f64> = Vec::new();
    for [col, row, c2, c3] in each(&b.tensor) {
        let first = ((c3 * b.tensor.ne[2] + c2) * m * n) as usize;
        let known = (0..row).map(|j| a.at([j, row, c2, c3]) * y[first + (j * m + col) as usize]);
        let left = b.at([col, row, c2, c3]) - known.sum::<f64>();
        y.push(left / a.at([row, row, c2, c3]));
    }
    y
}
