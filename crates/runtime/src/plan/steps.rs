//! Steps: the nodes of a graph in the order in which they run, one by one or several together.
//!
//! A step is still independent of the batch: `expand` makes one dispatch of it for a single token and several for a
//! prompt.

use chaski_kernels::ops::rope_kv::CellNorm;

use crate::graph::recurrent::GatedNorm;
use crate::graph::{Act, Graph, Op, Product, RowNorm, ValueId, WeightId};

/// An RMS norm in front of a product.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Norm {
    /// `[n]`
    pub weight: WeightId,
    /// Added to the mean square.
    pub eps: f32,
    /// Its result: steps with the same one can share it.
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

impl Part {
    /// The matrix of a node with one product.
    pub(super) fn of(op: &Op) -> Option<Part> {
        match *op {
            Op::MulMat { weight, bias, scale, .. } | Op::MulMatId { weight, bias, scale, .. } => {
                Some(Part { weight, bias, scale, by: 1.0 })
            }
            _ => None,
        }
    }
}

impl From<&Product> for Part {
    fn from(p: &Product) -> Part {
        Part { weight: p.weight, bias: p.bias, scale: p.scale, by: 1.0 }
    }
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

/// What nodes are that run together. All read one value, `x`, before others.
#[derive(Clone, Debug)]
pub enum Form {
    /// A norm if there is one, a product, and either a plain result or a sum in place.
    Project {
        /// The norm.
        norm: Option<Norm>,
        /// The matrix.
        part: Part,
        /// The result is added to what is in its place.
        add: bool,
    },
    /// A norm, and products whose rows follow one another.
    Products {
        /// The norm.
        norm: Option<Norm>,
        /// The matrices.
        parts: Vec<Part>,
    },
    /// A norm if there is one, gate and up, activation, product.
    Gated {
        /// The norm.
        norm: Option<Norm>,
        /// Goes through the activation.
        gate: Part,
        /// Is multiplied.
        up: Part,
        /// The activation.
        act: Act,
    },
    /// A norm if there is one, then q, k and v; heads rotated and normalised; k and v to the cache; the result is q. Two
    /// parts are q and k, whose rows are also those of v; one is q alone, for the cache of an earlier layer.
    Qkv {
        /// The norm.
        norm: Option<Norm>,
        /// q, k and v.
        parts: Vec<Part>,
        /// What happens to heads.
        heads: Heads,
    },
    /// A norm if there is one, gate and up of the experts that columns use, activation, product; a result for each.
    GatedId {
        /// The norm.
        norm: Option<Norm>,
        /// The experts.
        route: ValueId,
        /// Goes through the activation.
        gate: Part,
        /// Is multiplied.
        up: Part,
        /// The activation.
        act: Act,
    },
    /// A norm, and products by the experts that columns use; a result for each.
    ProjectId {
        /// The norm.
        norm: Option<Norm>,
        /// The experts.
        route: ValueId,
        /// The matrix.
        part: Part,
    },
    /// Products by the experts that columns use and their weighted sum: a plain result or a sum in place.
    ReduceId {
        /// The experts.
        route: ValueId,
        /// The matrix.
        part: Part,
        /// The result is added to what is in its place.
        add: bool,
    },
    /// A norm of rows, a sum if there is one, and all of it times `by`.
    RowNorm {
        /// The norm.
        norm: RowNorm,
        /// The sum's other operand.
        add: Option<ValueId>,
        /// The factor.
        by: f32,
    },
    /// The gates behind recurrent state, and a sum in place.
    GatedNorm {
        /// The gates.
        op: GatedNorm,
        /// The result is added to what is in its place.
        add: bool,
    },
}

impl Form {
    /// The norm in front of its products.
    fn norm(&self) -> Option<Norm> {
        match *self {
            Form::Project { norm, .. }
            | Form::Products { norm, .. }
            | Form::Gated { norm, .. }
            | Form::Qkv { norm, .. }
            | Form::GatedId { norm, .. }
            | Form::ProjectId { norm, .. } => norm,
            Form::ReduceId { .. } | Form::RowNorm { .. } | Form::GatedNorm { .. } => None,
        }
    }

