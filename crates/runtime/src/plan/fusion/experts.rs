//! Rules for products by experts.

use super::draft::Rule;
use crate::graph::Op;
use crate::plan::steps::{Form, Part};

/// Gate and up by experts, of one input, with their activation.
pub(super) const GATED_EXPERTS: Rule = Rule {
    name: "gated experts",
    from: &["mul_mat_id"],
    takes: &["mul_mat_id", "glu"],
    apply: |state, draft| {
        let (Form::ProjectId { norm, .. }, Op::MulMatId { x, route, .. }) =
            (&draft.form, state.op(draft.begin))
        else {
            return None;
        };
        let glu = state.sole_reader(draft.out)?;
        let Op::Glu { gate, up, act } = *state.op(glu) else { return None };
        let both = [gate, up].map(|v| state.maker(v));
        let other = if both[0] == draft.begin { both[1] } else { both[0] };
        let is_same =
            matches!(state.op(other), Op::MulMatId { x: x2, route: r2, .. } if x2 == x && r2 == route);
        if other == draft.begin || !is_same || state.sole_reader(state.graph.nodes[other].out)? != glu {
            return None;
        }
        let [gate, up] = both.map(|n| Part::of(state.op(n)));
        let (norm, route) = (*norm, state.place(*route));
        let form = Form::GatedId { norm, route, gate: gate?, up: up?, act };
        Some(draft.becomes(both.into_iter().chain([glu]), state.graph.nodes[glu].out, form))
    },
};

/// Products by experts, and the weighted sum that is their only reader.
pub(super) const SUM_OF_EXPERTS: Rule = Rule {
    name: "sum of experts",
    from: &["mul_mat_id"],
    takes: &["moe_reduce"],
    apply: |state, draft| {
        // A column shared by all slots would need another kernel, and no family has it.
        let (Form::ProjectId { norm: None, part, .. }, Op::MulMatId { x, route, .. }) =
            (&draft.form, state.op(draft.begin))
        else {
            return None;
        };
        let reduce = state.sole_reader(draft.out)?;
        let by_route = matches!(state.op(reduce), Op::MoeReduce { route: r, .. } if r == route);
        let can = by_route && state.graph.slots(*x) > 0;
        let form = Form::ReduceId { route: state.place(*route), part: *part, add: false };
        can.then(|| draft.then(state.graph, reduce, form))
    },
};
