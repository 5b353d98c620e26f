//! The graph: what a model computes for a batch of columns (tokens), as plain data.
//!
//! Models build it once; it knows no GPU. A value has one column for every token of a batch, so the graph is the same
//! for one token and for a prompt.

use crate::act::Act;
use crate::altup::AltUp;
use crate::function::Function;
use crate::id::{ValueId, WeightId};
use crate::latent::Latent;
use crate::norm::NormKind;
use crate::recurrent::{Recurrent, StateLayer};
use crate::rope::Rope;
use crate::routing::Routing;
use crate::score::Score;
use crate::weight::Weight;

/// One operation. Inputs are values made by earlier nodes.
#[derive(Clone, Debug)]
pub enum Op {
    /// Rows of a table, chosen by the tokens.
    Embed {
        /// `[n_vocab, n]`
        table: WeightId,
    },
    /// x, or for columns that come with a row of values these: embeddings of pictures or of other programs.
    Input {
        /// Embeddings of the tokens, scaled as the model does.
        x: ValueId,
    },
    /// Rows of a table, chosen by the tokens' positions.
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
    /// Norms of another kind, of single heads, or without weights: norm(x) * weight + bias.
    Norm {
        /// Input, rows of `d` values.
        x: ValueId,
        /// What each row is scaled to.
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
    /// Products of one input, the rows of each after those of the one before.
    Products {
        /// Input.
        x: ValueId,
        /// Their matrices.
        parts: Vec<Product>,
    },
    /// Rotates every head by the token's position.
    Rope {
        /// Input, heads of `d` channels.
        x: ValueId,
        /// Channels a head.
        d: u32,
        /// Which of [`Graph::ropes`].
        rope: usize,
    },
    /// Puts keys and values of the batch into the cache; has no result of its own.
    KvWrite {
        /// Keys, rotated.
        k: ValueId,
        /// Values.
        v: ValueId,
        /// Layer of the cache.
        layer: usize,
    },
    /// Causal attention over the cache, this batch included.
    Attention {
        /// Queries, rotated.
        q: ValueId,
        /// Layer of the cache.
        layer: usize,
        /// Query heads.
        n_head: u32,
        /// How products become scores.
        score: Score,
        /// The score of each head that has no value, if `score` says so: `[n_head]`
        sinks: Option<WeightId>,
    },
    /// act(gate) * up.
    Glu {
        /// Goes through the activation.
        gate: ValueId,
        /// Is multiplied.
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
    /// Which experts every column uses and with which weights, from the router's logits: a value of `n_used` slots.
    TopkMoe {
        /// Logits, one an expert, and what stands behind them.
        x: ValueId,
        /// `[n_expert]`, added for choosing only.
        bias: Option<WeightId>,
        /// How to choose.
        routing: Routing,
    },
    /// W_e x * scale_e + bias_e for the expert e of every slot.
    MulMatId {
        /// Input: one for all slots, or one for each.
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
    /// The sum over the slots of x, each with its weight.
    MoeReduce {
        /// Input, one for each slot.
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
    /// An operation on recurrent state, or one that goes with them.
    Recurrent(Recurrent),
    /// Queries of attention over latents; its keys go to the cache.
    Latent(Latent),
    /// A step of a residual stream of several rows.
    AltUp(AltUp),
    /// What stands out of x: max(x - (mean + by * deviation), 0).
    Cutoff {
        /// Input.
        x: ValueId,
        /// Deviations above the mean.
        by: f32,
    },
    /// x * weight, value by value.
    MulWeight {
        /// Input.
        x: ValueId,
        /// `[n]`
        weight: WeightId,
    },
    /// W_h x_h for every head h of x.
    MulHeads {
        /// Input, a row for every head.
        x: ValueId,
        /// `[n_head, n_out, n_in]`
        weight: WeightId,
    },
    /// Channels of x from `at` on, as many as the result has.
    Slice {
        /// Input.
        x: ValueId,
        /// The first of them.
        at: u32,
    },
    /// f(x), value by value.
    Unary {
        /// Input.
        x: ValueId,
        /// The function.
        f: &'static Function,
        /// Its parameters, those that it has.
        params: [f32; 4],
    },
    /// a * b, value by value.
    Mul {
        /// One input.
        a: ValueId,
        /// The other: as wide, or one value a column.
        b: ValueId,
    },
}

/// A matrix with what is applied to its products row by row: W x * scale + bias.
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
    /// What rows are scaled to.
    pub kind: NormKind,
    /// Values a row: a divisor of the column.
    pub d: u32,
    /// Added to the mean square; the least length for [`NormKind::L2`].
    pub eps: f32,
    /// Multiplies what came of it: `[d]`, or a value for each of the column.
    pub weight: Option<WeightId>,
    /// Added to that, likewise; only after a weight.
    pub bias: Option<WeightId>,
}

impl RowNorm {
    /// RMS norm of rows of `d` values, without weights.
    pub const fn plain(d: u32, eps: f32) -> Self {
        RowNorm { kind: NormKind::Rms, d, eps, weight: None, bias: None }
    }
}

impl Op {
    /// Values that the operation reads.
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
            | Op::Cutoff { x, .. }
            | Op::Slice { x, .. }
            | Op::TopkMoe { x, .. } => vec![x],
            Op::KvWrite { k, v, .. } => vec![k, v],
            Op::Attention { q, .. } => vec![q],
            Op::Glu { gate, up, .. } => vec![gate, up],
            Op::Add { a, b } | Op::Mul { a, b } => vec![a, b],
            Op::MulMatId { x, route, .. } | Op::MoeReduce { x, route } => vec![x, route],
            Op::Recurrent(ref op) => op.inputs(),
            Op::Latent(ref op) => vec![op.q, op.x],
            Op::AltUp(ref op) => op.inputs(),
        }
    }
}

/// An operation and the value that it makes.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// Its result; [`Op::KvWrite`] has one of width 0.
    pub out: ValueId,
}

