//! The graph: what a model computes for a batch of columns (tokens), as plain data.
//!
//! Models build it once; it knows no device. A value has one column per token of the batch, so the same graph serves
//! decode and prefill.

use std::collections::HashSet;

use crate::act::Act;
use crate::altup::AltUp;
use crate::bidirectional::Bidirectional;
use crate::function::Function;
use crate::id::{ValueId, WeightId};
use crate::latent::Latent;
use crate::norm::NormKind;
use crate::recurrent::{Recurrent, StateLayer};
use crate::rope::Rope;
use crate::routing::Routing;
use crate::score::Score;
use crate::weight::Weight;

/// An operation. Inputs are results of earlier nodes.
#[derive(Clone, Debug)]
pub enum Op {
    /// Rows of a table, indexed by token.
    Embed {
        /// `[n_vocab, n]`
        table: WeightId,
    },
    /// x, or the uploaded embedding rows of columns that have them: embeddings of images or of other programs.
    Input {
        /// Embeddings of the tokens, scaled as the model does.
        x: ValueId,
    },
    /// Rows of a table, indexed by position.
    EmbedPosition {
        /// `[n_ctx, n]`
        table: WeightId,
    },
    /// x / rms(x) * weight.
    RmsNorm {
        /// Input.
        x: ValueId,
        /// `[n]`
        weight: WeightId,
        /// Added to the mean square.
        eps: f32,
    },
    /// Norms of other kinds, of single heads, or without weights: norm(x) * weight + bias.
    Norm {
        /// Input, rows of `d` values.
        x: ValueId,
        /// Kind and weights.
        norm: RowNorm,
    },
    /// W x * scale + bias.
    MulMat {
        /// Input.
        x: ValueId,
        /// `[n_out, n_in]`
        weight: WeightId,
        /// `[n_out]`
        bias: Option<WeightId>,
        /// `[1]`
        scale: Option<WeightId>,
    },
    /// Several products of one input, concatenated by rows.
    Products {
        /// Input.
        x: ValueId,
        /// Their matrices.
        parts: Vec<Product>,
    },
    /// Applies RoPE to every head, by the token's position.
    Rope {
        /// Input, heads of `d` channels.
        x: ValueId,
        /// Channels per head.
        d: u32,
        /// Index in [`Graph::ropes`].
        rope: usize,
    },
    /// Writes keys and values of the batch to the KV cache; has no result.
    KvWrite {
        /// Keys, after RoPE.
        k: ValueId,
        /// Values.
        v: ValueId,
        /// Layer of the cache.
        layer: usize,
    },
    /// Causal attention over the cache, including this batch.
    Attention {
        /// Queries, after RoPE.
        q: ValueId,
        /// Layer of the cache.
        layer: usize,
        /// Query heads.
        n_head: u32,
        /// Transformations of the scores.
        score: Score,
        /// Attention sinks, if `score` enables them: `[n_head]`
        sinks: Option<WeightId>,
    },
    /// Attention of encoders, in both directions.
    Bidirectional(Bidirectional),
    /// act(gate) * up.
    Glu {
        /// Input of the activation.
        gate: ValueId,
        /// The gated value.
        up: ValueId,
        /// The activation.
        act: Act,
    },
    /// a + b.
    Add {
        /// One input.
        a: ValueId,
        /// The other.
        b: ValueId,
    },
    /// Selects the experts of every column and their weights from the router's logits: a value of `n_used` slots.
    TopkMoe {
        /// Logits, one per expert.
        x: ValueId,
        /// `[n_expert]`, added for the selection only.
        bias: Option<WeightId>,
        /// Routing parameters.
        routing: Routing,
    },
    /// W_e x * scale_e + bias_e for the expert e of each slot.
    MulMatId {
        /// Input: shared by all slots, or one per slot.
        x: ValueId,
        /// The experts of the slots.
        route: ValueId,
        /// `[n_expert, n_out, n_in]`
        weight: WeightId,
        /// `[n_expert, n_out]`
        bias: Option<WeightId>,
        /// `[n_expert]`
        scale: Option<WeightId>,
    },
    /// Weighted sum of x over the slots.
    MoeReduce {
        /// Input, one per slot.
        x: ValueId,
        /// The weights.
        route: ValueId,
    },
    /// x * by.
    Scale {
        /// Input.
        x: ValueId,
        /// Factor.
        by: f32,
    },
    /// An operation on recurrent state, or a companion of one.
    Recurrent(Recurrent),
    /// Queries of latent attention (MLA); its keys go to the cache.
    Latent(Latent),
    /// An AltUp step.
    AltUp(AltUp),
    /// max(x - (mean + by * deviation), 0) along rows.
    Cutoff {
        /// Input.
        x: ValueId,
        /// Threshold in standard deviations above the mean.
        by: f32,
    },
    /// x * weight, with one value for each of n equal parts of x: element-wise if n is the width of x.
    MulWeight {
        /// Input.
        x: ValueId,
        /// `[n]`
        weight: WeightId,
    },
    /// x + weight, element-wise.
    AddWeight {
        /// Input.
        x: ValueId,
        /// `[n]`
        weight: WeightId,
    },
    /// W_h x_h for each head h of x.
    MulHeads {
        /// Input, one row per head.
        x: ValueId,
        /// `[n_head, n_out, n_in]`
        weight: WeightId,
    },
    /// Channels of x from `at`, as many as the result has.
    Slice {
        /// Input.
        x: ValueId,
        /// First channel.
        at: u32,
    },
    /// f(x), element-wise.
    Unary {
        /// Input.
        x: ValueId,
        /// The function.
        f: &'static Function,
        /// Parameters of the function.
        params: [f32; 4],
    },
    /// a * b, element-wise.
    Mul {
        /// One input.
        a: ValueId,
        /// The other: as wide, or one value per column.
        b: ValueId,
    },
}

