//! `argmax`: greedy choice of the next token, in two dispatches.

mod cases;

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value, dispatch};

/// The row of this operation.
pub const OP: Op = Op {
    name: "argmax",
    template: include_str!("argmax.wgsl.jinja"),
    variants: || ["chunk", "final"].iter().map(|p| vec![("part", Value::Word(p))]).collect(),
    cases: cases::cases,
    ggml: &["ARGMAX"],
    grid: None,
};

/// A call: first [`Argmax::chunk`], then [`Argmax::join`].
#[derive(Clone, Copy, Debug)]
pub struct Argmax {
    /// Values a row.
    pub k: u32,
    /// Slots of the ring of chosen tokens, a power of two.
    pub ring: u32,
}

/// Values that one workgroup looks at.
const CHUNK: u32 = 2048;

impl Argmax {
    /// Chunks, each with two words of result.
    pub fn n_part(&self) -> u32 {
        self.k.div_ceil(CHUNK)
    }

    /// Leaves the best of every chunk.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn chunk(&self, _caps: &Caps) -> Result<Dispatch, DispatchError> {
        let constants = vec![("K", self.k.into()), ("CHUNK", CHUNK.into())];
        let why = format!("{CHUNK} logits a workgroup");
        dispatch(OP.name, &[Value::Word("chunk")], constants, [self.n_part(), 1, 1], why)
    }

    /// Joins the chunks and advances the step.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn join(&self, _caps: &Caps) -> Result<Dispatch, DispatchError> {
        let constants = vec![("N_PART", self.n_part().into()), ("RING", self.ring.into())];
        dispatch(OP.name, &[Value::Word("final")], constants, [1, 1, 1], "one workgroup".into())
    }
}
