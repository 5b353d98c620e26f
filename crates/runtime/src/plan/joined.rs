//! The join of a split-K product and the norm behind it, as one dispatch.

use chaski_kernels::ops::mul_mat_join::MulMatJoin;
use chaski_kernels::ops::mul_mat_join_norm::MulMatJoinNorm;
use chaski_kernels::ops::rms_norm::RmsNorm;

use super::error::PlanError;
use super::expand::Expander;
use super::planned::{Growth, Joined, Segment, Slot};

impl Expander<'_> {
    /// Pushes a join of `parts`.
    pub(super) fn push_join(
        &mut self,
        call: MulMatJoin,
        parts: usize,
        aux: Option<usize>,
        y: Slot,
        part: &'static str,
    ) -> Result<(), PlanError> {
        let n_sum = u64::from(call.n_row) * u64::from(call.splits);
        let work = (4 * (n_sum + u64::from(call.n_row)), n_sum);
        let bind = vec![("x", Slot::Act(parts)), ("aux", Slot::Aux(aux)), ("y", y)];
        self.push(call.dispatch()?, bind, Growth::Y, part, 0).col(work.0, work.1);
        // Browsers lack the kernel, and the marks of a recorded plan count the dispatches of each step.
        if cfg!(not(target_arch = "wasm32")) && self.marks.is_none() {
            self.joined = Some(Joined { call, parts, y, work });
        } else {
            self.pool.release(parts);
        }
        Ok(())
    }

    /// Replaces the last dispatch by one that also norms its result, if it is the join of what the norm reads.
    pub(super) fn join_with_norm(
        &mut self,
        norm: &RmsNorm,
        aux: Slot,
        x: Slot,
        y: Slot,
    ) -> Result<bool, PlanError> {
        // Browsers lack the kernel.
        if cfg!(target_arch = "wasm32") {
            return Ok(false);
        }
        let Some(joined) = self.joined.take_if(|j| j.y == x && x != y) else { return Ok(false) };
        let Some(call) = MulMatJoinNorm::of(joined.call, *norm) else {
            self.joined = Some(joined);
            return Ok(false);
        };
        self.out.pop();
        let (columns, width) = (self.many(Growth::X), u64::from(norm.k));
        let bind = vec![("parts", Slot::Act(joined.parts)), ("aux", aux), ("x", x), ("y", y)];
        self.push(call.dispatch(self.caps)?, bind, columns, "norm", 0)
            .col(joined.work.0 + 4 * width, joined.work.1 + 4 * width);
        self.pool.release(joined.parts);
        Ok(true)
    }

    /// The dispatches so far.
    pub(super) fn take_out(&mut self) -> Segment {
        self.settle();
        std::mem::take(&mut self.out)
    }

    /// Frees the parts of a join that is no longer the last dispatch.
    pub(super) fn settle(&mut self) {
        if let Some(joined) = self.joined.take() {
            self.pool.release(joined.parts);
        }
    }
}
