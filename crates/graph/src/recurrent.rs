//! Operations on state that is not a KV cache, and those that go with them: recurrences, short convolutions, gates.
//!
//! A layer of state is one row of f32 for each sequence. It is zeros before position 0 and changes with every column, so
//! it cannot be cut: who sets a sequence back brings an earlier copy back, or runs the sequence again.

use crate::id::{ValueId, WeightId};

/// Values of a column that follow one another: a part of what a product made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The value.
    pub of: ValueId,
    /// The first of its channels.
    pub at: u32,
}

impl From<ValueId> for View {
    fn from(of: ValueId) -> View {
        View { of, at: 0 }
    }
}

/// A layer of state.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StateLayer {
    /// Values of a sequence, f32.
    pub n: u32,
}

impl StateLayer {
    /// Bytes of a sequence.
    pub fn n_byte(&self) -> u64 {
        4 * u64::from(self.n)
    }
}

/// A causal convolution of a few taps, channel by channel. Its state are the last `taps - 1` inputs.
#[derive(Copy, Clone, Debug)]
pub struct ShortConv {
    /// Input, `n` channels.
    pub x: View,
    /// Channels.
    pub n: u32,
    /// Weights of a channel; the last is that of the column itself.
    pub taps: u32,
    /// `[n, taps]`
    pub weight: WeightId,
    /// `[n]`
    pub bias: Option<WeightId>,
    /// SiLU at last.
    pub silu: bool,
    /// First channels of two other parts of x's value: what multiplies the inputs, and the results.
    pub gates: Option<[u32; 2]>,
    /// Layer of state: `taps - 1` values a channel.
    pub state: usize,
}

/// The state space recurrence of Mamba-1 and Mamba-2, with its skip: y = scan(x) + skip * x.
#[derive(Copy, Clone, Debug)]
pub struct Scan {
    /// Input: `[heads, dim]`.
    pub x: View,
    /// What the input adds to the state: `[groups, n_state]`.
    pub b: View,
    /// What is read of the state: `[groups, n_state]`.
    pub c: View,
    /// Steps before bias and softplus: `[heads]`.
    pub dt: View,
    /// Added to the steps: `[heads]`.
    pub dt_bias: Option<WeightId>,
    /// Decays, negative: `[heads, n_state]` if `fine`, else `[heads, 1]`.
    pub a: WeightId,
    /// Every value of the state has a decay of its own (Mamba-1).
    pub fine: bool,
    /// How much of x is added: `[heads]`.
    pub skip: Option<WeightId>,
    /// Heads.
    pub heads: u32,
    /// Channels a head.
    pub dim: u32,
    /// Values of the state for each channel.
    pub n_state: u32,
    /// Groups of heads that share b and c.
    pub groups: u32,
    /// Layer of state: `[heads, dim, n_state]`.
    pub state: usize,
}

/// The gated delta rule: queries and keys are normalised, `decay = exp(a * softplus(alpha + bias))` and
/// `beta = logistic(beta)`.
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
    /// Channels of a head.
    pub dim: u32,
    /// Heads of values that share queries and keys are neighbours; else they are `k_heads` apart.
    pub neighbours: bool,
    /// Added to the sum of squares of queries and keys.
    pub eps: f32,
    /// Layer of state: `[heads, dim, dim]`.
    pub state: usize,
}

/// What becomes of a gate before it multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateAct {
    /// z / (1 + exp(-z)).
    Silu,
    /// 1 / (1 + exp(-z)).
    Sigmoid,
    /// log(1 + exp(z)).
    Softplus,
}

/// Whether a row is normalised before it is gated or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormAt {
    /// Before, as Gated DeltaNet does.
    First,
    /// After, as Mamba-2 does.
    Last,
}

/// x * act(z), with rows normalised before that or after, or not at all.
#[derive(Copy, Clone, Debug)]
pub struct GatedNorm {
    /// Input.
    pub x: ValueId,
    /// What gates it, as wide, or a value for each row.
    pub z: View,
    /// A gate is of a whole row.
    pub z_row: bool,
    /// What becomes of z.
    pub act: GateAct,
    /// The norm.
    pub norm: Option<GroupNorm>,
    /// Values a row; without a norm any divisor of the width will do.
    pub k: u32,
}

/// RMS norm of the rows of a column.
#[derive(Copy, Clone, Debug)]
pub struct GroupNorm {
    /// Before or after the gate.
    pub at: NormAt,
    /// `[rows, k]` if each row has weights of its own, else `[k]`.
    pub weight: WeightId,
    /// Each row has weights of its own.
    pub own: bool,
    /// Added to the mean square.
    pub eps: f32,
}

/// One of these operations.
#[derive(Copy, Clone, Debug)]
pub enum Recurrent {
    /// A short convolution.
    ShortConv(ShortConv),
    /// A state space recurrence.
    Scan(Scan),
    /// The gated delta rule.
    DeltaNet(DeltaNet),
    /// A gate with or without a norm.
    GatedNorm(GatedNorm),
}

impl Recurrent {
    /// Values that the operation reads.
    pub fn inputs(&self) -> Vec<ValueId> {
        match self {
            Recurrent::ShortConv(o) => vec![o.x.of],
            Recurrent::Scan(o) => vec![o.x.of, o.b.of, o.c.of, o.dt.of],
            Recurrent::DeltaNet(o) => vec![o.qkv.of, o.alpha.of, o.beta.of],
            Recurrent::GatedNorm(o) => vec![o.x, o.z.of],
        }
    }

    /// The same operation on the values that `place` says instead of its inputs.
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
