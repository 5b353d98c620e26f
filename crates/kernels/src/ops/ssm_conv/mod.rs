//! `ssm_conv`: the short causal convolution before a recurrence, fused with bias and SiLU.

mod cases;
pub mod reference;

use crate::call::{A, B, C, Call, check_f32};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "ssm_conv",
    template: template!("ssm_conv/ssm_conv.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for bias in ["none", "add"] {
            for act in ["none", "silu"] {
                out.push(vec![("bias", Value::Word(bias)), ("act", Value::Word(act))]);
            }
        }
        out
    },
    cases: Op::cases(cases::cases),
    ggml: &["SSM_CONV"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call; all tensors are f32.
#[derive(Clone, Copy, Debug)]
pub struct SsmConv {
    /// Previous and current inputs: taps - 1 + tokens, channels, sequences.
    pub a: Tensor,
    /// Weights: taps, channels. The last tap belongs to the current token.
    pub weight: Tensor,
    /// Added to each channel.
    pub bias: Option<Tensor>,
    /// SiLU after the sum.
    pub silu: bool,
    /// Channels, tokens, sequences.
    pub y: Tensor,
}

impl SsmConv {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match or values overlap, [`DispatchError::Type`] if they are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let [channels, tokens, seqs, _] = self.y.ne;
        let taps = self.weight.ne[0];
        self.y.check_ne(OP.name, "y", [channels, tokens, seqs, 1])?;
        self.weight.check_ne(OP.name, "weight", [taps.max(1), channels, 1, 1])?;
        self.a.check_ne(OP.name, "a", [tokens.saturating_add(taps - 1), channels, seqs, 1])?;
        let mut sources = vec![(A, &self.a), (B, &self.weight)];
        if let Some(c) = &self.bias {
            c.check_ne(OP.name, "bias", [channels, 1, 1, 1])?;
            sources.push((C, c));
        }
        check_f32(OP.name, &sources, &self.y)?;
        let bias = if self.bias.is_some() { "add" } else { "none" };
        let act = if self.silu { "silu" } else { "none" };
        Call {
            op: &OP,
            variant: &[Value::Word(bias), Value::Word(act)],
            sources: &sources,
            y: &self.y,
            constants: vec![],
        }
        .values(caps)
    }
}
