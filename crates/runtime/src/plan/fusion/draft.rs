//! A rule, and the step that it makes larger.

use super::state::State;
use crate::graph::recurrent::Recurrent;
use crate::graph::{Graph, NormKind, Op, RowNorm, ValueId};
use crate::plan::steps::{Form, Part};

/// A rule by which a step takes in more nodes.
pub struct Rule {
    /// Its name, for people and for tests.
    pub name: &'static str,
    /// Operations of the nodes that steps begin with.
    pub from: &'static [&'static str],
    /// Operations that the step takes in.
    pub takes: &'static [&'static str],
    /// Conditions, and the step if they hold. It sees the graph and the earlier steps, and changes nothing.
    pub(super) apply: fn(&State<'_>, &Draft) -> Option<Draft>,
}

/// A step under construction.
pub(super) struct Draft {
    /// The node that it began with.
    pub(super) begin: usize,
    /// All nodes, the one that reads its input first.
    pub(super) nodes: Vec<usize>,
    /// The value that they make so far.
    pub(super) out: ValueId,
    /// What they are together.
    pub(super) form: Form,
    /// The value in whose place the result goes.
    pub(super) into: Option<ValueId>,
}

impl Draft {
    /// The node and what it is by itself; none if no rule starts with such a node.
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
            Op::Recurrent(Recurrent::GatedNorm(op)) => Form::GatedNorm { op: *op, add: false },
            _ => return None,
        };
        Some(Draft { begin, nodes: vec![begin], out: node.out, form, into: None })
    }

    /// The same step with one more node, which makes the result.
    pub(super) fn then(&self, graph: &Graph, node: usize, form: Form) -> Draft {
        let nodes = self.nodes.iter().copied().chain([node]).collect();
        Draft { begin: self.begin, nodes, out: graph.nodes[node].out, form, into: None }
    }

    /// A step of these nodes in place of the one that it began with; what came before that stays.
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
