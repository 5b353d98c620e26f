//! Expansion: the dispatches of every step, for one column and for many, and the allocation of activation buffers.

use chaski_graph::Act;
use chaski_kernels::ops::add_scaled::AddScaled;
use chaski_kernels::ops::binary::{Binary, Function};
use chaski_kernels::ops::get_rows::GetRows;
use chaski_kernels::ops::glu::Glu;
use chaski_kernels::ops::mul_mat::MulMat;
use chaski_kernels::ops::mul_mat_vec::{Epilogue, MulMatVec, rounded_words};
use chaski_kernels::ops::rms_norm::RmsNorm;
use chaski_kernels::ops::scale::Scale;
use chaski_kernels::{Affine, Caps, Dispatch, DispatchError, Route, step};

use super::config::PlanConfig;
use super::cuts::Mark;
use super::error::PlanError;
use super::group::Groups;
use super::planned::{Growth, Joined, Planned, Segment, Slot, Work};
use super::stages::{Crossing, Place, Stage};
use super::steps::{Form, Fused, Norm, Part, Step, Steps};
use crate::graph::recurrent::Recurrent;
use crate::graph::{ExpertLayer, Graph, Op, ValueId, WeightId};

/// True if products may round their results for others: pages do not download that.
const AHEAD: bool = cfg!(not(target_arch = "wasm32"));

/// Column stride of an activation of this width, in values.
pub(super) fn ld(width: u32) -> u32 {
    width.next_multiple_of(8)
}

/// Bytes of `n` f32.
pub(super) fn f32s(n: u32) -> u64 {
    4 * u64::from(n)
}

/// Activation buffers, allocated and freed in execution order.
#[derive(Default)]
pub(super) struct Pool {
    pub(super) words: Vec<u64>,
    free: Vec<usize>,
}

impl Pool {
    /// The best-fitting free buffer, enlarged if none is large enough.
    pub(super) fn acquire(&mut self, words: u64) -> usize {
        let best = (0..self.free.len()).min_by_key(|i| {
            let have = self.words[self.free[*i]];
            (words.saturating_sub(have), have.saturating_sub(words))
        });
        match best {
            Some(i) => {
                let b = self.free.swap_remove(i);
                self.words[b] = self.words[b].max(words);
                b
            }
            None => {
                self.words.push(words);
                self.words.len() - 1
            }
        }
    }

    pub(super) fn release(&mut self, b: usize) {
        self.free.push(b);
    }
}

/// Input of a product: a buffer of columns of `k` values.
#[derive(Clone, Copy)]
pub(super) struct Input {
    pub(super) slot: Slot,
    pub(super) k: u32,
    /// Values are f16, two per word.
    pub(super) f16: bool,
    /// Values are rounded, from this word on.
    pub(super) rounded: Option<u32>,
}

/// The values that the steps of a body round.
#[derive(Default)]
pub(super) struct Rounding {
    /// For each step, the norm whose result it rounds, besides its own.
    pub(super) after: Vec<Option<Norm>>,
    /// Values of which nothing but the rounded form is stored.
    pub(super) values: Vec<bool>,
}

