//! Attention on the CPU: the reference, or in f32, keys in the type of the cache.

use std::borrow::Cow;
use std::ops::Range;

use chaski_graph::Score;
use chaski_kernels::ops::attention::reference::{Query, slope};
use ggml_format::product::{Columns, add_weighted, exp_of_scores, values_every};

use super::{CpuModel, Row, runs};
use crate::graph::Graph;

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
        let [n_kv, d, d_v] = [l.n_kv, l.d, l.d_v].map(|n| n as usize);
        let group = n_head as usize / n_kv;
        let heads = Heads { layer, n_kv, d, d_v, in_keys: l.in_keys, group, n_head, score, sinks };
        if self.in_16_bits {
            self.fast_attention(&heads, q, rows)
        } else {
            self.exact_attention(&heads, q, rows)
        }
    }

    /// [`Self::attention`] by the reference.
    fn exact_attention(&self, heads: &Heads<'_>, q: &[f32], rows: &[Row]) -> Vec<f32> {
        let Heads { layer, n_kv, d, d_v, group, n_head, in_keys, .. } = *heads;
        let (n_head, page) = (n_head as usize, self.seqs.page());
        let mut seen = Vec::new();
        let mut seen_by = Vec::with_capacity(rows.len());
        for run in runs(rows) {
            let first = heads.query(q, run.start, 0, rows).keys().start;
            let (seq, end) = (rows[run.start].seq, rows[run.end - 1].pos as usize + 1);
            let pages = |part| self.seqs.pages_of((layer, part), seq, first, end);
            seen_by.resize(run.end, seen.len());
            let values = if in_keys { Vec::new() } else { pages(1) };
            seen.push(Seen { first: first / page * page, keys: pages(0), values });
        }
        self.chunks(rows.len() * n_head * d_v, d_v, |i, out| {
            let (c, h) = (i / n_head, i % n_head);
            let seen = &seen[seen_by[c]];
            let cell = |j: usize| {
                let at = j - seen.first;
                (at / page, at % page * n_kv + h / group)
            };
            let key = |j: usize| {
                let (page, cell) = cell(j);
                &seen.keys[page][cell * d..][..d]
            };
            let (values, row) = if in_keys { (&seen.keys, d) } else { (&seen.values, d_v) };
            let value = |j: usize| {
                let (page, cell) = cell(j);
                &values[page][cell * row..][..d_v]
            };
            out.copy_from_slice(&heads.query(q, c, h, rows).attention(key, value));
        })
    }

    /// [`Self::attention`] in f32. The results of a column do not depend on the others.
    fn fast_attention(&self, heads: &Heads<'_>, q: &[f32], rows: &[Row]) -> Vec<f32> {
        let Heads { n_kv, d_v, group, n_head, .. } = *heads;
        let columns = runs(rows).flat_map(|run| {
            let end = run.end;
            run.step_by(COLUMNS).map(move |start| start..end.min(start + COLUMNS))
        });
        let tasks: Vec<(Range<usize>, usize)> =
            columns.flat_map(|columns| (0..n_kv).map(move |h| (columns.clone(), h))).collect();
        let made = self.team().map(tasks.len(), |i| {
            let (columns, head) = tasks[i].clone();
            self.group_attention(heads, q, columns, head, rows)
        });
        let mut out = self.buffers.take(rows.len() * n_head as usize * d_v);
        let width = group * d_v;
        for ((columns, head), made) in tasks.into_iter().zip(made) {
            for (c, made) in columns.zip(made.chunks_exact(width)) {
                out[(c * n_kv + head) * width..][..width].copy_from_slice(made);
            }
        }
        out
    }

    /// The results of some columns of a sequence for the heads that share head `head` of the keys: `[n, group, d_v]`.
    fn group_attention(
        &self,
        heads: &Heads<'_>,
        q: &[f32],
        columns: Range<usize>,
        head: usize,
        rows: &[Row],
    ) -> Vec<f32> {
        let Heads { layer, n_kv, d, d_v, group, .. } = *heads;
        let [keys, values] = &self.seqs.kv[layer];
        let values = if heads.in_keys { keys } else { values };
        let (page, seq) = (self.seqs.page(), rows[columns.start].seq);
        let query = |r: usize| heads.query(q, columns.start + r / group, head * group + r % group, rows);
        let n = columns.len() * group;
        // Queries with zeros for channels that only the storage has.
        let mut queries = vec![0.0; n * keys.stored()];
        for (r, to) in queries.chunks_exact_mut(keys.stored()).enumerate() {
            to[..d].copy_from_slice(query(r).q);
        }
        let mut queries = Columns::new(&queries, keys.stored());
        queries.prepare(queries.form(keys.ty));
        let first = query(0).keys().start / page * page;
        let end = query(n - 1).keys().end;
        let n_key = end - first;
        let pages = || (first..end).step_by(page).map(|at| (at, page.min(end - at)));

        let mut scores = vec![0.0; n * n_key];
        let mut tile = vec![0.0; page * n];
        for (at, n_row) in pages() {
            let (bytes, stride) = (self.seqs.cells_of(layer, 0, seq, at, head), n_kv * keys.cell_bytes());
            let tile = &mut tile[..n_row * n];
            queries.multiply_every(keys.ty, bytes, stride, tile);
            for (j, tile) in tile.chunks_exact(n).enumerate() {
                tile.iter().enumerate().for_each(|(r, s)| scores[r * n_key + at - first + j] = *s);
            }
        }
        let sums: Vec<f32> = (0..n)
            .map(|r| {
                let (query, scores) = (query(r), &mut scores[r * n_key..][..n_key]);
                softmax(&query, &mut scores[query.keys().start - first..query.keys().end - first])
            })
            .collect();

        let stored = values.stored();
        let mut out = vec![0.0; n * stored];
        let mut tile = vec![0.0; page * stored];
        for (at, n_row) in pages() {
            let bytes = self.seqs.cells_of(layer, usize::from(!heads.in_keys), seq, at, head);
            let tile = &mut tile[..n_row * stored];
            values_every(values.ty, bytes, n_kv * values.cell_bytes(), stored, tile);
            for c in 0..columns.len() {
                let seen = query(c * group).keys();
                let seen = seen.start.max(at)..seen.end.min(at + n_row);
                if !seen.is_empty() {
                    let p = &scores[c * group * n_key + seen.start - first..];
                    let v = &tile[(seen.start - at) * stored..(seen.end - at) * stored];
                    add_weighted(&mut out[c * group * stored..][..group * stored], p, n_key, v, stored);
                }
            }
        }
        let rows = out.chunks_exact(stored).zip(sums);
        rows.flat_map(|(row, sum)| row[..d_v].iter().map(move |v| v / sum)).collect()
    }
}

