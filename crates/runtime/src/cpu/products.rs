//! Products on the CPU: by the reference, or on the codes of the formats.

use chaski_kernels::ops::mul_mat_vec;
use ggml_format::product::{Columns, Form};
#[cfg(not(target_arch = "wasm32"))]
use ggml_format::product::{Packed, TILE_ROWS};

use super::factor::Factor;
use super::matrix::Matrix;
use super::{CpuModel, ProductInput, Row, SHARE, Watch};
use crate::graph::{Graph, Product, WeightId};

/// Tasks per thread, if they are large enough.
const TASKS: usize = 4;
/// Rows of a matrix that are multiplied together, and columns that are transposed together.
const TILE: usize = 32;

impl CpuModel {
    /// Prepares columns in a form.
    fn prepare(&self, x: &mut Columns<'_>, form: Form) {
        let n = x.unprepared(form);
        if n > 0 {
            let parts = self.team().map(n, |i| x.part(form, i));
            x.set_parts(form, parts);
        }
    }

    /// Multiplies columns with rows of a matrix, `rows` in a task: `[rows, n]`, from its tiles or from the bytes of the
    /// file. Both give the same to the bit.
    fn multiply(&self, x: &mut Columns<'_>, m: &Matrix<'_>, rows: usize, out: &mut [f32]) {
        let (info, bytes, row0, n) = (m.info, m.bytes, m.row0, x.n());
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(tiles) = m.tiles
            && (bytes.is_empty() || row0 % TILE_ROWS == 0 && Packed::pays_for(n))
        {
            self.prepare(x, tiles.form());
            let x = &*x;
            return self
                .team()
                .fill_chunks(out, rows * n, |i, out| x.multiply_packed(tiles, row0 + i * rows, out));
        }
        self.prepare(x, x.form(info.ty));
        let (x, row_bytes) = (&*x, info.row_bytes() as usize);
        self.team().fill_chunks(out, rows * n, |i, out| {
            x.multiply(info.ty, &bytes[(row0 + i * rows) * row_bytes..], out);
        });
    }

    /// A matrix from a row on.
    pub(super) fn matrix(&self, w: WeightId, row0: usize) -> Matrix<'_> {
        let (info, bytes, tiles) = (&self.graph.weights[w.0], &*self.weights[w.0], self.tiles.get(w));
        Matrix { info, bytes, tiles, row0 }
    }

    /// `[n, slots, width]` from `x`: `[n, k]`, or `[n, slots, k]`; expert by expert, all columns of an expert at once.
    pub(super) fn mul_mat_id(
        &self,
        graph: &Graph,
        x: &[f32],
        per_slot: bool,
        route: &[f32],
        w: WeightId,
        bias: Option<WeightId>,
        scale: Option<WeightId>,
        rows_of_step: &[Row],
        width: usize,
        watch: Watch<'_>,
    ) -> Vec<f32> {
        let info = &graph.weights[w.0];
        let (k, rows) = (info.n_col as usize, info.expert_rows() as usize);
        let (n_pair, n_x) = (route.len() / 2, x.len() / k.max(1));
        // Number of pairs that share a column of x.
        let share = if per_slot { 1 } else { n_pair / n_x.max(1) };
        let bias = bias.map(|b| self.vector(b));
        let n_slot = n_pair / rows_of_step.len().max(1);
        let is_lora = scale.is_some_and(|s| graph.lora_scale(s).is_some());
        let values = scale.filter(|_| !is_lora).map(|s| self.vector(s));
        let mut out = vec![0.0; n_pair * width];
        for expert in 0..info.n_expert as usize {
            let pairs: Vec<usize> = (0..n_pair).filter(|p| route[2 * p] as usize == expert).collect();
            if pairs.is_empty() {
                continue;
            }
            let columns: Vec<f32> = pairs.iter().flat_map(|p| &x[p / share * k..][..k]).copied().collect();
            watch(ProductInput { weight: info, matrix: expert as u32, x: &columns });
            let bias = bias.as_ref().map(|b| &b[expert * rows..][..rows]);
            let of_rows = || pairs.iter().map(|p| &rows_of_step[p / n_slot]);
            let lora = scale.and_then(|s| self.lora_factor(s, of_rows()));
            let factor = lora.unwrap_or(values.as_ref().map_or(Factor::ONE, |s| Factor::All(s[expert])));
            let mut columns = Columns::new(&columns, k);
            let made = self.mul_mat(&mut columns, &self.matrix(w, expert * rows), width, &factor, bias);
            for (p, made) in pairs.into_iter().zip(made.chunks_exact(width)) {
                out[p * width..][..width].copy_from_slice(made);
            }
        }
        out
    }

    /// `[n, n_row]` from `x`: `[n, k]`, for these rows of a step.
    pub(super) fn product(&self, graph: &Graph, x: &mut Columns<'_>, p: &Product, rows: &[Row]) -> Vec<f32> {
        let factor = self.factor(p.scale, rows);
        let bias = p.bias.map(|b| self.vector(b));
        let n_row = graph.weights[p.weight.0].n_row as usize;
        self.mul_mat(x, &self.matrix(p.weight, 0), n_row, &factor, bias.as_deref())
    }

    /// `[n, width]` from `x`: `[n, k]`, with `width` rows of the matrix, in parallel.
    pub(super) fn mul_mat(
        &self,
        x: &mut Columns<'_>,
        m: &Matrix<'_>,
        width: usize,
        factor: &Factor,
        bias: Option<&[f32]>,
    ) -> Vec<f32> {
        let (n, k) = (x.n(), m.info.n_col as usize);
        if n == 0 {
            return Vec::new();
        }
        // By rows of the matrix, then transposed.
        let mut by_row = self.buffers.take(width * n);
        if self.in_16_bits {
            // The rows of a task are read in order, so tasks are as large as balance allows.
            let tasks = TASKS * self.team().n();
            let rows = SHARE.div_ceil(n * k).max(width.div_ceil(tasks)).next_multiple_of(TILE);
            self.multiply(x, m, rows, &mut by_row);
        } else {
            let x = x.x();
            self.team().fill_chunks(&mut by_row, n, |r, out| {
                let row = m.row(r);
                for (o, col) in out.iter_mut().zip(x.chunks_exact(k)) {
                    *o = mul_mat_vec::reference::dot(&row, col) as f32;
                }
            });
        }
        let to_column = |factor: f32, r: usize, v: f32| v * factor + bias.map_or(0.0, |b| b[r]);
        if n == 1 {
            if !factor.is_one() || bias.is_some() {
                let factor = factor.of(0);
                by_row.iter_mut().enumerate().for_each(|(r, v)| *v = to_column(factor, r, *v));
            }
            return by_row;
        }
        let out = self.chunks(width * n, TILE * width, |i, out| {
            let n_column = out.len() / width;
            // Some rows of some columns at once, which stay in the cache.
            for r0 in (0..width).step_by(TILE) {
                let rows = r0..width.min(r0 + TILE);
                for c in 0..n_column {
                    let factor = factor.of(i * TILE + c);
                    for r in rows.clone() {
                        out[c * width + r] = to_column(factor, r, by_row[r * n + i * TILE + c]);
                    }
                }
            }
        });
        self.buffers.give(by_row);
        out
    }
}
