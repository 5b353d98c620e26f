//! Fusion: which nodes of the graph run as one step.
//!
//! A step is still independent of the batch: `expand` makes one dispatch of it for a single token and several for a
//! prompt.

use chaski_graph::{Act, Function, NormKind, Routing, Score};
use chaski_kernels::ops::binary::{FUNCTIONS, NdFunction};
use chaski_kernels::ops::rope_kv::CellNorm;

use super::fusion::{Fusion, Fusions};
use crate::graph::altup::AltUp;
use crate::graph::latent::Latent;
use crate::graph::recurrent::Recurrent;
use crate::graph::{Graph, Op, Product, RowNorm, ValueId, WeightId};

/// An RMS norm in front of a product.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Norm {
    /// `[n]`
    pub weight: WeightId,
    /// Added to the mean square.
    pub eps: f32,
    /// What it makes: steps with the same can share it.
    pub out: ValueId,
}

/// A matrix with what is applied to its products row by row.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Part {
    /// `[n_out, n_in]`
    pub weight: WeightId,
    /// `[n_out]`
    pub bias: Option<WeightId>,
    /// `[1]`
    pub scale: Option<WeightId>,
    /// Multiplies what comes of these.
    pub by: f32,
}

/// What happens to the heads of q and k on their way to attention and to the cache.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Heads {
    /// Layer of the cache.
    pub layer: usize,
    /// Which of the graph's rotations, if any.
    pub rope: Option<usize>,
    /// Their norm, if any.
    pub norm: Option<HeadNorm>,
}

/// A norm of q and of k.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct HeadNorm {
    /// Weights of q.
    pub q: WeightId,
    /// Weights of k, where k is made.
    pub k: Option<WeightId>,
    /// What it is.
    pub how: CellNorm,
}

