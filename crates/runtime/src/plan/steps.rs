//! Steps: the nodes of a graph in execution order, single or fused.
//!
//! Steps do not depend on the batch size: `expand` creates one dispatch per step for a single token and several for
//! prefill.

use chaski_kernels::ops::rope_kv::CellNorm;

use crate::graph::recurrent::GatedNorm;
use crate::graph::{Act, Graph, Op, Product, RowNorm, ValueId, WeightId};

/// An RMS norm before a product.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Norm {
    /// `[n]`
    pub weight: WeightId,
    /// Added to the mean square.
    pub eps: f32,
    /// Its result: steps with the same norm can share it.
    pub out: ValueId,
}

/// A matrix with its row-wise scale and bias.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Part {
    /// `[n_out, n_in]`
    pub weight: WeightId,
    /// `[n_out]`
    pub bias: Option<WeightId>,
    /// `[1]`
    pub scale: Option<WeightId>,
    /// Constant factor.
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

/// Operations on the heads of q and k before attention and the cache.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Heads {
    /// Layer of the cache.
    pub layer: usize,
    /// Index of the RoPE parameters, if any.
    pub rope: Option<usize>,
    /// Their norm, if any.
    pub norm: Option<HeadNorm>,
}

/// A norm of q and of k.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct HeadNorm {
    /// Weights of q.
    pub q: WeightId,
    /// Weights of k, if there is a k.
    pub k: Option<WeightId>,
    /// Kind and position.
    pub how: CellNorm,
}

/// Combined operations. All read one value, `x`, first.
#[derive(Clone, Debug)]
pub enum Form {
    /// An optional norm and a product; the result is stored or accumulated in place.
    Project {
        /// The norm.
        norm: Option<Norm>,
        /// The matrix.
        part: Part,
        /// Accumulate to the result's place.
        add: bool,
    },
    /// A norm, and products whose rows are concatenated.
    Products {
        /// The norm.
        norm: Option<Norm>,
        /// The matrices.
        parts: Vec<Part>,
    },
    /// An optional norm, gate and up, activation, product of the two.
    Gated {
        /// The norm.
        norm: Option<Norm>,
        /// Input of the activation.
        gate: Part,
        /// The gated value.
        up: Part,
        /// The activation.
        act: Act,
    },
    /// An optional norm, then q, k and v; RoPE and norms of heads; k and v to the cache; the result is q. Two parts are
    /// q and k, whose rows are also those of v; one part is q alone, for the cache of an earlier layer.
    Qkv {
        /// The norm.
        norm: Option<Norm>,
        /// q, k and v.
        parts: Vec<Part>,
        /// Operations on heads.
        heads: Heads,
    },
    /// An optional norm, gate and up of the experts of each column, activation, product of the two; one result per
    /// slot.
    GatedId {
        /// The norm.
        norm: Option<Norm>,
        /// The experts.
        route: ValueId,
        /// Input of the activation.
        gate: Part,
        /// The gated value.
        up: Part,
        /// The activation.
        act: Act,
    },
    /// A norm, and products by the experts of each column; one result per slot.
    ProjectId {
        /// The norm.
        norm: Option<Norm>,
        /// The experts.
        route: ValueId,
        /// The matrix.
        part: Part,
    },
    /// Products by the experts of each column and their weighted sum, stored or accumulated in place.
    ReduceId {
        /// The experts.
        route: ValueId,
        /// The matrix.
        part: Part,
        /// Accumulate to the result's place.
        add: bool,
    },
    /// A norm of rows, an optional sum, and all of it times `by`.
    RowNorm {
        /// The norm.
        norm: RowNorm,
        /// The sum's other operand.
        add: Option<ValueId>,
        /// The factor.
        by: f32,
    },
    /// A value times `by`, accumulated to the result's place.
    AddScaled {
        /// The factor.
        by: f32,
    },
    /// The gates after recurrent state, and a sum in place.
    GatedNorm {
        /// The gates.
        op: GatedNorm,
        /// Accumulate to the result's place.
        add: bool,
    },
}

impl Form {
    /// The norm before the products.
    fn norm(&self) -> Option<Norm> {
        match *self {
            Form::Project { norm, .. }
            | Form::Products { norm, .. }
            | Form::Gated { norm, .. }
            | Form::Qkv { norm, .. }
            | Form::GatedId { norm, .. }
            | Form::ProjectId { norm, .. } => norm,
            Form::ReduceId { .. }
            | Form::RowNorm { .. }
            | Form::AddScaled { .. }
            | Form::GatedNorm { .. } => None,
        }
    }

    /// True if `x` is only multiplied by matrices.
    fn multiplies(&self) -> bool {
        match self {
            Form::ReduceId { .. } => true,
            Form::RowNorm { .. } | Form::AddScaled { .. } | Form::GatedNorm { .. } => false,
            products => products.norm().is_none(),
        }
    }
}

/// Fused nodes.
#[derive(Clone, Debug)]
pub struct Fused {
    /// Names of the rules that fused them.
    pub rules: Vec<&'static str>,
    /// The nodes: the reader of `x` first, matrices in storage order.
    pub nodes: Vec<usize>,
    /// The result.
    pub out: ValueId,
    /// The combined operation.
    pub form: Form,
}

/// A step: a single node or several fused ones.
#[derive(Clone, Debug)]
pub enum Step {
    /// A single node.
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

    /// Its result.
    pub(super) fn out(&self, graph: &Graph) -> ValueId {
        match self {
            Step::Node(i) => graph.nodes[*i].out,
            Step::Fused(f) => f.out,
        }
    }

    /// Names of the rules that fused its nodes.
    pub fn rules(&self) -> &[&'static str] {
        match self {
            Step::Node(_) => &[],
            Step::Fused(f) => &f.rules,
        }
    }

    /// The norm before its products.
    pub(super) fn norm(&self) -> Option<Norm> {
        match self {
            Step::Node(_) => None,
            Step::Fused(f) => f.form.norm(),
        }
    }
}

/// The steps of a graph, and the places of values.
#[derive(Clone, Debug)]
pub struct Steps {
    /// The steps in order.
    pub list: Vec<Step>,
    /// Place of every value: itself, or an older value whose buffer it reuses.
    pub place: Vec<ValueId>,
    /// Slices that are read in place: source value and first channel.
    pub views: Vec<Option<(ValueId, u32)>>,
}

impl Steps {
    /// The place of a value.
    pub fn place(&self, v: ValueId) -> ValueId {
        self.place[v.0]
    }

    /// The places that a step reads, including that of a sum in place, without duplicates.
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
        self.place(step.out(graph))
    }

    /// The matrices that a step multiplies by or looks up, in storage order, and the route if they are experts.
    pub(super) fn matrices(&self, graph: &Graph, step: &Step) -> (Vec<WeightId>, Option<ValueId>) {
        let ops = || step.nodes().iter().map(|i| &graph.nodes[*i].op);
        let route = ops().find_map(|op| match op {
            Op::MulMatId { route, .. } => Some(*route),
            _ => None,
        });
        (ops().flat_map(Op::matrices).collect(), route)
    }

    /// True if a step only multiplies the value in a place by matrices.
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

    /// True if a step can round its result to f16.
    pub(super) fn can_round(&self, graph: &Graph, step: &Step) -> bool {
        match step {
            Step::Node(i) => matches!(graph.nodes[*i].op, Op::RmsNorm { .. }),
            Step::Fused(f) => matches!(f.form, Form::Gated { .. } | Form::GatedId { .. }),
        }
    }
}
