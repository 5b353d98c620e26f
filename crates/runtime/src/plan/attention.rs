//! Expansion of attention: q, k and v with RoPE and the cache write, and attention over the cache.

use chaski_graph::{RopePairing, Score, Sections};
use chaski_kernels::ops::attention::Attention;
use chaski_kernels::ops::attention_merge::AttentionMerge;
use chaski_kernels::ops::latent_kv::LatentKv;
use chaski_kernels::ops::mul_mat_vec::{self, Epilogue, MulMatVec};
use chaski_kernels::ops::rope_kv::RopeKvCols;
use chaski_kernels::{DispatchError, KvLayout, RopeKv, step};

use super::error::PlanError;
use super::expand::{Expander, Input, f32s, ld};
use super::planned::{Growth, Slot};
use super::steps::{HeadNorm, Heads, Norm, Part, Step};
use crate::graph::latent::Latent;
use crate::graph::{Op, ValueId, WeightId};

/// Maximum number of parts of the keys of a column beside others, and the keys that a part is worth beside a few and
/// beside many. A part costs a workgroup, and its result is read by the last.
const MAX_PARTS: u32 = 16;
const PART_KEYS: [u32; 2] = [64, 256];

/// Destinations of the rows of q, k and v, and their cost.
struct Rows {
    cells: RopeKv,
    layer: usize,
    rope: Option<usize>,
    y: Slot,
    /// Bytes written.
    made: u64,
    flop: u64,
}

