//! Cases of hyper-connections.

use ggml_format::GgmlType;

use super::{HcComb, HcPost, HcPre, reference};
use crate::case::Case;
use crate::data::{Data, Output, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Allows for a few values whose sum is near 0.
const MAX_NMSE: f64 = 1e-9;

fn tensor(ne: [u32; 4]) -> Tensor {
    Tensor::new(GgmlType::F32, ne)
}

fn comb(n_tok: u32, n_iter: u32, eps: f32) -> HcComb {
    let (n, n_mix) = (HcComb::STREAMS, HcComb::N_MIX);
    HcComb {
        mixes: tensor([n_mix, n_tok, 1, 1]),
        scale: tensor([3, 1, 1, 1]),
        base: tensor([n_mix, 1, 1, 1]),
        eps,
        n_iter,
        y: tensor([n, n, n_tok, 1]),
    }
}

/// No tokens, and an eps large enough to matter.
pub(super) fn comb_by_hand() -> Vec<Case> {
    [comb(0, 2, 1e-6), comb(65, 1, 0.25), comb(65, 3, 0.25), comb(63, 5, 0.0)]
        .map(|call| comb_case(format!("{} tokens {}x eps {}", call.y.ne[2], call.n_iter, call.eps), call))
        .into()
}

pub(super) fn comb_of(p: &Params) -> Result<Case, GridError> {
    Ok(comb_case(p.to_string(), comb(p.num("n_tokens")?, p.num("n_iter")?, p.num("eps")?)))
}

pub(super) fn random_comb(rng: &mut Rng) -> Case {
    let mut call = comb(1 + rng.below(150), 1 + rng.below(6), rng.pick(&[1e-6, 1e-3, 0.1]));
    call.scale.ne[0] += rng.below(3);
    for t in [&mut call.mixes, &mut call.scale, &mut call.base, &mut call.y] {
        *t = random_tensor(rng, t.ty, t.ne);
    }
    comb_case(format!("random {call:?}"), call)
}

fn comb_case(label: String, call: HcComb) -> Case {
    // A wider range than ggml's, so that a few iterations do not converge.
    let (mixes, base) = (Data::random(call.mixes, 1, -2.0, 2.0), Data::random(call.base, 3, -1.0, 1.0));
    let scale = Data::random(call.scale, 2, 0.5, 2.0);
    let values = reference::comb(&call, &mixes, &scale, &base);
    let buffers = vec![mixes.input("mixes"), scale.input("scale"), base.input("base")];
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, 1e-10)
}

fn pre(n_embd: u32, hc: u32, n_tok: u32, gated: bool) -> HcPre {
    let x = tensor([n_embd, hc, n_tok, 1]);
    let w = if gated { x } else { tensor([hc, n_tok, 1, 1]) };
    // The mean of the gated streams, as in ggml's test.
    let scale = if gated { 1.0 / hc as f32 } else { 1.0 };
    HcPre { x, w, gated, scale, y: tensor([n_embd, n_tok, 1, 1]) }
}

/// Empty sums, in both modes.
pub(super) fn pre_by_hand() -> Vec<Case> {
    [pre(0, 4, 3, false), pre(5, 4, 0, true)]
        .map(|call| pre_case(format!("{}x{} values", call.y.ne[0], call.y.ne[1]), call))
        .into()
}

pub(super) fn pre_of(p: &Params) -> Result<Case, GridError> {
    let call = pre(p.num("n_embd")?, p.num("n_hc")?, p.num("n_tokens")?, p.flag("gated")?);
    Ok(pre_case(p.to_string(), call))
}

pub(super) fn random_pre(rng: &mut Rng) -> Case {
    let [n_embd, hc, n_tok] = [70, 9, 20].map(|most| 1 + rng.below(most));
    let mut call = pre(n_embd, hc, n_tok, rng.below(2) == 1);
    call.scale = rng.range(0.1, 2.0);
    for t in [&mut call.x, &mut call.w, &mut call.y] {
        *t = random_tensor(rng, t.ty, t.ne);
    }
    pre_case(format!("random {call:?}"), call)
}

fn pre_case(label: String, call: HcPre) -> Case {
    let x = Data::random(call.x, 1, -1.0, 1.0);
    let (low, high) = if call.gated { (-4.0, 4.0) } else { (-1.0, 1.0) };
    let w = Data::random(call.w, 2, low, high);
    let values = reference::pre(&call, &x, &w);
    let buffers = vec![x.input("x"), w.input("w")];
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, MAX_NMSE)
}

fn post(n_embd: u32, hc: u32, n_tok: u32, identity: bool) -> HcPost {
    HcPost {
        x: tensor([n_embd, n_tok, 1, 1]),
        residual: tensor([n_embd, hc, n_tok, 1]),
        post: tensor([hc, n_tok, 1, 1]),
        comb: (!identity).then(|| tensor([hc, hc, n_tok, 1])),
        y: tensor([n_embd, hc, n_tok, 1]),
    }
}

/// No streams to mix, one, and many.
pub(super) fn post_by_hand() -> Vec<Case> {
    [post(0, 4, 3, false), post(5, 4, 0, true), post(33, 1, 5, false), post(33, 17, 5, false)]
        .map(|call| post_case(format!("{:?} values", call.y.ne), call))
        .into()
}

pub(super) fn post_of(p: &Params) -> Result<Case, GridError> {
    // With a gate, 2 * logistic(post / 4), it would be a graph of several operations; ggml lists none.
    if p.flag("gated")? {
        let (op, expected, found) = (p.op.clone(), "0", "1".to_owned());
        return Err(GridError::Value { op, key: "gated", expected, found });
    }
    let call = post(p.num("n_embd")?, 4, p.num("n_tokens")?, p.flag("identity")?);
    Ok(post_case(p.to_string(), call))
}

pub(super) fn random_post(rng: &mut Rng) -> Case {
    let [n_embd, hc, n_tok] = [70, 7, 12].map(|most| 1 + rng.below(most));
    let mut call = post(n_embd, hc, n_tok, rng.below(3) == 0);
    for t in [&mut call.x, &mut call.residual, &mut call.post, &mut call.y] {
        *t = random_tensor(rng, t.ty, t.ne);
    }
    call.comb = call.comb.map(|t| random_tensor(rng, t.ty, t.ne));
    post_case(format!("random {call:?}"), call)
}

fn post_case(label: String, call: HcPost) -> Case {
    let (x, residual) = (Data::random(call.x, 1, -1.0, 1.0), Data::random(call.residual, 2, -1.0, 1.0));
    let post = Data::random(call.post, 3, 0.0, 2.0);
    let comb = call.comb.map(|t| Data::random(t, 4, 0.0, 1.0));
    let values = reference::post(&call, &x, &residual, &post, comb.as_ref());
    let mut buffers = vec![x.input("x"), residual.input("residual"), post.input("post")];
    buffers.extend(comb.map(|m| m.input("comb")));
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, MAX_NMSE)
}
