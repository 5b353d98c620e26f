//! `adjust`: biases and penalties on rows of logits, in place, before sampling.

mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;
use crate::step::Choice;

/// The row of this operation.
pub const OP: Op = Op {
    name: "adjust",
    template: template!("adjust/adjust.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// Largest window of the penalties; the ring has at least as many slots.
pub const MAX_WINDOW: u32 = 128;
/// Maximum number of biased tokens.
pub const MAX_BIAS: usize = 64;
/// Words of the `adjust` buffer per sequence.
pub const N_WORD: usize = 8 + 2 * MAX_BIAS;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Adjust {
    /// Logits per row.
    pub k: u32,
    /// Row stride, in values.
    pub ld: u32,
    /// Maximum number of rows.
    pub n_row: u32,
    /// Location of chosen tokens in the step buffer: penalties look back on a sequence's ring.
    pub choice: Choice,
}

/// Biases and penalties of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct AdjustParams {
    /// Window of the penalties, at most [`MAX_WINDOW`] tokens; 0: no penalties.
    pub last_n: u32,
    /// Repeat penalty: positive logits are divided by it, others multiplied; 1: off.
    pub repeat: f32,
    /// Frequency penalty, subtracted once per occurrence; 0: off.
    pub freq: f32,
    /// Presence penalty, subtracted once if the token occurred; 0: off.
    pub present: f32,
    /// Biases, added before the penalties: at most [`MAX_BIAS`], each token once; minus infinity excludes the token.
    pub bias: Vec<(u32, f32)>,
}

impl AdjustParams {
    /// The words of a sequence; `first` is the ring index of the first token that counts.
    ///
    /// # Panics
    /// If there are more than [`MAX_BIAS`] biases.
    pub fn words(&self, first: u32) -> [u32; N_WORD] {
        assert!(self.bias.len() <= MAX_BIAS, "{} biases do not fit into {MAX_BIAS}", self.bias.len());
        let mut words = [0; N_WORD];
        words[..6].copy_from_slice(&[
            first,
            self.last_n,
            self.repeat.to_bits(),
            self.freq.to_bits(),
            self.present.to_bits(),
            self.bias.len() as u32,
        ]);
        for (pair, (token, bias)) in words[8..].chunks_exact_mut(2).zip(&self.bias) {
            pair.copy_from_slice(&[*token, bias.to_bits()]);
        }
        words
    }
}

impl Adjust {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let mut constants = vec![("K", self.k.into()), ("LD", self.ld.into())];
        constants.extend(self.choice.constants());
        dispatch(&OP, &[], constants, [self.n_row, 1, 1], "a workgroup a row, a thread a token".into())
    }
}
