//! Expansion of operations on recurrent state, and of the gates after them.

use chaski_kernels::Tensor;
use chaski_kernels::ops::gated_delta_net::{DeltaChunks, DeltaColumns};
use chaski_kernels::ops::gated_norm;
use chaski_kernels::ops::short_conv;
use chaski_kernels::ops::ssm_scan::ScanColumns;
use ggml_format::GgmlType;

use super::error::PlanError;
use super::expand::{Expander, f32s};
use super::planned::{Growth, Slot};
use super::whole::BATCH;
use crate::graph::ValueId;
use crate::graph::recurrent::{DeltaNet, GatedNorm, Recurrent, Scan, ShortConv, View};

impl Expander<'_> {
    pub(super) fn recurrent(&mut self, op: &Recurrent, add: bool, y: ValueId) -> Result<(), PlanError> {
        match op {
            Recurrent::ShortConv(o) => self.short_conv(o, y),
            Recurrent::Scan(o) => self.scan(o, y),
            Recurrent::DeltaNet(o) => self.delta_net(o, y),
            Recurrent::GatedNorm(o) => self.gated_norm(o, add, y),
        }
    }

    /// `outer` rows of `inner` values of every column: inner, outer, columns.
    fn rows_of(&self, v: View, inner: u32, outer: u32) -> Tensor {
        let ld = self.ld_of(v.of);
        let n_alloc = ld * self.n_col;
        let (ne, stride) = ([inner, outer, self.n_col, 1], [1, inner, ld, n_alloc]);
        Tensor { ty: GgmlType::F32, ne, stride, offset: v.at, n_alloc }
    }

    /// `n` values of every column: n, columns.
    fn values(&self, v: View, n: u32) -> Tensor {
        let ld = self.ld_of(v.of);
        let n_alloc = ld * self.n_col;
        let (ne, stride) = ([n, self.n_col, 1, 1], [1, ld, n_alloc, n_alloc]);
        Tensor { ty: GgmlType::F32, ne, stride, offset: v.at, n_alloc }
    }

    fn short_conv(&mut self, o: &ShortConv, y: ValueId) -> Result<(), PlanError> {
        let (x_slot, y_slot) = (self.act(o.x.of), self.act(y));
        let weights: Vec<_> = [o.weight].into_iter().chain(o.bias).collect();
        let aux = self.groups.packed(self.graph, &weights);
        let gates = o.gates.map(|[before, after]| short_conv::Gates { before, after });
        let call = short_conv::ShortConv {
            n: o.n,
            taps: o.taps,
            at: o.x.at,
            ldx: self.ld_of(o.x.of),
            ldy: self.ld_of(y),
            n_col: self.n_col,
            n_seq: self.config.n_seq,
            gates,
            bias: o.bias.is_some(),
            silu: o.silu,
        };
        for (dispatch, grows) in call.dispatch()? {
            let bind = vec![
                ("x", x_slot),
                ("aux", Slot::Aux(Some(aux))),
                ("s", Slot::State(o.state)),
                ("step", Slot::Step),
                ("y", y_slot),
            ];
            let tiles = Growth::YTiles(short_conv::ShortConv::tile());
            let columns = if grows { tiles } else { Growth::Fixed };
            let state = f32s(o.n * (o.taps - 1));
            let weights = f32s(o.n * (o.taps + u32::from(o.bias.is_some())));
            let n_read = o.n * if gates.is_some() { 3 } else { 1 };
            let work = self.push(
                dispatch,
                bind,
                columns,
                "conv",
                if call.n_col == 1 || grows { weights } else { 0 },
            );
            if call.n_col == 1 || grows {
                work.col(f32s(n_read + o.n), 2 * u64::from(o.n * o.taps));
            }
            if !grows {
                work.state = 2 * state;
            }
        }
        Ok(())
    }

    fn scan(&mut self, o: &Scan, y: ValueId) -> Result<(), PlanError> {
        let slots = [o.x, o.dt, o.b, o.c].map(|v| self.act(v.of));
        let y_slot = self.act(y);
        let weights: Vec<_> = [o.a].into_iter().chain(o.skip).chain(o.dt_bias).collect();
        let aux = self.groups.packed(self.graph, &weights);
        let call = ScanColumns {
            x: self.rows_of(o.x, o.dim, o.heads),
            dt: self.values(o.dt, o.heads),
            b: self.rows_of(o.b, o.n_state, o.groups),
            c: self.rows_of(o.c, o.n_state, o.groups),
            fine: o.fine,
            skip: o.skip.is_some(),
            bias: o.dt_bias.is_some(),
            y: self.rows_of(y.into(), o.dim, o.heads),
            n_seq: self.config.n_seq,
        };
        let dispatch = call.dispatch(self.caps)?;
        let [x, dt, b, c] = slots;
        let bind = vec![
            ("s", Slot::State(o.state)),
            ("x", x),
            ("dt", dt),
            ("a", Slot::Aux(Some(aux))),
            ("b", b),
            ("c", c),
            ("step", Slot::Step),
            ("y", y_slot),
        ];
        let n_state = call.n_state();
        let moved = f32s(2 * o.heads * o.dim + 2 * o.groups * o.n_state + o.heads);
        // Decay, input, sum of two operations, and read of two.
        let work = self.push(dispatch, bind, Growth::Fixed, "scan", f32s(call.n_aux()));
        work.col(moved, 5 * u64::from(n_state)).state = 2 * f32s(n_state);
        Ok(())
    }

    fn delta_net(&mut self, o: &DeltaNet, y: ValueId) -> Result<(), PlanError> {
        let [qkv, alpha, beta] = [o.qkv, o.alpha, o.beta].map(|v| self.act(v.of));
        let y_slot = self.act(y);
        let aux = self.groups.packed(self.graph, &[o.a, o.bias]);
        let part = |at, heads| self.rows_of(View { of: o.qkv.of, at: o.qkv.at + at }, o.dim, heads);
        let n_k = o.dim * o.k_heads;
        let call = DeltaColumns {
            q: part(0, o.k_heads),
            k: part(n_k, o.k_heads),
            v: part(2 * n_k, o.heads),
            alpha: self.values(o.alpha, o.heads),
            beta: self.values(o.beta, o.heads),
            neighbours: o.neighbours,
            eps: o.eps,
            y: self.rows_of(y.into(), o.dim, o.heads),
            n_seq: self.config.n_seq,
        };
        // Chunks need a single sequence, so columns that may be of several sequences are processed one by one.
        let several = self.config.n_seq > 1 && (self.n_col <= BATCH || self.caps.alone);
        // The order of sums in a chunk depends on where it begins.
        let mixed = several || self.config.is_deterministic();
        let chunks = if self.n_col > 1 && !mixed { DeltaChunks::of(&call, self.caps)? } else { None };
        if let Some(chunks) = chunks {
            return self.delta_chunks(o, &call, chunks, [qkv, alpha, beta, Slot::Aux(Some(aux)), y_slot]);
        }
        let dispatch = call.dispatch(self.caps)?;
        let bind = vec![
            ("q", qkv),
            ("a", Slot::Aux(Some(aux))),
            ("step", Slot::Step),
            ("g", alpha),
            ("beta", beta),
            ("s", Slot::State(o.state)),
            ("y", y_slot),
        ];
        let n_state = u64::from(call.n_state());
        let moved = f32s(2 * n_k + 2 * o.heads * o.dim + 2 * o.heads);
        // Decay, products with key and query, update: seven operations per value.
        let work = self.push(dispatch, bind, Growth::Fixed, "delta net", f32s(2 * o.heads));
        work.col(moved, 7 * n_state).state = 8 * n_state;
        Ok(())
    }

    /// Many columns of a delta net, in chunks.
    fn delta_chunks(
        &mut self,
        o: &DeltaNet,
        call: &DeltaColumns,
        chunks: DeltaChunks,
        [x, g, beta, a, y]: [Slot; 5],
    ) -> Result<(), PlanError> {
        let parts = self.pool.acquire(DeltaChunks::n_word(call));
        let name = "delta net";
        let bind = vec![
            ("x", x),
            ("a", a),
            ("step", Slot::Step),
            ("g", g),
            ("beta", beta),
            ("parts", Slot::Act(parts)),
        ];
        let columns = Growth::XTiles(DeltaChunks::CHUNK);
        let keys = o.dim * o.k_heads;
        self.push(chunks.prepare, bind, columns, name, f32s(2 * o.heads))
            .col(f32s(2 * keys + 2 * o.heads), 0);
        let bind = vec![
            ("x", x),
            ("parts", Slot::Act(parts)),
            ("step", Slot::Step),
            ("s", Slot::State(o.state)),
            ("y", y),
        ];
        let n_state = u64::from(call.n_state());
        let moved = f32s(2 * keys + 2 * o.heads * o.dim);
        // The operations of single columns; those between the columns of a chunk are extra.
        self.push(chunks.advance, bind, Growth::Fixed, name, 0).col(moved, 7 * n_state).state = 8 * n_state;
        self.pool.release(parts);
        Ok(())
    }

    fn gated_norm(&mut self, o: &GatedNorm, add: bool, y: ValueId) -> Result<(), PlanError> {
        let (x_slot, z_slot, y_slot) = (self.act(o.x), self.act(o.z.of), self.act(y));
        let width = self.graph.width(o.x);
        let call = gated_norm::GatedNorm {
            k: o.k,
            per: width / o.k,
            n_col: self.n_col,
            ld: [self.ld_of(o.x), self.ld_of(o.z.of), self.ld_of(y)],
            z_at: o.z.at,
            z_row: o.z_row,
            add,
            act: o.act,
            norm: o.norm.map(|n| (n.at, n.own, n.eps)),
        };
        let mut bind = vec![("x", x_slot), ("z", z_slot), ("y", y_slot)];
        if let Some(n) = o.norm {
            bind.push(("aux", Slot::Aux(Some(self.groups.packed(self.graph, &[n.weight])))));
        }
        let columns = self.many(Growth::Y);
        self.push(call.dispatch(self.caps)?, bind, columns, "gate", 0)
            .col(if add { 4 } else { 3 } * f32s(width), 8 * u64::from(width));
        Ok(())
    }
}