/// A step: one node, or several that belong together.
#[derive(Clone, Debug)]
#[allow(
    missing_docs,
    reason = "fields are inputs `x`, result `y`, and what the graph's node of that name has"
)]
pub enum Fused {
    /// Rows of a table to `y`: embeddings of the tokens, or of their positions.
    Embed { table: WeightId, by_position: bool, y: ValueId },
    /// A norm of its own.
    Norm { x: ValueId, norm: Norm, y: ValueId },
    /// A norm if there is one, product, and either a plain result or a sum into `y` in place.
    Project { x: ValueId, norm: Option<Norm>, part: Part, add: bool, y: ValueId },
    /// A norm if there is one, and products whose rows follow one another.
    Products { x: ValueId, norm: Option<Norm>, parts: Vec<Part>, y: ValueId },
    /// A norm if there is one, gate and up, activation, product.
    Gated { x: ValueId, norm: Option<Norm>, gate: Part, up: Part, act: Act, y: ValueId },
    /// A norm if there is one, then q, k and v; heads rotated and normalised; k and v to the cache; `y` is q. Two parts are
    /// q and k, whose rows are also those of v; one is q alone, for the cache of an earlier layer.
    Qkv { x: ValueId, norm: Option<Norm>, parts: Vec<Part>, heads: Heads, y: ValueId },
    /// Queries of attention over latents, and their keys to the cache.
    Latent { op: Latent, y: ValueId },
    /// A step of a residual stream of several rows.
    AltUp { op: AltUp, y: ValueId },
    /// What stands out of `x`.
    Cutoff { x: ValueId, by: f32, y: ValueId },
    /// `y = x * weight`.
    MulWeight { x: ValueId, weight: WeightId, y: ValueId },
    /// Products of every head with a matrix of its own.
    MulHeads { x: ValueId, weight: WeightId, y: ValueId },
    /// Channels of `x` from `at` on; a `view` is read where they are, else they are copied.
    Slice { x: ValueId, at: u32, view: bool, y: ValueId },
    /// Attention over the cache.
    Attention { q: ValueId, layer: usize, n_head: u32, score: Score, sinks: Option<WeightId>, y: ValueId },
    /// Experts and weights of every column, from the router's logits.
    Topk { x: ValueId, bias: Option<WeightId>, routing: Routing, y: ValueId },
    /// A norm if there is one, gate and up of the experts that columns use, activation, product; a result for each.
    GatedId { x: ValueId, norm: Option<Norm>, route: ValueId, gate: Part, up: Part, act: Act, y: ValueId },
    /// A norm if there is one, products by the experts that columns use; a result for each.
    ProjectId { x: ValueId, norm: Option<Norm>, route: ValueId, part: Part, y: ValueId },
    /// Products by the experts that columns use and their weighted sum: a plain result or a sum into `y` in place.
    ReduceId { x: ValueId, route: ValueId, part: Part, add: bool, y: ValueId },
    /// `y += x` in place.
    Add { x: ValueId, y: ValueId },
    /// `y *= by` in place.
    Scale { by: f32, y: ValueId },
    /// An operation on recurrent state, or one that goes with them; of gates the result may be a sum into `y` in place.
    Recurrent { op: Recurrent, add: bool, y: ValueId },
    /// A norm of rows, a sum if there is one, and all of it times `by`.
    RowNorm { x: ValueId, norm: RowNorm, add: Option<ValueId>, by: f32, y: ValueId },
    /// `y = f(x)`, in place if `x` is `y`.
    Unary { x: ValueId, f: &'static Function, params: [f32; 4], y: ValueId },
    /// `y = a op b`, in place if `a` is `y`.
    Binary { f: &'static NdFunction, a: ValueId, b: ValueId, y: ValueId },
    /// `y = act(gate) * up`.
    Glu { gate: ValueId, up: ValueId, act: Act, y: ValueId },
    /// Heads of `d` channels rotated, in place if `x` is `y`.
    Rope { x: ValueId, d: u32, rope: usize, y: ValueId },
    /// Keys and values to the cache; nothing comes of it.
    KvWrite { k: ValueId, v: ValueId, layer: usize, y: ValueId },
    /// The weighted sum over slots.
    Reduce { x: ValueId, route: ValueId, y: ValueId },
}

impl Fused {
    /// Values that the step reads, its in-place result included.
    pub fn inputs(&self) -> Vec<ValueId> {
        match *self {
            Fused::Embed { .. } => vec![],
            Fused::Norm { x, .. }
            | Fused::Products { x, .. }
            | Fused::Gated { x, .. }
            | Fused::Qkv { x, .. } => vec![x],
            Fused::Project { x, add, y, .. } => {
                if add {
                    vec![x, y]
                } else {
                    vec![x]
                }
            }
            Fused::Attention { q, .. } => vec![q],
            Fused::Topk { x, .. } => vec![x],
            Fused::GatedId { x, route, .. } | Fused::ProjectId { x, route, .. } => vec![x, route],
            Fused::ReduceId { x, route, add, y, .. } => {
                if add {
                    vec![x, route, y]
                } else {
                    vec![x, route]
                }
            }
            Fused::Add { x, y } => vec![x, y],
            Fused::Scale { y, .. } => vec![y],
            Fused::Recurrent { ref op, add, y } => op.inputs().into_iter().chain(add.then_some(y)).collect(),
            Fused::RowNorm { x, add, .. } => [x].into_iter().chain(add).collect(),
            Fused::Unary { x, .. } | Fused::Rope { x, .. } => vec![x],
            Fused::Binary { a, b, .. } => vec![a, b],
            Fused::Glu { gate, up, .. } => vec![gate, up],
            Fused::KvWrite { k, v, .. } => vec![k, v],
            Fused::Latent { ref op, .. } => vec![op.q, op.x],
            Fused::AltUp { ref op, .. } => op.inputs(),
            Fused::MulHeads { x, .. }
            | Fused::Slice { x, .. }
            | Fused::Cutoff { x, .. }
            | Fused::MulWeight { x, .. } => vec![x],
            Fused::Reduce { x, route, .. } => vec![x, route],
        }
    }

    /// The norm in front of its products.
    pub fn norm(&self) -> Option<Norm> {
        match *self {
            Fused::Project { norm, .. }
            | Fused::Products { norm, .. }
            | Fused::Gated { norm, .. }
            | Fused::Qkv { norm, .. }
            | Fused::GatedId { norm, .. }
            | Fused::ProjectId { norm, .. } => norm,
            _ => None,
        }
    }

    /// Whether all that the step does with `v` is to multiply it by matrices.
    pub fn multiplies(&self, v: ValueId) -> bool {
        match *self {
            Fused::Gated { x, norm: None, .. }
            | Fused::Products { x, norm: None, .. }
            | Fused::Qkv { x, norm: None, .. }
            | Fused::GatedId { x, norm: None, .. }
            | Fused::ProjectId { x, norm: None, .. } => x == v,
            Fused::ReduceId { x, add, y, .. } => x == v && !(add && y == v),
            Fused::Project { x, norm: None, add, y, .. } => x == v && !(add && y == v),
            _ => false,
        }
    }

    /// Whether the step can round what it makes to f16.
    pub fn can_round(&self) -> bool {
        matches!(self, Fused::Norm { .. } | Fused::Gated { .. } | Fused::GatedId { .. })
    }

    /// The value that the step makes or changes.
    pub fn output(&self) -> ValueId {
        match *self {
            Fused::Embed { y, .. }
            | Fused::Norm { y, .. }
            | Fused::Project { y, .. }
            | Fused::Products { y, .. }
            | Fused::Gated { y, .. }
            | Fused::Qkv { y, .. }
            | Fused::Attention { y, .. }
            | Fused::Topk { y, .. }
            | Fused::GatedId { y, .. }
            | Fused::ProjectId { y, .. }
            | Fused::ReduceId { y, .. }
            | Fused::Add { y, .. }
            | Fused::Scale { y, .. }
            | Fused::Recurrent { y, .. }
            | Fused::RowNorm { y, .. }
            | Fused::Unary { y, .. }
            | Fused::Binary { y, .. }
            | Fused::Glu { y, .. }
            | Fused::Rope { y, .. }
            | Fused::KvWrite { y, .. }
            | Fused::Latent { y, .. }
            | Fused::MulHeads { y, .. }
            | Fused::AltUp { y, .. }
            | Fused::Cutoff { y, .. }
            | Fused::MulWeight { y, .. }
            | Fused::Slice { y, .. }
            | Fused::Reduce { y, .. } => y,
        }
    }
}

/// Groups the nodes of a graph into steps by these rules. What belongs to no group is a step of its own.
pub fn fuse(graph: &Graph, rules: Fusions) -> Vec<Fused> {
    Fuser::new(graph, rules).run()
}

pub(super) struct Fuser<'a> {
    pub(super) graph: &'a Graph,
    pub(super) rules: Fusions,
    n_use: Vec<usize>,
    last_use: Vec<usize>,
    /// Node that makes each value.
    maker: Vec<usize>,
    /// Nodes that an earlier step has taken in.
    pub(super) done: Vec<bool>,
    /// In-place results: the value in whose place each value stands.
    place: Vec<ValueId>,
    /// Norms that their readers take in, by what they make, with what they read.
    folded: Vec<Option<(ValueId, Norm)>>,
}

impl<'a> Fuser<'a> {
    fn new(graph: &'a Graph, rules: Fusions) -> Self {
        let mut maker = vec![0; graph.widths.len()];
        graph.nodes.iter().enumerate().for_each(|(i, n)| maker[n.out.0] = i);
        // Who reads a slice may read what it was cut from.
        let mut last_use = graph.last_use();
        for node in graph.nodes.iter().rev() {
            if let Op::Slice { x, .. } = node.op {
                last_use[x.0] = last_use[x.0].max(last_use[node.out.0]);
            }
        }
        Fuser {
            graph,
            rules,
            n_use: graph.n_use(),
            last_use,
            maker,
            done: vec![false; graph.nodes.len()],
            place: (0..graph.widths.len()).map(ValueId).collect(),
            folded: vec![None; graph.widths.len()],
        }
    }

