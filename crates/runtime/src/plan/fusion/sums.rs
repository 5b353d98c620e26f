//! Rules for operations after a product: a factor, and the sum with an older value.

use super::draft::{Draft, Rule};
use super::state::State;
use crate::graph::{Op, ValueId};
use crate::plan::steps::Form;

/// A factor that is the only reader of a product, of a sum over experts or of a norm of rows.
pub(super) const FACTOR: Rule = Rule {
    name: "factor",
    from: &["mul_mat", "mul_mat_id", "rms_norm", "norm"],
    takes: &["scale"],
    apply: |state, draft| {
        let scale = state.sole_reader(draft.out)?;
        let Op::Scale { by: factor, .. } = *state.op(scale) else { return None };
        let mut form = draft.form.clone();
        match &mut form {
            Form::Project { part, .. } | Form::ReduceId { part, .. } => part.by *= factor,
            // The kernel of a norm before products does not support a factor.
            Form::RowNorm { add: None, .. } if matches!(state.op(draft.begin), Op::RmsNorm { .. }) => {
                return None;
            }
            Form::RowNorm { by, .. } => *by = factor,
            _ => return None,
        }
        Some(draft.then(state.graph, scale, form))
    },
};

/// A product, a sum over experts or a gate, accumulated to an older value in place.
pub(super) const RESIDUAL: Rule = Rule {
    name: "residual",
    from: &["mul_mat", "mul_mat_id", "gated_norm"],
    takes: &["add"],
    apply: |state, draft| {
        let mut form = draft.form.clone();
        match &mut form {
            Form::Project { add, .. } | Form::ReduceId { add, .. } | Form::GatedNorm { add, .. } => {
                *add = true;
            }
            _ => return None,
        }
        let (sum, into) = state.sum_into(draft)?;
        Some(Draft { into: Some(into), ..draft.then(state.graph, sum, form) })
    },
};

/// A factor, accumulated to an older value in place.
pub(super) const SCALED: Rule = Rule {
    name: "scaled sum",
    from: &["scale"],
    takes: &["add"],
    apply: |state, draft| {
        let (sum, into) = state.sum_into(draft)?;
        Some(Draft { into: Some(into), ..draft.then(state.graph, sum, draft.form.clone()) })
    },
};

impl State<'_> {
    /// The sum of a step's result and an older value, which it replaces, if nothing else reads the result.
    fn sum_into(&self, draft: &Draft) -> Option<(usize, ValueId)> {
        let (out, n) = (draft.out, draft.begin);
        let sum = self.sole_reader(out)?;
        let Op::Add { a, b } = *self.op(sum) else { return None };
        if a == b {
            return None;
        }
        let other = if a == out { b } else { a };
        // No node may read the other operand between the product and the sum.
        let quiet = self.readers(other).iter().all(|r| *r <= n || *r == sum)
            && self.folded_readers(other).iter().all(|r| *r <= n);
        // The operand exists if it comes earlier, or if an earlier step contains it.
        let made = self.maker(other);
        let slice = matches!(self.op(made), Op::Slice { .. });
        let is_free = quiet && !slice && self.place(other) != draft.input(self);
        (is_free && (made < n || self.done[made])).then_some((sum, other))
    }

    /// Products that read a value through a norm that they absorb.
    fn folded_readers(&self, v: ValueId) -> Vec<usize> {
        let norms = self.folded.iter().flatten().filter(|(x, _)| *x == v);
        norms.flat_map(|(_, n)| self.readers(n.out)).collect()
    }
}
