//! Expansion: the dispatches of every step, for one column and for many, and the buffers that they share.

use chaski_kernels::ops::argmax::Argmax;
use chaski_kernels::ops::attention::Attention;
use chaski_kernels::ops::attention_merge::AttentionMerge;
use chaski_kernels::ops::binary::{Binary, Function};
use chaski_kernels::ops::get_rows::GetRows;
use chaski_kernels::ops::glu::{Act, Glu};
use chaski_kernels::ops::mul_mat::MulMat;
use chaski_kernels::ops::mul_mat_vec::{Epilogue, MulMatVec};
use chaski_kernels::ops::rms_norm::RmsNorm;
use chaski_kernels::ops::rope_kv::RopeKvCols;
use chaski_kernels::ops::sample::{MAX_TOP_K, Sample};
use chaski_kernels::ops::scale::Scale;
use chaski_kernels::rope::Rope;
use chaski_kernels::{Caps, Dispatch, DispatchError, FORMATS, Matrix, RopeKv, step};

use super::fuse::{Fused, Norm, Part};
use super::group::Groups;
use super::segments::{Columns, DecodePlan, PlanConfig, PlanError, Planned, Segment, Segments, Slot};
use crate::graph::{Graph, ValueId};

/// Into how many ranges attention splits the keys of a KV head: (sequences up to so many tokens, workgroups of all KV
/// heads together).
///
/// One column alone keeps few workgroups busy, so longer sequences are split; but joining the ranges is a dispatch more,
/// and takes longer the more there are. Measured on an H200, which has 132 multiprocessors.
const SPLITS: [(u32, u32); 3] = [(128, 1), (1024, 64), (u32::MAX, 128)];

/// Values from column to column of an activation of this width.
fn ld(width: u32) -> u32 {
    width.next_multiple_of(8)
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
    let logits = graph.logits.ok_or(PlanError::Missing { what: "logits" })?;
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
        out: Segment::new(),
        n_col: 1,
        spread: 1,
        logits,
        ld_logits,
    };

    let mut s = Segments { ld_logits, all_cols, n_layer: graph.kv.len(), ..Segments::default() };
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
    let f32_format = &FORMATS[0];
    let table = Matrix { format: f32_format, n_row: n_col, n_col: width };
    let pick = GetRows { table, row0: 0, ids: step::PICK as u32, id_stride: 1, ldy: ld(width), n_col: 1 };
    let bind = vec![("w", Slot::Act(x_home)), ("ids", Slot::Step), ("y", Slot::Act(picked))];
    e.push(pick.dispatch(caps)?, bind, Columns::Fixed, "pick", 0);
    s.pick = std::mem::take(&mut e.out);
    e.home[x.0] = Some(picked);
    s.head_pick = e.head(head, 1)?;

    let mut covered = 0;
    for (max_key, groups) in SPLITS {
        if covered < config.n_ctx {
            e.reset();
            e.spread = groups;
            let body = e.body(body, head, 1)?;
            s.decode.push(DecodePlan { max_key, body, head: e.head(head, 1)? });
            covered = max_key;
        }
    }

    let argmax = Argmax { k: n_vocab, ring: config.ring };
    let parts = e.pool.acquire(2 * u64::from(argmax.n_part()));
    e.push(
        argmax.chunk(caps)?,
        vec![("x", Slot::Logits), ("y", Slot::Act(parts))],
        Columns::Fixed,
        "argmax",
        0,
    );
    let bind = vec![("x", Slot::Act(parts)), ("step", Slot::Step), ("ring", Slot::Ring)];
    e.push(argmax.join(caps)?, bind, Columns::Fixed, "argmax", 0);
    s.argmax = std::mem::take(&mut e.out);
    e.pool.release(parts);

    let sample = Sample { k: n_vocab, ring: config.ring };
    let mut n_list = sample.n_part();
    let mut lists = e.pool.acquire(2 * u64::from(MAX_TOP_K * n_list));
    let bind = vec![("x", Slot::Logits), ("y", Slot::Act(lists))];
    e.push(sample.chunk(caps)?, bind, Columns::Fixed, "sample", 0);
    while n_list > Sample::MAX_DRAW {
        let joined = Sample::joined(n_list);
        let next = e.pool.acquire(2 * u64::from(MAX_TOP_K * joined));
        let bind = vec![("x", Slot::Act(lists)), ("y", Slot::Act(next))];
        e.push(sample.join(caps, n_list)?, bind, Columns::Fixed, "sample", 0);
        e.pool.release(lists);
        (lists, n_list) = (next, joined);
    }
    let bind =
        vec![("x", Slot::Act(lists)), ("sampler", Slot::Sampler), ("step", Slot::Step), ("ring", Slot::Ring)];
    e.push(sample.draw(caps, n_list)?, bind, Columns::Fixed, "sample", 0);
    s.sample = std::mem::take(&mut e.out);

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
    for layer in &graph.kv {
        let n_byte = u64::from(config.kv_layout(layer.n_kv, layer.d).half_words()) * 8;
        if n_byte > caps.max_binding_bytes {
            let help = "use a smaller context or f16 for the KV cache";
            return Err(PlanError::TooLarge {
                what: "the KV cache of a layer",
                n_byte,
                limit: caps.max_binding_bytes,
                help,
            });
        }
    }
    Ok(s)
}