    fn run(mut self) -> Vec<Fused> {
        let mut steps = Vec::new();
        for i in 0..self.graph.nodes.len() {
            if !self.done[i] {
                let step = self.step(i);
                steps.extend(step);
            }
        }
        steps
    }

    /// The step of node `i` and of others that belong to it; none if those that read it take it in.
    fn step(&mut self, i: usize) -> Option<Fused> {
        let node = &self.graph.nodes[i];
        let y = node.out;
        self.done[i] = true;
        Some(match node.op.clone() {
            Op::Embed { table } => Fused::Embed { table, by_position: false, y },
            Op::EmbedPosition { table } => Fused::Embed { table, by_position: true, y },
            Op::RmsNorm { x, weight, eps } => {
                // A norm that only products read becomes their prologue.
                let readers = self.readers(y);
                let multiplies = |r: &usize| match self.graph.nodes[*r].op {
                    Op::MulMat { .. } | Op::Products { .. } => true,
                    Op::MulMatId { x, route, .. } => x == y && route != y,
                    _ => false,
                };
                let norm = Norm { weight, eps, out: y };
                if self.rules.has(Fusion::NormOfProduct)
                    && let Some(last) = readers.last()
                    && readers.iter().all(multiplies)
                {
                    // So what it reads must not change before the last of them.
                    self.last_use[x.0] = self.last_use[x.0].max(*last);
                    self.folded[y.0] = Some((x, norm));
                    return None;
                }
                let d = self.graph.width(x);
                let row = RowNorm { kind: NormKind::Rms, d, eps, weight: Some(weight), bias: None };
                match self.sum_after(i, &row) {
                    None => Fused::Norm { x: self.place(x), norm, y },
                    sum => self.row_norm(i, x, row, sum),
                }
            }
            Op::Norm { x, norm } => {
                let sum = self.sum_after(i, &norm);
                self.row_norm(i, x, norm, sum)
            }
            Op::MulMat { x, .. } => {
                let is_product = |n: &usize| matches!(self.graph.nodes[*n].op, Op::MulMat { .. });
                let left: Vec<usize> = self.readers(x).into_iter().filter(is_product).collect();
                let left: Vec<usize> = left.into_iter().filter(|r| *r == i || !self.done[*r]).collect();
                let (from, norm) = self.folded[x.0].map_or((x, None), |(from, n)| (from, Some(n)));
                self.qkv(i, &left, from, norm)
                    .or_else(|| self.gated(i, &left, from, norm))
                    .unwrap_or_else(|| self.project(i, from, norm))
            }
            Op::Products { x, parts } => {
                let (from, norm) = self.folded[x.0].map_or((x, None), |(from, n)| (from, Some(n)));
                let part = |p: &Product| Part { weight: p.weight, bias: p.bias, scale: p.scale, by: 1.0 };
                Fused::Products { x: self.place(from), norm, parts: parts.iter().map(part).collect(), y }
            }
            Op::TopkMoe { x, bias, routing } => Fused::Topk { x: self.place(x), bias, routing, y },
            Op::MulMatId { x, route, .. } => {
                let (from, norm) = self.folded[x.0].map_or((x, None), |(from, n)| (from, Some(n)));
                let step = self.gated_id(i, x, from, norm).or_else(|| self.reduce_id(i, from, norm));
                let part = self.part(i).expect("a product");
                let x = self.place(from);
                step.unwrap_or(Fused::ProjectId { x, norm, route, part, y })
            }
            Op::Attention { q, layer, n_head, score, sinks } => {
                Fused::Attention { q: self.place(q), layer, n_head, score, sinks, y }
            }
            Op::Add { a, b } => {
                // In place of whichever operand dies here.
                let dies = |v: ValueId| self.dies(v, i) && a != b;
                let (x, into) = if dies(a) { (b, a) } else { (a, b) };
                if dies(into) {
                    self.put(y, into);
                    Fused::Add { x: self.place(x), y: self.place(y) }
                } else {
                    self.binary("add", i, a, b)
                }
            }
            Op::Mul { a, b } => self.binary("mul", i, a, b),
            Op::Scale { x, by } => {
                let y = self.in_place(i, x);
                if y == self.place(x) {
                    Fused::Scale { by, y }
                } else {
                    let f = Function::find("scale").expect("a row of the table");
                    Fused::Unary { x: self.place(x), f, params: [by, 0.0, 0.0, 0.0], y }
                }
            }
            Op::Recurrent(op) => {
                let op = op.moved(|v| self.place(v));
                let sum = match &op {
                    Recurrent::GatedNorm(o) => self.sum_into(y, i, o.x),
                    _ => None,
                };
                Fused::Recurrent { op, add: sum.is_some(), y: sum.unwrap_or(y) }
            }
            Op::Unary { x, f, params } => {
                Fused::Unary { y: self.in_place(i, x), x: self.place(x), f, params }
            }
            Op::Rope { x, d, rope } => Fused::Rope { y: self.in_place(i, x), x: self.place(x), d, rope },
            Op::KvWrite { k, v, layer } => Fused::KvWrite { k: self.place(k), v: self.place(v), layer, y },
            Op::Latent(op) => {
                Fused::Latent { op: Latent { q: self.place(op.q), x: self.place(op.x), ..op }, y }
            }
            Op::AltUp(op) => Fused::AltUp { op: op.moved(|v| self.place(v)), y },
            Op::Cutoff { x, by } => Fused::Cutoff { x: self.place(x), by, y },
            Op::MulWeight { x, weight } => Fused::MulWeight { x: self.place(x), weight, y },
            Op::MulHeads { x, weight } => Fused::MulHeads { x: self.place(x), weight, y },
            Op::Slice { x, at } => Fused::Slice { x: self.place(x), at, view: self.is_view(y), y },
            Op::Glu { gate, up, act } => Fused::Glu { gate: self.place(gate), up: self.place(up), act, y },
            Op::MoeReduce { x, route } => Fused::Reduce { x: self.place(x), route: self.place(route), y },
        })
    }