pub(super) struct Expander<'a> {
    pub(super) graph: &'a Graph,
    pub(super) steps: &'a Steps,
    pub(super) groups: &'a mut Groups,
    /// Capabilities of the device, and of all devices.
    pub(super) caps: &'a Caps,
    pub(super) devices: &'a [&'a Caps],
    pub(super) config: &'a PlanConfig,
    /// Buffers of the current device.
    pub(super) pool: Pool,
    /// Buffers of the other devices.
    pub(super) pools: Vec<Pool>,
    /// The current device, and the first step of every device but the first.
    pub(super) device: usize,
    pub(super) cuts: Vec<usize>,
    /// Number of first steps that the CPU runs.
    pub(super) n_cpu: usize,
    /// Buffer of every live value on the device.
    pub(super) home: Vec<Option<usize>>,
    /// Values stored as f16: only products read them, which would round them anyway.
    pub(super) half: Vec<bool>,
    /// Values that products of one column round, and the norm whose result the current step rounds.
    pub(super) rounding: Rounding,
    pub(super) rounds: Option<Norm>,
    /// Sums with a norm's result behind them, rounded: the norm's value.
    pub(super) normed: Vec<Option<ValueId>>,
    /// The last dispatch, if it joins the ranges of a product.
    pub(super) joined: Option<Joined>,
    /// Layouts of the values that hold routes.
    pub(super) routes: Vec<Option<Route>>,
    pub(super) out: Segment,
    /// The current place, its inputs, and the stages before it.
    pub(super) place: Place,
    pub(super) takes: Vec<Crossing>,
    pub(super) stages: Vec<Stage>,
    /// Steps of the body, if recorded.
    pub(super) marks: Option<Vec<Mark>>,
    /// Maximum words of values that cross between devices.
    pub(super) crossing_words: u64,
    /// Maximum number of columns.
    pub(super) n_col: u32,
    /// Workgroups for attention of one column, for heads of up to 64 channels and for larger ones.
    pub(super) spread: [u32; 2],
    /// Number of workgroup counters that kernels need.
    pub(super) arrived: u32,
    /// Maximum words in which routes name offloaded experts, with what is read back beside them.
    pub(super) route_words: u32,
    /// Layers of experts that may be computed elsewhere, and the layer of the current step.
    pub(super) experts: Vec<ExpertLayer>,
    pub(super) layer: Option<u16>,
    pub(super) logits: ValueId,
    pub(super) ld_logits: u32,
    /// Columns are the step's picks: products of several columns use their number.
    pub(super) is_picked: bool,
}

