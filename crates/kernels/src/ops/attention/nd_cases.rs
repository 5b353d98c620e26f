//! Cases of `attention_nd`.

use ggml_format::GgmlType;

use super::nd::{AttentionNd, types};
use super::nd_reference::{Operands, attention_nd};
use crate::caps::Caps;
use crate::case::{Case, CaseBuffer};
use crate::data::{Data, Output, random_tensor, value_case};
use crate::dispatch::Step;
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// ggml allows 5e-4.
const MAX_NMSE: f64 = 1e-10;

/// Keys that the mask leaves visible to a column.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// All but a few single keys and whole runs.
    Most,
    /// At most this many.
    AtMost(u32),
    /// As [`Seen::Most`], but every third column sees none.
    SomeNone,
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (n_head_kv, n_key, n_token): (u32, u32, u32) = (p.num("nh")?, p.num("kv")?, p.num("nb")?);
    let [per_kv, n_seq] = p.list::<2>("nr23")?;
    let (ty_k, ty_v) = (p.ty("type_K")?, p.ty("type_V")?);
    let whole = |d: u32, ty: GgmlType| d.next_multiple_of(ty.block_len() as u32);
    let (d, d_v) = (whole(p.num("hsk")?, ty_k), whole(p.num("hsv")?, ty_v));
    let per = p.list::<4>("permute")?.map(|k| k as usize);
    // The buffer's axes are in another order, which is its own inverse; a view takes half of each axis.
    let tensor = |ty, ne: [u32; 4], is_view| {
        let inner = per.map(|k| ne[k]);
        let rows = if is_view { 2 } else { 1 };
        Tensor::new(ty, [inner[0], rows * inner[1], inner[2], inner[3]]).slice([0; 4], inner).permute(per)
    };
    let view = p.flag("kv_view")?;
    let n_head = n_head_kv * per_kv;
    let k = tensor(ty_k, [d, n_key, n_head_kv, n_seq], view);
    let v_of_k = p.flag("v_is_view_of_k")?;
    let v = match v_of_k {
        true => Tensor { ne: [d_v, k.ne[1], k.ne[2], k.ne[3]], ..k },
        false => tensor(ty_v, [d_v, n_key, n_head_kv, n_seq], view),
    };
    let plain = |ty, ne| Tensor::new(ty, ne);
    let call = AttentionNd {
        q: tensor(GgmlType::F32, [d, n_token, n_head, n_seq], false),
        k,
        v,
        mask: p.flag("mask")?.then(|| plain(GgmlType::F16, [n_key, n_token, 1, n_seq])),
        sinks: p.flag("sinks")?.then(|| plain(GgmlType::F32, [n_head, 1, 1, 1])),
        scale: 1.0 / (d as f32).sqrt(),
        softcap: p.num("logit_softcap")?,
        max_bias: p.num("max_bias")?,
        y: plain(GgmlType::F32, [d_v, n_head, n_token, n_seq]),
    };
    let seen = match p.num("n_kv_max")? {
        0 => Seen::Most,
        n => Seen::AtMost(n),
    };
    Ok(case(p.to_string(), call, seen, v_of_k))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let all: Vec<GgmlType> = types().collect();
    let (ty_k, ty_v) = (rng.pick(&all), rng.pick(&all));
    let mut channels = |ty: GgmlType| match ty.block_len() as u32 {
        1 => 1 + rng.below(90),
        n => n * (1 + rng.below(3)),
    };
    let (d, d_v) = (channels(ty_k), channels(ty_v));
    let [n_token, n_key, kv_heads, kv_seqs, per_head, per_seq] =
        [5, 200, 2, 2, 3, 2].map(|most| 1 + rng.below(most));
    let (n_head, n_seq) = (kv_heads * per_head, kv_seqs * per_seq);
    // Values may be grouped differently from keys.
    let v_heads = rng.pick(&[kv_heads, n_head, 1]);
    let mask_heads = rng.pick(&[1, kv_heads, per_head, n_head]);
    let mask_seqs = rng.pick(&[1, kv_seqs, per_seq, n_seq]);
    let mask = [n_key, n_token + rng.below(3), mask_heads, mask_seqs];
    let (masked, sinks) = (rng.below(4) > 0, rng.below(2) > 0);
    let mut tensor = |ty, ne| random_tensor(rng, ty, ne);
    let call = AttentionNd {
        q: tensor(GgmlType::F32, [d, n_token, n_head, n_seq]),
        k: tensor(ty_k, [d, n_key, kv_heads, kv_seqs]),
        v: tensor(ty_v, [d_v, n_key, v_heads, kv_seqs]),
        mask: masked.then(|| tensor(GgmlType::F16, mask)),
        sinks: sinks.then(|| tensor(GgmlType::F32, [n_head, 1, 1, 1])),
        scale: 1.0 / (d as f32).sqrt(),
        softcap: 0.0,
        max_bias: 0.0,
        y: tensor(GgmlType::F32, [d_v, n_head, n_token, n_seq]),
    };
    let call = AttentionNd { softcap: rng.pick(&[0.0, 3.0]), max_bias: rng.pick(&[0.0, 8.0]), ..call };
    let seen = if rng.below(2) > 0 { Seen::Most } else { Seen::SomeNone };
    case(format!("random {call:?}"), call, seen, false)
}