    /// The value in whose place node `i` puts what it makes of `x`: that of `x` if nothing reads it later.
    fn in_place(&mut self, i: usize, x: ValueId) -> ValueId {
        let y = self.graph.nodes[i].out;
        if self.dies(x, i) {
            self.put(y, x);
        }
        self.place(y)
    }

    /// Whether the place of `x` is free once node `i` has read it. A slice has none of its own.
    fn dies(&self, x: ValueId, i: usize) -> bool {
        self.last_use[x.0] == i && !matches!(self.graph.nodes[self.maker[x.0]].op, Op::Slice { .. })
    }

    /// Whether all that read a slice can find it where it is.
    fn is_view(&self, slice: ValueId) -> bool {
        let reads = |r: &usize| match self.graph.nodes[*r].op {
            Op::Glu { up, .. } => up == slice,
            Op::Unary { .. } | Op::Mul { .. } => true,
            _ => false,
        };
        self.graph.logits != Some(slice) && self.readers(slice).iter().all(reads)
    }

    fn binary(&mut self, name: &str, i: usize, a: ValueId, b: ValueId) -> Fused {
        let f = FUNCTIONS.iter().find(|f| f.name == name).expect("a row of the table");
        let y = if a == b { self.graph.nodes[i].out } else { self.in_place(i, a) };
        Fused::Binary { f, a: self.place(a), b: self.place(b), y }
    }

