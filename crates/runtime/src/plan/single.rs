//! Expansion of single nodes: norms of rows, element-wise functions, RoPE, writes to the cache.

use chaski_graph::RopePairing;
use chaski_kernels::ops::altup;
use chaski_kernels::ops::binary::{BinaryNd, FUNCTIONS, NdFunction};
use chaski_kernels::ops::cpy::Cpy;
use chaski_kernels::ops::cutoff::Cutoff;
use chaski_kernels::ops::glu::{GluNd, Kind};
use chaski_kernels::ops::norm::Norm;
use chaski_kernels::ops::rope::{Mode, RopeNd};
use chaski_kernels::ops::rope_kv::RopeKvCols;
use chaski_kernels::ops::take_rows::TakeRows;
use chaski_kernels::ops::unary::{self, Unary};
use chaski_kernels::{Dispatch, Tensor, step};
use ggml_format::GgmlType;

use super::error::PlanError;
use super::expand::{Expander, f32s, ld};
use super::planned::{Growth, Slot};
use crate::graph::altup::AltUp;
use crate::graph::{Op, RowNorm, ValueId, WeightId};

/// A function of two operands.
fn function(name: &str) -> &'static NdFunction {
    FUNCTIONS.iter().find(|f| f.name == name).expect("a row of the table")
}

