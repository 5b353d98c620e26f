//! Hyper-connections, in f64.

use super::{HcComb, HcPost, HcPre};
use crate::data::{Data, each};
use crate::ops::soft_max::reference::soft_max;

/// Values of y in ggml's order.
pub fn comb(call: &HcComb, mixes: &Data, scale: &Data, base: &Data) -> Vec<f64> {
    let n = HcComb::STREAMS;
    let logit = |i, t| mixes.at([i, t, 0, 0]) * scale.at([2, 0, 0, 0]) + base.at([i, 0, 0, 0]);
    (0..call.y.ne[2])
        .flat_map(|t| {
            let logits: Vec<f64> = (2 * n..HcComb::N_MIX).map(|i| logit(i, t)).collect();
            sinkhorn(&logits, n as usize, call.eps.into(), call.n_iter)
        })
        .collect()
}

/// Sinkhorn normalisation of logits; the shares of one source stream are contiguous.
pub fn sinkhorn(logits: &[f64], n: usize, eps: f64, n_iter: u32) -> Vec<f64> {
    let mut m: Vec<f64> = logits.chunks(n).flat_map(|given| soft_max(given, None)).map(|v| v + eps).collect();
    for k in 0..n_iter {
        if k > 0 {
            for given in m.chunks_mut(n) {
                let sum: f64 = eps + given.iter().sum::<f64>();
                given.iter_mut().for_each(|v| *v /= sum);
            }
        }
        for d in 0..n {
            let sum: f64 = eps + m.iter().skip(d).step_by(n).sum::<f64>();
            m.iter_mut().skip(d).step_by(n).for_each(|v| *v /= sum);
        }
    }
    m
}

/// Values of y in ggml's order.
pub fn pre(call: &HcPre, x: &Data, w: &Data) -> Vec<f64> {
    let weight = |[i, h, t]: [u32; 3]| match call.gated {
        true => 1.0 / (1.0 + (-w.at([i, h, t, 0])).exp()),
        false => w.at([h, t, 0, 0]),
    };
    let sum = |i, t| (0..call.x.ne[1]).map(|h| x.at([i, h, t, 0]) * weight([i, h, t])).sum::<f64>();
    each(&call.y).map(|[i, t, ..]| f64::from(call.scale) * sum(i, t)).collect()
}

/// Values of y in ggml's order.
pub fn post(call: &HcPost, x: &Data, residual: &Data, post: &Data, comb: Option<&Data>) -> Vec<f64> {
    each(&call.y)
        .map(|[i, d, t, _]| {
            let kept = match comb {
                None => residual.at([i, d, t, 0]),
                Some(m) => (0..call.y.ne[1]).map(|s| residual.at([i, s, t, 0]) * m.at([d, s, t, 0])).sum(),
            };
            x.at([i, t, 0, 0]) * post.at([d, t, 0, 0]) + kept
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f64; 4] = [1.0, -0.5, 0.25, 2.0];

    #[test]
    fn one_iteration_by_hand() {
        // Logits of ln 3 and 0 give shares of 3/4 and 1/4; the two streams add up to 5/4 and 3/4.
        let ln3 = 3f64.ln();
        let m = sinkhorn(&[ln3, 0.0, 0.0, 0.0], 2, 0.0, 1);
        for (m, want) in m.iter().zip([0.6, 1.0 / 3.0, 0.4, 2.0 / 3.0]) {
            assert!((m - want).abs() < 1e-15, "{m} instead of {want}");
        }
        // Then each is divided by the total of its source stream, 14/15 and 16/15, and by the sums over streams.
        let m = sinkhorn(&[ln3, 0.0, 0.0, 0.0], 2, 0.0, 2);
        let (a, b, c, d) = (9.0 / 14.0, 5.0 / 14.0, 3.0 / 8.0, 5.0 / 8.0);
        for (m, want) in m.iter().zip([a / (a + c), b / (b + d), c / (a + c), d / (b + d)]) {
            assert!((m - want).abs() < 1e-15, "{m} instead of {want}");
        }
    }

    #[test]
    fn many_iterations_keep_products_across_and_make_all_sums_one() {
        let m = sinkhorn(&LOGITS, 2, 0.0, 200);
        for sum in [m[0] + m[1], m[2] + m[3], m[0] + m[2], m[1] + m[3]] {
            assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        }
        let cross = (m[0] * m[3]) / (m[1] * m[2]);
        let want = (LOGITS[0] + LOGITS[3] - LOGITS[1] - LOGITS[2]).exp();
        assert!((cross / want - 1.0).abs() < 1e-12, "{cross} instead of {want}");
    }
}
