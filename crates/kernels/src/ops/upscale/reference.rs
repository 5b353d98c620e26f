//! Resampling, in f64: every mode is a filter that weights values by distance.

use super::Mode;
use crate::data::{Data, each};
use crate::tensor::Tensor;

/// All values of y in ggml's order.
pub fn upscale(mode: Mode, align: bool, a: &Data, y: &Tensor) -> Vec<f64> {
    let na = a.tensor.ne;
    let axis = |k: usize, i: u32| weights(mode, align, i, y.ne[k], na[k]);
    each(y)
        .map(|c| {
            let [z, w] = [2, 3].map(|k| (u64::from(c[k]) * u64::from(na[k]) / u64::from(y.ne[k])) as u32);
            let (xs, ys) = (axis(0, c[0]), axis(1, c[1]));
            let mut sum = 0.0;
            for (j, wy) in &ys {
                for (i, wx) in &xs {
                    sum += wx * wy * a.at([*i, *j, z, w]);
                }
            }
            sum
        })
        .collect()
}

/// Indices of the `n_a` values that contribute to value `i` of `n`, with their weights, whose sum is 1.
fn weights(mode: Mode, align: bool, i: u32, n: u32, n_a: u32) -> Vec<(u32, f64)> {
    let (fi, fn_, fa) = (f64::from(i), f64::from(n), f64::from(n_a));
    let at = if align && n > 1 && n_a > 1 {
        fi * (fa - 1.0) / (fn_ - 1.0)
    } else if align {
        fi * fa / fn_
    } else {
        (fi + 0.5) * fa / fn_ - 0.5
    };
    let border = |x: f64| x.clamp(0.0, fa - 1.0) as u32;
    match mode {
        Mode::Nearest => vec![((u64::from(i) * u64::from(n_a) / u64::from(n)) as u32, 1.0)],
        Mode::Bilinear => {
            let x = at.clamp(0.0, fa - 1.0);
            let d = x - x.floor();
            vec![(border(x.floor()), 1.0 - d), (border(x.floor() + 1.0), d)]
        }
        Mode::Antialias => {
            let wide = (fa / fn_).max(1.0);
            let tent = |k: u32| (1.0 - ((f64::from(k) - at) / wide).abs()).max(0.0);
            let sum: f64 = (0..n_a).map(tent).sum();
            (0..n_a).map(|k| (k, tent(k) / sum)).filter(|(_, w)| *w > 0.0).collect()
        }
        Mode::Bicubic => (-1..=2)
            .map(|k| {
                let x = at.floor() + f64::from(k);
                let d = (x - at).abs();
                let w = if d <= 1.0 {
                    1.25 * d.powi(3) - 2.25 * d.powi(2) + 1.0
                } else {
                    -0.75 * (d.powi(3) - 5.0 * d.powi(2) + 8.0 * d - 4.0)
                };
                (border(x), w)
            })
            .collect(),
    }
}
