//! Cosines and sines, in f64.

use super::TimestepEmbedding;
use crate::data::{Data, each};

/// All values of y in ggml's order.
pub fn timestep_embedding(call: &TimestepEmbedding, a: &Data) -> Vec<f64> {
    let half = call.y.ne[0] / 2;
    each(&call.y)
        .map(|c| {
            if c[0] >= 2 * half {
                return 0.0;
            }
            let j = c[0] % half;
            let angle = a.at([c[1], 0, 0, 0])
                * (-f64::from(call.max_period).ln() * f64::from(j) / f64::from(half)).exp();
            if c[0] < half { angle.cos() } else { angle.sin() }
        })
        .collect()
}
