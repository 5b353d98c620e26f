//! Stands in for `rounding` in browsers, whose pages do not download it: every product rounds its input for itself.

use chaski_kernels::ops::mul_mat_vec::ActivationPrecision;

use super::expand::{Expander, Rounding};
use super::steps::Step;
use crate::graph::ValueId;

impl Expander<'_> {
    /// No precision, since nothing is rounded ahead.
    pub(super) fn precision(&self) -> Option<ActivationPrecision> {
        None
    }

    /// Nothing.
    pub(super) fn rounding_of(&self, steps: &[&Step], _n_body: usize) -> Rounding {
        Rounding { after: vec![None; steps.len()], values: vec![false; self.graph.widths.len()] }
    }

    /// Nothing is there.
    pub(super) fn rounded_at(&self, _v: ValueId) -> u32 {
        0
    }
}
