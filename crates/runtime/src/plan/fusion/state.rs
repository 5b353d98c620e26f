//! State of the fusion: readers and places of values.

use crate::graph::{Graph, Node, Op, ValueId};
use crate::plan::steps::Norm;

pub(super) struct State<'a> {
    pub(super) graph: &'a Graph,
    n_use: Vec<usize>,
    /// Last node that reads each value.
    pub(super) last_use: Vec<usize>,
    /// Node that computes each value.
    maker: Vec<usize>,
    /// Nodes that are already part of a step.
    pub(super) done: Vec<bool>,
    /// Place of each value: the value whose buffer it shares.
    pub(super) place: Vec<ValueId>,
    /// Norms absorbed by their readers, by result, with their inputs.
    pub(super) folded: Vec<Option<(ValueId, Norm)>>,
}

impl<'a> State<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        let mut maker = vec![0; graph.widths.len()];
        graph.nodes.iter().enumerate().for_each(|(i, n)| maker[n.out.0] = i);
        // Readers of a slice may read its source.
        let mut last_use = graph.last_use();
        for node in graph.nodes.iter().rev() {
            if let Op::Slice { x, .. } = node.op {
                last_use[x.0] = last_use[x.0].max(last_use[node.out.0]);
            }
        }
        State {
            graph,
            n_use: graph.n_use(),
            last_use,
            maker,
            done: vec![false; graph.nodes.len()],
            place: (0..graph.widths.len()).map(ValueId).collect(),
            folded: vec![None; graph.widths.len()],
        }
    }

    /// Slices that are read in place.
    pub(super) fn views(&self) -> Vec<Option<(ValueId, u32)>> {
        let mut views = vec![None; self.graph.widths.len()];
        for node in &self.graph.nodes {
            if let Op::Slice { x, at } = node.op
                && self.is_view(node.out)
            {
                views[node.out.0] = Some((self.place(x), at));
            }
        }
        views
    }

    /// True if all readers of a slice can read it in place.
    fn is_view(&self, slice: ValueId) -> bool {
        let reads = |r: &usize| match *self.op(*r) {
            Op::Glu { up, .. } => up == slice,
            Op::Unary { .. } | Op::Mul { .. } => true,
            _ => false,
        };
        self.graph.logits != Some(slice) && self.readers(slice).iter().all(reads)
    }

    /// True if the place of `x` is free once node `i` has read it. Slices have no place of their own.
    pub(super) fn dies(&self, x: ValueId, i: usize) -> bool {
        self.last_use[x.0] == i && !matches!(self.op(self.maker(x)), Op::Slice { .. })
    }

    pub(super) fn place(&self, v: ValueId) -> ValueId {
        self.place[v.0]
    }

    pub(super) fn put(&mut self, v: ValueId, into: ValueId) {
        self.place[v.0] = self.place(into);
    }

    pub(super) fn op(&self, node: usize) -> &'a Op {
        &self.graph.nodes[node].op
    }

    pub(super) fn readers(&self, v: ValueId) -> Vec<usize> {
        let reads = |n: &Node| n.op.inputs().contains(&v);
        (0..self.graph.nodes.len()).filter(|i| reads(&self.graph.nodes[*i])).collect()
    }

    /// The node that computes a value.
    pub(super) fn maker(&self, v: ValueId) -> usize {
        self.maker[v.0]
    }

    /// The only reader of a value.
    pub(super) fn sole_reader(&self, v: ValueId) -> Option<usize> {
        (self.n_use[v.0] == 1).then(|| self.readers(v)[0])
    }
}
