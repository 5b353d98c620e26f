//! Cases of `attention`.

use super::{Attention, reference};
use crate::case::{Case, CaseBuffer, Expected, random_values};
use crate::kv::KvLayout;
use crate::ops::rope_kv::cases::World;
use crate::rope::{Rope, RopePairing};

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f16 in [true, false] {
        for d in [8, 40, 64, 80, 128, 192, 256, 512] {
            out.push(case(4, 2, d, f16, 1, &[0, 1, 40]));
        }
        for (n_head, n_kv) in [(1, 1), (4, 4), (8, 2), (6, 2), (16, 1), (12, 1), (10, 2)] {
            out.push(case(n_head, n_kv, 64, f16, 1, &[112]));
            out.push(case(n_head, n_kv, 32, f16, 1, &[63, 64, 65]));
        }
        out.push(case(4, 2, 64, f16, 1, &(90..123).collect::<Vec<_>>()));
    }
    out
}

fn case(n_head: u32, n_kv: u32, d: u32, f16: bool, splits: u32, pos: &[u32]) -> Case {
    let (call, q, world, cache, values) = setting(n_head, n_kv, d, f16, splits, pos);
    Case::new(
        format!("h{n_head}/{n_kv} d{d} f16{f16} n{} pos{}", pos.len(), pos[0]),
        move |caps| call.dispatch(caps),
        vec![
            CaseBuffer::input("q", &q),
            CaseBuffer::input("kv", &world.cache_words(&cache)),
            CaseBuffer::input("step", &world.step),
            CaseBuffer::output("y", &vec![0.0f32; values.len()], Expected::F32 { values, max_nmse: 1e-7 }),
        ],
    )
}

/// Queries, a filled cache and the result for the columns at `pos`.
fn setting(
    n_head: u32,
    n_kv: u32,
    d: u32,
    f16: bool,
    splits: u32,
    pos: &[u32],
) -> (Attention, Vec<f32>, World, Vec<f32>, Vec<f32>) {
    let pages_at = 16 + 4 * pos.len() as u32;
    let kv = KvLayout { n_kv, d, f16, n_page: 4, page: 32, pages_per_seq: 4, pages_at };
    let world = World::new(&Rope::plain(4, RopePairing::Norm, 1e4), kv, pos);
    let mut cache = random_values(9, world.n_value());
    if f16 {
        cache.iter_mut().for_each(|v| *v = half::f16::from_f32(*v).to_f32());
    }
    let (hd, du) = ((n_head * d) as usize, d as usize);
    let q = random_values(4, hd * pos.len());
    let scale = 1.0 / (d as f32).sqrt();
    let mut values = Vec::new();
    for (c, p) in pos.iter().enumerate() {
        for h in 0..n_head {
            let kv_head = h / (n_head / n_kv);
            let at = |j: usize| world.cell(j as u32, kv_head);
            let half = world.n_value() / 2;
            values.extend(reference::attention(
                &q[c * hd + h as usize * du..][..du],
                *p as usize + 1,
                |j| &cache[at(j)..at(j) + du],
                |j| &cache[half + at(j)..half + at(j) + du],
                scale,
            ));
        }
    }
    let call =
        Attention { n_head, kv, scale, splits, ldq: hd as u32, ldy: hd as u32, n_col: pos.len() as u32 };
    (call, q, world, cache, values)
}
