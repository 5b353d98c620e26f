//! Latent attention (MLA) on the CPU: queries, the key of each token, and per-head products.

use chaski_kernels::ops::rms_norm::reference::rms_norm;
use ggml_format::product::Columns;

use super::factor::Factor;
use super::{CpuModel, ProductInput, Row, Watch};
use crate::graph::latent::Latent;
use crate::graph::{Graph, WeightId};

impl CpuModel {
    /// `[n, n_head, n_latent + n_rot]`; the keys go to the cache.
    pub(super) fn latent(
        &mut self,
        graph: &Graph,
        o: &Latent,
        values: &[Vec<f32>],
        rows: &[Row],
        watch: Watch<'_>,
    ) -> Vec<f32> {
        let (layer, rope) = (graph.kv[o.layer], &graph.ropes[o.rope]);
        let (d, rank, n_head) = (layer.d as usize, layer.d_v as usize, o.n_head as usize);
        let n_rot = d - rank;
        let (q, x) = (&values[o.q.0], &values[o.x.0]);
        let d_q = graph.width(o.q) as usize / n_head;
        let plain = self.mul_heads(graph, q, d_q, o.keys, watch); // [n, n_head, n_latent]
        let rotated = |at: &[f32], column: usize| {
            let mut end = at.to_vec();
            rope.rotate_by(&mut end, n_rot, rows[column].components);
            end
        };
        let mut out = Vec::with_capacity(plain.len() / rank * d);
        for (i, (head, plain)) in q.chunks_exact(d_q).zip(plain.chunks_exact(rank)).enumerate() {
            out.extend_from_slice(plain);
            out.extend(rotated(&head[d_q - n_rot..], i / n_head));
        }
        let norm = self.vector(o.norm);
        for (c, (column, row)) in x.chunks_exact(d).zip(rows).enumerate() {
            let mut key = rms_norm(&column[..rank], Some(&norm), o.eps);
            key.extend(rotated(&column[rank..], c));
            let at = self.seqs.cell_of(o.layer, row.seq, row.pos);
            self.seqs.kv[o.layer][0].put(at, &key);
        }
        out
    }

    /// `[n, n_head, n_out]` from heads of `d` values, of which the leading ones take part.
    pub(super) fn mul_heads(
        &self,
        graph: &Graph,
        x: &[f32],
        d: usize,
        weight: WeightId,
        watch: Watch<'_>,
    ) -> Vec<f32> {
        let w = &graph.weights[weight.0];
        let (n_head, k, n_out) = (w.n_expert as usize, w.n_col as usize, w.expert_rows() as usize);
        let n = x.len() / (d * n_head);
        let mut out = vec![0.0; n * n_head * n_out];
        for head in 0..n_head {
            let of_head = x.chunks_exact(d).skip(head).step_by(n_head);
            let columns: Vec<f32> = of_head.flat_map(|h| &h[..k]).copied().collect();
            watch(ProductInput { weight: w, matrix: head as u32, x: &columns });
            let matrix = self.matrix(weight, head * n_out);
            let made = self.mul_mat(&mut Columns::new(&columns, k), &matrix, n_out, &Factor::ONE, None);
            for (c, made) in made.chunks_exact(n_out).enumerate() {
                out[(c * n_head + head) * n_out..][..n_out].copy_from_slice(made);
            }
        }
        out
    }
}