    /// Whether `x` is only multiplied by matrices.
    fn multiplies(&self) -> bool {
        match self {
            Form::ReduceId { .. } => true,
            Form::RowNorm { .. } | Form::GatedNorm { .. } => false,
            products => products.norm().is_none(),
        }
    }
}

/// Nodes that run together.
#[derive(Clone, Debug)]
pub struct Fused {
    /// The rules that brought them together, by name.
    pub rules: Vec<&'static str>,
    /// The nodes: the one that reads `x` first, matrices in the order in which they are stored.
    pub nodes: Vec<usize>,
    /// The value that they make.
    pub out: ValueId,
    /// What they are together.
    pub form: Form,
}

/// A step: a node by itself, or several that run together.
#[derive(Clone, Debug)]
pub enum Step {
    /// The node of this number.
    Node(usize),
    /// Several.
    Fused(Fused),
}

impl Step {
    /// Its nodes.
    pub fn nodes(&self) -> &[usize] {
        match self {
            Step::Node(i) => std::slice::from_ref(i),
            Step::Fused(f) => &f.nodes,
        }
    }

    /// The rules that brought its nodes together, by name.
    pub fn rules(&self) -> &[&'static str] {
        match self {
            Step::Node(_) => &[],
            Step::Fused(f) => &f.rules,
        }
    }

    /// The norm in front of its products.
    pub(super) fn norm(&self) -> Option<Norm> {
        match self {
            Step::Node(_) => None,
            Step::Fused(f) => f.form.norm(),
        }
    }
}

/// The steps of a graph, and where values are.
#[derive(Clone, Debug)]
pub struct Steps {
    /// The steps in order.
    pub list: Vec<Step>,
    /// For every value the one in whose place it is: itself, or an older one that ended where it was made.
    pub place: Vec<ValueId>,
    /// Slices that are read where they are: of which value, from which channel on.
    pub views: Vec<Option<(ValueId, u32)>>,
}

impl Steps {
    /// The place of a value.
    pub fn place(&self, v: ValueId) -> ValueId {
        self.place[v.0]
    }

    /// The places that a step reads, that of a sum in place included, each once.
    pub fn inputs(&self, graph: &Graph, step: &Step) -> Vec<ValueId> {
        let nodes = || step.nodes().iter().map(|i| &graph.nodes[*i]);
        let made: Vec<ValueId> = nodes().map(|n| n.out).collect();
        let mut inputs = Vec::new();
        for v in nodes().flat_map(|n| n.op.inputs()).filter(|v| !made.contains(v)) {
            let v = self.place(v);
            if !inputs.contains(&v) {
                inputs.push(v);
            }
        }
        inputs
    }

    /// The place that a step writes.
    pub fn output(&self, graph: &Graph, step: &Step) -> ValueId {
        match step {
            Step::Node(i) => self.place(graph.nodes[*i].out),
            Step::Fused(f) => self.place(f.out),
        }
    }

    /// The matrices that a step multiplies by or looks up, in the order in which they are stored, with the experts that they
    /// are used by.
    pub(super) fn matrices(&self, graph: &Graph, step: &Step) -> (Vec<WeightId>, Option<ValueId>) {
        let ops = || step.nodes().iter().map(|i| &graph.nodes[*i].op);
        let route = ops().find_map(|op| match op {
            Op::MulMatId { route, .. } => Some(*route),
            _ => None,
        });
        (ops().flat_map(Op::matrices).collect(), route)
    }

    /// Whether all that a step does with a place is to multiply what is there by matrices.
    pub(super) fn multiplies(&self, graph: &Graph, step: &Step, v: ValueId) -> bool {
        match step {
            Step::Node(i) => match graph.nodes[*i].op {
                Op::MulMat { x, .. } | Op::Products { x, .. } | Op::MulMatId { x, .. } => self.place(x) == v,
                _ => false,
            },
            Step::Fused(f) => {
                let adds =
                    matches!(f.form, Form::Project { add: true, .. } | Form::ReduceId { add: true, .. });
                let x = self.inputs(graph, step).first().copied();
                f.form.multiplies() && x == Some(v) && !(adds && self.place(f.out) == v)
            }
        }
    }

    /// Whether a step can round what it makes to f16.
    pub(super) fn can_round(&self, graph: &Graph, step: &Step) -> bool {
        match step {
            Step::Node(i) => matches!(graph.nodes[*i].op, Op::RmsNorm { .. }),
            Step::Fused(f) => matches!(f.form, Form::Gated { .. } | Form::GatedId { .. }),
        }
    }
}
