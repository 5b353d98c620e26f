//! The graph: what a model computes for a batch of columns (tokens), as plain data.
//!
//! Models build it once; it knows no GPU. A value has one column for every token of a batch, so the graph is the same
//! for one token and for a prompt.

pub mod altup;
mod describe;
pub mod latent;
pub mod recurrent;

use chaski_kernels::Format;
use chaski_kernels::ops::attention::Score;
use chaski_kernels::ops::glu::Act;
use chaski_kernels::ops::norm::Kind as NormKind;
use chaski_kernels::ops::topk_moe::Routing;
use chaski_kernels::ops::unary::Function;
use chaski_kernels::rope::Rope;
use ggml_format::GgmlType;

use crate::plan::PlanError;
use altup::AltUp;
use latent::Latent;
use recurrent::{Recurrent, StateLayer};

/// Number of a weight in [`Graph::weights`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WeightId(pub usize);

/// Number of a value in [`Graph::widths`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub usize);

/// A tensor of the model file that the graph uses.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Name in the file.
    pub name: String,
    /// Format in the file.
    pub ty: GgmlType,
    /// First row of the file's tensor that this weight takes; more than 0 for parts of a fused matrix.
    pub row0: u32,
    /// Rows (outputs; 1 for a vector), of all experts together.
    pub n_row: u32,
    /// Values a row (inputs).
    pub n_col: u32,
    /// Matrices of experts that stand one after the other; 1 for all others.
    pub n_expert: u32,
    /// Rows that follow one another in the file's tensor: those of an expert, or fewer where the parts of a fused matrix
    /// alternate.
    pub run: u32,
    /// Rows of the file's tensor from one run to the next: more than a run has for parts of a fused matrix.
    pub stride: u32,
    /// A weight of one value that multiplies all of this small vector when it is read.
    pub times: Option<WeightId>,
}

impl Weight {
    /// A whole tensor.
    pub fn new(name: String, ty: GgmlType, n_row: u32, n_col: u32) -> Self {
        Weight { name, ty, row0: 0, n_row, n_col, n_expert: 1, run: n_row, stride: n_row, times: None }
    }

    /// Rows of one expert, or all.
    pub fn expert_rows(&self) -> u32 {
        self.n_row / self.n_expert.max(1)
    }

    /// Bytes of a row in the file.
    pub fn row_bytes(&self) -> u64 {
        u64::from(self.n_col) / self.ty.block_len() as u64 * self.ty.block_bytes() as u64
    }

    /// Bytes in the file.
    pub fn n_byte(&self) -> u64 {
        u64::from(self.n_row) * self.row_bytes()
    }

    /// Byte of the file's tensor at which a row begins.
    pub fn offset(&self, row: u32) -> u64 {
        let (nth, row) = (row / self.run.max(1), row % self.run.max(1));
        let before = u64::from(nth) * u64::from(self.stride);
        (u64::from(self.row0) + before + u64::from(row)) * self.row_bytes()
    }

    /// Where `n` rows from `first` on lie in the file's tensor: the byte at which each piece begins, and its rows.
    pub fn pieces(&self, first: u32, n: u32) -> impl Iterator<Item = (u64, u32)> {
        let (run, end) = (self.run.max(1), first + n);
        let starts = std::iter::successors(Some(first), move |row| Some((row / run + 1) * run));
        starts.take_while(move |row| *row < end).map(move |row| {
            let next = (row / run + 1) * run;
            (self.offset(row), next.min(end) - row)
        })
    }
}

/// One operation. Inputs are values made by earlier nodes.
#[derive(Clone, Debug)]
pub enum Op {
    /// Rows of a table, chosen by the tokens.
    Embed {
        /// `[n_vocab, n]`
        table: WeightId,
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
    /// Refuses tensors in types that are no weight formats, whatever device they are for.
    ///
    /// # Errors
    /// [`PlanError::Format`].
    pub(crate) fn check_formats(&self) -> Result<(), PlanError> {
        match self.weights.iter().find(|w| Format::of(w.ty).is_none()) {
            Some(w) => Err(PlanError::Format { tensor: w.name.clone(), ty: w.ty }),
            None => Ok(()),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_alternate_are_read_in_pieces() {
        let whole = Weight::new("w".into(), GgmlType::F32, 12, 2);
        assert_eq!(whole.pieces(3, 5).collect::<Vec<_>>(), [(3 * 8, 5)]);
        // Twos of a matrix of fives, behind the first three.
        let parts = Weight { row0: 3, n_row: 6, run: 2, stride: 5, ..whole };
        assert_eq!(parts.pieces(0, 6).collect::<Vec<_>>(), [(3 * 8, 2), (8 * 8, 2), (13 * 8, 2)]);
        assert_eq!(parts.pieces(1, 4).collect::<Vec<_>>(), [(4 * 8, 1), (8 * 8, 2), (13 * 8, 1)]);
        assert_eq!(parts.pieces(6, 0).count(), 0);
    }
}