/// With `v_of_k` the values are the first channels of the keys.
fn case(label: String, call: AttentionNd, seen: Seen, v_of_k: bool) -> Case {
    let uniform = |t, seed| Data::random(t, seed, -1.0, 1.0);
    let (q, k) = (uniform(call.q, 1), uniform(call.k, 2));
    let v = if v_of_k { Data::new(call.v, k.bytes.clone()) } else { uniform(call.v, 3) };
    let mask = call.mask.map(|t| mask(t, seen));
    let sinks = call.sinks.map(|t| Data::random(t, 5, -3.0, 4.0));
    let values =
        attention_nd(&call, &Operands { q: &q, k: &k, v: &v, mask: mask.as_ref(), sinks: sinks.as_ref() });
    let mut buffers = vec![q.input("q"), k.input("k")];
    if !v_of_k {
        buffers.push(v.input("v"));
    }
    let any = |binding| CaseBuffer::input(binding, &[0u32; 4]);
    buffers.push(mask.map_or_else(|| any("mask"), |m| m.input("mask")));
    buffers.push(sinks.map_or_else(|| any("sinks"), |s| s.input("sinks")));
    let renamed: &[_] = if v_of_k { &[("v", "k")] } else { &[] };
    let steps = move |caps: &Caps| Ok(vec![Step::renamed(call.dispatch(caps)?, renamed)]);
    value_case(label, steps, buffers, Output::New(call.y), &values, MAX_NMSE)
}

/// Mask values, and the visible keys.
fn mask(t: Tensor, seen: Seen) -> Data {
    let mut values: Vec<f32> = Data::random(t, 4, -1.0, 1.0).values().iter().map(|v| *v as f32).collect();
    let mut rng = Rng::new(6);
    let [n_key, ..] = t.ne;
    let rows = Tensor { ne: [1, t.ne[1], t.ne[2], t.ne[3]], ..t };
    for (i, row) in (0..rows.n_elem()).map(|i| (i, rows.coords(i))) {
        let mut hide = |key: u32| values[t.index([key, row[1], row[2], row[3]])] = f32::NEG_INFINITY;
        match seen {
            Seen::AtMost(n) => {
                // A random subset of n keys: a key is hidden while enough others remain.
                let mut left = n.min(n_key);
                for key in 0..n_key {
                    match rng.below(n_key - key) < left {
                        true => left -= 1,
                        false => hide(key),
                    }
                }
            }
            Seen::SomeNone if i % 3 == 0 => (0..n_key).for_each(hide),
            Seen::Most | Seen::SomeNone => {
                let run = rng.below(n_key);
                let all = (0..n_key).step_by(7).chain(run..(run + 70).min(n_key));
                // The last key stays visible, so that every column has one.
                all.filter(|key| key + 1 < n_key).for_each(hide);
            }
        }
    }
    Data::of(t, &values, 0)
}
