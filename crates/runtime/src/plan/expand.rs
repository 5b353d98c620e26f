//! Expansion: the dispatches of every step, for one column and for many, and the buffers that they share.

use chaski_kernels::ops::adjust::{self, Adjust};
use chaski_kernels::ops::argmax::Argmax;
use chaski_kernels::ops::attention::{Attention, Score};
use chaski_kernels::ops::attention_merge::AttentionMerge;
use chaski_kernels::ops::binary::{Binary, Function};
use chaski_kernels::ops::get_rows::GetRows;
use chaski_kernels::ops::glu::{Act, Glu};
use chaski_kernels::ops::mul_mat::MulMat;
use chaski_kernels::ops::mul_mat_vec::{Epilogue, MulMatVec};
use chaski_kernels::ops::rms_norm::RmsNorm;
use chaski_kernels::ops::rope_kv::{CellNorm, RopeKvCols};
use chaski_kernels::ops::sample::{MAX_TOP_K, Sample};
use chaski_kernels::ops::scale::Scale;
use chaski_kernels::rope::RopePairing;
use chaski_kernels::{Caps, Dispatch, DispatchError, Format, KvLayout, Matrix, RopeKv, Route, step};
use ggml_format::GgmlType;

use super::fuse::{Fused, Heads, Norm, Part};
use super::group::Groups;
use super::segments::{Columns, DecodePlan, PlanConfig, PlanError, Planned, Segment, Segments, Slot, Work};
use crate::graph::{Graph, ValueId, WeightId};

/// Into how many parts attention splits the keys of a KV head: (sequences up to so many tokens, workgroups of all KV
/// heads together, the same for heads of more than 64 channels).
///
/// One column alone keeps few workgroups busy, so longer sequences are split; but joining the parts takes longer the
/// more there are, and is a dispatch more where the kernel cannot do it itself. Workgroups for large heads have twice
/// the threads. Measured on an H200, which has 132 multiprocessors.
const SPLITS: [(u32, u32, u32); 3] = [(128, 1, 1), (1024, 64, 64), (u32::MAX, 256, 128)];

/// Values from column to column of an activation of this width.
pub(super) fn ld(width: u32) -> u32 {
    width.next_multiple_of(8)
}

/// Bytes of so many f32.
pub(super) fn f32s(n: u32) -> u64 {
    4 * u64::from(n)
}

