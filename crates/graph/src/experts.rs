//! Layers of experts: the part of a graph between a route and the weighted sum of its slots.
//!
//! It reads one value per column and the route, nothing else of the model, so it can be computed elsewhere: one row per
//! pair of a column and one of its experts.

use std::collections::BTreeSet;

use crate::graph::{Graph, Node, Op};
use crate::id::{ValueId, WeightId};
use crate::weight::Weight;

/// A layer of experts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpertLayer {
    /// Its number among all sums over slots of the graph, from 0.
    pub layer: u16,
    /// The experts of every column, and their weights.
    pub route: ValueId,
    /// The only other input, one row per column.
    pub x: ValueId,
    /// The result: one row per column and slot.
    pub y: ValueId,
    /// Indices of its nodes, in execution order: products by experts, and element-wise operations between them.
    pub nodes: Vec<usize>,
    /// Index of the node that sums the slots.
    pub reduce: usize,
    /// Experts.
    pub n_expert: u32,
    /// Experts per column.
    pub n_used: u32,
}

/// An expert's part of a weight in its tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpertPiece {
    /// The weight of all experts.
    pub weight: WeightId,
    /// Name of the tensor.
    pub tensor: String,
    /// First byte in the tensor.
    pub offset: u64,
    /// Bytes.
    pub n_byte: u64,
}

impl Graph {
    /// The layers of experts that can be computed elsewhere: those that have one input besides the route, whose inner
    /// results nothing else reads, and whose weights do not change (LoRAs on experts have a scale that does).
    pub fn experts(&self) -> Vec<ExpertLayer> {
        let sums = self.nodes.iter().enumerate().filter_map(|(i, node)| match node.op {
            Op::MoeReduce { x, route } if self.slots(x) > 0 => Some((i, x, route)),
            _ => None,
        });
        (0..).zip(sums).filter_map(|(layer, sum)| self.expert_layer(layer, sum)).collect()
    }

    fn expert_layer(&self, layer: u16, (reduce, y, route): (usize, ValueId, ValueId)) -> Option<ExpertLayer> {
        let node_of = |v: ValueId| self.nodes[..reduce].iter().rposition(|n| n.out == v);
        let Op::TopkMoe { routing, .. } = self.nodes[node_of(route)?].op else { return None };
        let (mut nodes, mut inputs, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![y]);
        while let Some(v) = open.pop() {
            let i = node_of(v)?;
            if !nodes.insert(i) {
                continue;
            }
            match self.nodes[i].op {
                Op::MulMatId { x, route: other, .. } if other == route => match self.slots(x) {
                    0 => drop(inputs.insert(x)),
                    _ => open.push(x),
                },
                Op::Glu { gate: a, up: b, .. } | Op::Add { a, b } | Op::Mul { a, b } => open.extend([a, b]),
                Op::Scale { x, .. } | Op::Unary { x, .. } => open.push(x),
                _ => return None,
            }
            if open.iter().any(|v| self.slots(*v) == 0) {
                return None;
            }
        }
        let inside: BTreeSet<ValueId> = nodes.iter().map(|i| self.nodes[*i].out).collect();
        let reads_inside = |n: &Node| n.op.inputs().iter().any(|v| inside.contains(v));
        let mut readers = self.nodes.iter().enumerate().filter(|(_, n)| reads_inside(n));
        if !readers.all(|(i, _)| i == reduce || nodes.contains(&i)) || inputs.len() != 1 {
            return None;
        }
        let (n_expert, n_used) = (routing.n_expert, routing.n_used);
        let nodes = nodes.into_iter().collect();
        let found = ExpertLayer { layer, route, x: inputs.pop_first()?, y, nodes, reduce, n_expert, n_used };
        let is_whole = |id: &WeightId| part_of(&self.weights[id.0], n_expert, 0).is_some();
        let is_lora = |id: &WeightId| self.lora_scale(*id).is_some();
        found.weights(self).iter().all(|id| is_whole(id) && !is_lora(id)).then_some(found)
    }
}

impl ExpertLayer {
    /// The matrices of its experts, and their biases and scales, each with a part per expert.
    pub fn weights(&self, graph: &Graph) -> Vec<WeightId> {
        let mut out = BTreeSet::new();
        for node in &self.nodes {
            if let Op::MulMatId { weight, bias, scale, .. } = graph.nodes[*node].op {
                out.extend([Some(weight), bias, scale].into_iter().flatten());
            }
        }
        out.into_iter().collect()
    }

    /// Places of an expert's weights in their tensors, in the order of [`Self::weights`]; of several places of one
    /// weight, in the order of its rows.
    ///
    /// # Panics
    /// If there is no such expert.
    pub fn pieces(&self, graph: &Graph, expert: u32) -> Vec<ExpertPiece> {
        assert!(expert < self.n_expert, "there are {} experts", self.n_expert);
        let mut out = Vec::new();
        for weight in self.weights(graph) {
            let w = &graph.weights[weight.0];
            let part = part_of(w, self.n_expert, expert).expect("a layer has weights with a part per expert");
            let (bytes, tensor) = (w.row_bytes(), || w.name.clone());
            match part {
                Part::Rows(first, n) => out.extend(w.pieces(first, n).map(|(offset, n)| ExpertPiece {
                    weight,
                    tensor: tensor(),
                    offset,
                    n_byte: u64::from(n) * bytes,
                })),
                Part::Value(at) => {
                    let n_byte = w.ty.block_bytes() as u64;
                    let offset = w.offset(0) + u64::from(at) * n_byte;
                    out.push(ExpertPiece { weight, tensor: tensor(), offset, n_byte });
                }
            }
        }
        out
    }

    /// Bytes of an expert in the file.
    pub fn expert_bytes(&self, graph: &Graph) -> u64 {
        self.pieces(graph, 0).iter().map(|p| p.n_byte).sum()
    }

    /// Values per row of its input, and of its result.
    pub fn widths(&self, graph: &Graph) -> (u32, u32) {
        (graph.width(self.x), graph.width(self.y))
    }
}

/// An expert's part of a weight.
enum Part {
    /// Rows: first, and number.
    Rows(u32, u32),
    /// A value of a vector.
    Value(u32),
}

/// `None` if the weight has no equal parts.
fn part_of(w: &Weight, n_expert: u32, expert: u32) -> Option<Part> {
    if w.times.is_some() || n_expert == 0 {
        return None;
    }
    if w.n_row == 1 && w.n_col == n_expert && n_expert > 1 {
        return (w.ty.block_len() == 1).then_some(Part::Value(expert));
    }
    let n = w.n_row / n_expert;
    (n > 0 && w.n_row % n_expert == 0).then_some(Part::Rows(expert * n, n))
}
