//! Fusion rules, and steps under construction.

use super::state::State;
use crate::graph::recurrent::Recurrent;
use crate::graph::{Graph, NormKind, Op, RowNorm, ValueId};
use crate::plan::steps::{Form, Part};

/// A rule that extends a step by further nodes.
pub struct Rule {
    /// Name, for display and tests.
    pub name: &'static str,
    /// Operations of nodes that steps start with.
    pub from: &'static [&'static str],
    /// Operations that the rule adds.
    pub takes: &'static [&'static str],
    /// Checks the conditions and returns the extended step. It only reads the graph and earlier steps.
    pub(super) apply: fn(&State<'_>, &Draft) -> Option<Draft>,
}

/// A step under construction.
pub(super) struct Draft {
    /// The first node.
    pub(super) begin: usize,
    /// All nodes; the one that reads the input first.
    pub(super) nodes: Vec<usize>,
    /// The result so far.
    pub(super) out: ValueId,
    /// The combined operation.
    pub(super) form: Form,
    /// The value whose buffer the result replaces or accumulates to.
    pub(super) into: Option<ValueId>,
}

impl Draft {
    /// The node as a step of its own; `None` if no rule starts with such a node.
    pub(super) fn new(graph: &Graph, begin: usize) -> Option<Draft> {
        let node = &graph.nodes[begin];
        let form = match &node.op {
            Op::MulMat { .. } => Form::Project { norm: None, part: Part::of(&node.op)?, add: false },
            Op::MulMatId { route, .. } => {
                Form::ProjectId { norm: None, route: *route, part: Part::of(&node.op)? }
            }
            Op::Products { parts, .. } => {
                Form::Products { norm: None, parts: parts.iter().map(Part::from).collect() }
            }
            Op::Norm { norm, .. } => Form::RowNorm { norm: *norm, add: None, by: 1.0 },
            Op::RmsNorm { x, weight, eps } => {
                let (kind, d) = (NormKind::Rms, graph.width(*x));
                let norm = RowNorm { kind, d, eps: *eps, weight: Some(*weight), bias: None };
                Form::RowNorm { norm, add: None, by: 1.0 }
            }
            Op::Scale { by, .. } => Form::AddScaled { by: *by },
            Op::Recurrent(Recurrent::GatedNorm(op)) => Form::GatedNorm { op: *op, add: false },
            _ => return None,
        };
        Some(Draft { begin, nodes: vec![begin], out: node.out, form, into: None })
    }

    /// The same step with one more node, which computes the result.
    pub(super) fn then(&self, graph: &Graph, node: usize, form: Form) -> Draft {
        let nodes = self.nodes.iter().copied().chain([node]).collect();
        Draft { begin: self.begin, nodes, out: graph.nodes[node].out, form, into: None }
    }

    /// A step of these nodes in place of the original one; `into` is kept.
    pub(super) fn becomes(&self, nodes: impl IntoIterator<Item = usize>, out: ValueId, form: Form) -> Draft {
        let before = self.nodes.iter().copied().filter(|n| *n < self.begin);
        Draft { begin: self.begin, nodes: before.chain(nodes).collect(), out, form, into: None }
    }

    /// The place that the step reads first.
    pub(super) fn input(&self, state: &State<'_>) -> ValueId {
        let x = state.op(self.nodes[0]).inputs().first().copied();
        state.place(x.expect("steps that rules start from have an input"))
    }
}