/// Activation buffers, given out and taken back in order of execution.
#[derive(Default)]
struct Pool {
    words: Vec<u64>,
    free: Vec<usize>,
}

impl Pool {
    /// The free buffer that fits best, grown if none is large enough.
    fn acquire(&mut self, words: u64) -> usize {
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

    fn release(&mut self, b: usize) {
        self.free.push(b);
    }
}

struct Expander<'a> {
    graph: &'a Graph,
    groups: &'a mut Groups,
    caps: &'a Caps,
    config: &'a PlanConfig,
    pool: Pool,
    /// Buffer of every value that lives now.
    home: Vec<Option<usize>>,
    out: Segment,
    /// Columns at most.
    n_col: u32,
    /// Workgroups for attention of one column.
    spread: u32,
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
        for (i, s) in body.iter().chain(head).enumerate() {
            s.inputs().into_iter().chain([s.output()]).for_each(|v| last[v.0] = i);
        }
        for (i, s) in body.iter().enumerate() {
            self.step(s)?;
            for v in s.inputs().into_iter().chain([s.output()]) {
                if last[v.0] == i
                    && let Some(b) = self.home[v.0].take()
                {
                    self.pool.release(b);
                }
            }
        }
        Ok(std::mem::take(&mut self.out))
    }

    fn head(&mut self, head: &[Fused], n_col: u32) -> Result<Segment, PlanError> {
        self.n_col = n_col;
        for s in head {
            self.step(s)?;
        }
        Ok(std::mem::take(&mut self.out))
    }

    fn push(
        &mut self,
        dispatch: Dispatch,
        bind: Vec<(&'static str, Slot)>,
        columns: Columns,
        part: &'static str,
        n_byte: u64,
    ) {
        self.out.push(Planned { dispatch, bind, columns, part, n_byte });
    }

    /// The buffer of a value, a new one if it has none yet.
    fn act(&mut self, v: ValueId) -> Slot {
        if v == self.logits {
            return Slot::Logits;
        }
        let words = self.words(self.graph.width(v));
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

    fn ld_of(&self, v: ValueId) -> u32 {
        if v == self.logits { self.ld_logits } else { ld(self.graph.width(v)) }
    }

    /// Words of an activation.
    fn words(&self, width: u32) -> u64 {
        u64::from(ld(width)) * u64::from(self.n_col)
    }

    fn tmp(&mut self, width: u32) -> usize {
        self.pool.acquire(self.words(width))
    }

    fn many(&self, columns: Columns) -> Columns {
        if self.n_col == 1 { Columns::Fixed } else { columns }
    }

    fn step(&mut self, s: &Fused) -> Result<(), PlanError> {
        match s {
            Fused::Embed { table, y } => self.embed(*table, *y),
            Fused::Norm { x, norm, y } => {
                let (x_slot, y_slot) = (self.act(*x), self.act(*y));
                self.norm(*norm, x_slot, self.graph.width(*x), y_slot)
            }
            Fused::Project { x, norm, part, add, y } => {
                let part_name = if *y == self.logits { "head" } else { "project" };
                let (x_slot, y_slot, ldy) = (self.act(*x), self.act(*y), self.ld_of(*y));
                self.projects(x_slot, self.graph.width(*x), *norm, &[*part], *add, y_slot, ldy, part_name)
            }
            Fused::Gated { x, norm, gate, up, act, y } => self.gated(*x, *norm, *gate, *up, *act, *y),
            Fused::Qkv { x, norm, q, k, v, d, layer, y } => self.qkv(*x, *norm, [*q, *k, *v], *d, *layer, *y),
            Fused::Attention { q, layer, n_head, scale, y } => {
                self.attention(*q, *layer, *n_head, *scale, *y)
            }
            Fused::Add { x, y } => {
                let (x_slot, y_slot) = (self.act(*x), self.act(*y));
                let (k, l) = (self.graph.width(*y), self.ld_of(*y));
                let call = Binary { f: Function::Add, k, ldx: l, ldy: l, n_col: self.n_col };
                let columns = self.many(Columns::Y);
                self.push(call.dispatch()?, vec![("x", x_slot), ("y", y_slot)], columns, "add", 0);
                Ok(())
            }
            Fused::Scale { by, y } => {
                let y_slot = self.act(*y);
                let (k, ldy) = (self.graph.width(*y), self.ld_of(*y));
                let call = Scale { k, ldy, n_col: self.n_col, by: *by, bias: 0.0 };
                let columns = self.many(Columns::Y);
                self.push(call.dispatch()?, vec![("y", y_slot)], columns, "scale", 0);
                Ok(())
            }
        }
    }

    fn embed(&mut self, table: crate::graph::WeightId, y: ValueId) -> Result<(), PlanError> {
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
                ids: step::HEADER as u32,
                id_stride: step::COLUMN as u32,
                ldy: self.ld_of(y),
                n_col: self.n_col,
            };
            let columns = self.many(Columns::Y);
            let bind = vec![("w", Slot::Weights { group, shard }), ("ids", Slot::Step), ("y", y_slot)];
            self.push(call.dispatch(self.caps)?, bind, columns, "embed", 0);
        }
        Ok(())
    }

    fn norm(&mut self, norm: Norm, x: Slot, k: u32, y: Slot) -> Result<(), PlanError> {
        let aux = self.groups.aux(self.graph, Some(norm), &[]);
        let call = RmsNorm { k, n_row: self.n_col, ldx: ld(k), ldy: ld(k), eps: norm.eps, weight: true };
        let columns = self.many(Columns::X);
        self.push(
            call.dispatch(self.caps)?,
            vec![("x", x), ("aux", Slot::Aux(aux)), ("y", y)],
            columns,
            "norm",
            0,
        );
        Ok(())
    }

    /// Products of one input whose rows follow one another in y.
    fn projects(
        &mut self,
        x: Slot,
        k: u32,
        norm: Option<Norm>,
        parts: &[Part],
        add: bool,
        y: Slot,
        ldy: u32,
        name: &'static str,
    ) -> Result<(), PlanError> {
        if self.n_col == 1 {
            let aux = self.groups.aux(self.graph, norm, parts);
            return self.project_rows(x, k, norm.map(|n| n.eps), parts, aux, add, y, ldy, name);
        }
        let Some(norm) = norm else {
            let aux = self.groups.aux(self.graph, None, parts);
            return self.project_rows(x, k, None, parts, aux, add, y, ldy, name);
        };
        let t = self.tmp(k);
        self.norm(norm, x, k, Slot::Act(t))?;
        let aux = self.groups.aux(self.graph, None, parts);
        self.project_rows(Slot::Act(t), k, None, parts, aux, add, y, ldy, name)?;
        self.pool.release(t);
        Ok(())
    }

    fn project_rows(
        &mut self,
        x: Slot,
        k: u32,
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
                let mut bind =
                    vec![("w", Slot::Weights { group, shard }), ("x", x), ("aux", Slot::Aux(aux)), ("y", y)];
                if self.n_col == 1 {
                    let epilogue = if add { Epilogue::Add } else { Epilogue::Store };
                    let call =
                        MulMatVec { w: whole, w2: None, norm: eps, affine, epilogue, y0: at, rows: None };
                    self.push(call.dispatch(self.caps)?, bind, Columns::Fixed, name, n_byte);
                } else {
                    let call = MulMat {
                        w: whole,
                        add,
                        affine,
                        f16_tiles: self.config.f16_tiles,
                        ldx: ld(k),
                        ldy,
                        y0: at,
                        n_col: self.n_col,
                        side: None,
                    };
                    bind.push(("step", Slot::Step));
                    let dispatch = call.dispatch(self.caps)?;
                    let columns = Columns::YTiles(MulMat::tile_cols(&dispatch));
                    self.push(dispatch, bind, columns, name, n_byte);
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
        let (x_slot, k) = (self.act(x), self.graph.width(x));
        let y_slot = self.act(y);
        let f = self.graph.width(y);
        if self.n_col == 1
            && act == Act::Swiglu
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
                norm: norm.map(|n| n.eps),
                affine,
                epilogue: Epilogue::Swiglu,
                y0: 0,
                rows: None,
            };
            let bind = vec![
                ("w", Slot::Weights { group, shard: 0 }),
                ("x", x_slot),
                ("aux", Slot::Aux(aux)),
                ("y", y_slot),
            ];
            self.push(call.dispatch(self.caps)?, bind, Columns::Fixed, "gate_up", n_byte);
            return Ok(());
        }
        let both = self.tmp(2 * f);
        let ldx = ld(2 * f);
        self.projects(x_slot, k, norm, &[gate, up], false, Slot::Act(both), ldx, "gate_up")?;
        let call = Glu { act, f, up: f, ldx, ldy: ld(f), n_col: self.n_col };
        let columns = self.many(Columns::Y);
        self.push(call.dispatch()?, vec![("x", Slot::Act(both)), ("y", y_slot)], columns, "glu", 0);
        self.pool.release(both);
        Ok(())
    }

    fn qkv(
        &mut self,
        x: ValueId,
        norm: Option<Norm>,
        parts: [Part; 3],
        d: u32,
        layer: usize,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let rope: &Rope = self.graph.rope.as_ref().ok_or(PlanError::Missing { what: "a rotation" })?;
        let kv_layer = self.graph.kv[layer];
        let rows = |p: &Part| self.graph.weights[p.weight.0].n_row;
        let [m_q, m_k, m_v] = [rows(&parts[0]), rows(&parts[1]), rows(&parts[2])];
        let kv = self.config.kv_layout(kv_layer.n_kv, d);
        let cells = RopeKv { m_q, m_k, n_rot: rope.n_rot, pairing: rope.pairing, kv };
        let (x_slot, k) = (self.act(x), self.graph.width(x));
        let y_slot = self.act(y);
        if self.n_col == 1 {
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
                    norm: norm.map(|n| n.eps),
                    affine,
                    epilogue: Epilogue::RopeKv(cells),
                    y0: 0,
                    rows: None,
                };
                // Formats that no rendered pair has take the longer way below.
                match call.dispatch(self.caps) {
                    Ok(dispatch) => {
                        let mut bind = vec![
                            ("w", Slot::Weights { group, shard: 0 }),
                            ("x", x_slot),
                            ("aux", Slot::Aux(aux)),
                            ("y", y_slot),
                            ("kv", Slot::Kv(layer)),
                            ("step", Slot::Step),
                            ("rope", Slot::Rope),
                        ];
                        bind.extend(second.map(|s| ("w2", Slot::Weights { group: s, shard: 0 })));
                        self.push(dispatch, bind, Columns::Fixed, "qkv", n_byte);
                        return Ok(());
                    }
                    Err(DispatchError::NoKernel { .. }) => {}
                    Err(e) => return Err(e.into()),
                }
            }
        }
        let m = m_q + m_k + m_v;
        let all = self.tmp(m);
        self.projects(x_slot, k, norm, &parts, false, Slot::Act(all), ld(m), "qkv")?;
        let call = RopeKvCols { rows: cells, m_v, ldx: ld(m), ldy: ld(m_q), n_col: self.n_col };
        let bind = vec![
            ("x", Slot::Act(all)),
            ("y", y_slot),
            ("kv", Slot::Kv(layer)),
            ("step", Slot::Step),
            ("rope", Slot::Rope),
        ];
        let columns = self.many(Columns::Y);
        self.push(call.dispatch(self.caps)?, bind, columns, "rope_kv", 0);
        self.pool.release(all);
        Ok(())
    }

    fn attention(
        &mut self,
        q: ValueId,
        layer: usize,
        n_head: u32,
        scale: f32,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let (q_slot, y_slot) = (self.act(q), self.act(y));
        let kv_layer = self.graph.kv[layer];
        let kv = self.config.kv_layout(kv_layer.n_kv, kv_layer.d);
        let splits = if self.n_col == 1 { (self.spread / kv.n_kv.max(1)).clamp(1, 32) } else { 1 };
        let (ldq, ldy) = (self.ld_of(q), self.ld_of(y));
        let f16_tiles = self.config.f16_tiles;
        let call = Attention { n_head, kv, scale, splits, ldq, ldy, n_col: self.n_col, f16_tiles };
        let dispatch = call.dispatch(self.caps)?;
        let columns = self.many(call.tile_cols(&dispatch).map_or(Columns::Z, Columns::YTiles));
        let mut bind = vec![("q", q_slot), ("kv", Slot::Kv(layer)), ("step", Slot::Step)];
        if splits == 1 {
            bind.push(("y", y_slot));
            self.push(dispatch, bind, columns, "attention", 0);
            return Ok(());
        }
        let parts = self.pool.acquire(u64::from(call.parts_len()) * u64::from(self.n_col));
        bind.push(("y", Slot::Act(parts)));
        self.push(dispatch, bind, columns, "attention", 0);
        let merge = AttentionMerge { n_head, d: kv.d, splits, ldy, n_col: self.n_col };
        let columns = self.many(Columns::Y);
        self.push(
            merge.dispatch(self.caps)?,
            vec![("x", Slot::Act(parts)), ("y", y_slot)],
            columns,
            "attention",
            0,
        );
        self.pool.release(parts);
        Ok(())
    }
}