/// Makes the plan.
///
/// # Errors
/// [`PlanError`] if a step has no kernel on this device or a buffer is larger than a binding.
pub fn plan(
    graph: &Graph,
    steps: &[Fused],
    groups: &mut Groups,
    caps: &Caps,
    config: &PlanConfig,
) -> Result<Segments, PlanError> {
    if config.n_seq > 1 && !graph.states.is_empty() {
        return Err(PlanError::Sequences { n_seq: config.n_seq });
    }
    check_cache(graph, caps, config)?;
    let logits = graph.logits.ok_or(PlanError::Missing { what: "logits" })?;
    // What follows the product of the logits works in its place.
    let logits = steps.last().map_or(logits, Fused::output);
    let head_at =
        steps.iter().position(|s| s.output() == logits).ok_or(PlanError::Missing { what: "logits" })?;
    let (body, head) = steps.split_at(head_at);
    let n_vocab = graph.width(logits);
    let ld_logits = ld(n_vocab);
    let fit = (caps.max_binding_bytes / 4 / u64::from(ld_logits.max(1))) as u32;
    let all_cols = config.max_col.min(fit).clamp(1, 64);
    if u64::from(n_vocab) * 4 > caps.max_binding_bytes {
        return Err(PlanError::TooLarge {
            what: "the logits of one token",
            n_byte: u64::from(n_vocab) * 4,
            limit: caps.max_binding_bytes,
            help: "the vocabulary is too large for this device",
        });
    }
    let mut e = Expander {
        graph,
        groups,
        caps,
        config,
        pool: Pool::default(),
        home: vec![None; graph.widths.len()],
        half: vec![false; graph.widths.len()],
        routes: vec![None; graph.widths.len()],
        out: Segment::new(),
        n_col: 1,
        spread: [1, 1],
        arrived: 1,
        logits,
        ld_logits,
    };

    let mut s = Segments { ld_logits, all_cols, n_layer: graph.n_layer, ..Segments::default() };
    let n_col = config.max_col;
    s.prefill = e.body(body, head, n_col)?;
    let x = head
        .first()
        .and_then(|h| h.inputs().first().copied())
        .ok_or(PlanError::Missing { what: "a head" })?;
    let x_home = e.home[x.0].expect("the body made the head's input");
    s.head_all = e.head(head, all_cols)?;
    // The wanted column goes to a buffer of its own, from which the head reads it.
    let width = graph.width(x);
    let picked = e.pool.acquire(u64::from(ld(width)));
    let f32_format = Format::of(GgmlType::F32).expect("plain values are a format");
    let table = Matrix { format: f32_format, n_row: n_col, n_col: width };
    let pick = GetRows { table, row0: 0, ids: step::PICK as u32, id_stride: 1, ldy: ld(width), n_col: 1 };
    let bind = vec![("w", Slot::Act(x_home)), ("ids", Slot::Step), ("y", Slot::Act(picked))];
    e.push(pick.dispatch(caps)?, bind, Columns::Fixed, "pick", 0).col(2 * f32s(width), 0);
    s.pick = std::mem::take(&mut e.out);
    e.home[x.0] = Some(picked);
    s.head_pick = e.head(head, 1)?;

    let mut covered = 0;
    for (max_key, groups, groups_of_large) in SPLITS {
        if covered < config.n_ctx {
            e.reset();
            e.spread = [groups, groups_of_large];
            let body = e.body(body, head, 1)?;
            s.decode.push(DecodePlan { max_key, body, head: e.head(head, 1)? });
            covered = max_key;
        }
    }

    let bind =
        vec![("y", Slot::Logits), ("adjust", Slot::Adjust), ("step", Slot::Step), ("ring", Slot::Ring)];
    let dispatch = Adjust { k: n_vocab, ring: config.ring }.dispatch()?;
    e.push(dispatch, bind, Columns::Fixed, "adjust", 0).col(f32s(adjust::N_WORD as u32), 0);
    s.adjust = std::mem::take(&mut e.out);

    let argmax = Argmax { k: n_vocab, ring: config.ring };
    let parts = e.pool.acquire(2 * u64::from(argmax.n_part()));
    e.push(
        argmax.chunk(caps)?,
        vec![("x", Slot::Logits), ("y", Slot::Act(parts))],
        Columns::Fixed,
        "argmax",
        0,
    )
    .col(f32s(n_vocab), 0);
    let bind = vec![("x", Slot::Act(parts)), ("step", Slot::Step), ("ring", Slot::Ring)];
    e.push(argmax.join(caps)?, bind, Columns::Fixed, "argmax", 0).col(2 * f32s(argmax.n_part()), 0);
    s.argmax = std::mem::take(&mut e.out);
    e.pool.release(parts);

    let sample = Sample { k: n_vocab, ring: config.ring };
    let mut n_list = sample.n_part();
    let mut lists = e.pool.acquire(2 * u64::from(MAX_TOP_K * n_list));
    let bind = vec![("x", Slot::Logits), ("y", Slot::Act(lists))];
    e.push(sample.chunk(caps)?, bind, Columns::Fixed, "sample", 0).col(f32s(n_vocab), 0);
    while n_list > Sample::MAX_DRAW {
        let joined = Sample::joined(n_list);
        let next = e.pool.acquire(2 * u64::from(MAX_TOP_K * joined));
        let bind = vec![("x", Slot::Act(lists)), ("y", Slot::Act(next))];
        let n_byte = 2 * f32s(MAX_TOP_K * (n_list + joined));
        e.push(sample.join(caps, n_list)?, bind, Columns::Fixed, "sample", 0).col(n_byte, 0);
        e.pool.release(lists);
        (lists, n_list) = (next, joined);
    }
    let bind =
        vec![("x", Slot::Act(lists)), ("sampler", Slot::Sampler), ("step", Slot::Step), ("ring", Slot::Ring)];
    let n_byte = 2 * f32s(MAX_TOP_K * n_list);
    e.push(sample.draw(caps, n_list)?, bind, Columns::Fixed, "sample", 0).col(n_byte, 0);
    s.sample = std::mem::take(&mut e.out);

    s.arrived_words = e.arrived.into();
    s.act_words = e.pool.words;
    s.logits_words = u64::from(ld_logits) * u64::from(all_cols);
    let largest = s.act_words.iter().copied().max().unwrap_or(0) * 4;
    if largest > caps.max_binding_bytes {
        return Err(PlanError::TooLarge {
            what: "an activation buffer",
            n_byte: largest,
            limit: caps.max_binding_bytes,
            help: "use a smaller chunk",
        });
    }
    Ok(s)
}

