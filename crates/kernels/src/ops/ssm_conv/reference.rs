//! Causal depthwise convolution, in f64.

use crate::data::{Data, each};
use crate::tensor::Tensor;

/// Values of y in ggml's order.
pub fn ssm_conv(x: &Data, w: &Data, bias: Option<&Data>, silu: bool, y: &Tensor) -> Vec<f64> {
    each(y)
        .map(|[c, t, s, _]| {
            let taps = 0..w.tensor.ne[0];
            let sum: f64 = taps.map(|j| w.at([j, c, 0, 0]) * x.at([t + j, c, s, 0])).sum();
            let v = sum + bias.map_or(0.0, |b| b.at([c, 0, 0, 0]));
            if silu { v / (1.0 + (-v).exp()) } else { v }
        })
        .collect()
}