impl Expander<'_> {
    pub(super) fn qkv(
        &mut self,
        x: ValueId,
        norm: Option<Norm>,
        parts: &[Part],
        heads: &Heads,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let layer = heads.layer;
        let kv_layer = self.graph.kv[layer];
        let rows = |p: &Part| self.graph.weights[p.weight.0].n_row;
        // Without rows of their own, values are computed from those of the keys; without keys there are none either.
        let n_row: u32 = parts.iter().map(rows).sum();
        let m_q = parts.first().map_or(0, rows);
        let m_k = parts.get(1).map_or(0, rows);
        let m_v = if m_k == 0 { 0 } else { kv_layer.n_kv * kv_layer.d_v };
        let v_at = if parts.len() == 2 { m_q } else { m_q + m_k };
        let kv = self.config.kv_layout(&kv_layer);
        let cells = self.cells([m_q, m_k], heads.rope, kv);
        let (x, norm) = self.fed_products(x, norm)?;
        let y_slot = self.act(y);
        let rotated = 3 * u64::from(m_q + m_k);
        // Rows of q are activations, those of k and v go to the cache.
        let made = f32s(m_q) + if m_k == 0 { 0 } else { kv.token_bytes() };
        // Norms of heads and blocks need whole heads, and a separate dispatch.
        let direct = cells.plain() && heads.norm.is_none() && parts.len() != 2;
        let (rope, flop) = (heads.rope, 2 * u64::from(n_row) * u64::from(x.k));
        if direct {
            let to = Rows { cells, layer, rope, y: y_slot, made, flop: flop + rotated };
            if self.qkv_at_once(x, norm, parts, &to)? {
                return Ok(());
            }
        }
        let all = self.tmp(n_row);
        let cells_of_rows = RopeKv::only_rows(n_row, kv);
        let to = Rows { cells: cells_of_rows, layer, rope, y: Slot::Act(all), made: f32s(n_row), flop };
        if self.together(parts).is_some() || !self.qkv_at_once(x, norm, parts, &to)? {
            self.projects(x, norm, parts, false, Slot::Act(all), ld(n_row), "qkv")?;
        }
        let weights = |n: &HeadNorm| [n.q].into_iter().chain(n.k).collect::<Vec<_>>();
        let aux = heads.norm.map(|n| self.groups.vectors(self.graph, &weights(&n)));
        let norm = heads.norm.map(|n| n.how);
        let (ldx, ldy) = (ld(n_row), ld(m_q));
        let call = RopeKvCols { rows: cells, m_v, v_at, norm, ldx, ldy, n_col: self.n_col };
        let mut bind = vec![
            ("x", Slot::Act(all)),
            ("y", y_slot),
            ("kv", Slot::Kv(layer)),
            ("step", Slot::Step),
            ("rope", Slot::Rope(heads.rope.unwrap_or(0))),
        ];
        bind.extend(aux.map(|a| ("aux", Slot::Aux(Some(a)))));
        let columns = self.many(Growth::Y);
        self.push(call.dispatch(self.caps)?, bind, columns, "rope_kv", 0).col(f32s(n_row) + made, rotated);
        self.pool.release(all);
        Ok(())
    }

    /// Products for q, k and v of one column in one dispatch, in one format or a pair of formats; false if there is no
    /// such kernel.
    fn qkv_at_once(
        &mut self,
        x: Input,
        norm: Option<Norm>,
        parts: &[Part],
        to: &Rows,
    ) -> Result<bool, PlanError> {
        if self.n_col > 1 {
            return Ok(false);
        }
        let whole = self.together(parts).map(|g| (g, None));
        let split = || {
            (1..parts.len()).find_map(|n| {
                let (first, second) = parts.split_at(n);
                Some((self.together(first)?, Some(self.together(second)?)))
            })
        };
        let Some((group, second)) = whole.or_else(split) else { return Ok(false) };
        let aux = self.aux(norm, parts)?;
        let all = &self.groups.groups;
        let (g, g2) = (&all[group], second.map(|s| &all[s]));
        let n_byte = [Some(g), g2].into_iter().flatten().map(|g| g.layout(&g.shards[0]).n_byte).sum();
        let affine = self.affine(aux, 0);
        let call = MulMatVec {
            w2: g2.map(|g| g.matrix(&g.shards[0])),
            norm: norm.map(|n| n.eps),
            rounded: x.rounded,
            affine,
            ..MulMatVec::new(g.matrix(&g.shards[0]), Epilogue::RopeKv(to.cells))
        };
        let mut bind = vec![
            ("w", Slot::Weights { group, shard: 0 }),
            ("x", x.slot),
            ("aux", Slot::Aux(aux)),
            ("y", to.y),
            ("kv", Slot::Kv(to.layer)),
            ("step", Slot::Step),
            ("rope", Slot::Rope(to.rope.unwrap_or(0))),
        ];
        bind.extend(second.map(|s| ("w2", Slot::Weights { group: s, shard: 0 })));
        match self.mat_vec(call, bind, "qkv", n_byte) {
            Ok(work) => {
                work.col(f32s(x.k) + to.made, to.flop);
                Ok(true)
            }
            Err(DispatchError::NoKernel { .. }) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Queries of latent attention: their plain channels projected to the latent's width, then the RoPE channels, and
    /// the key.
    pub(super) fn latent(&mut self, o: &Latent, y: ValueId) -> Result<(), PlanError> {
        let kv = self.config.kv_layout(&self.graph.kv[o.layer]);
        self.by_head(o.q, o.keys, y, kv.d, "absorb")?;
        let (q, x, y_slot) = (self.act(o.q), self.act(o.x), self.act(y));
        let d_q = self.graph.width(o.q) / o.n_head.max(1);
        let n_rot = kv.d - kv.d_v;
        let call = LatentKv {
            kv,
            n_head: o.n_head,
            d_q,
            pairing: self.graph.ropes[o.rope].pairing,
            sections: self.sections(o.rope),
            eps: o.eps,
            ldq: self.ld_of(o.q),
            ldx: self.ld_of(o.x),
            ldy: self.ld_of(y),
            n_col: self.n_col,
        };
        let aux = self.groups.vectors(self.graph, &[o.norm]);
        let bind = vec![
            ("q", q),
            ("x", x),
            ("y", y_slot),
            ("kv", Slot::Kv(o.layer)),
            ("step", Slot::Step),
            ("rope", Slot::Rope(o.rope)),
            ("aux", Slot::Aux(Some(aux))),
        ];
        let columns = self.many(Growth::Y);
        let moved = f32s(kv.d + 2 * o.n_head * n_rot) + kv.token_bytes();
        let n_flop = 3 * u64::from((o.n_head + 1) * n_rot) + 4 * u64::from(kv.d_v);
        self.push(call.dispatch(self.caps)?, bind, columns, "latent", 0).col(moved, n_flop);
        Ok(())
    }

    /// Destinations of the rows of q and k, and their RoPE; `None` leaves them unchanged.
    pub(super) fn cells(&self, [m_q, m_k]: [u32; 2], rope: Option<usize>, kv: KvLayout) -> RopeKv {
        let sections = rope.and_then(|i| self.sections(i));
        let rope = rope.map(|i| &self.graph.ropes[i]);
        let pairing = rope.map_or(RopePairing::Norm, |r| r.pairing);
        RopeKv { m_q, m_k, n_rot: rope.map_or(0, |r| r.n_rot), pairing, sections, kv }
    }

    /// Sections of RoPE with component positions, and their location in the step.
    pub(super) fn sections(&self, rope: usize) -> Option<(Sections, u32)> {
        self.graph.ropes[rope].sections.zip(self.config.shifts_at())
    }

    pub(super) fn attention(
        &mut self,
        q: ValueId,
        layer: usize,
        n_head: u32,
        score: Score,
        sinks: Option<WeightId>,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let (q_slot, y_slot) = (self.act(q), self.act(y));
        let sinks = sinks.map(|w| self.groups.vectors(self.graph, &[w]));
        let call = Attention {
            ldq: self.ld_of(q),
            ldy: self.ld_of(y),
            y_f16: self.half[y.0],
            ..self.attention_call(layer, n_head, score, self.n_col)
        };
        let bind = vec![
            ("q", q_slot),
            ("k", Slot::Keys(layer)),
            ("v", Slot::Values(layer)),
            ("step", Slot::Step),
            ("sinks", Slot::Aux(sinks)),
        ];
        let few = self.n_col <= self.config.few();
        if !self.caps.alone && self.goes_one_by_one(self.n_col) {
            self.attention_each(&call, &bind, y_slot)?;
        }
        if self.caps.alone || !few {
            self.attention_rest(&call, bind, y_slot)?;
        }
        Ok(())
    }

    /// The call for contiguous f32 columns.
    fn attention_call(&self, layer: usize, n_head: u32, score: Score, n_col: u32) -> Attention {
        let kv = self.config.kv_layout(&self.graph.kv[layer]);
        let (ldq, ldy) = (n_head * kv.d, n_head * kv.d_v);
        let f16_tiles = self.config.f16_tiles;
        Attention { n_head, kv, score, splits: 1, least: 0, ldq, ldy, n_col, f16_tiles, y_f16: false }
    }

    /// True if the leading columns may go one by one. Tiles would process columns of several sequences one after the
    /// other along all keys; the plans for few columns have at most twice as many.
    fn goes_one_by_one(&self, n_col: u32) -> bool {
        n_col <= 2 * self.config.few() || self.config.n_seq > 1
    }

    /// True if a step is attention that can round its result to f16 on all devices.
    pub(super) fn attends_in_f16(&self, step: &Step, n_col: u32) -> bool {
        let Step::Node(i) = step else { return false };
        let Op::Attention { layer, n_head, score, .. } = self.graph.nodes[*i].op else { return false };
        let call = self.attention_call(layer, n_head, score, n_col);
        self.devices.iter().all(|caps| call.writes_f16(caps, self.goes_one_by_one(n_col)))
    }

    /// The call for a single column, or for those that go one by one, in parts of their keys.
    fn in_parts(&self, call: &Attention) -> Attention {
        let kv = call.kv;
        let n_col = call.n_col.min(step::MAX_PICK as u32);
        let call = Attention { n_col, ..*call };
        let share = self.spread[usize::from(kv.d > 64)] / (kv.n_kv.max(1) * n_col);
        let joins = Attention { splits: 2, ..call }.joins(self.caps);
        let (splits, least) = match n_col {
            1 => (share.clamp(1, 32), 0),
            _ if joins => (MAX_PARTS, PART_KEYS[usize::from(n_col > mul_mat_vec::FewColumns::MAX)]),
            _ => (share.clamp(2, 32), 0),
        };
        // The parts are one binding.
        let range = 4 * u64::from(call.n_head) * u64::from(kv.d_v + 4) * u64::from(n_col);
        let most = self.caps.max_binding_bytes / range.max(1);
        Attention { splits: u64::from(splits).min(most).max(1) as u32, least, ..call }
    }

    /// Attention of a single column, or of those that go one by one.
    fn attention_each(
        &mut self,
        call: &Attention,
        bind: &[(&'static str, Slot)],
        y: Slot,
    ) -> Result<(), PlanError> {
        let call = self.in_parts(call);
        let Attention { n_head, kv, splits, ldy, n_col, .. } = call;
        let (each, merged) = match n_col {
            1 => (Growth::Fixed, Growth::Fixed),
            _ => (Growth::Each(call.least), Growth::YEach),
        };
        let dispatch = call.each(self.caps)?;
        // Where tiles follow, the work of a sequence is theirs.
        let counts = u64::from(self.n_col <= self.config.few());
        let (per_key, per_pair) = work_of(&call);
        let (wide, n_part) = (f32s(n_head * kv.d_v), f32s(call.parts_len()));
        let moved = counts * if splits == 1 { 2 * wide } else { wide + 2 * n_part };
        let parts = (splits > 1).then(|| self.pool.acquire(u64::from(call.parts_len()) * u64::from(n_col)));
        let mut bind = bind.to_vec();
        bind.push(("y", parts.map_or(y, Slot::Act)));
        let joins = call.joins(self.caps);
        if joins {
            bind.extend([("out", y), ("arrived", Slot::Arrived)]);
            self.arrived = self.arrived.max(call.n_counter());
        }
        self.push(dispatch, bind, each, "attention", 0)
            .col(moved, counts * 2 * u64::from(call.parts_len()))
            .key(counts * per_key, counts * per_pair);
        let Some(parts) = parts else { return Ok(()) };
        if !joins {
            let merge = AttentionMerge { n_head, d: kv.d_v, splits, ldy, n_col }.dispatch(self.caps)?;
            self.push(merge, vec![("x", Slot::Act(parts)), ("y", y)], merged, "attention", 0)
                .col(counts * (n_part + wide), 0);
        }
        self.pool.release(parts);
        Ok(())
    }

    /// Attention of the other columns, in tiles that share the keys of a sequence.
    fn attention_rest(
        &mut self,
        call: &Attention,
        mut bind: Vec<(&'static str, Slot)>,
        y: Slot,
    ) -> Result<(), PlanError> {
        let dispatch = call.dispatch(self.caps)?;
        let columns = self.many(call.tile_cols(&dispatch, self.caps).map_or(Growth::Z, Growth::YRest));
        let (per_key, per_pair) = work_of(call);
        bind.push(("y", y));
        self.push(dispatch, bind, columns, "attention", 0)
            .col(2 * f32s(call.n_head * call.kv.d_v), 0)
            .key(per_key, per_pair);
        Ok(())
    }
}

/// Bytes per token of the sequence, and operations per pair of a column and a token that it sees: keys and values are
/// read once for all heads that share them; a score and its value are two products each.
fn work_of(call: &Attention) -> (u64, u64) {
    let kv = &call.kv;
    (kv.token_bytes(), 2 * u64::from(call.n_head) * u64::from(kv.d + kv.d_v))
}
