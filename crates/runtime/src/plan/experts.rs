//! Expansion of MoE steps: routing, products by experts, and their weighted sum.
//!
//! One column reads the rows of its experts directly. Many columns are sorted by expert first, and per-slot results
//! stay in that order until the sum.

use chaski_graph::{Act, Routing};
use chaski_kernels::ops::expert_lists::ExpertLists;

use chaski_kernels::ops::glu::Glu;
use chaski_kernels::ops::moe_reduce::MoeReduce;
use chaski_kernels::ops::mul_mat::{MatExperts, MulMat, Place};
use chaski_kernels::ops::mul_mat_vec::{Epilogue, MatVecExperts, MulMatVec, Slots};
use chaski_kernels::ops::router::Router;
use chaski_kernels::ops::topk_moe::TopkMoe;
use chaski_kernels::{DispatchError, Experts, Route};

use super::error::PlanError;
use super::expand::{Expander, Input, f32s, ld};
use super::planned::{Growth, Slot};
use super::stages::{Crossing, Place as StagePlace};
use super::steps::{Norm, Part};
use super::streaming::{ExpertInput, ExpertSlots, OffloadedExperts};
use crate::graph::{ExpertLayer, ValueId, WeightId};

/// Input and experts of a product.
#[derive(Clone, Copy)]
struct By {
    x: Input,
    /// x has one column per slot.
    per_slot: bool,
    norm: Option<Norm>,
    route: Route,
    route_slot: Slot,
    /// The route; `None` if slots are heads.
    routed: Option<ValueId>,
    /// Slots are heads: head stride of x, in values.
    heads: Option<u32>,
}

/// Destination of products.
#[derive(Clone, Copy)]
struct To {
    y: Slot,
    /// Slot stride, or column stride of a sum, in values.
    ldy: u32,
    /// Gated, for one column.
    act: Option<Act>,
    /// Summed, for one column; true accumulates in place.
    sum: Option<bool>,
    name: &'static str,
}

