//! Fusion: which nodes of the graph run as one step.
//!
//! A step is still independent of the batch: `expand` makes one dispatch of it for a single token and several for a
//! prompt.

use chaski_kernels::ops::attention::Score;
use chaski_kernels::ops::glu::Act;
use chaski_kernels::ops::topk_moe::Routing;

use crate::graph::recurrent::Recurrent;
use crate::graph::{Graph, Op, ValueId, WeightId};

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
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// `[n_out, n_in]`
    pub weight: WeightId,
    /// `[n_out]`
    pub bias: Option<WeightId>,
    /// `[1]`
    pub scale: Option<WeightId>,
}

/// A step: one node, or several that belong together.
#[derive(Clone, Debug)]
#[allow(
    missing_docs,
    reason = "fields are inputs `x`, result `y`, and what the graph's node of that name has"
)]
pub enum Fused {
    /// Token embeddings to `y`.
    Embed { table: WeightId, y: ValueId },
    /// A norm of its own.
    Norm { x: ValueId, norm: Norm, y: ValueId },
    /// A norm if there is one, product, and either a plain result or a sum into `y` in place.
    Project { x: ValueId, norm: Option<Norm>, part: Part, add: bool, y: ValueId },
    /// A norm if there is one, gate and up, activation, product.
    Gated { x: ValueId, norm: Option<Norm>, gate: Part, up: Part, act: Act, y: ValueId },
    /// A norm if there is one, q, k and v; q and k rotated; k and v to the cache; `y` is q.
    Qkv { x: ValueId, norm: Option<Norm>, q: Part, k: Part, v: Part, layer: usize, y: ValueId },
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
    /// An operation on recurrent state, or one that goes with them.
    Recurrent { op: Recurrent, y: ValueId },
}

impl Fused {
    /// Values that the step reads, its in-place result included.
    pub fn inputs(&self) -> Vec<ValueId> {
        match *self {
            Fused::Embed { .. } => vec![],
            Fused::Norm { x, .. } | Fused::Gated { x, .. } | Fused::Qkv { x, .. } => vec![x],
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
            Fused::Recurrent { ref op, .. } => op.inputs(),
        }
    }

    /// The norm in front of its products.
    pub fn norm(&self) -> Option<Norm> {
        match *self {
            Fused::Project { norm, .. }
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
            | Fused::Gated { y, .. }
            | Fused::Qkv { y, .. }
            | Fused::Attention { y, .. }
            | Fused::Topk { y, .. }
            | Fused::GatedId { y, .. }
            | Fused::ProjectId { y, .. }
            | Fused::ReduceId { y, .. }
            | Fused::Add { y, .. }
            | Fused::Scale { y, .. }
            | Fused::Recurrent { y, .. } => y,
        }
    }
}

/// A node that no step can express.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("node {node} of the graph ({what}) fits no fused step")]
pub struct FuseError {
    /// Index of the node.
    pub node: usize,
    /// What it is.
    pub what: String,
}

/// Groups the nodes of a graph into steps.
///
/// # Errors
/// [`FuseError`] for a rotation or a cache write that does not belong to a q, k, v block.
pub fn fuse(graph: &Graph) -> Result<Vec<Fused>, FuseError> {
    Fuser::new(graph).run()
}

struct Fuser<'a> {
    graph: &'a Graph,
    n_use: Vec<usize>,
    last_use: Vec<usize>,
    /// Node that makes each value.
    maker: Vec<usize>,
    /// Nodes that an earlier step has taken in.
    done: Vec<bool>,
    /// In-place results: the value in whose place each value stands.
    place: Vec<ValueId>,
    /// Norms that their readers take in, by what they make, with what they read.
    folded: Vec<Option<(ValueId, Norm)>>,
}

