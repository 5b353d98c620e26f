//! `attention_merge`: merges the partial results of a split `attention`.

mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;

/// The row of this operation.
pub const OP: Op = Op {
    name: "attention_merge",
    template: template!("attention_merge/attention_merge.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct AttentionMerge {
    /// Query heads.
    pub n_head: u32,
    /// Channels per head.
    pub d: u32,
    /// Parts per head.
    pub splits: u32,
    /// Column stride of y, in values.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
}

impl AttentionMerge {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self, _caps: &Caps) -> Result<Dispatch, DispatchError> {
        dispatch(
            &OP,
            &[],
            vec![
                ("D", self.d.into()),
                ("N_HEAD", self.n_head.into()),
                ("SPLITS", self.splits.into()),
                ("LDY", self.ldy.into()),
            ],
            [self.n_head, self.n_col, 1],
            "one workgroup a head".into(),
        )
    }
}