/// Whether the state and the cache of every layer can be bound; kernels count a cache's cells in 32 bits.
fn check_cache(graph: &Graph, caps: &Caps, config: &PlanConfig) -> Result<(), PlanError> {
    for layer in &graph.states {
        if layer.n_byte() > caps.max_binding_bytes {
            return Err(PlanError::TooLarge {
                what: "the recurrent state of a layer",
                n_byte: layer.n_byte(),
                limit: caps.max_binding_bytes,
                help: "the model is too large for this device",
            });
        }
    }
    let tokens = u64::from(config.n_ctx).next_multiple_of(config.page.into()) * u64::from(config.n_seq);
    for layer in &graph.kv {
        let n_cell = tokens * u64::from(layer.n_kv);
        let countable = u32::try_from(n_cell).is_ok();
        // So many cells have at least a block of 18 bytes each.
        let n_byte = if countable { config.kv_layout(layer).n_byte() } else { 18 * n_cell };
        if n_byte > caps.max_binding_bytes || !countable {
            return Err(PlanError::TooLarge {
                what: "the KV cache of a layer",
                n_byte,
                limit: caps.max_binding_bytes,
                help: "use a smaller context or a smaller type for the KV cache",
            });
        }
    }
    Ok(())
}

/// Activation buffers, given out and taken back in order of execution.
#[derive(Default)]
pub(super) struct Pool {
    words: Vec<u64>,
    free: Vec<usize>,
}

impl Pool {
    /// The free buffer that fits best, grown if none is large enough.
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

/// What a product reads: a buffer of columns of `k` values.
#[derive(Clone, Copy)]
pub(super) struct Input {
    pub(super) slot: Slot,
    pub(super) k: u32,
    /// Values are f16, two a word.
    pub(super) f16: bool,
}

pub(super) struct Expander<'a> {
    pub(super) graph: &'a Graph,
    pub(super) groups: &'a mut Groups,
    pub(super) caps: &'a Caps,
    pub(super) config: &'a PlanConfig,
    pub(super) pool: Pool,
    /// Buffer of every value that lives now.
    pub(super) home: Vec<Option<usize>>,
    /// Which values are f16: only products read them that would round them anyway.
    pub(super) half: Vec<bool>,
    /// How the values that say which experts columns use are laid out.
    pub(super) routes: Vec<Option<Route>>,
    out: Segment,
    /// Columns at most.
    pub(super) n_col: u32,
    /// Workgroups for attention of one column, for heads of up to 64 channels and for larger ones.
    spread: [u32; 2],
    /// Counters of workgroups that kernels need.
    arrived: u32,
    logits: ValueId,
    ld_logits: u32,
}