    /// The sum that is the only reader of the norm at node `i`, with its other operand, which is there already.
    fn sum_after(&self, i: usize, norm: &RowNorm) -> Option<(usize, ValueId)> {
        if !self.rules.has(Fusion::NormAndSum) {
            return None;
        }
        let out = self.graph.nodes[i].out;
        let sum = self.sole_reader(out)?;
        let Op::Add { a, b } = self.graph.nodes[sum].op else { return None };
        let other = if a == out { b } else { a };
        let can = norm.weight.is_some() && norm.bias.is_none() && norm.d == self.graph.width(out);
        (can && other != out && self.maker[other.0] < i).then_some((sum, other))
    }

    /// The norm of `x` at node `i`, with the sum that follows, and the factor after that if it is the only reader.
    fn row_norm(&mut self, i: usize, x: ValueId, norm: RowNorm, sum: Option<(usize, ValueId)>) -> Fused {
        let last = sum.map_or(i, |(sum, _)| sum);
        self.done[last] = true;
        let (mut y, mut by) = (self.graph.nodes[last].out, 1.0);
        if let Some(reader) = self.sole_reader(y)
            && let Op::Scale { by: factor, .. } = self.graph.nodes[reader].op
        {
            self.done[reader] = true;
            (y, by) = (self.graph.nodes[reader].out, factor);
        }
        Fused::RowNorm { x: self.place(x), norm, add: sum.map(|(_, other)| self.place(other)), by, y }
    }

