//! The gated delta rule in f64: token by token, and in chunks.

use super::GatedDeltaNet;
use crate::data::Data;
use crate::ops::ssm_scan::reference::softplus;

/// The tensors of a call, in its order.
pub(super) struct Operands {
    pub(super) q: Data,
    pub(super) k: Data,
    pub(super) v: Data,
    pub(super) g: Data,
    pub(super) beta: Data,
    pub(super) s: Data,
}

/// A head's inputs for one token.
struct Token {
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
    g: Vec<f64>,
    beta: f64,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Output for a token; advances the state.
fn step(m: &mut [Vec<f64>], t: &Token) -> Vec<f64> {
    let scale = 1.0 / (t.k.len() as f64).sqrt();
    m.iter_mut()
        .zip(&t.v)
        .map(|(row, v)| {
            row.iter_mut().zip(&t.g).for_each(|(m, g)| *m *= g.exp());
            let d = t.beta * (v - dot(row, &t.k));
            row.iter_mut().zip(&t.k).for_each(|(m, k)| *m += d * k);
            dot(row, &t.q) * scale
        })
        .collect()
}

/// Per-head parameters.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Negative; times softplus(alpha + bias) it is the logarithm of the decay.
    pub a: f32,
    /// Added to alpha.
    pub bias: f32,
    /// Added to the sums of squares that normalise q and k.
    pub eps: f32,
}

/// Inputs of a head for one column.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Query, unnormalised.
    pub q: &'a [f32],
    /// Key, unnormalised.
    pub k: &'a [f32],
    /// Value.
    pub v: &'a [f32],
    /// Before bias and softplus.
    pub alpha: f32,
    /// Before the logistic function.
    pub beta: f32,
}

impl Head {
    /// The rule over columns, with the head's state `[S, S]` updated in place: `[n_col, S]`.
    pub fn columns<'a>(&self, state: &mut [f32], inputs: impl Iterator<Item = Inputs<'a>>) -> Vec<f32> {
        let s = state.len().isqrt();
        let mut m: Vec<Vec<f64>> =
            state.chunks_exact(s).map(|r| r.iter().map(|v| f64::from(*v)).collect()).collect();
        let wide = |x: &[f32]| x.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
        let unit = |x: &[f32]| {
            let x = wide(x);
            let by = 1.0 / (dot(&x, &x) + f64::from(self.eps)).sqrt();
            x.into_iter().map(|v| v * by).collect::<Vec<f64>>()
        };
        let mut out = Vec::new();
        for i in inputs {
            let g = f64::from(self.a) * softplus(f64::from(i.alpha) + f64::from(self.bias));
            let beta = 1.0 / (1.0 + (-f64::from(i.beta)).exp());
            let token = Token { q: unit(i.q), k: unit(i.k), v: wide(i.v), g: vec![g; s], beta };
            out.extend(step(&mut m, &token).into_iter().map(|v| v as f32));
        }
        state.iter_mut().zip(m.concat()).for_each(|(s, m)| *s = m as f32);
        out
    }
}

/// All values of y: outputs, then states.
pub(super) fn gated_delta_net(call: &GatedDeltaNet, o: &Operands) -> Vec<f64> {
    let [s, heads, n_tok, n_seq] = call.v.ne;
    let n_y = (s * heads * n_tok * n_seq) as usize;
    let mut out = vec![0.0; n_y + (s * s * heads * n_seq * call.n_snap) as usize];
    for (seq, head) in (0..n_seq).flat_map(|q| (0..heads).map(move |h| (q, h))) {
        let row = |d: &Data, head, t| (0..s).map(|i| d.at([i % d.tensor.ne[0], head, t, seq])).collect();
        let mut m: Vec<Vec<f64>> =
            (0..s).map(|j| (0..s).map(|i| o.s.at([i, j, head, seq])).collect()).collect();
        for t in 0..n_tok {
            let token = Token {
                q: row(&o.q, head % call.q.ne[1], t),
                k: row(&o.k, head % call.k.ne[1], t),
                v: row(&o.v, head, t),
                g: row(&o.g, head, t),
                beta: o.beta.at([0, head, t, seq]),
            };
            let at = (((seq * n_tok + t) * heads + head) * s) as usize;
            out[at..at + s as usize].copy_from_slice(&step(&mut m, &token));
            let back = n_tok - 1 - t;
            if back < call.n_snap {
                let at = n_y + (((back * n_seq + seq) * heads + head) * s * s) as usize;
                out[at..at + (s * s) as usize].copy_from_slice(&m.concat());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// The chunked form with one decay per head: a triangular system replaces the steps.
    fn chunk(m: &mut [Vec<f64>], tokens: &[Token]) -> Vec<Vec<f64>> {
        let (n, s) = (tokens.len(), m.len());
        let scale = 1.0 / (s as f64).sqrt();
        let mut sum = 0.0;
        let g: Vec<f64> = tokens
            .iter()
            .map(|t| {
                sum += t.g[0];
                sum
            })
            .collect();
        // State updates of the tokens, by forward substitution: (I + A) d = beta (v - exp(G) m k).
        let mut d: Vec<Vec<f64>> = Vec::new();
        for (t, token) in tokens.iter().enumerate() {
            let mut row: Vec<f64> =
                (0..s).map(|j| token.beta * (token.v[j] - g[t].exp() * dot(&m[j], &token.k))).collect();
            for (before, earlier) in d.iter().enumerate() {
                let a = token.beta * dot(&token.k, &tokens[before].k) * (g[t] - g[before]).exp();
                row.iter_mut().zip(earlier).for_each(|(r, e)| *r -= a * e);
            }
            d.push(row);
        }
        let out = (0..n)
            .map(|t| {
                (0..s)
                    .map(|j| {
                        let old = g[t].exp() * dot(&m[j], &tokens[t].q);
                        let new =
                            (0..=t).map(|b| (g[t] - g[b]).exp() * dot(&tokens[t].q, &tokens[b].k) * d[b][j]);
                        scale * (old + new.sum::<f64>())
                    })
                    .collect()
            })
            .collect();
        for (j, row) in m.iter_mut().enumerate() {
            for (i, v) in row.iter_mut().enumerate() {
                let new = (0..n).map(|b| (g[n - 1] - g[b]).exp() * d[b][j] * tokens[b].k[i]);
                *v = g[n - 1].exp() * *v + new.sum::<f64>();
            }
        }
        out
    }

    #[test]
    fn steps_and_chunks_agree() {
        let mut rng = Rng::new(5);
        let s = 6;
        let mut row = |low, high| (0..s).map(|_| f64::from(rng.range(low, high))).collect::<Vec<_>>();
        let mut one: Vec<Vec<f64>> = (0..s).map(|_| row(-1.0, 1.0)).collect();
        let tokens: Vec<Token> = (0..17)
            .map(|_| Token {
                q: row(-0.4, 0.4),
                k: row(-0.4, 0.4),
                v: row(-1.0, 1.0),
                g: vec![row(-0.5, 0.0)[0]; s],
                beta: row(0.1, 1.0)[0],
            })
            .collect();
        let mut other = one.clone();
        let a: Vec<Vec<f64>> = tokens.iter().map(|t| step(&mut one, t)).collect();
        let b = chunk(&mut other, &tokens);
        for (a, b) in a.iter().chain(&one).flatten().zip(b.iter().chain(&other).flatten()) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }
}