impl Expander<'_> {
    /// A single node that no other file expands.
    pub(super) fn single(&mut self, op: &Op, y: ValueId) -> Result<(), PlanError> {
        match *op {
            Op::Norm { x, ref norm } => self.row_norm(x, norm, None, 1.0, y),
            Op::Unary { x, f, params } => self.unary(x, unary::Function::of(f), params, y),
            Op::Scale { x, by } => {
                let f = unary::Function::find("scale").expect("a row of the table");
                self.unary(x, f, [by, 0.0, 0.0, 0.0], y)
            }
            Op::Add { a, b } => self.binary("add", a, b, y),
            Op::Mul { a, b } => self.binary("mul", a, b, y),
            Op::Glu { gate, up, act } => {
                let (kind, [alpha, limit]) = (Kind::of(act), act.params());
                let (a, b, y_at) = (self.tensor(gate), self.tensor(up), self.tensor(y));
                let call = GluNd { kind, a, b, y: y_at, alpha, limit };
                self.whole(call.dispatch(self.caps)?, &[("a", gate), ("b", up)], y, "glu")
            }
            Op::Input { x } => self.input_rows(x, y),
            Op::Rope { x, d, rope } => self.rope(x, d, rope, y),
            Op::Slice { .. } if self.steps.views[y.0].is_some() => Ok(()),
            Op::Slice { x, at } => {
                let width = self.graph.width(y);
                let whole = self.tensor(x);
                let a = Tensor { ne: [width, whole.ne[1], 1, 1], offset: whole.offset + at, ..whole };
                let dispatch = Cpy { a, y: self.tensor(y) }.dispatch(self.caps)?;
                let bind = vec![("a", self.act(x)), ("y", self.act(y))];
                let columns = self.many(Growth::Share(self.n_col));
                self.push(dispatch, bind, columns, "slice", 0).col(2 * f32s(width), 0);
                Ok(())
            }
            Op::KvWrite { k, v, layer } => self.kv_write(k, v, layer),
            Op::AltUp(ref op) => self.altup(op, y),
            Op::Cutoff { x, by } => {
                let (k, [ldx, ldy]) = (self.graph.width(x), [x, y].map(|v| self.ld_of(v)));
                let call = Cutoff { k, n_row: self.n_col, ldx, ldy, by };
                let bind = vec![("x", self.act(x)), ("y", self.act(y))];
                let columns = self.many(Growth::X);
                self.push(call.dispatch(self.caps)?, bind, columns, "cutoff", 0)
                    .col(4 * f32s(k), 5 * u64::from(k));
                Ok(())
            }
            Op::MulWeight { x, weight } => self.with_weight("mul", x, weight, y),
            Op::AddWeight { x, weight } => self.with_weight("add", x, weight, y),
            _ => unreachable!("{} has an expansion of its own", op.name()),
        }
    }

    fn unary(
        &mut self,
        x: ValueId,
        f: &'static unary::Function,
        params: [f32; 4],
        y: ValueId,
    ) -> Result<(), PlanError> {
        let a = (x != y).then(|| self.tensor(x));
        let dispatch = Unary { f, params, a, y: self.tensor(y) }.dispatch(self.caps)?;
        self.whole(dispatch, &[("a", x)], y, f.name)
    }

    /// A function of equal parts of x and one value of a weight for each.
    fn with_weight(
        &mut self,
        name: &'static str,
        x: ValueId,
        weight: WeightId,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let (k, w) = (self.graph.width(x), &self.graph.weights[weight.0]);
        let n = w.n_row * w.n_col;
        let b = Tensor::new(GgmlType::F32, [1, n, 1, 1]);
        let [a, y_at] = [x, y].map(|v| self.rows(v, k / n));
        let call = BinaryNd { f: function(name), a: Some(a), b, y: y_at };
        let aux = self.groups.vectors(self.graph, &[weight]);
        let bind = vec![("a", self.act(x)), ("b", Slot::Aux(Some(aux))), ("y", self.act(y))];
        let columns = self.many(Growth::Share(self.n_col));
        self.push(call.dispatch(self.caps)?, bind, columns, name, 0).col(2 * f32s(k), u64::from(k));
        Ok(())
    }

    fn binary(&mut self, name: &str, a: ValueId, b: ValueId, y: ValueId) -> Result<(), PlanError> {
        let f = function(name);
        let of_a = (a != y).then(|| self.tensor(a));
        let call = BinaryNd { f, a: of_a, b: self.tensor(b), y: self.tensor(y) };
        self.whole(call.dispatch(self.caps)?, &[("a", a), ("b", b)], y, f.name)
    }

    /// Input rows in place of embeddings, if columns may have them; otherwise nothing remains to be done in place.
    fn input_rows(&mut self, x: ValueId, y: ValueId) -> Result<(), PlanError> {
        let (k, [ldx, ldy]) = (self.graph.width(y), [x, y].map(|v| self.ld_of(v)));
        if x != y {
            let dispatch = Cpy { a: self.tensor(x), y: self.tensor(y) }.dispatch(self.caps)?;
            let bind = vec![("a", self.act(x)), ("y", self.act(y))];
            let columns = self.many(Growth::Share(self.n_col));
            self.push(dispatch, bind, columns, "embed", 0).col(2 * f32s(k), 0);
        }
        if self.config.rows {
            let call = TakeRows { k, ldx, ldy, n_col: self.n_col };
            let bind = vec![("x", Slot::Rows), ("step", Slot::Step), ("y", self.act(y))];
            let columns = self.many(Growth::Y);
            self.push(call.dispatch()?, bind, columns, "embed", 0).col(2 * f32s(k), 0);
        }
        Ok(())
    }

    fn altup(&mut self, o: &AltUp, y: ValueId) -> Result<(), PlanError> {
        let width = self.graph.width(y);
        let n = if o.kind == chaski_graph::altup::Kind::Merge { width } else { width / o.rows.max(1) };
        let ld = |e: &Self, v: Option<ValueId>| v.map_or(0, |v| e.ld_of(v));
        let [ldb, ldr] = [o.other, o.mix.map(|m| m.0)].map(|v| ld(self, v));
        let ld = [self.ld_of(o.x), ldb, ldr, self.ld_of(y)];
        let call = altup::AltUp { kind: o.kind, rows: o.rows, n, ld, n_col: self.n_col };
        let mut bind = vec![("x", self.act(o.x))];
        bind.extend(o.other.map(|b| ("b", self.act(b))));
        if let Some((router, weight)) = o.mix {
            let aux = self.groups.packed(self.graph, &[weight]);
            bind.extend([("router", self.act(router)), ("aux", Slot::Aux(Some(aux)))]);
        }
        bind.push(("y", self.act(y)));
        let columns = self.many(Growth::Y);
        let moved: u32 = o.inputs().into_iter().map(|v| self.graph.width(v)).sum::<u32>() + width;
        self.push(call.dispatch()?, bind, columns, "altup", 0)
            .col(f32s(moved), 2 * u64::from(o.rows) * u64::from(width));
        Ok(())
    }

    /// Columns of a value, or of its slots.
    fn tensor(&self, v: ValueId) -> Tensor {
        let (width, ld) = (self.graph.width(v), self.ld_of(v));
        let n = self.n_col * self.graph.slots(v).max(1);
        Tensor {
            ty: GgmlType::F32,
            ne: [width, n, 1, 1],
            stride: [1, ld, ld * n, ld * n],
            offset: self.steps.views[v.0].map_or(0, |(_, at)| at),
            n_alloc: ld * n,
        }
    }

    /// The same, divided into rows of `d` values.
    fn rows(&self, v: ValueId, d: u32) -> Tensor {
        let t = self.tensor(v);
        let [width, n, ..] = t.ne;
        let [_, ld, whole, _] = t.stride;
        Tensor { ne: [d, width / d, n, 1], stride: [1, d, ld, whole], ..t }
    }

    /// A dispatch over tensors of all columns; its inputs are bound unless they are the result.
    fn whole(
        &mut self,
        dispatch: Dispatch,
        read: &[(&'static str, ValueId)],
        y: ValueId,
        name: &'static str,
    ) -> Result<(), PlanError> {
        let mut bind: Vec<_> = Vec::new();
        let mut moved = f32s(self.graph.width(y));
        for (operand, v) in read {
            moved += f32s(self.graph.width(*v));
            if *v != y {
                bind.push((*operand, self.act(*v)));
            }
        }
        bind.push(("y", self.act(y)));
        let columns = self.many(Growth::Share(self.n_col));
        let (n, width) = (u64::from(self.graph.slots(y).max(1)), u64::from(self.graph.width(y)));
        self.push(dispatch, bind, columns, name, 0).col(n * moved, n * width);
        Ok(())
    }

    pub(super) fn row_norm(
        &mut self,
        x: ValueId,
        norm: &RowNorm,
        add: Option<ValueId>,
        by: f32,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let mut bind = vec![("a", self.act(x))];
        let small = |w: WeightId, e: &Expander<'_>| {
            let w = &e.graph.weights[w.0];
            let n = w.n_row * w.n_col;
            Tensor::new(GgmlType::F32, [norm.d, n / norm.d, 1, 1])
        };
        let mut aux = |w: Option<WeightId>, name: &'static str, e: &mut Self| {
            let w = w?;
            bind.push((name, Slot::Aux(Some(e.groups.vectors(e.graph, &[w])))));
            Some(small(w, e))
        };
        let mul = aux(norm.weight, "b", self);
        let mut plus = aux(norm.bias, "c", self);
        if let Some(v) = add {
            plus = Some(self.rows(v, norm.d));
            bind.push(("c", self.act(v)));
        }
        let (a, rows) = (self.rows(x, norm.d), self.rows(y, norm.d));
        let call =
            Norm { kind: norm.kind, eps: norm.eps, groups: None, mul, add: plus, by, a: Some(a), y: rows };
        let dispatch = call.dispatch(self.caps)?;
        bind.push(("y", self.act(y)));
        let k = self.graph.width(y);
        let columns = self.many(Growth::Share(self.n_col));
        self.push(dispatch, bind, columns, "norm", 0)
            .col(if add.is_some() { 4 } else { 3 } * f32s(k), 4 * u64::from(k));
        Ok(())
    }

    fn rope(&mut self, x: ValueId, d: u32, rope: usize, y: ValueId) -> Result<(), PlanError> {
        let n_pos = self.config.n_ctx;
        let r = &self.graph.ropes[rope];
        let sections = self.sections(rope);
        let mode = match (r.pairing, sections) {
            (RopePairing::Norm, None) => Mode::Normal,
            (RopePairing::Neox, None) => Mode::Neox,
            (RopePairing::Neox, Some((s, _))) => {
                if s.take_turns {
                    Mode::Imrope
                } else {
                    Mode::Mrope
                }
            }
            (RopePairing::Norm, Some(_)) => {
                return Err(PlanError::Missing { what: "a RoPE of neighbouring channels with sections" });
            }
        };
        // Positions are between the other words of the columns.
        let n = self.n_col;
        let stride = step::COLUMN as u32;
        let pos = Tensor {
            ty: GgmlType::I32,
            ne: [n, 1, 1, 1],
            stride: [stride, stride * n, stride * n, stride * n],
            offset: (step::HEADER + step::POSITION) as u32,
            n_alloc: self.config.step_words() as u32,
        };
        let a = (x != y).then(|| self.rows(x, d));
        let call = RopeNd {
            mode,
            n_dims: r.n_rot,
            first: 0,
            sections: sections.map_or([0; 4], |s| s.0.pairs),
            a,
            pos,
            shifts: sections.map(|s| s.1),
            n_pos,
            y: self.rows(y, d),
        };
        let dispatch = call.dispatch(self.caps)?;
        let mut bind = vec![("pos", Slot::Step), ("rope", Slot::Rope(rope))];
        if x != y {
            bind.push(("a", self.act(x)));
        }
        bind.push(("y", self.act(y)));
        let k = self.graph.width(y);
        let columns = self.many(Growth::Share(n));
        self.push(dispatch, bind, columns, "rope", 0).col(2 * f32s(k), 3 * u64::from(k));
        Ok(())
    }

    /// Keys and values in the cache's layout, from separate buffers.
    fn kv_write(&mut self, k: ValueId, v: ValueId, layer: usize) -> Result<(), PlanError> {
        let kv = self.config.kv_layout(&self.graph.kv[layer]);
        // There are no rows of q, so y is not written.
        let unused = self.tmp(1);
        for (value, [m_k, m_v]) in [(k, [self.graph.width(k), 0]), (v, [0, self.graph.width(v)])] {
            let m = m_k + m_v;
            let rows = self.cells([0, m_k], None, kv);
            let (v_at, ldx) = (m_k, ld(m));
            let call = RopeKvCols { rows, m_v, v_at, norm: None, ldx, ldy: ldx, n_col: self.n_col };
            let bind = vec![
                ("x", self.act(value)),
                ("y", Slot::Act(unused)),
                ("kv", Slot::Kv(layer)),
                ("step", Slot::Step),
                ("rope", Slot::Rope(0)),
            ];
            let columns = self.many(Growth::Y);
            self.push(call.dispatch(self.caps)?, bind, columns, "write", 0)
                .col(f32s(m) + kv.token_bytes() / 2, 0);
        }
        self.pool.release(unused);
        Ok(())
    }
}
