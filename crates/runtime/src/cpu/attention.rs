//! Attention in a processor's own way: in f32, four values at once.

use chaski_kernels::ops::attention::reference::{Query, slope};
use ggml_format::product::{add_scaled, dot};

/// What [`Query::attention`] makes, in f32: `out` is `[d_v]`; `scores` is scratch.
pub(super) fn attention<'b>(
    query: &Query<'_>,
    key: impl Fn(usize) -> &'b [f32],
    value: impl Fn(usize) -> &'b [f32],
    scores: &mut Vec<f32>,
    out: &mut [f32],
) {
    let score = query.score;
    let slope = slope(score.max_bias, query.head.0, query.head.1) as f32;
    let warm = score.warmth.map_or(1.0, |w| {
        let runs = query.pos / w.run.max(1) as usize + 1;
        1.0 + w.by * (runs as f32).ln()
    });
    let scale = score.scale * warm;
    scores.clear();
    scores.extend(query.keys().map(|j| {
        let mut s = dot(query.q, key(j)) * scale;
        if score.softcap != 0.0 {
            s = score.softcap * (s / score.softcap).tanh();
        }
        s - slope * (query.pos - j) as f32
    }));
    let max = scores.iter().copied().chain(query.sink).fold(-3.0e38, f32::max);
    let mut den = query.sink.map_or(0.0, |s| (s - max).exp());
    out.fill(0.0);
    for (j, s) in query.keys().zip(&*scores) {
        let p = (s - max).exp();
        den += p;
        add_scaled(out, p, value(j));
    }
    out.iter_mut().for_each(|o| *o /= den);
}