impl Expander<'_> {
    /// Frees all buffers: the next body starts afresh in the same ones.
    fn reset(&mut self) {
        self.home.fill(None);
        self.pool.free = (0..self.pool.words.len()).collect();
    }

    /// All steps before the head; values that the head reads stay alive.
    fn body(&mut self, body: &[Fused], head: &[Fused], n_col: u32) -> Result<Segment, PlanError> {
        self.n_col = n_col;
        let mut last = vec![0; self.graph.widths.len()];
        self.half =
            self.graph.widths.iter().map(|k| n_col > 1 && MulMat::takes_f16(self.caps, *k, n_col)).collect();
        for (i, s) in body.iter().chain(head).enumerate() {
            self.touched(s).into_iter().for_each(|v| last[v.0] = i);
            s.inputs().into_iter().filter(|v| !s.multiplies(*v)).for_each(|v| self.half[v.0] = false);
            if !s.can_round() {
                self.half[s.output().0] = false;
            }
        }
        // The head reads the wanted column through a copy that knows f32 alone.
        head.iter().flat_map(Fused::inputs).for_each(|v| self.half[v.0] = false);
        for (i, s) in body.iter().enumerate() {
            self.step(s)?;
            for v in self.touched(s) {
                if last[v.0] == i
                    && let Some(b) = self.home[v.0].take()
                {
                    self.pool.release(b);
                }
            }
        }
        Ok(std::mem::take(&mut self.out))
    }

    /// Values whose buffers a step reads or writes; a norm's result has one where there are many columns.
    fn touched(&self, s: &Fused) -> Vec<ValueId> {
        let norm = s.norm().filter(|_| self.n_col > 1).map(|n| n.out);
        s.inputs().into_iter().chain([s.output()]).chain(norm).collect()
    }

    fn head(&mut self, head: &[Fused], n_col: u32) -> Result<Segment, PlanError> {
        self.n_col = n_col;
        for s in head {
            self.step(s)?;
            if let Some(b) = s.norm().and_then(|n| self.home[n.out.0].take()) {
                self.pool.release(b);
            }
        }
        Ok(std::mem::take(&mut self.out))
    }

    pub(super) fn push(
        &mut self,
        dispatch: Dispatch,
        bind: Vec<(&'static str, Slot)>,
        columns: Columns,
        part: &'static str,
        weights: u64,
    ) -> &mut Work {
        let work = Work { weights, ..Work::default() };
        self.out.push(Planned { dispatch, bind, columns, part, work, product: None });
        &mut self.out.last_mut().expect("it was just pushed").work
    }

    /// The buffer of a value, a new one if it has none yet.
    pub(super) fn act(&mut self, v: ValueId) -> Slot {
        if v == self.logits {
            return Slot::Logits;
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
        Input { slot: self.act(v), k: self.graph.width(v), f16: self.half[v.0] }
    }

    pub(super) fn ld_of(&self, v: ValueId) -> u32 {
        if v == self.logits { self.ld_logits } else { ld(self.graph.width(v)) }
    }

    /// Words of an activation.
    pub(super) fn words(&self, width: u32) -> u64 {
        u64::from(ld(width)) * u64::from(self.n_col)
    }

    pub(super) fn tmp(&mut self, width: u32) -> usize {
        self.pool.acquire(self.words(width))
    }

    /// A product of one column, with what was measured for its shape.
    pub(super) fn mat_vec(
        &mut self,
        mut call: MulMatVec,
        bind: Vec<(&'static str, Slot)>,
        part: &'static str,
        weights: u64,
    ) -> Result<&mut Work, DispatchError> {
        call.act = self.config.inputs;
        call.tune = self.config.tuning.product(&call.class());
        let dispatch = call.dispatch(self.caps)?;
        self.push(dispatch, bind, Columns::Fixed, part, weights);
        let planned = self.out.last_mut().expect("it was just pushed");
        planned.product = Some(call);
        Ok(&mut planned.work)
    }

    pub(super) fn many(&self, columns: Columns) -> Columns {
        if self.n_col == 1 { Columns::Fixed } else { columns }
    }

    fn step(&mut self, s: &Fused) -> Result<(), PlanError> {
        match s {
            Fused::Embed { table, by_position, y } => self.embed(*table, *by_position, *y),
            Fused::Norm { x, norm, y } => {
                let (x_slot, y_slot) = (self.act(*x), self.act(*y));
                self.norm(*norm, x_slot, self.graph.width(*x), y_slot, self.half[y.0])
            }
            Fused::Project { x, norm, part, add, y } => {
                let part_name = if *y == self.logits { "head" } else { "project" };
                let (x, norm) = self.fed(*x, *norm)?;
                let (y_slot, ldy) = (self.act(*y), self.ld_of(*y));
                self.projects(x, norm, &[*part], *add, y_slot, ldy, part_name)
            }
            Fused::Gated { x, norm, gate, up, act, y } => self.gated(*x, *norm, *gate, *up, *act, *y),
            Fused::Qkv { x, norm, q, k, v, heads, y } => self.qkv(*x, *norm, [*q, *k, *v], heads, *y),
            Fused::Attention { q, layer, n_head, score, sinks, y } => {
                self.attention(*q, *layer, *n_head, *score, *sinks, *y)
            }
            Fused::Topk { x, bias, routing, y } => self.topk(*x, *bias, *routing, *y),
            Fused::GatedId { x, norm, route, gate, up, act, y } => {
                self.gated_id(*x, *norm, *route, [*gate, *up], *act, *y)
            }
            Fused::ProjectId { x, norm, route, part, y } => self.project_id(*x, *norm, *route, *part, *y),
            Fused::ReduceId { x, route, part, add, y } => self.reduce_id(*x, *route, *part, *add, *y),
            Fused::Recurrent { op, y } => self.recurrent(op, *y),
            Fused::Add { x, y } => {
                let (x_slot, y_slot) = (self.act(*x), self.act(*y));
                let (k, l) = (self.graph.width(*y), self.ld_of(*y));
                let call = Binary { f: Function::Add, k, ldx: l, ldy: l, n_col: self.n_col };
                let columns = self.many(Columns::Y);
                self.push(call.dispatch()?, vec![("x", x_slot), ("y", y_slot)], columns, "add", 0)
                    .col(3 * f32s(k), u64::from(k));
                Ok(())
            }
            Fused::Scale { by, y } => {
                let y_slot = self.act(*y);
                let (k, ldy) = (self.graph.width(*y), self.ld_of(*y));
                let call = Scale { k, ldy, n_col: self.n_col, by: *by, bias: 0.0 };
                let columns = self.many(Columns::Y);
                self.push(call.dispatch()?, vec![("y", y_slot)], columns, "scale", 0)
                    .col(2 * f32s(k), u64::from(k));
                Ok(())
            }
            _ => self.single(s),
        }
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
            let columns = self.many(Columns::Y);
            let bind = vec![("w", Slot::Weights { group, shard }), ("ids", Slot::Step), ("y", y_slot)];
            // One shard has the row; the others have nothing to do.
            let first = sh.row0 <= base;
            let row = self.graph.weights[table.0].n_byte() / u64::from(rows.max(1));
            let n_byte = if first { row + f32s(self.graph.width(y)) } else { 4 };
            self.push(call.dispatch(self.caps)?, bind, columns, "embed", 0).col(n_byte, 0);
        }
        Ok(())
    }

    fn norm(&mut self, norm: Norm, x: Slot, k: u32, y: Slot, y_f16: bool) -> Result<(), PlanError> {
        let aux = self.groups.aux(self.graph, Some(norm), &[]);
        let call =
            RmsNorm { k, n_row: self.n_col, ldx: ld(k), ldy: ld(k), eps: norm.eps, weight: true, y_f16 };
        let columns = self.many(Columns::X);
        self.push(
            call.dispatch(self.caps)?,
            vec![("x", x), ("aux", Slot::Aux(aux)), ("y", y)],
            columns,
            "norm",
            0,
        )
        .col(3 * f32s(k), 4 * u64::from(k));
        Ok(())
    }

    /// Products of one input whose rows follow one another in y.
    fn projects(
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
            let aux = self.groups.aux(self.graph, norm, parts);
            return self.project_rows(x, norm.map(|n| n.eps), parts, aux, add, y, ldy, name);
        }
        assert!(norm.is_none(), "many columns have their norm behind them");
        let aux = self.groups.aux(self.graph, None, parts);
        self.project_rows(x, None, parts, aux, add, y, ldy, name)
    }

    /// What products of `x` read: `x` itself and the norm that they take in, or what the norm makes of many columns,
    /// once for all steps that want it.
    pub(super) fn fed(&mut self, x: ValueId, norm: Option<Norm>) -> Result<(Input, Option<Norm>), PlanError> {
        let Some(norm) = norm.filter(|_| self.n_col > 1) else { return Ok((self.input(x), norm)) };
        if self.home[norm.out.0].is_none() {
            let (from, to) = (self.act(x), self.act(norm.out));
            self.norm(norm, from, self.graph.width(x), to, self.half[norm.out.0])?;
        }
        Ok((self.input(norm.out), None))
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
        // Runs of rows that lie together: (group, first row there, rows, first row of y).
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
        let affine_at = aux.and_then(|a| {
            let a = &self.groups.aux[a];
            (!a.rows.is_empty()).then_some(a.affine_at)
        });
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
                let affine = affine_at.map(|a| a + 2 * at);
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
                        w: whole,
                        w2: None,
                        experts: None,
                        columns: None,
                        norm: eps,
                        affine,
                        epilogue,
                        y0: at,
                        act: None,
                        tune: None,
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
                    };
                    bind.push(("step", Slot::Step));
                    let (dispatch, tile) = call.dispatch(self.caps)?;
                    let columns = tile.map_or(Columns::Fixed, Columns::XTiles);
                    self.push(dispatch, bind, columns, name, n_byte).col(moved, n_flop);
                }
            }
        }
        Ok(())
    }

    /// The group that holds exactly these weights in order, unsplit.
    fn together(&self, parts: &[Part]) -> Option<usize> {
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
        let (x, norm) = self.fed(x, norm)?;
        let (y_slot, y_f16) = (self.act(y), self.half[y.0]);
        let f = self.graph.width(y);
        if self.n_col == 1
            && let Some(group) = self.together(&[gate, up])
        {
            let aux = self.groups.aux(self.graph, norm, &[gate, up]);
            let g = &self.groups.groups[group];
            let n_byte = g.layout(&g.shards[0]).n_byte;
            let affine =
                aux.map(|a| &self.groups.aux[a]).and_then(|a| (!a.rows.is_empty()).then_some(a.affine_at));
            let call = MulMatVec {
                w: g.matrix(&g.shards[0]),
                w2: None,
                experts: None,
                columns: None,
                norm: norm.map(|n| n.eps),
                affine,
                epilogue: Epilogue::Glu(act),
                y0: 0,
                act: None,
                tune: None,
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
        let columns = self.many(Columns::Y);
        self.push(call.dispatch()?, vec![("x", Slot::Act(both)), ("y", y_slot)], columns, "glu", 0)
            .col(3 * f32s(f), u64::from(f));
        self.pool.release(both);
        Ok(())
    }

    fn qkv(
        &mut self,
        x: ValueId,
        norm: Option<Norm>,
        parts: [Part; 3],
        heads: &Heads,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let layer = heads.layer;
        let kv_layer = self.graph.kv[layer];
        let rows = |p: &Part| self.graph.weights[p.weight.0].n_row;
        let [m_q, m_k, m_v] = [rows(&parts[0]), rows(&parts[1]), rows(&parts[2])];
        let kv = self.config.kv_layout(&kv_layer);
        let cells = self.cells([m_q, m_k], heads.rope, kv);
        let (x, norm) = self.fed(x, norm)?;
        let y_slot = self.act(y);
        let rotated = 3 * u64::from(m_q + m_k);
        // Rows of q go on as activations, those of k and v to the cache.
        let made = f32s(m_q) + kv.token_bytes();
        // Norms of heads and blocks are made of whole heads, by a dispatch of its own.
        if self.n_col == 1 && cells.plain() && heads.norm.is_none() {
            let whole = self.together(&parts).map(|g| (g, None));
            let split = || Some((self.together(&parts[..2])?, Some(self.together(&parts[2..])?)));
            if let Some((group, second)) = whole.or_else(split) {
                let aux = self.groups.aux(self.graph, norm, &parts);
                let all = &self.groups.groups;
                let (g, g2) = (&all[group], second.map(|s| &all[s]));
                let n_byte = [Some(g), g2].into_iter().flatten().map(|g| g.layout(&g.shards[0]).n_byte).sum();
                let affine = aux
                    .map(|a| &self.groups.aux[a])
                    .and_then(|a| (!a.rows.is_empty()).then_some(a.affine_at));
                let call = MulMatVec {
                    w: g.matrix(&g.shards[0]),
                    w2: g2.map(|g| g.matrix(&g.shards[0])),
                    experts: None,
                    columns: None,
                    norm: norm.map(|n| n.eps),
                    affine,
                    epilogue: Epilogue::RopeKv(cells),
                    y0: 0,
                    act: None,
                    tune: None,
                };
                let mut bind = vec![
                    ("w", Slot::Weights { group, shard: 0 }),
                    ("x", x.slot),
                    ("aux", Slot::Aux(aux)),
                    ("y", y_slot),
                    ("kv", Slot::Kv(layer)),
                    ("step", Slot::Step),
                    ("rope", Slot::Rope(heads.rope.unwrap_or(0))),
                ];
                bind.extend(second.map(|s| ("w2", Slot::Weights { group: s, shard: 0 })));
                let n_flop = 2 * u64::from(m_q + m_k + m_v) * u64::from(x.k) + rotated;
                // Formats that no rendered pair has take the longer way below.
                match self.mat_vec(call, bind, "qkv", n_byte) {
                    Ok(work) => {
                        work.col(f32s(x.k) + made, n_flop);
                        return Ok(());
                    }
                    Err(DispatchError::NoKernel { .. }) => {}
                    Err(e) => return Err(e.into()),
                }
            }
        }
        let m = m_q + m_k + m_v;
        let all = self.tmp(m);
        self.projects(x, norm, &parts, false, Slot::Act(all), ld(m), "qkv")?;
        let norm = heads.norm.map(|n| CellNorm { eps: n.eps, last: n.last });
        let aux = heads.norm.map(|n| self.groups.vectors(self.graph, &[n.q, n.k]));
        let call = RopeKvCols { rows: cells, m_v, norm, ldx: ld(m), ldy: ld(m_q), n_col: self.n_col };
        let mut bind = vec![
            ("x", Slot::Act(all)),
            ("y", y_slot),
            ("kv", Slot::Kv(layer)),
            ("step", Slot::Step),
            ("rope", Slot::Rope(heads.rope.unwrap_or(0))),
        ];
        bind.extend(aux.map(|a| ("aux", Slot::Aux(Some(a)))));
        let columns = self.many(Columns::Y);
        self.push(call.dispatch(self.caps)?, bind, columns, "rope_kv", 0).col(f32s(m) + made, rotated);
        self.pool.release(all);
        Ok(())
    }

    /// Where the rows of q and k go, and how a rotation turns them; none leaves them as they are.
    pub(super) fn cells(&self, [m_q, m_k]: [u32; 2], rope: Option<usize>, kv: KvLayout) -> RopeKv {
        let rope = rope.map(|i| &self.graph.ropes[i]);
        let pairing = rope.map_or(RopePairing::Norm, |r| r.pairing);
        RopeKv { m_q, m_k, n_rot: rope.map_or(0, |r| r.n_rot), pairing, kv }
    }

    fn attention(
        &mut self,
        q: ValueId,
        layer: usize,
        n_head: u32,
        score: Score,
        sinks: Option<WeightId>,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let (q_slot, y_slot) = (self.act(q), self.act(y));
        let kv_layer = self.graph.kv[layer];
        let kv = self.config.kv_layout(&kv_layer);
        let sinks = sinks.map(|w| self.groups.vectors(self.graph, &[w]));
        let spread = self.spread[usize::from(kv.d > 64)];
        let splits = if self.n_col == 1 { (spread / kv.n_kv.max(1)).clamp(1, 32) } else { 1 };
        let (ldq, ldy) = (self.ld_of(q), self.ld_of(y));
        let f16_tiles = self.config.f16_tiles;
        let call = Attention { n_head, kv, score, splits, ldq, ldy, n_col: self.n_col, f16_tiles };
        let dispatch = call.dispatch(self.caps)?;
        let columns = self.many(call.tile_cols(&dispatch).map_or(Columns::Z, Columns::YTiles));
        // Keys and values are read once for all heads that share them; a score and its value are two products each.
        let (wide, per_key) = (n_head * kv.d_v, kv.token_bytes());
        let per_pair = 2 * u64::from(n_head) * u64::from(kv.d + kv.d_v);
        let mut bind = vec![
            ("q", q_slot),
            ("k", Slot::Keys(layer)),
            ("v", Slot::Values(layer)),
            ("step", Slot::Step),
            ("sinks", Slot::Aux(sinks)),
        ];
        if splits == 1 {
            bind.push(("y", y_slot));
            self.push(dispatch, bind, columns, "attention", 0).col(2 * f32s(wide), 0).key(per_key, per_pair);
            return Ok(());
        }
        let parts = self.pool.acquire(u64::from(call.parts_len()) * u64::from(self.n_col));
        bind.push(("y", Slot::Act(parts)));
        let n_part = call.parts_len();
        if call.joins(self.caps) {
            bind.extend([("out", y_slot), ("arrived", Slot::Arrived)]);
            self.arrived = self.arrived.max(call.n_counter());
            self.push(dispatch, bind, columns, "attention", 0)
                .col(f32s(wide) + 2 * f32s(n_part), 2 * u64::from(n_part))
                .key(per_key, per_pair);
            self.pool.release(parts);
            return Ok(());
        }
        self.push(dispatch, bind, columns, "attention", 0)
            .col(f32s(wide) + f32s(n_part), 0)
            .key(per_key, per_pair);
        let merge = AttentionMerge { n_head, d: kv.d_v, splits, ldy, n_col: self.n_col };
        let columns = self.many(Columns::Y);
        self.push(
            merge.dispatch(self.caps)?,
            vec![("x", Slot::Act(parts)), ("y", y_slot)],
            columns,
            "attention",
            0,
        )
        .col(f32s(n_part) + f32s(wide), 2 * u64::from(n_part));
        self.pool.release(parts);
        Ok(())
    }
}
