//! The sum over the window, in f64.

use super::Conv2d;
use crate::data::{Data, each};

/// All values of y in ggml's order.
pub fn conv_2d(call: &Conv2d, a: &Data, b: &Data) -> Vec<f64> {
    let (na, nb) = (call.a.ne, call.b.ne);
    each(&call.y)
        .map(|c| {
            let mut sum = 0.0;
            for ic in if call.depthwise { c[2]..c[2] + 1 } else { 0..na[2] } {
                for ky in 0..na[1] {
                    let Some(y) = call.window.at(1, c[1], ky, nb[1]) else { continue };
                    for kx in 0..na[0] {
                        let Some(x) = call.window.at(0, c[0], kx, nb[0]) else { continue };
                        let k = if call.depthwise { 0 } else { ic };
                        sum += a.at([kx, ky, k, c[2]]) * b.at([x, y, ic, c[3]]);
                    }
                }
            }
            sum
        })
        .collect()
}
