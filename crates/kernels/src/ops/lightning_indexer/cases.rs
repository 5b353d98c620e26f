//! Cases of `lightning_indexer`.

use ggml_format::GgmlType;

use super::{LightningIndexer, reference};
use crate::case::Case;
use crate::data::{Data, Output, random_tensor, value_case};
use crate::format::FORMATS;
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (n, heads, n_key): (u32, u32, u32) = (p.num("hsk")?, p.num("nh")?, p.num("kv")?);
    let (n_tok, n_seq, n_mask): (u32, u32, u32) = (p.num("nb")?, p.num("ns")?, p.num("nm")?);
    let tensor = |ne| Tensor::new(GgmlType::F32, ne);
    let call = LightningIndexer {
        q: tensor([n, heads, n_tok, n_seq]),
        k: Tensor::new(p.ty("type_K")?, [n, 1, n_key, n_seq]),
        w: tensor([heads, n_tok, 1, n_seq]),
        mask: Tensor::new(GgmlType::F16, [n_key, n_tok, 1, n_mask]),
        y: tensor([n_key, n_tok, 1, n_seq]),
    };
    Ok(case(p.to_string(), call))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ty = FORMATS[rng.below(FORMATS.len() as u32) as usize].ty;
    let n = (ty.block_len() as u32).max(4) * (1 + rng.below(3));
    let [heads, n_key, n_tok, n_seq] = [6, 20, 7, 3].map(|most| 1 + rng.below(most));
    let n_mask = if rng.below(2) == 0 { 1 } else { n_seq };
    let mut tensor = |ty, ne| random_tensor(rng, ty, ne);
    let call = LightningIndexer {
        q: tensor(GgmlType::F32, [n, heads, n_tok, n_seq]),
        k: tensor(ty, [n, 1, n_key, n_seq]),
        w: tensor(GgmlType::F32, [heads, n_tok, 1, n_seq]),
        mask: tensor(GgmlType::F16, [n_key, n_tok, 1, n_mask]),
        y: tensor(GgmlType::F32, [n_key, n_tok, 1, n_seq]),
    };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: LightningIndexer) -> Case {
    let random = |t, seed| Data::random(t, seed, -1.0, 1.0);
    let mut mask: Vec<f32> = random(call.mask, 4).values().iter().map(|v| *v as f32).collect();
    mask.iter_mut().skip(3).step_by(11).for_each(|v| *v = f32::NEG_INFINITY);
    let (q, k, w) = (random(call.q, 1), random(call.k, 2), random(call.w, 3));
    let mask = Data::of(call.mask, &mask, 0);
    let values = reference::lightning_indexer(&q, &k, &w, &mask, &call.y);
    let buffers = vec![q.input("q"), k.input("keys"), w.input("w"), mask.input("mask")];
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, 1e-10)
}