/// Columns of a sequence per task.
pub(super) const COLUMNS: usize = 16;

/// The heads of a layer.
struct Heads<'a> {
    layer: usize,
    n_kv: usize,
    d: usize,
    d_v: usize,
    in_keys: bool,
    /// Query heads per head of the keys.
    group: usize,
    n_head: u32,
    score: &'a Score,
    sinks: Option<&'a [f32]>,
}

impl Heads<'_> {
    fn query<'q>(&'q self, q: &'q [f32], column: usize, head: usize, rows: &[Row]) -> Query<'q> {
        let at = (column * self.n_head as usize + head) * self.d;
        Query {
            q: &q[at..][..self.d],
            score: self.score,
            head: (head as u32, self.n_head),
            pos: rows[column].pos as usize,
            text: None,
            sink: self.sinks.map(|s| s[head]),
        }
    }
}

/// Replaces products of a query with its keys by unnormalised weights, and returns their sum.
pub(super) fn softmax(query: &Query<'_>, scores: &mut [f32]) -> f32 {
    let score = query.score;
    let warm = score.warmth.map_or(1.0, |w| {
        let runs = query.pos / w.run.max(1) as usize + 1;
        1.0 + w.by * (runs as f32).ln()
    });
    let scale = score.scale * warm;
    scores.iter_mut().for_each(|s| *s *= scale);
    if score.softcap != 0.0 {
        scores.iter_mut().for_each(|s| *s = score.softcap * (*s / score.softcap).tanh());
    }
    let slope = slope(score.max_bias, query.head.0, query.head.1) as f32;
    if slope != 0.0 {
        let keys = query.keys();
        scores.iter_mut().zip(keys).for_each(|(s, j)| *s -= slope * query.pos.abs_diff(j) as f32);
    }
    let max = scores.iter().copied().chain(query.sink).fold(-3.0e38, f32::max);
    let sum = exp_of_scores(scores, max);
    sum + query.sink.map_or(0.0, |s| (s - max).exp())
}
