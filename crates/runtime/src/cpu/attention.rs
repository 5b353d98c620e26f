//! Attention on the CPU: the reference, or f32 with four values at once.

use std::borrow::Cow;

use chaski_graph::Score;
use chaski_kernels::ops::attention::reference::{Query, slope};
use ggml_format::product::{add_scaled, dot};

use super::{CpuModel, Row, SHARE, runs};
use crate::graph::Graph;
use crate::platform;

/// Keys and values visible to the rows of a sequence: pages of f32; `first` is the position of the first page.
struct Seen<'a> {
    first: usize,
    keys: Vec<Cow<'a, [f32]>>,
    /// Empty if values are part of the keys.
    values: Vec<Cow<'a, [f32]>>,
}

impl CpuModel {
    /// `[n, n_head, d_v]` from queries `[n, n_head, d]`.
    pub(super) fn attention(
        &self,
        graph: &Graph,
        q: &[f32],
        layer: usize,
        n_head: u32,
        score: &Score,
        sinks: Option<&[f32]>,
        rows: &[Row],
    ) -> Vec<f32> {
        let l = graph.kv[layer];
        let (n_kv, d, d_v, page) = (l.n_kv as usize, l.d as usize, l.d_v as usize, self.seqs.page());
        let (width, group) = (n_head as usize * d, n_head as usize / n_kv);
        let query = |c: usize, h: usize| Query {
            q: &q[c * width + h * d..][..d],
            score,
            head: (h as u32, n_head),
            pos: rows[c].pos as usize,
            sink: sinks.map(|s| s[h]),
        };
        let mut seen = Vec::new();
        let mut seen_by = Vec::with_capacity(rows.len());
        let mut longest = 0;
        for run in runs(rows) {
            let (first, end) = (query(run.start, 0).keys().start, rows[run.end - 1].pos as usize + 1);
            let seq = rows[run.start].seq;
            let values = if l.in_keys { Vec::new() } else { self.seqs.pages_of((layer, 1), seq, first, end) };
            seen_by.resize(run.end, seen.len());
            seen.push(Seen {
                first: first / page * page,
                keys: self.seqs.pages_of((layer, 0), seq, first, end),
                values,
            });
            longest = longest.max(end - first);
        }
        let mut out = vec![0.0; rows.len() * n_head as usize * d_v];
        // Heads of columns per task.
        let share = if self.in_16_bits { SHARE.div_ceil((longest * (d + d_v)).max(1)) } else { 1 };
        platform::fill_chunks(&mut out, share * d_v, |i, out| {
            let mut scores = Vec::new();
            for (at, out) in out.chunks_exact_mut(d_v).enumerate() {
                let (c, h) = ((i * share + at) / n_head as usize, (i * share + at) % n_head as usize);
                let seen = &seen[seen_by[c]];
                let cell = |j: usize| {
                    let at = j - seen.first;
                    (at / page, at % page * n_kv + h / group)
                };
                let key = |j: usize| {
                    let (page, cell) = cell(j);
                    &seen.keys[page][cell * d..][..d]
                };
                let (values, row) = if l.in_keys { (&seen.keys, d) } else { (&seen.values, d_v) };
                let value = |j: usize| {
                    let (page, cell) = cell(j);
                    &values[page][cell * row..][..d_v]
                };
                let query = query(c, h);
                if self.in_16_bits {
                    attention(&query, key, value, &mut scores, out);
                } else {
                    out.copy_from_slice(&query.attention(key, value));
                }
            }
        });
        out
    }
}

/// [`Query::attention`] in f32: `out` is `[d_v]`; `scores` is scratch.
fn attention<'b>(
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
