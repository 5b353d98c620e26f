//! Attention of encoders on the CPU: the reference, or in f32.

use std::ops::Range;

use chaski_graph::Score;
use chaski_kernels::ops::attention::reference::Query;
use ggml_format::GgmlType;
use ggml_format::product::{Columns, add_weighted};

use super::attention::{COLUMNS, softmax};
use super::{CpuModel, Row, runs};
use crate::graph::{Bidirectional, Graph};

/// The heads of a layer, with their values for all columns.
struct Heads<'a> {
    q: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    n_head: usize,
    n_kv: usize,
    d: usize,
    d_v: usize,
    score: Score,
}

impl Heads<'_> {
    /// Query heads per KV head.
    fn group(&self) -> usize {
        self.n_head / self.n_kv
    }

    /// The query of a column of a text.
    fn query(&self, text: &Range<usize>, column: usize, head: usize) -> Query<'_> {
        Query {
            q: &self.q[(column * self.n_head + head) * self.d..][..self.d],
            score: &self.score,
            head: (head as u32, self.n_head as u32),
            pos: column - text.start,
            text: Some(text.len()),
            sink: None,
        }
    }

    fn key(&self, column: usize, head: usize) -> &[f32] {
        &self.k[(column * self.n_kv + head) * self.d..][..self.d]
    }

    fn value(&self, column: usize, head: usize) -> &[f32] {
        &self.v[(column * self.n_kv + head) * self.d_v..][..self.d_v]
    }
}

impl CpuModel {
    /// `[n, n_head, d_v]` from queries, keys and values of the columns. Those of a text are a run of rows.
    pub(super) fn bidirectional(
        &self,
        graph: &Graph,
        op: &Bidirectional,
        values: &[Vec<f32>],
        rows: &[Row],
    ) -> Vec<f32> {
        let [n_head, n_kv] = [op.n_head, op.n_kv].map(|n| n as usize);
        let [d, d_v] = [op.k, op.v].map(|v| graph.width(v) as usize / n_kv);
        let [q, k, v] = [op.q, op.k, op.v].map(|v| values[v.0].as_slice());
        let score = Score { max_bias: op.max_bias, window: op.window, ..Score::scaled(op.scale) };
        let heads = Heads { q, k, v, n_head, n_kv, d, d_v, score };
        if self.in_16_bits { self.fast_texts(&heads, rows) } else { self.exact_texts(&heads, rows) }
    }

    /// [`Self::bidirectional`] by the reference.
    fn exact_texts(&self, heads: &Heads<'_>, rows: &[Row]) -> Vec<f32> {
        let Heads { n_head, d_v, .. } = *heads;
        let texts: Vec<Range<usize>> = runs(rows).flat_map(|run| vec![run.clone(); run.len()]).collect();
        self.chunks(rows.len() * n_head * d_v, d_v, |i, out| {
            let (column, head) = (i / n_head, i % n_head);
            let (text, kv) = (&texts[column], head / heads.group());
            let query = heads.query(text, column, head);
            let key = |j: usize| heads.key(text.start + j, kv);
            out.copy_from_slice(&query.attention(key, |j| heads.value(text.start + j, kv)));
        })
    }

    /// [`Self::bidirectional`] in f32. The results of a text do not depend on others.
    fn fast_texts(&self, heads: &Heads<'_>, rows: &[Row]) -> Vec<f32> {
        let Heads { n_kv, d_v, .. } = *heads;
        // Rows of one head beside each other, for weighted sums; products take keys where they are.
        let values = self.chunks(n_kv * rows.len() * d_v, d_v, |i, out| {
            out.copy_from_slice(heads.value(i % rows.len(), i / rows.len()));
        });
        let columns = runs(rows).flat_map(|text| {
            let starts = text.clone().step_by(COLUMNS);
            starts.map(move |start| (text.clone(), start..text.end.min(start + COLUMNS)))
        });
        let tasks: Vec<_> =
            columns.flat_map(|task| (0..n_kv).map(move |head| (task.clone(), head))).collect();
        let made = self.team().map(tasks.len(), |i| {
            let ((text, columns), head) = &tasks[i];
            let values = &values[(head * rows.len() + text.start) * d_v..][..text.len() * d_v];
            group_of_text(heads, values, text, columns, *head)
        });
        let width = heads.group() * d_v;
        let mut out = self.buffers.take(rows.len() * n_kv * width);
        for (((_, columns), head), made) in tasks.into_iter().zip(made) {
            for (column, made) in columns.zip(made.chunks_exact(width)) {
                out[(column * n_kv + head) * width..][..width].copy_from_slice(made);
            }
        }
        self.buffers.give(values);
        out
    }
}

/// The results of some columns of a text for the heads that share KV head `head`, whose values of the text are
/// `values`: `[n, group, d_v]`.
fn group_of_text(
    heads: &Heads<'_>,
    values: &[f32],
    text: &Range<usize>,
    columns: &Range<usize>,
    head: usize,
) -> Vec<f32> {
    let Heads { d, d_v, n_kv, .. } = *heads;
    let (group, n) = (heads.group(), columns.len() * heads.group());
    let query = |r: usize| heads.query(text, columns.start + r / group, head * group + r % group);
    let seen = query(0).keys().start..query(n - 1).keys().end;
    let queries: Vec<f32> = (0..n).flat_map(|r| query(r).q).copied().collect();
    let keys = &heads.k[((text.start + seen.start) * n_kv + head) * d..];
    let values = &values[seen.start * d_v..];
    let mut queries = Columns::new(&queries, d);
    queries.prepare(queries.form(GgmlType::F32));
    let mut tile = vec![0.0; seen.len() * n];
    let stride = n_kv * d * size_of::<f32>();
    queries.multiply_every(GgmlType::F32, bytemuck::cast_slice(keys), stride, &mut tile);

    let mut out = vec![0.0; n * d_v];
    let mut scores = vec![0.0; seen.len()];
    for (r, out) in out.chunks_exact_mut(d_v).enumerate() {
        let (query, keys) = (query(r), query(r).keys());
        let keys = keys.start - seen.start..keys.end - seen.start;
        let scores = &mut scores[..keys.len()];
        scores.iter_mut().zip(keys.clone()).for_each(|(s, j)| *s = tile[j * n + r]);
        let sum = softmax(&query, scores);
        add_weighted(out, scores, scores.len(), &values[keys.start * d_v..keys.end * d_v], d_v);
        out.iter_mut().for_each(|v| *v /= sum);
    }
    out
}
