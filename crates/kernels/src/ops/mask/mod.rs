//! `mask`: the logits of tokens that a grammar forbids become minus infinity, in place, before tokens are chosen.

mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;

/// The row of this operation.
pub const OP: Op = Op {
    name: "mask",
    template: template!("mask/mask.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// Logits that one workgroup looks at.
const CHUNK: u32 = 2048;

/// Words of a mask for `k` tokens.
pub const fn n_word(k: u32) -> u32 {
    k.div_ceil(32)
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    /// Logits of a row.
    pub k: u32,
    /// Values from row to row.
    pub ld: u32,
    /// Rows at most, each with a mask of [`n_word`] words.
    pub n_row: u32,
}

impl Mask {
    /// The kernel and its grid; rows are in grid.y.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let constants = vec![("K", self.k.into()), ("LD", self.ld.into())];
        let grid = [self.k.div_ceil(CHUNK), self.n_row, 1];
        dispatch(&OP, &[], constants, grid, format!("{CHUNK} logits a workgroup"))
    }
}
