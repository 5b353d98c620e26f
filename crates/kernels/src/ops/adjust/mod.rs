//! `adjust`: biases and penalties on rows of logits, in place, before tokens are chosen.

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

/// Last tokens that penalties can look back on; the ring has as many slots at least.
pub const MAX_WINDOW: u32 = 128;
/// Tokens that can have a bias.
pub const MAX_BIAS: usize = 64;
/// Words of the `adjust` buffer for a sequence.
pub const N_WORD: usize = 8 + 2 * MAX_BIAS;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Adjust {
    /// Logits of a row.
    pub k: u32,
    /// Values from row to row.
    pub ld: u32,
    /// Rows at most.
    pub n_row: u32,
    /// Where the step has what was chosen: penalties look back on a sequence's ring.
    pub choice: Choice,
}

/// What is done to the logits.
#[derive(Clone, Debug, PartialEq)]
pub struct AdjustParams {
    /// So many last tokens are penalised, at most [`MAX_WINDOW`]; 0: none.
    pub last_n: u32,
    /// Their logits are divided by it, or multiplied if not above zero; 1: off.
    pub repeat: f32,
    /// Taken off for each time that a token came; 0: off.
    pub freq: f32,
    /// Taken off if a token came; 0: off.
    pub present: f32,
    /// Added before that, at most [`MAX_BIAS`], each token once; minus infinity excludes one.
    pub bias: Vec<(u32, f32)>,
}

impl AdjustParams {
    /// The words of a sequence whose first token that counts has this index in the ring.
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
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let mut constants = vec![("K", self.k.into()), ("LD", self.ld.into())];
        constants.extend(self.choice.constants());
        dispatch(&OP, &[], constants, [self.n_row, 1, 1], "a workgroup a row, a thread a token".into())
    }
}