/// A product with row-wise scale and bias: W x * scale + bias.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Product {
    /// `[n_out, n_in]`
    pub weight: WeightId,
    /// `[n_out]`
    pub bias: Option<WeightId>,
    /// `[1]`
    pub scale: Option<WeightId>,
}

/// A norm of rows that are the whole column or its heads.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct RowNorm {
    /// Kind of norm.
    pub kind: NormKind,
    /// Values per row, a divisor of the column's width.
    pub d: u32,
    /// Added to the mean square; the minimum length for [`NormKind::L2`].
    pub eps: f32,
    /// Factor after the norm: `[d]`, or one per value of the column.
    pub weight: Option<WeightId>,
    /// Addend after the weight, likewise; requires a weight.
    pub bias: Option<WeightId>,
}

impl RowNorm {
    /// RMS norm of rows of `d` values, without weights.
    pub const fn plain(d: u32, eps: f32) -> Self {
        RowNorm { kind: NormKind::Rms, d, eps, weight: None, bias: None }
    }
}

impl Op {
    /// Input values.
    pub fn inputs(&self) -> Vec<ValueId> {
        match *self {
            Op::Embed { .. } | Op::EmbedPosition { .. } => vec![],
            Op::RmsNorm { x, .. }
            | Op::Norm { x, .. }
            | Op::Input { x }
            | Op::MulMat { x, .. }
            | Op::Products { x, .. }
            | Op::Rope { x, .. }
            | Op::Scale { x, .. }
            | Op::Unary { x, .. }
            | Op::MulHeads { x, .. }
            | Op::MulWeight { x, .. }
            | Op::AddWeight { x, .. }
            | Op::Cutoff { x, .. }
            | Op::Slice { x, .. }
            | Op::TopkMoe { x, .. } => vec![x],
            Op::KvWrite { k, v, .. } => vec![k, v],
            Op::Attention { q, .. } => vec![q],
            Op::Bidirectional(ref op) => op.inputs(),
            Op::Glu { gate, up, .. } => vec![gate, up],
            Op::Add { a, b } | Op::Mul { a, b } => vec![a, b],
            Op::MulMatId { x, route, .. } | Op::MoeReduce { x, route } => vec![x, route],
            Op::Recurrent(ref op) => op.inputs(),
            Op::Latent(ref op) => vec![op.q, op.x],
            Op::AltUp(ref op) => op.inputs(),
        }
    }
}

/// An operation and its result.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Its result; [`Op::KvWrite`] has one of width 0.
    pub out: ValueId,
}

/// KV cache of a layer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct KvLayer {
    /// KV heads.
    pub n_kv: u32,
    /// Channels of a key.
    pub d: u32,
    /// Channels of a value.
    pub d_v: u32,
    /// Values are the leading channels of their keys and are not stored separately.
    pub in_keys: bool,
    /// Sliding window, in tokens including the current one; 0: unlimited.
    pub window: u32,
}

/// The scale of a LoRA's products, of which each sequence has its own.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct LoraScale {
    /// `[1]`: names the scale in products without bias. It stands for a factor of every column of a step.
    pub weight: WeightId,
    /// Index of the caller's scale.
    pub of: usize,
    /// Constant factor.
    pub by: f32,
}

