//! Rules for products of one input.

use super::draft::{Draft, Rule};
use super::state::State;
use crate::graph::Op;
use crate::plan::steps::{Form, Part};

/// Gate and up, of one input, with their activation.
pub(super) const GATED: Rule = Rule {
    name: "gated",
    from: &["mul_mat"],
    takes: &["mul_mat", "glu"],
    apply: |state, draft| {
        let Form::Project { norm, .. } = draft.form else { return None };
        let glu = state.sole_reader(draft.out)?;
        let Op::Glu { gate, up, act } = *state.op(glu) else { return None };
        if gate == up || state.sole_reader(gate)? != glu || state.sole_reader(up)? != glu {
            return None;
        }
        let both = [gate, up].map(|v| state.maker(v));
        let products = state.products_beside(draft);
        if !both.iter().all(|n| products.contains(n)) {
            return None;
        }
        let [gate, up] = both.map(|n| Part::of(state.op(n)));
        let form = Form::Gated { norm, gate: gate?, up: up?, act };
        Some(draft.becomes(both.into_iter().chain([glu]), state.graph.nodes[glu].out, form))
    },
};

impl State<'_> {
    /// Products of the input of a step that begins with a product: that one, and others not yet in a step.
    pub(super) fn products_beside(&self, draft: &Draft) -> Vec<usize> {
        let x = self.op(draft.begin).inputs()[0];
        let mut all = self.readers(x);
        all.retain(|r| matches!(self.op(*r), Op::MulMat { .. }) && (*r == draft.begin || !self.done[*r]));
        all
    }
}
