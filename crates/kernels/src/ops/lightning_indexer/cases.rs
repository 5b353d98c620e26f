//! Cases of `lightning_indexer`.

use ggml_format::GgmlType;

use super::{LightningIndexer, reference};
use crate::case::Case;
use crate::data::{Data, Output, value_case};
use crate::grid::{GridError, Params};
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
    let random = |t, seed| Data::random(t, seed, -1.0, 1.0);
    let mut mask: Vec<f32> = random(call.mask, 4).values().iter().map(|v| *v as f32).collect();
    mask.iter_mut().skip(3).step_by(11).for_each(|v| *v = f32::NEG_INFINITY);
    let (q, k, w) = (random(call.q, 1), random(call.k, 2), random(call.w, 3));
    let mask = Data::of(call.mask, &mask, 0);
    let values = reference::lightning_indexer(&q, &k, &w, &mask, &call.y);
    let buffers = vec![q.input("q"), k.input("keys"), w.input("w"), mask.input("mask")];
    Ok(value_case(
        p.to_string(),
        move |caps| call.dispatch(caps),
        buffers,
        Output::New(call.y),
        &values,
        1e-10,
    ))
}