/// A layer of the KV cache.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct KvLayer {
    /// KV heads.
    pub n_kv: u32,
    /// Channels of a key.
    pub d: u32,
    /// Channels of a value.
    pub d_v: u32,
    /// Values are the first channels of their keys, and are not stored again.
    pub in_keys: bool,
    /// How many of the last tokens are looked at, a token itself included; 0 for all.
    pub window: u32,
}

/// A scale that may change once the model is loaded: that of an adapter's products.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct AdapterScale {
    /// `[n]`, all alike: the scale of products that have no bias.
    pub weight: WeightId,
    /// Which of the scales that callers set.
    pub of: usize,
    /// What it is multiplied by.
    pub by: f32,
}

/// What a model computes.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Tensors of the file.
    pub weights: Vec<Weight>,
    /// Values a column of every value, or of every slot of a column.
    pub widths: Vec<u32>,
    /// Slots of every value: one for each expert that a column uses, or 0 if it is not made slot by slot.
    pub slots: Vec<u32>,
    /// Operations in order.
    pub nodes: Vec<Node>,
    /// Layers of the KV cache.
    pub kv: Vec<KvLayer>,
    /// Layers of recurrent state.
    pub states: Vec<StateLayer>,
    /// Scales that may change; the file's values do not count.
    pub scales: Vec<AdapterScale>,
    /// Layers of the model.
    pub n_layer: usize,
    /// Rotations, which [`Op::Rope`] names by number.
    pub ropes: Vec<Rope>,
    /// The result: one logit a vocabulary entry.
    pub logits: Option<ValueId>,
    /// What the logits are products of: the last norm's result, which embeddings are made of.
    pub hidden: Option<ValueId>,
}

impl Graph {
    /// Adds a tensor.
    pub fn weight(&mut self, weight: Weight) -> WeightId {
        self.weights.push(weight);
        WeightId(self.weights.len() - 1)
    }

    /// Adds an operation whose result has `width` values a column (a slot, if it works slot by slot).
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

    /// Slots of a value, 0 if it is not made slot by slot.
    pub fn slots(&self, v: ValueId) -> u32 {
        self.slots[v.0]
    }

    /// Values a column of a value, or of a slot.
    pub fn width(&self, v: ValueId) -> u32 {
        self.widths[v.0]
    }

    /// Values of a row that a column may have in place of its token's embedding; 0 if none can.
    pub fn input_width(&self) -> u32 {
        let input = self.nodes.iter().find(|n| matches!(n.op, Op::Input { .. }));
        input.map_or(0, |n| self.width(n.out))
    }

    /// For every value the number of the last node that reads it (0 if none does; the logits are read at the end).
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

    /// For every value how many nodes read it.
    pub fn n_use(&self) -> Vec<usize> {
        let mut n = vec![0; self.widths.len()];
        self.nodes.iter().flat_map(|node| node.op.inputs()).for_each(|v| n[v.0] += 1);
        n
    }
}
