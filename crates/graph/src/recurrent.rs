//! Recurrent operations, whose state is not a KV cache, and their companions: recurrences, short convolutions, gates.
//!
//! A state layer is one row of f32 per sequence. It starts as zeros before position 0 and changes with every column, so
//! it cannot be truncated: to rewind a sequence, restore an earlier copy or run the sequence again.

use crate::id::{ValueId, WeightId};

/// Consecutive channels of a value: part of the result of a product.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The value.
    pub of: ValueId,
    /// First channel.
    pub at: u32,
}

impl From<ValueId> for View {
    fn from(of: ValueId) -> View {
        View { of, at: 0 }
    }
}

/// Recurrent state of a layer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StateLayer {
    /// Values per sequence, f32.
    pub n: u32,
}

impl StateLayer {
    /// Bytes per sequence.
    pub fn n_byte(&self) -> u64 {
        4 * u64::from(self.n)
    }
}

/// A causal depthwise convolution of a few taps. Its state is the last `taps - 1` inputs.
#[derive(Copy, Clone, Debug)]
pub struct ShortConv {
    /// Input, `n` channels.
    pub x: View,
    /// Channels.
    pub n: u32,
    /// Weights per channel; the last is that of the current column.
    pub taps: u32,
    /// `[n, taps]`
    pub weight: WeightId,
    /// `[n]`
    pub bias: Option<WeightId>,
    /// SiLU after the sum.
    pub silu: bool,
    /// First channels of two gates in x's value: one multiplies the inputs, the other the outputs.
    pub gates: Option<[u32; 2]>,
    /// State layer: `taps - 1` values per channel.
    pub state: usize,
}

/// The state space recurrence of Mamba-1 and Mamba-2, with its skip connection: y = scan(x) + skip * x.
#[derive(Copy, Clone, Debug)]
pub struct Scan {
    /// Input: `[heads, dim]`.
    pub x: View,
    /// Input projection: `[groups, n_state]`.
    pub b: View,
    /// Output projection: `[groups, n_state]`.
    pub c: View,
    /// Steps before bias and softplus: `[heads]`.
    pub dt: View,
    /// Added to the steps: `[heads]`.
    pub dt_bias: Option<WeightId>,
    /// Decays, negative: `[heads, n_state]` if `fine`, else `[heads, 1]`.
    pub a: WeightId,
    /// One decay per state value (Mamba-1).
    pub fine: bool,
    /// Factor of the skip connection: `[heads]`.
    pub skip: Option<WeightId>,
    /// Heads.
    pub heads: u32,
    /// Channels per head.
    pub dim: u32,
    /// State values per channel.
    pub n_state: u32,
    /// Groups of heads that share b and c.
    pub groups: u32,
    /// State layer: `[heads, dim, n_state]`.
    pub state: usize,
}

/// The gated delta rule: queries and keys are normalised, `decay = exp(a * softplus(alpha + bias))` and `beta =
/// logistic(beta)`.
#[derive(Copy, Clone, Debug)]
pub struct DeltaNet {
    /// Queries, then keys `[k_heads, dim]`, then values `[heads, dim]`.
    pub qkv: View,
    /// Before bias and softplus: `[heads]`.
    pub alpha: View,
    /// Before the logistic function: `[heads]`.
    pub beta: View,
    /// Negative: `[heads]`.
    pub a: WeightId,
    /// Added to alpha: `[heads]`.
    pub bias: WeightId,
    /// Heads of values.
    pub heads: u32,
    /// Heads of queries and keys.
    pub k_heads: u32,
    /// Channels per head.
    pub dim: u32,
    /// Adjacent heads of values share queries and keys; otherwise heads `k_heads` apart do.
    pub neighbours: bool,
    /// Added to the sum of squares of queries and keys.
    pub eps: f32,
    /// State layer: `[heads, dim, dim]`.
    pub state: usize,
}

/// Activation of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateAct {
    /// z / (1 + exp(-z)).
    Silu,
    /// 1 / (1 + exp(-z)).
    Sigmoid,
    /// log(1 + exp(z)).
    Softplus,
}

/// Position of the norm relative to the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormAt {
    /// Before, as Gated DeltaNet does.
    First,
    /// After, as Mamba-2 does.
    Last,
}

/// x * act(z), with rows normalised before or after, or not at all.
#[derive(Copy, Clone, Debug)]
pub struct GatedNorm {
    /// Input.
    pub x: ValueId,
    /// Gate, as wide as x, or one value per row.
    pub z: View,
    /// One gate per row.
    pub z_row: bool,
    /// Activation of z.
    pub act: GateAct,
    /// The norm.
    pub norm: Option<GroupNorm>,
    /// Values per row; without a norm, any divisor of the width.
    pub k: u32,
}

/// RMS norm of the rows of a column.
#[derive(Copy, Clone, Debug)]
pub struct GroupNorm {
    /// Before or after the gate.
    pub at: NormAt,
    /// `[rows, k]` if each row has weights of its own, else `[k]`.
    pub weight: WeightId,
    /// Each row has its own weights.
    pub own: bool,
    /// Added to the mean square.
    pub eps: f32,
}

/// Operations on recurrent state and their companions.
#[derive(Copy, Clone, Debug)]
pub enum Recurrent {
    /// A short convolution.
    ShortConv(ShortConv),
    /// A state space recurrence.
    Scan(Scan),
    /// The gated delta rule.
    DeltaNet(DeltaNet),
    /// A gate with an optional norm.
    GatedNorm(GatedNorm),
}

impl Recurrent {
    /// Input values.
    pub fn inputs(&self) -> Vec<ValueId> {
        match self {
            Recurrent::ShortConv(o) => vec![o.x.of],
            Recurrent::Scan(o) => vec![o.x.of, o.b.of, o.c.of, o.dt.of],
            Recurrent::DeltaNet(o) => vec![o.qkv.of, o.alpha.of, o.beta.of],
            Recurrent::GatedNorm(o) => vec![o.x, o.z.of],
        }
    }

    /// The same operation on the values that `place` returns for its inputs.
    #[must_use]
    pub fn moved(mut self, place: impl Fn(ValueId) -> ValueId) -> Self {
        let moved: Vec<&mut ValueId> = match &mut self {
            Recurrent::ShortConv(o) => vec![&mut o.x.of],
            Recurrent::Scan(o) => vec![&mut o.x.of, &mut o.b.of, &mut o.c.of, &mut o.dt.of],
            Recurrent::DeltaNet(o) => vec![&mut o.qkv.of, &mut o.alpha.of, &mut o.beta.of],
            Recurrent::GatedNorm(o) => vec![&mut o.x, &mut o.z.of],
        };
        moved.into_iter().for_each(|v| *v = place(*v));
        self
    }
}
