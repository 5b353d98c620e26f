//! Maximum or mean of a window, in f64.

use super::Pool;
use crate::data::{Data, each};

/// All values of y in ggml's order.
pub fn pool(call: &Pool, a: &Data) -> Vec<f64> {
    each(&call.y)
        .map(|c| {
            let mut held = Vec::new();
            for ky in 0..call.k[1] {
                for kx in 0..call.k[0] {
                    let x = call.window.at(0, c[0], kx, call.a.ne[0]);
                    let y = call.window.at(1, c[1], ky, call.a.ne[1]);
                    held.extend(x.zip(y).map(|(x, y)| a.at([x, y, c[2], c[3]])));
                }
            }
            if !call.mean {
                return held.into_iter().fold(-f64::from(f32::MAX), f64::max);
            }
            let n = if call.inner { held.len().max(1) as u32 } else { call.k[0] * call.k[1] };
            held.into_iter().sum::<f64>() / f64::from(n)
        })
        .collect()
}