impl Expander<'_> {
    pub(super) fn topk(
        &mut self,
        x: ValueId,
        bias: Option<WeightId>,
        routing: Routing,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let (n_expert, n_used, n_col) = (routing.n_expert, routing.n_used, self.n_col);
        let route = Route { n_expert, n_used, n_col, tile: MatExperts::tile(n_col, n_used, n_expert) };
        let pairs = u64::from(route.n_pair());
        if pairs > u64::from(self.caps.max_groups) {
            let (op, what) = ("expert_lists", "columns times the experts that each uses");
            let expected = format!("at most {}; use a smaller chunk", self.caps.max_groups);
            return Err(DispatchError::Shape { op, what, expected, found: pairs }.into());
        }
        let x_slot = self.act(x);
        let many = n_col > 1;
        let b = self.pool.acquire(route.n_word(many).into());
        self.home[y.0] = Some(b);
        self.routes[y.0] = Some(route);
        let aux = bias.map(|b| self.groups.vectors(self.graph, &[b]));
        let call = TopkMoe {
            routing,
            bias: bias.is_some(),
            ldx: self.ld_of(x),
            n_col,
            weights_at: route.weights_at(),
        };
        if self.router(&call, x_slot, aux, Slot::Act(b))? {
            return Ok(());
        }
        let bind = vec![("x", x_slot), ("aux", Slot::Aux(aux)), ("route", Slot::Act(b))];
        let columns = self.many(Growth::X);
        self.push(call.dispatch(self.caps)?, bind, columns, "route", 0)
            .col(f32s(n_expert) + 2 * f32s(n_used), 0);
        if many {
            let bind = vec![("route", Slot::Act(b)), ("step", Slot::Step)];
            let dispatch = ExpertLists { route }.dispatch(self.caps)?;
            self.push(dispatch, bind, Growth::Fixed, "route", 0).col(3 * f32s(n_used), 0);
        }
        Ok(())
    }

    /// Replaces the last dispatch by one that also chooses the experts of its column, if it is the product that makes
    /// the logits at `x`.
    fn router(
        &mut self,
        choice: &TopkMoe,
        x: Slot,
        bias: Option<usize>,
        route: Slot,
    ) -> Result<bool, PlanError> {
        // The marks of a recorded plan count the dispatches of each step.
        if !self.caps.uses_coherent() {
            return Ok(false);
        }
        let may = self.marks.is_none();
        let Some(last) = self.out.last().filter(|_| may) else { return Ok(false) };
        let Some(product) = last.product.filter(|_| last.layer == self.layer) else { return Ok(false) };
        let bound = |name| last.bind.iter().find(|(n, _)| *n == name).map(|(_, slot)| *slot);
        let plain = matches!(product.epilogue, Epilogue::Store) && product.w.format.name == "f32";
        let alone = product.affine.is_none() && product.experts.is_none() && product.w2.is_none();
        let exact = product.rounded.is_none() && product.emit.is_none();
        let whole = product.w.n_row == choice.routing.n_expert && product.y0 == 0 && bound("y") == Some(x);
        let call = Router { k: product.w.n_col, norm: product.norm, choice: *choice };
        let (Some(w), Some(from), Some(aux)) = (bound("w"), bound("x"), bound("aux")) else {
            return Ok(false);
        };
        if !(plain && alone && exact && whole && call.fits(self.caps)) {
            return Ok(false);
        }
        let work = last.work;
        self.out.pop();
        let bind = vec![
            ("w", w),
            ("x", from),
            ("aux", aux),
            ("bias", Slot::Aux(bias)),
            ("y", x),
            ("route", route),
            ("arrived", Slot::Arrived),
        ];
        *self.push(call.dispatch(self.caps)?, bind, Growth::Fixed, "route", 0) = work;
        Ok(true)
    }

    pub(super) fn gated_id(
        &mut self,
        x: ValueId,
        norm: Option<Norm>,
        route: ValueId,
        parts: [Part; 2],
        act: Act,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let by = self.by(x, norm, route)?;
        let (y, y_f16, f) = (self.act(y), self.half[y.0], self.graph.width(y));
        let name = "gate_up";
        if self.n_col == 1
            && let Some(group) = self.experts_together(&parts)
        {
            return self.expert_rows(
                &by,
                &parts,
                group,
                0,
                &To { y, ldy: ld(f), act: Some(act), sum: None, name },
            );
        }
        let both = self.slots_tmp(2 * f, &by.route);
        let ldx = ld(2 * f);
        let to = To { y: Slot::Act(both), ldy: ldx, act: None, sum: None, name };
        match self.experts_together(&parts) {
            Some(group) => self.expert_rows(&by, &parts, group, 0, &to)?,
            None => {
                for (part, y0) in parts.iter().zip([0, f]) {
                    let group = self.groups.home(part.weight).0;
                    self.expert_rows(&by, &[*part], group, y0, &to)?;
                }
            }
        }
        let n_used = by.route.n_used;
        let call = Glu { act, f, up: f, ldx, ldy: ld(f), n_col: self.n_col * n_used, y_f16 };
        let columns = self.many(Growth::YTimes(n_used));
        self.push(call.dispatch()?, vec![("x", Slot::Act(both)), ("y", y)], columns, "glu", 0)
            .col(3 * f32s(f * n_used), u64::from(f * n_used));
        self.pool.release(both);
        Ok(())
    }

    pub(super) fn project_id(
        &mut self,
        x: ValueId,
        norm: Option<Norm>,
        route: ValueId,
        part: Part,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let by = self.by(x, norm, route)?;
        let to = To { y: self.act(y), ldy: ld(self.graph.width(y)), act: None, sum: None, name: "project" };
        self.expert_rows(&by, &[part], self.groups.home(part.weight).0, 0, &to)
    }

    pub(super) fn reduce_id(
        &mut self,
        x: ValueId,
        route: ValueId,
        part: Part,
        add: bool,
        y: ValueId,
    ) -> Result<(), PlanError> {
        let by = self.by(x, None, route)?;
        let (m, ldy, y) = (self.graph.width(y), self.ld_of(y), self.act(y));
        let group = self.groups.home(part.weight).0;
        let name = "project";
        if self.n_col == 1 {
            return self.expert_rows(&by, &[part], group, 0, &To { y, ldy, act: None, sum: Some(add), name });
        }
        let made = self.slots_tmp(m, &by.route);
        let to = To { y: Slot::Act(made), ldy: ld(m), act: None, sum: None, name };
        self.expert_rows(&by, &[part], group, 0, &to)?;
        let n_used = by.route.n_used;
        let call = MoeReduce { route: by.route, m, ldx: ld(m), ldy, n_col: self.n_col, sorted: true, add };
        let bind = vec![("x", Slot::Act(made)), ("route", by.route_slot), ("y", y)];
        let moved = f32s(m * n_used) + f32s(m) * if add { 2 } else { 1 };
        self.push(call.dispatch()?, bind, Growth::Y, "reduce", 0).col(moved, 2 * u64::from(m * n_used));
        self.pool.release(made);
        Ok(())
    }

    fn by(&mut self, x: ValueId, norm: Option<Norm>, route: ValueId) -> Result<By, PlanError> {
        let per_slot = self.graph.slots(x) > 0;
        let route_slot = self.act_of_route(route);
        let layout = self.routes[route.0].expect("routing comes before what it routes");
        let (x, norm) = self.fed(x, norm)?;
        Ok(By { x, per_slot, norm, route: layout, route_slot, routed: Some(route), heads: None })
    }

    /// Products of every head of x with its own matrix; results have stride `ldy` in y.
    pub(super) fn by_head(
        &mut self,
        x: ValueId,
        weight: WeightId,
        y: ValueId,
        ldy: u32,
        name: &'static str,
    ) -> Result<(), PlanError> {
        let w = &self.graph.weights[weight.0];
        let (n_head, k) = (w.n_expert, w.n_col);
        // Heads have the same distance across columns as within one, and are aligned to vectors.
        let d = self.graph.width(x) / n_head.max(1);
        for v in [x, y] {
            if self.ld_of(v) != self.graph.width(v) || d % 8 != 0 {
                let expected = "a multiple of 8 for products head by head".into();
                let (op, what) = ("mul_mat", "values of a column or a head");
                let found = u64::from(if d % 8 == 0 { self.graph.width(v) } else { d });
                return Err(DispatchError::Shape { op, what, expected, found }.into());
            }
        }
        let tile = MatExperts::tile(self.n_col, 1, 1);
        let route = Route { n_expert: n_head, n_used: n_head, n_col: self.n_col, tile };
        let x = Input { slot: self.act(x), k, f16: false, rounded: None };
        let (norm, routed) = (None, None);
        let by = By { x, per_slot: true, norm, route, route_slot: Slot::Step, routed, heads: Some(d) };
        let to = To { y: self.act(y), ldy, act: None, sum: None, name };
        let group = self.groups.home(weight).0;
        self.expert_rows(&by, &[Part { weight, bias: None, scale: None, by: 1.0 }], group, 0, &to)
    }

    pub(super) fn reduce(&mut self, x: ValueId, route: ValueId, y: ValueId) -> Result<(), PlanError> {
        let route_slot = self.act_of_route(route);
        let layout = self.routes[route.0].expect("routing comes before what it routes");
        let (m, ldy) = (self.graph.width(y), self.ld_of(y));
        // With one expert per column, the column itself can be weighted.
        let per_slot = self.graph.slots(x) > 0;
        let ldx = if per_slot { ld(self.graph.width(x)) } else { self.ld_of(x) };
        let (x, y) = (self.act(x), self.act(y));
        let slots = if per_slot { self.slots_of_experts(route, x) } else { None };
        if let Some(slots) = slots {
            self.enter(StagePlace::Rows { device: self.device, slots }, vec![]);
        }
        let sorted = self.n_col > 1 && per_slot;
        let call = MoeReduce { route: layout, m, ldx, ldy, n_col: self.n_col, sorted, add: false };
        let n = layout.n_used;
        let columns = self.many(Growth::Y);
        self.push(call.dispatch()?, vec![("x", x), ("route", route_slot), ("y", y)], columns, "reduce", 0)
            .col(f32s(m * n) + f32s(m), 2 * u64::from(m * n));
        if slots.is_some() {
            self.enter(StagePlace::Device(self.device), vec![]);
        }
        Ok(())
    }

    fn act_of_route(&self, route: ValueId) -> Slot {
        Slot::Act(self.home[route.0].expect("routing comes before what it routes"))
    }

    /// A buffer of `width` values per slot.
    fn slots_tmp(&mut self, width: u32, route: &Route) -> usize {
        let words = self.words(width) * u64::from(route.n_used);
        self.pool.acquire(words)
    }

    /// The group that holds the shares of exactly these weights, expert by expert.
    fn experts_together(&self, parts: &[Part]) -> Option<usize> {
        let (group, _) = self.groups.home(parts.first()?.weight);
        let g = &self.groups.groups[group];
        let mut at = 0;
        for p in parts {
            if self.groups.home(p.weight) != (group, at) {
                return None;
            }
            at += self.graph.weights[p.weight.0].expert_rows();
        }
        (at == g.share).then_some(group)
    }

    /// Products by the experts of a group, one dispatch per buffer: each holds some of them.
    fn expert_rows(
        &mut self,
        by: &By,
        parts: &[Part],
        group: usize,
        y0: u32,
        to: &To,
    ) -> Result<(), PlanError> {
        let By { x, per_slot, norm, route, route_slot, routed, heads } = *by;
        let ldx = heads.unwrap_or(ld(x.k));
        let input = routed.filter(|_| !per_slot).and_then(|route| self.input_of_experts(route, &x));
        let aux = self.aux(norm, parts)?;
        let affine = self.affine(aux, 0);
        for shard in 0..self.groups.groups[group].shards.len() {
            let g = &self.groups.groups[group];
            let sh = &g.shards[shard];
            let (w, n_row, stride) = (g.matrix(sh), g.share, g.stride);
            let (n_place, by_slot) = (g.n_expert, heads.is_some());
            let experts = Experts { route, first: sh.row0 / stride, n_row, stride, by_slot };
            let n_byte = g.layout(sh).n_byte;
            let offloaded = routed.filter(|_| g.streamed).map(|route| (route, input));
            let bind = vec![
                ("w", Slot::Weights { group, shard }),
                ("x", x.slot),
                ("aux", Slot::Aux(aux)),
                ("y", to.y),
                ("route", route_slot),
            ];
            // Each column uses its experts, part of which are in this buffer.
            let used = u64::from(route.n_used) * u64::from(sh.n_row / stride);
            let n_flop = 2 * used * u64::from(n_row) * u64::from(x.k) / u64::from(n_place);
            let made = if to.act.is_some() { n_row / 2 } else { n_row };
            let n_in = if per_slot { route.n_used } else { 1 };
            let n_out = if to.sum.is_some() { 1 } else { route.n_used };
            let moved = f32s(x.k * n_in) + f32s(made * n_out);
            if self.n_col == 1 {
                let slots = if to.sum.is_some() { Slots::Sum } else { Slots::Each { ldy: to.ldy } };
                let epilogue = match (to.act, to.sum) {
                    (Some(act), _) => Epilogue::Glu(act),
                    // Accumulate to the result of an earlier buffer.
                    (None, Some(add)) if add || shard > 0 => Epilogue::Add,
                    _ => Epilogue::Store,
                };
                let call = MulMatVec {
                    experts: Some(MatVecExperts { experts, ldx: if per_slot { ldx } else { 0 }, slots }),
                    norm: norm.map(|n| n.eps),
                    affine,
                    y0,
                    ..MulMatVec::new(w, epilogue)
                };
                let read = n_byte * u64::from(route.n_used) / u64::from(n_place);
                self.enter_experts(offloaded, group, route);
                self.mat_vec(call, bind, to.name, read)?.col(moved, n_flop);
                continue;
            }
            let place = match (per_slot, by_slot) {
                (_, true) => Place::Pair,
                (true, false) => Place::Sorted,
                (false, false) => Place::Shared,
            };
            let call = MulMat {
                w,
                experts: Some(MatExperts { experts, x: place, y_sorted: !by_slot }),
                add: false,
                act: None,
                affine,
                f16_tiles: self.config.f16_tiles,
                ldx,
                ldy: to.ldy,
                y0,
                n_col: self.n_col,
                x_f16: x.f16,
                tile: None,
                splits: 1,
            };
            let (dispatch, _) = call.dispatch(self.caps)?;
            let columns = if by_slot { Growth::XSlots(route) } else { Growth::XExperts(route) };
            self.enter_experts(offloaded, group, route);
            self.push(dispatch, bind, columns, to.name, n_byte).col(moved, n_flop);
        }
        self.enter(StagePlace::Device(self.device), vec![]);
        Ok(())
    }

    /// The layer of a route, if its experts may be computed elsewhere.
    fn layer_of(&self, route: ValueId) -> Option<&ExpertLayer> {
        self.experts.iter().find(|l| self.steps.place(l.route) == route)
    }

    /// The input of a layer of experts that may be computed elsewhere.
    fn input_of_experts(&self, route: ValueId, x: &Input) -> Option<ExpertInput> {
        let l = self.layer_of(route)?;
        let Slot::Act(act) = x.slot else { return None };
        let n_out = self.graph.width(l.y);
        Some(ExpertInput { layer: l.layer, act, width: x.k, ld: ld(x.k), f16: x.f16, n_out })
    }

    /// The slots of a layer whose experts are offloaded and may be computed elsewhere.
    fn slots_of_experts(&self, route: ValueId, x: Slot) -> Option<ExpertSlots> {
        let l = self.layer_of(route)?;
        let is_offloaded = l.weights(self.graph).iter().any(|w| {
            let home = self.groups.home[w.0];
            home.is_some_and(|(group, _)| self.groups.groups[group].streamed)
        });
        let (Slot::Act(act), true) = (x, is_offloaded) else { return None };
        let width = self.graph.width(l.y);
        Some(ExpertSlots { layer: l.layer, act, width, ld: ld(width) })
    }

    /// If the experts of a group are offloaded, starts a stage of the CPU, whose input is the route.
    fn enter_experts(&mut self, routed: Option<(ValueId, Option<ExpertInput>)>, group: usize, route: Route) {
        let Some((value, input)) = routed else { return };
        let experts = OffloadedExperts { group, route, many: self.n_col > 1, input };
        self.route_words = self.route_words.max(experts.words_read(self.n_col));
        let act = self.home[value.0].expect("routing comes before what it routes");
        let takes = vec![Crossing { value, act, n_word: 0 }];
        self.enter(StagePlace::Cpu { device: self.device, experts }, takes);
    }
}
