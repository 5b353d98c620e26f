//! Gathers the values of each window.

use super::Im2col;
use crate::data::{Data, each};

/// All values of y in ggml's order.
pub fn im2col(call: &Im2col, b: &Data) -> Vec<f64> {
    let (ne, [kw, kh]) = (call.b.ne, call.k);
    each(&call.y)
        .map(|c| {
            let (kx, ky, ic) = (c[0] % kw, c[0] / kw % kh, c[0] / (kw * kh));
            let x = call.window.at(0, c[1], kx, ne[0]);
            if call.line {
                return x.map_or(0.0, |x| b.at([x, ic, c[2], 0]));
            }
            let y = call.window.at(1, c[2], ky, ne[1]);
            x.zip(y).map_or(0.0, |(x, y)| b.at([x, y, ic, c[3]]))
        })
        .collect()
}
