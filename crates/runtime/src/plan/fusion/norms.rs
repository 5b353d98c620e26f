//! Rules for norms: before products, and with the following sum.

use super::draft::{Draft, Rule};
use super::state::State;
use crate::graph::Op;
use crate::plan::steps::{Form, Norm};

/// An RMS norm that only products read becomes the prologue of each of them.
pub(super) const NORM_OF_PRODUCTS: Rule = Rule {
    name: "norm of products",
    from: &["mul_mat", "products", "mul_mat_id"],
    takes: &["rms_norm"],
    apply: |state, draft| {
        let x = state.op(draft.begin).inputs()[0];
        let (_, found) = state.folded[x.0]?;
        let mut form = draft.form.clone();
        if let Form::Project { norm, .. } | Form::Products { norm, .. } | Form::ProjectId { norm, .. } =
            &mut form
        {
            *norm = Some(found);
        }
        let nodes = [state.maker(x)].into_iter().chain(draft.nodes.iter().copied()).collect();
        Some(Draft { begin: draft.begin, nodes, out: draft.out, form, into: None })
    },
};

/// A norm, and the sum with an older value that is its only reader.
pub(super) const NORM_AND_SUM: Rule = Rule {
    name: "norm and sum",
    from: &["rms_norm", "norm"],
    takes: &["add"],
    apply: |state, draft| {
        let Form::RowNorm { norm, .. } = draft.form else { return None };
        let sum = state.sole_reader(draft.out)?;
        let Op::Add { a, b } = *state.op(sum) else { return None };
        let other = if a == draft.out { b } else { a };
        let can = norm.weight.is_some() && norm.bias.is_none() && norm.d == state.graph.width(draft.out);
        // The value already exists.
        let is_older = other != draft.out && state.maker(other) < draft.begin;
        let add = (can && is_older).then(|| state.place(other));
        add.map(|add| draft.then(state.graph, sum, Form::RowNorm { norm, add: Some(add), by: 1.0 }))
    },
};

/// True if the readers of norm node `i` absorb it; if so, records it for [`NORM_OF_PRODUCTS`]. Experts do not if they
/// are apart.
pub(super) fn fold(state: &mut State<'_>, i: usize, experts_apart: bool) -> bool {
    let Op::RmsNorm { x, weight, eps } = *state.op(i) else { return false };
    let y = state.graph.nodes[i].out;
    let multiplies = |r: &usize| match *state.op(*r) {
        Op::MulMat { .. } | Op::Products { .. } => true,
        Op::MulMatId { x, route, .. } => x == y && route != y && !experts_apart,
        _ => false,
    };
    let readers = state.readers(y);
    let Some(last) = readers.last().filter(|_| readers.iter().all(multiplies)) else { return false };
    // The norm's input must stay unchanged until the last of them.
    state.last_use[x.0] = state.last_use[x.0].max(*last);
    state.folded[y.0] = Some((x, Norm { weight, eps, out: y }));
    true
}