impl Expander<'_> {
    /// Frees all buffers, for the next body.
    pub(super) fn reset(&mut self) {
        self.home.fill(None);
        self.normed.fill(None);
        self.joined = None;
        self.use_device(0);
        for pool in self.pools.iter_mut().chain([&mut self.pool]) {
            pool.free = (0..pool.words.len()).collect();
        }
    }

    /// All steps before the head, in stages; values that the head reads stay live.
    pub(super) fn body(&mut self, body: &[Step], head: &[Step], n_col: u32) -> Result<Vec<Stage>, PlanError> {
        self.n_col = n_col;
        (self.place, self.takes) = (Place::Device(self.device), Vec::new());
        let mut last = vec![0; self.graph.widths.len()];
        self.half = self.half_of(body.iter().chain(head), n_col);
        if AHEAD {
            let steps: Vec<&Step> = body.iter().chain(head).collect();
            self.rounding = self.rounding_of(&steps, body.len());
        }
        for (i, s) in body.iter().chain(head).enumerate() {
            self.touched(s).into_iter().for_each(|v| last[v.0] = i);
        }
        // The head reads the picked columns through an f32 copy.
        head.iter().flat_map(|s| self.steps.inputs(self.graph, s)).for_each(|v| self.half[v.0] = false);
        if cfg!(not(target_arch = "wasm32")) {
            self.after_cpu(body, head);
        }
        for (i, s) in body.iter().enumerate().skip(self.n_cpu) {
            if self.cuts.contains(&i) {
                self.cross();
            }
            if let Some(marks) = &mut self.marks {
                let live = (0..self.home.len()).filter(|v| self.home[*v].is_some()).map(ValueId).collect();
                let dispatch = self.stages.iter().map(|s| s.segment.len()).sum::<usize>() + self.out.len();
                marks.push(Mark { dispatch, live });
            }
            let is_inside = |l: &&ExpertLayer| s.nodes().iter().any(|n| l.nodes.contains(n));
            self.layer = self.experts.iter().find(is_inside).map(|l| l.layer);
            if AHEAD {
                self.step_ahead(s, i)?;
            } else {
                self.step(s)?;
            }
            self.layer = None;
            for v in self.touched(s) {
                if last[v.0] == i
                    && let Some(b) = self.home[v.0].take()
                {
                    self.pool.release(b);
                    self.normed[v.0] = None;
                }
            }
        }
        let segment = self.take_out();
        let takes = std::mem::take(&mut self.takes);
        self.stages.push(Stage { place: self.place, segment, takes, gives: Vec::new() });
        Ok(std::mem::take(&mut self.stages))
    }

    /// A step, with what it rounds for the next.
    fn step_ahead(&mut self, s: &Step, i: usize) -> Result<(), PlanError> {
        self.rounds = self.rounding.after[i];
        let y = self.steps.output(self.graph, s);
        self.normed[y.0] = None;
        self.step(s)?;
        if let Some(norm) = self.rounds.take() {
            self.normed[y.0] = Some(norm.out);
        }
        Ok(())
    }

    /// Values that are f16 in steps of up to `n_col` columns.
    pub(super) fn half_of<'b>(&self, steps: impl IntoIterator<Item = &'b Step>, n_col: u32) -> Vec<bool> {
        let takes = |k: &u32| n_col > 1 && self.devices.iter().all(|c| MulMat::takes_f16(c, *k, n_col));
        let mut half: Vec<bool> = self.graph.widths.iter().map(takes).collect();
        for s in steps {
            let rounds = |v: &ValueId| self.steps.multiplies(self.graph, s, *v);
            let inputs = self.steps.inputs(self.graph, s);
            inputs.into_iter().filter(|v| !rounds(v)).for_each(|v| half[v.0] = false);
            if !self.steps.can_round(self.graph, s) && !self.attends_in_f16(s, n_col) {
                half[self.steps.output(self.graph, s).0] = false;
            }
        }
        half
    }

    /// Values whose buffers a step reads or writes; a norm's result has one if there are many columns.
    fn touched(&self, s: &Step) -> Vec<ValueId> {
        let norm = s.norm().filter(|_| self.n_col > 1).map(|n| n.out);
        let inputs = self.steps.inputs(self.graph, s).into_iter();
        let all = inputs.chain([self.steps.output(self.graph, s)]).chain(norm);
        all.map(|v| self.steps.views[v.0].map_or(v, |(x, _)| x)).collect()
    }

    pub(super) fn head(&mut self, head: &[Step], n_col: u32) -> Result<Segment, PlanError> {
        self.n_col = n_col;
        for s in head {
            self.step(s)?;
            if let Some(b) = s.norm().and_then(|n| self.home[n.out.0].take()) {
                self.pool.release(b);
            }
        }
        Ok(self.take_out())
    }

    pub(super) fn push(
        &mut self,
        dispatch: Dispatch,
        bind: Vec<(&'static str, Slot)>,
        columns: Growth,
        part: &'static str,
        weights: u64,
    ) -> &mut Work {
        self.settle();
        let work = Work { weights, ..Work::default() };
        self.out.push(Planned { dispatch, bind, columns, part, work, product: None, layer: self.layer });
        &mut self.out.last_mut().expect("it was just pushed").work
    }

    /// The buffer of a value, allocated if necessary.
    pub(super) fn act(&mut self, v: ValueId) -> Slot {
        if v == self.logits {
            return Slot::Logits;
        }
        if let Some((x, _)) = self.steps.views[v.0] {
            return self.act(x);
        }
        let words = self.words(self.graph.width(v)) * u64::from(self.graph.slots(v).max(1));
        let b = match self.home[v.0] {
            Some(b) => {
                self.pool.words[b] = self.pool.words[b].max(words);
                b
            }
            None => self.pool.acquire(words),
        };
        self.home[v.0] = Some(b);
        Slot::Act(b)
    }

    /// A value as the input of a product.
    fn input(&mut self, v: ValueId) -> Input {
        let rounded = (AHEAD && self.rounding.values.get(v.0).is_some_and(|r| *r)).then_some(0);
        Input { slot: self.act(v), k: self.graph.width(v), f16: self.half[v.0], rounded }
    }

    pub(super) fn ld_of(&self, v: ValueId) -> u32 {
        match self.steps.views[v.0] {
            Some((x, _)) => self.ld_of(x),
            None if v == self.logits => self.ld_logits,
            None => ld(self.graph.width(v)),
        }
    }

    /// Words of an activation.
    pub(super) fn words(&self, width: u32) -> u64 {
        u64::from(ld(width)) * u64::from(self.n_col)
    }

    pub(super) fn tmp(&mut self, width: u32) -> usize {
        self.pool.acquire(self.words(width))
    }

    /// A product of one column, with the tuning for its shape.
    pub(super) fn mat_vec(
        &mut self,
        mut call: MulMatVec,
        bind: Vec<(&'static str, Slot)>,
        part: &'static str,
        weights: u64,
    ) -> Result<&mut Work, DispatchError> {
        let rounded = AHEAD && (call.rounded.is_some() || call.emit.is_some());
        call.act = if rounded { self.precision() } else { self.config.inputs };
        call.tune = self.config.tuning.product(&call.class());
        let dispatch = call.dispatch(self.caps)?;
        self.push(dispatch, bind, Growth::Fixed, part, weights);
        let planned = self.out.last_mut().expect("it was just pushed");
        planned.product = Some(call);
        Ok(&mut planned.work)
    }

    pub(super) fn many(&self, columns: Growth) -> Growth {
        if self.n_col == 1 { Growth::Fixed } else { columns }
    }

    fn step(&mut self, s: &Step) -> Result<(), PlanError> {
        match s {
            Step::Node(i) => {
                let (node, steps) = (&self.graph.nodes[*i], self.steps);
                self.node(&node.op.clone().moved(|v| steps.place(v)), steps.place(node.out))
            }
            Step::Fused(f) => {
                let x = self.steps.inputs(self.graph, s)[0];
                self.fused(f, x, self.steps.place(f.out))
            }
        }
    }

    /// A single node; `op` and `y` refer to places.
    fn node(&mut self, op: &Op, y: ValueId) -> Result<(), PlanError> {
        match *op {
            Op::Embed { table } => self.embed(table, false, y),
            Op::EmbedPosition { table } => self.embed(table, true, y),
            Op::RmsNorm { x, weight, eps } => {
                let (x_slot, y_slot) = (self.act(x), self.act(y));
                let norm = Norm { weight, eps, out: y };
                self.norm(norm, x_slot, self.graph.width(x), y_slot, self.half[y.0])
            }
            Op::MulMat { x, .. } => {
                let part = Part::of(op).expect("a product has a matrix");
                self.project(x, None, &[part], false, y)
            }
            Op::Products { x, ref parts } => {
                let parts: Vec<Part> = parts.iter().map(Part::from).collect();
                self.project(x, None, &parts, false, y)
            }
            Op::MulMatId { x, route, .. } => {
                let part = Part::of(op).expect("a product has a matrix");
                self.project_id(x, None, route, part, y)
            }
            Op::MulHeads { x, weight } => {
                let n_row = self.graph.weights[weight.0].expert_rows();
                self.by_head(x, weight, y, n_row, "by head")
            }
            Op::Latent(ref op) => self.latent(op, y),
            Op::Attention { q, layer, n_head, score, sinks } => {
                self.attention(q, layer, n_head, score, sinks, y)
            }
            Op::Bidirectional(ref op) => self.bidirectional(op, y),
            Op::TopkMoe { x, bias, routing } => self.topk(x, bias, routing, y),
            Op::MoeReduce { x, route } => self.reduce(x, route, y),
            Op::Recurrent(ref op) => self.recurrent(op, false, y),
            Op::Add { a, b } if y == a && a != b => self.add_in_place(b, y),
            Op::Add { a, b } if y == b && a != b => self.add_in_place(a, y),
            Op::Scale { x, by } if y == x => self.scale_in_place(by, y),
            _ => self.single(op, y),
        }
    }

    /// A fused step; `x` is its first input.
    fn fused(&mut self, f: &Fused, x: ValueId, y: ValueId) -> Result<(), PlanError> {
        match f.form {
            Form::Project { norm, part, add } => self.project(x, norm, &[part], add, y),
            Form::Products { norm, ref parts } => self.project(x, norm, parts, false, y),
            Form::Gated { norm, gate, up, act } => self.gated(x, norm, gate, up, act, y),
            Form::Qkv { norm, ref parts, ref heads } => self.qkv(x, norm, parts, heads, y),
            Form::GatedId { norm, route, gate, up, act } => self.gated_id(x, norm, route, [gate, up], act, y),
            Form::ProjectId { norm, route, part } => self.project_id(x, norm, route, part, y),
            Form::ReduceId { route, part, add } => self.reduce_id(x, route, part, add, y),
            Form::RowNorm { ref norm, add, by } => self.row_norm(x, norm, add, by, y),
            Form::AddScaled { by } => self.add_scaled(x, by, y),
            Form::GatedNorm { op, add } => {
                let steps = self.steps;
                self.recurrent(&Recurrent::GatedNorm(op).moved(|v| steps.place(v)), add, y)
            }
        }
    }

    /// Products of `x`, or of its norm.
    fn project(
        &mut self,
        x: ValueId,
        norm: Option<Norm>,
        parts: &[Part],
        add: bool,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let name = if y == self.logits { "head" } else { "project" };
        let (x, norm) = self.fed_products(x, norm)?;
        let (y_slot, ldy) = (self.act(y), self.ld_of(y));
        if let (Some(_), Slot::Act(b)) = (self.rounds.filter(|_| AHEAD), y_slot) {
            let words = self.words(self.graph.width(y)) + u64::from(rounded_words(self.graph.width(y)));
            self.pool.words[b] = self.pool.words[b].max(words);
        }
        self.projects(x, norm, parts, add, y_slot, ldy, name)
    }

    fn add_in_place(&mut self, x: ValueId, y: ValueId) -> Result<(), PlanError> {
        let (x_slot, y_slot) = (self.act(x), self.act(y));
        let (k, l) = (self.graph.width(y), self.ld_of(y));
        let slots = self.graph.slots(y).max(1);
        let call = Binary { f: Function::Add, k, ldx: l, ldy: l, n_col: self.n_col * slots };
        let columns = self.many(Growth::YTimes(slots));
        self.push(call.dispatch()?, vec![("x", x_slot), ("y", y_slot)], columns, "add", 0)
            .col(3 * f32s(k * slots), u64::from(k * slots));
        Ok(())
    }

    fn add_scaled(&mut self, x: ValueId, by: f32, y: ValueId) -> Result<(), PlanError> {
        let (x_slot, y_slot) = (self.act(x), self.act(y));
        let (k, [ldx, ldy]) = (self.graph.width(y), [x, y].map(|v| self.ld_of(v)));
        let slots = self.graph.slots(y).max(1);
        let call = AddScaled { k, ldx, ldy, n_col: self.n_col * slots, by };
        let columns = self.many(Growth::YTimes(slots));
        self.push(call.dispatch()?, vec![("x", x_slot), ("y", y_slot)], columns, "add_scaled", 0)
            .col(3 * f32s(k * slots), 2 * u64::from(k * slots));
        Ok(())
    }

    fn scale_in_place(&mut self, by: f32, y: ValueId) -> Result<(), PlanError> {
        let y_slot = self.act(y);
        let (k, ldy) = (self.graph.width(y), self.ld_of(y));
        let slots = self.graph.slots(y).max(1);
        let call = Scale { k, ldy, n_col: self.n_col * slots, by, bias: 0.0 };
        let columns = self.many(Growth::YTimes(slots));
        self.push(call.dispatch()?, vec![("y", y_slot)], columns, "scale", 0)
            .col(2 * f32s(k * slots), u64::from(k * slots));
        Ok(())
    }

    fn embed(&mut self, table: WeightId, by_position: bool, y: ValueId) -> Result<(), PlanError> {
        let y_slot = self.act(y);
        let (group, base) = self.groups.home(table);
        let rows = self.graph.weights[table.0].n_row;
        for shard in 0..self.groups.groups[group].shards.len() {
            let g = &self.groups.groups[group];
            let sh = &g.shards[shard];
            if sh.row0 >= base + rows || sh.row0 + sh.n_row <= base {
                continue;
            }
            let call = GetRows {
                table: g.matrix(sh),
                row0: sh.row0.wrapping_sub(base),
                ids: step::HEADER as u32 + if by_position { step::POSITION as u32 } else { 0 },
                id_stride: step::COLUMN as u32,
                ldy: self.ld_of(y),
                n_col: self.n_col,
            };
            let columns = self.many(Growth::Y);
            let bind = vec![("w", Slot::Weights { group, shard }), ("ids", Slot::Step), ("y", y_slot)];
            // One shard has the row; the others write nothing.
            let first = sh.row0 <= base;
            let row = self.graph.weights[table.0].n_byte() / u64::from(rows.max(1));
            let n_byte = if first { row + f32s(self.graph.width(y)) } else { 4 };
            self.push(call.dispatch(self.caps)?, bind, columns, "embed", 0).col(n_byte, 0);
        }
        Ok(())
    }

    fn norm(&mut self, norm: Norm, x: Slot, k: u32, y: Slot, y_f16: bool) -> Result<(), PlanError> {
        let aux = self.aux(Some(norm), &[])?;
        let call =
            RmsNorm { k, n_row: self.n_col, ldx: ld(k), ldy: ld(k), eps: norm.eps, weight: true, y_f16 };
        let aux = Slot::Aux(aux);
        if self.join_with_norm(&call, aux, x, y)? {
            return Ok(());
        }
        let columns = self.many(Growth::X);
        let bind = vec![("x", x), ("aux", aux), ("y", y)];
        self.push(call.dispatch(self.caps)?, bind, columns, "norm", 0).col(3 * f32s(k), 4 * u64::from(k));
        Ok(())
    }

    /// The aux buffer of a norm and of products beside each other.
    pub(super) fn aux(&mut self, norm: Option<Norm>, parts: &[Part]) -> Result<Option<usize>, PlanError> {
        self.groups.aux(self.graph, norm, parts, (self.n_col, self.is_picked))
    }

    /// Scales and biases of a product whose first row is `row` of those of an aux buffer.
    pub(super) fn affine(&self, aux: Option<usize>, row: u32) -> Option<Affine> {
        aux.and_then(|aux| self.groups.aux[aux].affine(row))
    }

    /// Products of one input whose rows are concatenated in y.
    pub(super) fn projects(
        &mut self,
        x: Input,
        norm: Option<Norm>,
        parts: &[Part],
        add: bool,
        y: Slot,
        ldy: u32,
        name: &'static str,
    ) -> Result<(), PlanError> {
        if self.n_col == 1 {
            // Products whose result is rounded have no norm before them, but the weights of one behind.
            let aux = self.aux(norm.or(self.rounds.filter(|_| AHEAD)), parts)?;
            return self.project_rows(x, norm.map(|n| n.eps), parts, aux, add, y, ldy, name);
        }
        assert!(norm.is_none(), "many columns have their norm behind them");
        let aux = self.aux(None, parts)?;
        self.project_rows(x, None, parts, aux, add, y, ldy, name)
    }

    /// Input of products of `x`: `x` itself with the norm to fuse, or for many columns the norm's result, computed once
    /// for all steps that share it.
    pub(super) fn fed(&mut self, x: ValueId, norm: Option<Norm>) -> Result<(Input, Option<Norm>), PlanError> {
        let Some(norm) = norm.filter(|_| self.n_col > 1) else { return Ok((self.input(x), norm)) };
        if self.home[norm.out.0].is_none() {
            let (from, to) = (self.act(x), self.act(norm.out));
            self.norm(norm, from, self.graph.width(x), to, self.half[norm.out.0])?;
        }
        Ok((self.input(norm.out), None))
    }

    /// The same for the products of one column without experts, which may find the norm's result rounded.
    pub(super) fn fed_products(
        &mut self,
        x: ValueId,
        norm: Option<Norm>,
    ) -> Result<(Input, Option<Norm>), PlanError> {
        let (mut input, left) = self.fed(x, norm)?;
        if !AHEAD {
            return Ok((input, left));
        }
        let is_there = |n: &Norm| self.n_col == 1 && self.normed[x.0] == Some(n.out);
        if norm.is_some_and(|n| is_there(&n)) {
            input.rounded = Some(self.rounded_at(x));
        }
        Ok((input, left))
    }

    fn project_rows(
        &mut self,
        x: Input,
        eps: Option<f32>,
        parts: &[Part],
        aux: Option<usize>,
        add: bool,
        y: Slot,
        ldy: u32,
        name: &'static str,
    ) -> Result<(), PlanError> {
        // Contiguous runs of rows: (group, first row there, rows, first row of y).
        let mut runs: Vec<(usize, u32, u32, u32)> = Vec::new();
        let mut y0 = 0;
        for p in parts {
            let (group, row) = self.groups.home(p.weight);
            let n = self.graph.weights[p.weight.0].n_row;
            match runs.last_mut() {
                Some(r) if r.0 == group && r.1 + r.2 == row => r.2 += n,
                _ => runs.push((group, row, n, y0)),
            }
            y0 += n;
        }
        for (group, first, n, y0) in runs {
            for shard in 0..self.groups.groups[group].shards.len() {
                let g = &self.groups.groups[group];
                let sh = &g.shards[shard];
                let whole = g.matrix(sh);
                // A run is a whole group or, for weights used in two places, begins and ends with shards.
                if sh.row0 + sh.n_row <= first || sh.row0 >= first + n {
                    continue;
                }
                assert!(
                    sh.row0 >= first && sh.row0 + sh.n_row <= first + n,
                    "groups are formed from the same parts that are projected together"
                );
                let at = y0 + sh.row0 - first;
                let affine = self.affine(aux, at);
                let n_byte = g.layout(sh).n_byte;
                let moved = f32s(x.k) + f32s(sh.n_row) * if add { 2 } else { 1 };
                let n_flop = 2 * u64::from(sh.n_row) * u64::from(x.k);
                let mut bind = vec![
                    ("w", Slot::Weights { group, shard }),
                    ("x", x.slot),
                    ("aux", Slot::Aux(aux)),
                    ("y", y),
                ];
                if self.n_col == 1 {
                    let epilogue = if add { Epilogue::Add } else { Epilogue::Store };
                    let call = MulMatVec {
                        norm: eps,
                        affine,
                        y0: at,
                        rounded: x.rounded,
                        emit: self.rounds.filter(|_| AHEAD).map(|_| ldy),
                        ..MulMatVec::new(whole, epilogue)
                    };
                    self.mat_vec(call, bind, name, n_byte)?.col(moved, n_flop);
                } else {
                    let call = MulMat {
                        w: whole,
                        experts: None,
                        act: self.config.inputs,
                        add,
                        affine,
                        f16_tiles: self.config.f16_tiles,
                        ldx: ld(x.k),
                        ldy,
                        y0: at,
                        n_col: self.n_col,
                        x_f16: x.f16,
                        tile: None,
                        splits: 1,
                    };
                    let call = call.spread(self.caps);
                    let parts = (call.splits > 1).then(|| self.pool.acquire(call.parts_len()));
                    if let Some(parts) = parts {
                        bind[3].1 = Slot::Act(parts);
                    }
                    bind.push(("step", Slot::Step));
                    let (mut dispatch, tile) = call.dispatch(self.caps)?;
                    if self.is_picked {
                        dispatch.constants.push(("N_COL_AT", step::N_PICK as f64));
                    }
                    let columns = tile.map_or(Growth::Fixed, Growth::XTiles);
                    self.push(dispatch, bind, columns, name, n_byte).col(moved, n_flop);
                    if let Some(parts) = parts {
                        self.push_join(call.join(), parts, aux, y, name)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The group that consists of exactly these weights in order, unsplit.
    pub(super) fn together(&self, parts: &[Part]) -> Option<usize> {
        let (group, row) = self.groups.home(parts.first()?.weight);
        let g = &self.groups.groups[group];
        let mut at = 0;
        for p in parts {
            if self.groups.home(p.weight) != (group, at) {
                return None;
            }
            at += self.graph.weights[p.weight.0].n_row;
        }
        (row == 0 && at == g.n_row && g.shards.len() == 1).then_some(group)
    }

    fn gated(
        &mut self,
        x: ValueId,
        norm: Option<Norm>,
        gate: Part,
        up: Part,
        act: Act,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let (x, norm) = self.fed_products(x, norm)?;
        let (y_slot, y_f16) = (self.act(y), self.half[y.0]);
        let f = self.graph.width(y);
        if self.n_col == 1
            && let Some(group) = self.together(&[gate, up])
        {
            let aux = self.aux(norm, &[gate, up])?;
            let g = &self.groups.groups[group];
            let n_byte = g.layout(&g.shards[0]).n_byte;
            let affine = self.affine(aux, 0);
            let call = MulMatVec {
                norm: norm.map(|n| n.eps),
                affine,
                rounded: x.rounded,
                emit: (AHEAD && self.rounding.values.get(y.0) == Some(&true)).then_some(0),
                ..MulMatVec::new(g.matrix(&g.shards[0]), Epilogue::Glu(act))
            };
            let bind = vec![
                ("w", Slot::Weights { group, shard: 0 }),
                ("x", x.slot),
                ("aux", Slot::Aux(aux)),
                ("y", y_slot),
            ];
            self.mat_vec(call, bind, "gate_up", n_byte)?
                .col(f32s(x.k) + f32s(f), 4 * u64::from(f) * u64::from(x.k));
            return Ok(());
        }
        let both = self.tmp(2 * f);
        let ldx = ld(2 * f);
        self.projects(x, norm, &[gate, up], false, Slot::Act(both), ldx, "gate_up")?;
        let call = Glu { act, f, up: f, ldx, ldy: ld(f), n_col: self.n_col, y_f16 };
        let columns = self.many(Growth::Y);
        self.push(call.dispatch()?, vec![("x", Slot::Act(both)), ("y", y_slot)], columns, "glu", 0)
            .col(3 * f32s(f), u64::from(f));
        self.pool.release(both);
        Ok(())
    }
}