    pub(super) fn place(&self, v: ValueId) -> ValueId {
        self.place[v.0]
    }

    fn put(&mut self, v: ValueId, into: ValueId) {
        self.place[v.0] = self.place(into);
    }

    pub(super) fn readers(&self, v: ValueId) -> Vec<usize> {
        let reads = |n: &crate::graph::Node| n.op.inputs().contains(&v);
        (0..self.graph.nodes.len()).filter(|i| reads(&self.graph.nodes[*i])).collect()
    }

    /// The node that makes a value.
    pub(super) fn maker(&self, v: ValueId) -> usize {
        self.maker[v.0]
    }

    pub(super) fn part(&self, node: usize) -> Option<Part> {
        match self.graph.nodes[node].op {
            Op::MulMat { weight, bias, scale, .. } | Op::MulMatId { weight, bias, scale, .. } => {
                Some(Part { weight, bias, scale, by: 1.0 })
            }
            _ => None,
        }
    }

    /// The only reader of a value.
    pub(super) fn sole_reader(&self, v: ValueId) -> Option<usize> {
        (self.n_use[v.0] == 1).then(|| self.readers(v)[0])
    }

    /// The product at node `i` and another of those of the same input, if they are gate and up.
    fn gated(&mut self, i: usize, nodes: &[usize], x: ValueId, norm: Option<Norm>) -> Option<Fused> {
        if !self.rules.has(Fusion::Gated) {
            return None;
        }
        let glu = self.sole_reader(self.graph.nodes[i].out)?;
        let Op::Glu { gate, up, act } = self.graph.nodes[glu].op else { return None };
        if gate == up || self.sole_reader(gate)? != glu || self.sole_reader(up)? != glu {
            return None;
        }
        let (gate, up) = (self.maker[gate.0], self.maker[up.0]);
        if !nodes.contains(&gate) || !nodes.contains(&up) {
            return None;
        }
        [gate, up, glu].into_iter().for_each(|n| self.done[n] = true);
        let y = self.graph.nodes[glu].out;
        Some(Fused::Gated { x: self.place(x), norm, gate: self.part(gate)?, up: self.part(up)?, act, y })
    }

    /// One product; a factor that is its only reader is taken in, and a sum whose other operand dies there.
    fn project(&mut self, n: usize, x: ValueId, norm: Option<Norm>) -> Fused {
        let mut part = self.part(n).expect("a product");
        self.done[n] = true;
        let x = self.place(x);
        let out = self.scaled(self.graph.nodes[n].out, &mut part);
        let sum = self.sum_into(out, n, x);
        Fused::Project { x, norm, part, add: sum.is_some(), y: sum.unwrap_or(out) }
    }

