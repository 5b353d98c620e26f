//! Prefix sums in f64.

use crate::data::{Data, each};

/// The inclusive prefix sum of every row, in ggml's order.
pub fn cumsum(x: &Data) -> Vec<f64> {
    let mut sum = 0.0;
    each(&x.tensor)
        .map(|c| {
            sum = if c[0] == 0 { x.at(c) } else { sum + x.at(c) };
            sum
        })
        .collect()
}
