//! Cases of `latent_kv`.

use ggml_format::GgmlType;

use super::LatentKv;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::kv::{KV_TYPES, KvLayout};
use crate::ops::rms_norm::reference::rms_norm;
use crate::ops::rope_kv::cases::World;
use crate::rng::random_values;
use chaski_graph::{Rope, RopePairing, Sections};

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for pairing in [RopePairing::Norm, RopePairing::Neox] {
        for k in KV_TYPES {
            for pos in [&[0u32, 1, 33][..], &[70]] {
                out.push(case(pairing, None, *k, (96, 64), (3, 64), pos));
            }
        }
        // The sizes of real models, small ones, and heads of q with RoPE on every channel.
        out.push(case(pairing, None, GgmlType::F16, (576, 512), (16, 192), &[5, 6]));
        out.push(case(pairing, None, GgmlType::F32, (24, 16), (40, 8), &[95, 0, 64]));
        out.push(case(pairing, None, GgmlType::Q8_0, (320, 288), (5, 160), &[31, 32]));
        let sections = Some(Sections { pairs: [5, 6, 5, 0], take_turns: true });
        out.push(case(pairing, sections, GgmlType::F16, (96, 64), (3, 64), &[9, 64, 10]));
    }
    out
}

fn case(
    pairing: RopePairing,
    sections: Option<Sections>,
    k: GgmlType,
    (d, rank): (u32, u32),
    (n_head, d_q): (u32, u32),
    pos: &[u32],
) -> Case {
    let kv = KvLayout {
        n_kv: 1,
        d,
        d_v: rank,
        in_keys: true,
        k,
        v: k,
        n_page: 4,
        page: 32,
        n_seq: 1,
        pages_per_seq: 3,
        pages_at: 16 + 4 * 3,
        wrap: 0,
    };
    let (n_rot, n_col, eps) = (d - rank, pos.len(), 0.125);
    let rope = Rope { magnitude: 1.14, sections, ..Rope::plain(n_rot, pairing, 10_000.0) };
    let world = World::new(&rope, kv, pos);
    let [ldq, ldx, ldy] = [n_head * d_q + 8, d + 4, n_head * d + 16].map(|n| n as usize);
    let (q, x) = (random_values(3, ldq * n_col), random_values(4, ldx * n_col));
    let aux = random_values(5, rank as usize);
    let before = random_values(6, ldy * n_col);
    let (mut y, mut cache) = (before.clone(), vec![0.0; world.n_value()]);
    let [n_rot, rank, d, d_q] = [n_rot, rank, d, d_q].map(|n| n as usize);
    for (c, p) in pos.iter().enumerate() {
        for head in 0..n_head as usize {
            let mut end = q[c * ldq + (head + 1) * d_q - n_rot..][..n_rot].to_vec();
            rope.rotate_by(&mut end, n_rot, world.components(c));
            y[c * ldy + head * d + rank..][..n_rot].copy_from_slice(&end);
        }
        let mut key = rms_norm(&x[c * ldx..][..rank], Some(&aux), eps);
        key.extend_from_slice(&x[c * ldx + rank..][..n_rot]);
        rope.rotate_by(&mut key[rank..], n_rot, world.components(c));
        cache[world.cell(*p, 0) * d..][..d].copy_from_slice(&key);
    }
    let call = LatentKv {
        kv,
        n_head,
        d_q: d_q as u32,
        pairing,
        sections: world.sections(),
        eps,
        ldq: ldq as u32,
        ldx: ldx as u32,
        ldy: ldy as u32,
        n_col: n_col as u32,
    };
    Case::new(
        format!(
            "{pairing:?} {k} d{d} rank{rank} {n_head} heads of {d_q} pos{pos:?} sections {}",
            sections.is_some()
        ),
        move |caps| call.dispatch(caps),
        vec![
            CaseBuffer::input("q", &q),
            CaseBuffer::input("x", &x),
            CaseBuffer::input("aux", &aux),
            CaseBuffer::input("step", &world.step),
            CaseBuffer::input("rope", &world.tables),
            CaseBuffer::output("y", &before, Expected::F32 { values: y, max_nmse: 1e-7 }),
            CaseBuffer::output("kv", &world.empty_cache(), world.expected_cache(&cache)),
        ],
    )
}