    /// What is left of `out`, the product of `part`, when it has taken in the factor that is its only reader.
    fn scaled(&mut self, out: ValueId, part: &mut Part) -> ValueId {
        let reader = self.sole_reader(out).filter(|_| self.rules.has(Fusion::Factor));
        let Some(reader) = reader else { return out };
        let Op::Scale { by, .. } = self.graph.nodes[reader].op else { return out };
        part.by *= by;
        self.done[reader] = true;
        self.graph.nodes[reader].out
    }

    /// Where the sum of `out`, which a step at node `n` makes from `x`, and something older takes place, if nothing
    /// else reads `out`.
    fn sum_into(&mut self, out: ValueId, n: usize, x: ValueId) -> Option<ValueId> {
        if !self.rules.has(Fusion::Residual) {
            return None;
        }
        let sum = self.sole_reader(out)?;
        let Op::Add { a, b } = self.graph.nodes[sum].op else { return None };
        if a == b {
            return None;
        }
        let other = if a == out { b } else { a };
        // Nobody may look at the other operand between the product and the sum.
        let quiet = self.readers(other).iter().all(|r| *r <= n || *r == sum)
            && self.folded_readers(other).iter().all(|r| *r <= n);
        let slice = matches!(self.graph.nodes[self.maker[other.0]].op, Op::Slice { .. });
        // It is there already if it comes earlier, or if an earlier step has taken it in.
        let made = self.maker[other.0];
        if !quiet || slice || self.place(other) == x || made >= n && !self.done[made] {
            return None;
        }
        self.done[sum] = true;
        self.put(self.graph.nodes[sum].out, other);
        Some(self.place(other))
    }

    /// Products that read a value through a norm that they take in.
    fn folded_readers(&self, v: ValueId) -> Vec<usize> {
        let norms = self.folded.iter().flatten().filter(|(x, _)| *x == v);
        norms.flat_map(|(_, n)| self.readers(n.out)).collect()
    }

    /// Gate and up by experts.
    fn gated_id(&mut self, i: usize, x: ValueId, from: ValueId, norm: Option<Norm>) -> Option<Fused> {
        if !self.rules.has(Fusion::GatedExperts) {
            return None;
        }
        let Op::MulMatId { route, .. } = self.graph.nodes[i].op else { return None };
        let glu = self.sole_reader(self.graph.nodes[i].out)?;
        let Op::Glu { gate, up, act } = self.graph.nodes[glu].op else { return None };
        let y = self.graph.nodes[glu].out;
        let (gate, up) = (self.maker[gate.0], self.maker[up.0]);
        let other = if gate == i { up } else { gate };
        let same = matches!(self.graph.nodes[other].op, Op::MulMatId { x: x2, route: r2, .. } if x2 == x && r2 == route);
        if other == i || !same || self.sole_reader(self.graph.nodes[other].out) != Some(glu) {
            return None;
        }
        [gate, up, glu].into_iter().for_each(|n| self.done[n] = true);
        let (gate, up) = (self.part(gate)?, self.part(up)?);
        Some(Fused::GatedId { x: self.place(from), norm, route: self.place(route), gate, up, act, y })
    }

    /// Products by experts whose only reader sums them up.
    fn reduce_id(&mut self, i: usize, x: ValueId, norm: Option<Norm>) -> Option<Fused> {
        if !self.rules.has(Fusion::SumOfExperts) {
            return None;
        }
        let Op::MulMatId { route, .. } = self.graph.nodes[i].op else { return None };
        let reduce = self.sole_reader(self.graph.nodes[i].out)?;
        let by_route = matches!(self.graph.nodes[reduce].op, Op::MoeReduce { route: r, .. } if r == route);
        // One column for all slots wants another kernel, which no family needs.
        if !by_route || norm.is_some() || self.graph.slots(x) == 0 {
            return None;
        }
        self.done[reduce] = true;
        let (x, mut part) = (self.place(x), self.part(i)?);
        let out = self.scaled(self.graph.nodes[reduce].out, &mut part);
        let sum = self.sum_into(out, i, x);
        Some(Fused::ReduceId { x, route: self.place(route), part, add: sum.is_some(), y: sum.unwrap_or(out) })
    }
}