impl<'a> Fuser<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut maker = vec![0; graph.widths.len()];
        graph.nodes.iter().enumerate().for_each(|(i, n)| maker[n.out.0] = i);
        Fuser {
            graph,
            n_use: graph.n_use(),
            last_use: graph.last_use(),
            maker,
            done: vec![false; graph.nodes.len()],
            place: (0..graph.widths.len()).map(ValueId).collect(),
            folded: vec![None; graph.widths.len()],
        }
    }

    fn run(mut self) -> Result<Vec<Fused>, FuseError> {
        let mut steps = Vec::new();
        for i in 0..self.graph.nodes.len() {
            if !self.done[i] {
                self.step(i, &mut steps)?;
            }
        }
        Ok(steps)
    }

    fn step(&mut self, i: usize, steps: &mut Vec<Fused>) -> Result<(), FuseError> {
        let node = &self.graph.nodes[i];
        let y = node.out;
        self.done[i] = true;
        match node.op.clone() {
            Op::Embed { table } => steps.push(Fused::Embed { table, y }),
            Op::RmsNorm { x, weight, eps } => {
                let norm = Norm { weight, eps, out: y };
                // A norm that only products read becomes their prologue.
                let readers = self.readers(y);
                let multiplies = |r: &usize| match self.graph.nodes[*r].op {
                    Op::MulMat { .. } => true,
                    Op::MulMatId { x, route, .. } => x == y && route != y,
                    _ => false,
                };
                if let Some(last) = readers.last()
                    && readers.iter().all(multiplies)
                {
                    // So what it reads must not change before the last of them.
                    self.last_use[x.0] = self.last_use[x.0].max(*last);
                    self.folded[y.0] = Some((x, norm));
                } else {
                    steps.push(Fused::Norm { x: self.place(x), norm, y });
                }
            }
            Op::MulMat { x, .. } => {
                let is_product = |n: &usize| matches!(self.graph.nodes[*n].op, Op::MulMat { .. });
                let left: Vec<usize> = self.readers(x).into_iter().filter(is_product).collect();
                let left: Vec<usize> = left.into_iter().filter(|r| *r == i || !self.done[*r]).collect();
                let (from, norm) = self.folded[x.0].map_or((x, None), |(from, n)| (from, Some(n)));
                match self.qkv(&left, from, norm).or_else(|| self.gated(&left, from, norm)) {
                    Some(s) => steps.push(s),
                    None => self.project(i, from, norm, steps),
                }
            }
            Op::TopkMoe { x, bias, routing } => {
                steps.push(Fused::Topk { x: self.place(x), bias, routing, y });
            }
            Op::MulMatId { x, route, .. } => {
                let (from, norm) = self.folded[x.0].map_or((x, None), |(from, n)| (from, Some(n)));
                let step = self.gated_id(i, x, from, norm).or_else(|| self.reduce_id(i, from, norm));
                let part = self.part(i).expect("a product");
                let x = self.place(from);
                steps.push(step.unwrap_or(Fused::ProjectId { x, norm, route, part, y }));
            }
            Op::Attention { q, layer, n_head, score, sinks } => {
                steps.push(Fused::Attention { q: self.place(q), layer, n_head, score, sinks, y });
            }
            Op::Add { a, b } => {
                // In place of whichever operand dies here.
                let (x, into) = if self.last_use[a.0] == i { (b, a) } else { (a, b) };
                if self.last_use[into.0] != i {
                    return Err(self.stuck(i));
                }
                self.put(y, into);
                steps.push(Fused::Add { x: self.place(x), y: self.place(y) });
            }
            Op::Scale { x, by } => {
                if self.last_use[x.0] != i {
                    return Err(self.stuck(i));
                }
                self.put(y, x);
                steps.push(Fused::Scale { by, y: self.place(y) });
            }
            Op::Recurrent(op) => {
                steps.push(Fused::Recurrent { op: op.moved(|v| self.place(v)), y });
            }
            Op::Rope { .. } | Op::KvWrite { .. } | Op::Glu { .. } | Op::MoeReduce { .. } => {
                return Err(self.stuck(i));
            }
        }
        Ok(())
    }

    fn stuck(&self, node: usize) -> FuseError {
        let what = format!("{:?}", self.graph.nodes[node].op);
        FuseError { node, what }
    }

    fn place(&self, v: ValueId) -> ValueId {
        self.place[v.0]
    }

    fn put(&mut self, v: ValueId, into: ValueId) {
        self.place[v.0] = self.place(into);
    }

    fn readers(&self, v: ValueId) -> Vec<usize> {
        let reads = |n: &crate::graph::Node| n.op.inputs().contains(&v);
        (0..self.graph.nodes.len()).filter(|i| reads(&self.graph.nodes[*i])).collect()
    }

    fn part(&self, node: usize) -> Option<Part> {
        match self.graph.nodes[node].op {
            Op::MulMat { weight, bias, scale, .. } | Op::MulMatId { weight, bias, scale, .. } => {
                Some(Part { weight, bias, scale })
            }
            _ => None,
        }
    }

    /// The only reader of a value.
    fn sole_reader(&self, v: ValueId) -> Option<usize> {
        (self.n_use[v.0] == 1).then(|| self.readers(v)[0])
    }

    fn qkv(&mut self, nodes: &[usize], x: ValueId, norm: Option<Norm>) -> Option<Fused> {
        let &[a, b, c, ..] = nodes else { return None };
        // Which product is rotated and read by attention, which goes to the cache, and where.
        let (mut q, mut k, mut v, mut write) = (None, None, None, None);
        for n in [a, b, c] {
            let out = self.graph.nodes[n].out;
            let reader = self.sole_reader(out)?;
            match self.graph.nodes[reader].op {
                Op::Rope { d, .. } => {
                    let rotated = self.graph.nodes[reader].out;
                    let next = self.sole_reader(rotated)?;
                    match self.graph.nodes[next].op {
                        Op::Attention { .. } => q = Some((n, reader, rotated, d)),
                        Op::KvWrite { k: key, layer, .. } if key == rotated => {
                            k = Some((n, reader, d));
                            write = Some((next, layer));
                        }
                        _ => return None,
                    }
                }
                Op::KvWrite { v: value, .. } if value == out => v = Some(n),
                _ => return None,
            }
        }
        let ((q, rope_q, y, d), (k, rope_k, d_k), v, (write, layer)) = (q?, k?, v?, write?);
        if d != d_k {
            return None;
        }
        for n in [q, k, v, rope_q, rope_k, write] {
            self.done[n] = true;
        }
        let part = |n| self.part(n).expect("the nodes are products");
        Some(Fused::Qkv { x: self.place(x), norm, q: part(q), k: part(k), v: part(v), layer, y })
    }

    fn gated(&mut self, nodes: &[usize], x: ValueId, norm: Option<Norm>) -> Option<Fused> {
        let &[a, b, ..] = nodes else { return None };
        let glu = self.sole_reader(self.graph.nodes[a].out)?;
        if self.sole_reader(self.graph.nodes[b].out)? != glu {
            return None;
        }
        let Op::Glu { gate, up, act } = self.graph.nodes[glu].op else { return None };
        let (gate, up) = (self.maker[gate.0], self.maker[up.0]);
        [gate, up, glu].into_iter().for_each(|n| self.done[n] = true);
        let y = self.graph.nodes[glu].out;
        Some(Fused::Gated { x: self.place(x), norm, gate: self.part(gate)?, up: self.part(up)?, act, y })
    }

    /// One product; a sum that is its only reader and whose other operand dies there is taken in.
    fn project(&mut self, n: usize, x: ValueId, norm: Option<Norm>, steps: &mut Vec<Fused>) {
        let part = self.part(n).expect("a product");
        let out = self.graph.nodes[n].out;
        self.done[n] = true;
        let x = self.place(x);
        let sum = self.sum_into(out, n, x);
        steps.push(Fused::Project { x, norm, part, add: sum.is_some(), y: sum.unwrap_or(out) });
    }

    /// Where the sum of `out`, which a step at node `n` makes from `x`, and something older takes place, if nothing
    /// else reads `out`.
    fn sum_into(&mut self, out: ValueId, n: usize, x: ValueId) -> Option<ValueId> {
        let sum = self.sole_reader(out)?;
        let Op::Add { a, b } = self.graph.nodes[sum].op else { return None };
        if a == b {
            return None;
        }
        let other = if a == out { b } else { a };
        // Nobody may look at the other operand between the product and the sum.
        let quiet = self.readers(other).iter().all(|r| *r <= n || *r == sum)
            && self.folded_readers(other).iter().all(|r| *r <= n);
        if !quiet || self.place(other) == x || self.maker[other.0] >= n {
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
        let Op::MulMatId { route, .. } = self.graph.nodes[i].op else { return None };
        let reduce = self.sole_reader(self.graph.nodes[i].out)?;
        let by_route = matches!(self.graph.nodes[reduce].op, Op::MoeReduce { route: r, .. } if r == route);
        // One column for all slots wants another kernel, which no family needs.
        if !by_route || norm.is_some() || self.graph.slots(x) == 0 {
            return None;
        }
        self.done[reduce] = true;
        let (x, part, out) = (self.place(x), self.part(i)?, self.graph.nodes[reduce].out);
        let sum = self.sum_into(out, i, x);
        Some(Fused::ReduceId { x, route: self.place(route), part, add: sum.is_some(), y: sum.unwrap_or(out) })
    }
}
