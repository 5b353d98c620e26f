//! softmax(scores) v, in f64.

use std::ops::Range;

use chaski_graph::Score;

/// The maximum of an empty set of scores.
const NO_KEY: f64 = -3.0e38;

/// One query against keys and values given by functions.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// `[d]`
    pub q: &'a [f32],
    /// Transformations of the scores.
    pub score: &'a Score,
    /// Index of the query head and number of heads, for ALiBi's slopes.
    pub head: (u32, u32),
    /// Position of the query.
    pub pos: usize,
    /// Tokens of the text, if later keys are visible, too, and a window extends to both sides; `None`: they are masked.
    pub text: Option<usize>,
    /// The head's attention sink, if any: a score without a value.
    pub sink: Option<f32>,
}

/// ALiBi's slope of head `head` of `n_head`: powers of 2^(-max_bias / n) for the first n heads, n a power of two; the
/// others take every second slope of 2 n heads.
pub fn slope(max_bias: f32, head: u32, n_head: u32) -> f64 {
    if max_bias == 0.0 {
        return 0.0;
    }
    let n = 1 << n_head.ilog2();
    let (step, power) = if head < n { (1.0, head + 1) } else { (0.5, 2 * (head - n) + 1) };
    (-f64::from(max_bias) / f64::from(n) * step * f64::from(power)).exp2()
}

impl Query<'_> {
    /// The visible keys.
    pub fn keys(&self) -> Range<usize> {
        if let Some(n) = self.text {
            let near = if self.score.window == 0 { n } else { self.score.window as usize / 2 };
            return self.pos.saturating_sub(near)..n.min(self.pos + near + 1);
        }
        let n_key = self.pos + 1;
        let window = if self.score.window == 0 { n_key } else { self.score.window as usize };
        n_key.saturating_sub(window)..n_key
    }

    /// The result: `[d_v]`, where `key(j)` is `[d]` and `value(j)` is `[d_v]`.
    pub fn attention<'b>(
        &self,
        key: impl Fn(usize) -> &'b [f32],
        value: impl Fn(usize) -> &'b [f32],
    ) -> Vec<f32> {
        let mut out = self.sums(self.keys(), self.sink, key, value);
        let (_, den) = (out.pop(), out.pop().expect("sums have a denominator"));
        out.into_iter().map(|o| (o / den) as f32).collect()
    }

    /// Partial result of split `split` of `splits`: `[d_v]` unnormalised sums, the maximum of the scores, the
    /// denominator, two zeros.
    pub fn part<'b>(
        &self,
        keys: impl Iterator<Item = usize> + Clone,
        with_sink: bool,
        key: impl Fn(usize) -> &'b [f32],
        value: impl Fn(usize) -> &'b [f32],
    ) -> Vec<f32> {
        let mut out = self.sums(keys, self.sink.filter(|_| with_sink), key, value);
        let n = out.len();
        out.swap(n - 2, n - 1);
        out.extend([0.0; 2]);
        out.into_iter().map(|v| v as f32).collect()
    }

    /// Sums, denominator and maximum.
    fn sums<'b>(
        &self,
        keys: impl Iterator<Item = usize> + Clone,
        sink: Option<f32>,
        key: impl Fn(usize) -> &'b [f32],
        value: impl Fn(usize) -> &'b [f32],
    ) -> Vec<f64> {
        let Score { scale, softcap, max_bias, .. } = *self.score;
        let slope = slope(max_bias, self.head.0, self.head.1);
        let warm = self.score.warmth.map_or(1.0, |w| {
            let runs = self.pos / w.run.max(1) as usize + 1;
            1.0 + f64::from(w.by) * (runs as f64).ln()
        });
        let score = |j: usize| {
            let dot: f64 = self.q.iter().zip(key(j)).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let mut s = dot * f64::from(scale) * warm;
            if softcap != 0.0 {
                s = f64::from(softcap) * (s / f64::from(softcap)).tanh();
            }
            s - slope * self.pos.abs_diff(j) as f64
        };
        let scores: Vec<f64> = keys.clone().map(score).collect();
        let sink = sink.map(f64::from);
        let max = scores.iter().copied().chain(sink).fold(NO_KEY, f64::max);
        let (mut den, mut out) = (0.0, vec![0.0f64; value(self.pos).len()]);
        for (j, s) in keys.zip(scores) {
            let p = (s - max).exp();
            den += p;
            out.iter_mut().zip(value(j)).for_each(|(o, v)| *o += p * f64::from(*v));
        }
        den += sink.map_or(0.0, |s| (s - max).exp());
        out.extend([den, max]);
        out
    }
}