/// The computation of a model.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Tensors of the file.
    pub weights: Vec<Weight>,
    /// Values per column of every value, or per slot.
    pub widths: Vec<u32>,
    /// Slots of every value: one per expert that a column uses, or 0 if the value has no slots.
    pub slots: Vec<u32>,
    /// Operations in execution order.
    pub nodes: Vec<Node>,
    /// Layers of the KV cache.
    pub kv: Vec<KvLayer>,
    /// Layers of recurrent state.
    pub states: Vec<StateLayer>,
    /// LoRA scales; the values of their weights are ignored.
    pub scales: Vec<LoraScale>,
    /// Layers of the model.
    pub n_layer: usize,
    /// RoPE parameters, which [`Op::Rope`] refers to by index.
    pub ropes: Vec<Rope>,
    /// The result: one logit per vocabulary entry.
    pub logits: Option<ValueId>,
    /// Input of the output projection: the result of the last norm, also used for embeddings.
    pub hidden: Option<ValueId>,
}

impl Graph {
    /// Adds a tensor.
    pub fn weight(&mut self, weight: Weight) -> WeightId {
        self.weights.push(weight);
        WeightId(self.weights.len() - 1)
    }

    /// Adds an operation whose result has `width` values per column (per slot if it has slots).
    pub fn push(&mut self, op: Op, width: u32) -> ValueId {
        let out = ValueId(self.widths.len());
        let slots = match op {
            Op::TopkMoe { routing, .. } => routing.n_used,
            Op::MulMatId { route, .. } => self.slots(route),
            Op::Glu { gate: x, .. }
            | Op::Add { a: x, .. }
            | Op::Mul { a: x, .. }
            | Op::Scale { x, .. }
            | Op::Unary { x, .. }
            | Op::Norm { x, .. } => self.slots(x),
            _ => 0,
        };
        self.widths.push(width);
        self.slots.push(slots);
        self.nodes.push(Node { op, out });
        out
    }

    /// The LoRA scale for which a weight stands, if it does.
    pub fn lora_scale(&self, weight: WeightId) -> Option<&LoraScale> {
        self.scales.iter().find(|s| s.weight == weight)
    }

    /// Number of LoRA scales that a caller gives.
    pub fn n_lora(&self) -> usize {
        self.scales.iter().map(|s| s.of + 1).max().unwrap_or(0)
    }

    /// Slots of a value; 0 if it has none.
    pub fn slots(&self, v: ValueId) -> u32 {
        self.slots[v.0]
    }

    /// Values per column of a value, or per slot.
    pub fn width(&self, v: ValueId) -> u32 {
        self.widths[v.0]
    }

    /// Width of a row that can replace the embedding of a column's token; 0 if none can.
    pub fn input_width(&self) -> u32 {
        let input = self.nodes.iter().find(|n| matches!(n.op, Op::Input { .. }));
        input.map_or(0, |n| self.width(n.out))
    }

    /// True if a text runs in one step, because its tokens see those after them.
    pub fn is_encoder(&self) -> bool {
        self.nodes.iter().any(|n| matches!(n.op, Op::Bidirectional(_)))
    }

    /// The graph of some of its nodes alone, with the same ids. Matrices, layers of the cache and recurrent state that
    /// they do not use are empty.
    #[must_use]
    pub fn only(&self, nodes: &[usize]) -> Graph {
        let mut part = Graph { logits: None, hidden: None, ..self.clone() };
        part.nodes = nodes.iter().map(|i| self.nodes[*i].clone()).collect();
        let matrices = |nodes: &[Node]| -> HashSet<WeightId> {
            nodes.iter().flat_map(|node| node.op.matrices()).collect()
        };
        let used = matrices(&part.nodes);
        for id in matrices(&self.nodes).difference(&used) {
            part.weights[id.0].n_row = 0;
        }
        let (mut kv, mut states) = (HashSet::new(), HashSet::new());
        for node in &part.nodes {
            kv.extend(node.op.kv_layer());
            states.extend(node.op.state_layer());
        }
        let unused =
            |used: &HashSet<usize>, n: usize| (0..n).filter(|i| !used.contains(i)).collect::<Vec<_>>();
        unused(&kv, self.kv.len()).into_iter().for_each(|i| part.kv[i].n_kv = 0);
        unused(&states, self.states.len()).into_iter().for_each(|i| part.states[i].n = 0);
        part
    }

    /// For every value the last node that reads it (0 if none does; the logits are read at the end).
    pub fn last_use(&self) -> Vec<usize> {
        let mut last = vec![0; self.widths.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            node.op.inputs().into_iter().for_each(|v| last[v.0] = i);
        }
        if let Some(v) = self.logits {
            last[v.0] = self.nodes.len();
        }
        last
    }

    /// For every value the number of nodes that read it.
    pub fn n_use(&self) -> Vec<usize> {
        let mut n = vec![0; self.widths.len()];
        self.nodes.iter().flat_map(|node| node.op.inputs()).for_each(|v| n[v.0] += 1);
        n
    }
}
