//! Cases of `rope_kv`, and the small world of cache, pages and positions that other operations' cases share.

use ggml_format::GgmlType;

use super::{CellNorm, RopeKvCols};
use crate::case::{Case, CaseBuffer, Expected, random_values};
use crate::kv::{KV_TYPES, KvLayout, RopeKv};
use crate::ops::rms_norm::reference::rms_norm;
use crate::rope::{Rope, RopePairing};
use crate::step;

/// Positions, page tables and rotation tables of a call.
pub(crate) struct World {
    pub(crate) step: Vec<u32>,
    pub(crate) tables: Vec<f32>,
    rope: Rope,
    kv: KvLayout,
    pos: Vec<u32>,
}

impl World {
    /// One sequence with the columns at `pos`; its pages lie in the cache in reverse order.
    pub(crate) fn new(rope: &Rope, kv: KvLayout, pos: &[u32]) -> Self {
        let mut words = vec![
            0u32;
            step::n_word(
                (kv.pages_at as usize - step::HEADER) / step::COLUMN,
                1,
                kv.pages_per_seq as usize
            )
        ];
        words[step::N_COL] = pos.len() as u32;
        for (c, p) in pos.iter().enumerate() {
            words[step::HEADER + step::COLUMN * c + 1] = *p;
        }
        for i in 0..kv.pages_per_seq {
            words[(kv.pages_at + i) as usize] = kv.n_page - 1 - i;
        }
        let tables = rope.tables(kv.page * kv.pages_per_seq);
        World { step: words, tables, rope: rope.clone(), kv, pos: pos.to_vec() }
    }

    /// Index of a cell.
    pub(crate) fn cell(&self, pos: u32, head: u32) -> usize {
        let kv = &self.kv;
        let page = kv.n_page - 1 - pos / kv.page;
        ((page * kv.n_kv + head) * kv.page + pos % kv.page) as usize
    }

    /// Values of keys and values together.
    pub(crate) fn n_value(&self) -> usize {
        (self.kv.n_cell() * (self.kv.d + self.kv.d_v)) as usize
    }

    /// A cache of zeros, in words.
    pub(crate) fn empty_cache(&self) -> Vec<u32> {
        vec![0; self.kv.n_byte() as usize / 4]
    }

    /// q rotated, and the cache's values (keys, then values), from the columns' rows q, k, v.
    pub(crate) fn expect(&self, rows: &[f32], m_q: u32, m_k: u32) -> (Vec<f32>, Vec<f32>) {
        self.expect_normed(rows, m_q, m_k, None)
    }

    /// The same with a norm of the heads of q and k, by the weights of q, then k.
    fn expect_normed(
        &self,
        rows: &[f32],
        m_q: u32,
        m_k: u32,
        norm: Option<(CellNorm, &[f32])>,
    ) -> (Vec<f32>, Vec<f32>) {
        let (d, d_v, m) = (self.kv.d as usize, self.kv.d_v as usize, rows.len() / self.pos.len());
        let (mut q, mut cache) = (Vec::new(), vec![0.0; self.n_value()]);
        for (col, pos) in rows.chunks_exact(m).zip(&self.pos) {
            let mut col = col.to_vec();
            let (qk, v) = col.split_at_mut((m_q + m_k) as usize);
            let normalise = |qk: &mut [f32], last: bool| {
                let Some((n, weights)) = norm.filter(|(n, _)| n.last == last) else { return };
                for (i, head) in qk.chunks_exact_mut(d).enumerate() {
                    let w = &weights[if i * d < m_q as usize { 0 } else { d }..][..d];
                    head.copy_from_slice(&rms_norm(head, Some(w), n.eps));
                }
            };
            normalise(qk, false);
            self.rope.rotate(qk, d, *pos);
            normalise(qk, true);
            q.extend_from_slice(&qk[..m_q as usize]);
            for h in 0..self.kv.n_kv {
                let (cell, h) = (self.cell(*pos, h), h as usize);
                cache[cell * d..][..d].copy_from_slice(&qk[m_q as usize + h * d..][..d]);
                let at = self.kv.n_cell() as usize * d + cell * d_v;
                cache[at..at + d_v].copy_from_slice(&v[h * d_v..][..d_v]);
            }
        }
        (q, cache)
    }

    /// What the cache must hold: these values, as its types round them.
    pub(crate) fn expected_cache(&self, values: &[f32]) -> Expected {
        let rounded = self.kv.decode(&self.kv.encode(values));
        if [self.kv.k, self.kv.v].contains(&GgmlType::IQ4_NL) {
            // The processor searches for the scale; the device takes the first, which is not much worse.
            let error: f64 = rounded.iter().zip(values).map(|(a, b)| f64::from(a - b).powi(2)).sum();
            let size: f64 = values.iter().map(|v| f64::from(*v).powi(2)).sum();
            let max_nmse = 1.5 * error / size.max(1e-30) + 1e-6;
            return Expected::Cells { kv: self.kv, values: values.to_vec(), max_nmse };
        }
        // A sum may be rounded the other way.
        let quantised = [self.kv.k, self.kv.v].iter().any(|ty| ty.block_len() > 1);
        let max_nmse = if quantised { 1e-5 } else { 1e-6 };
        Expected::Cells { kv: self.kv, values: rounded, max_nmse }
    }
}

pub(super) fn cases() -> Vec<Case> {
    use GgmlType::{BF16, F16, F32};
    let mut out = Vec::new();
    for pairing in [RopePairing::Norm, RopePairing::Neox] {
        for ty in [F16, F32] {
            for n_rot in [32, 20, 64] {
                for pos in [&[0u32, 1, 2][..], &[31, 32, 33, 95], &[50], &[]] {
                    out.push(case(pairing, (ty, ty), (64, 64), n_rot, pos, None));
                }
            }
        }
        for k in KV_TYPES {
            out.push(case(pairing, (*k, *k), (64, 128), 64, &[0, 1, 33], None));
            out.push(case(pairing, (*k, F16), (96, 32), 20, &[5], None));
            out.push(case(pairing, (BF16, *k), (32, 64), 32, &[64, 63], None));
            for last in [false, true] {
                let norm = Some(CellNorm { eps: 0.25, last });
                out.push(case(pairing, (*k, *k), (96, 64), 20, &[3, 95], norm));
                out.push(case(pairing, (*k, F32), (64, 128), 0, &[40, 41, 42], norm));
            }
        }
        // Heads whose fours of channels are no whole subgroup, and more of them than threads of a small one.
        for (d, n_rot) in [(8, 8), (40, 20), (256, 256), (512, 64)] {
            out.push(case(
                pairing,
                (F16, F16),
                (d, d),
                n_rot,
                &[7, 8],
                Some(CellNorm { eps: 1e-6, last: false }),
            ));
        }
    }
    out
}

fn case(
    pairing: RopePairing,
    (k, v): (GgmlType, GgmlType),
    (d, d_v): (u32, u32),
    n_rot: u32,
    pos: &[u32],
    norm: Option<CellNorm>,
) -> Case {
    let (m_q, m_k, m_v) = (3 * d, 2 * d, 2 * d_v);
    let pages_at = 16 + 4 * 5;
    let kv = KvLayout { n_kv: 2, d, d_v, k, v, n_page: 4, page: 32, n_seq: 1, pages_per_seq: 3, pages_at };
    let rope = Rope {
        ext_factor: 1.0,
        freq_scale: 0.25,
        n_ctx_orig: 16,
        magnitude: 1.14,
        factors: Some((0..n_rot / 2).map(|i| 1.0 + i as f32 * 0.1).collect()),
        ..Rope::plain(n_rot, pairing, 10_000.0)
    };
    let world = World::new(&rope, kv, pos);
    let m = (m_q + m_k + m_v) as usize;
    let n_col = pos.len() as u32;
    let x = random_values(3, m * pos.len().max(1));
    let aux = random_values(4, 2 * d as usize);
    let (q, cache) = if pos.is_empty() {
        (vec![0.0; m_q as usize], vec![0.0; world.n_value()])
    } else {
        world.expect_normed(&x, m_q, m_k, norm.map(|n| (n, &aux[..])))
    };
    let call = RopeKvCols {
        rows: RopeKv { m_q, m_k, n_rot, pairing, kv },
        m_v,
        norm,
        ldx: m as u32,
        ldy: m_q,
        n_col,
    };
    let mut buffers = vec![
        CaseBuffer::input("x", &x),
        CaseBuffer::input("step", &world.step),
        // A rotation of no channels has no tables.
        CaseBuffer::input("rope", if n_rot == 0 { &[0.0; 4] } else { &world.tables[..] }),
        CaseBuffer::output("y", &vec![0.0f32; q.len()], Expected::F32 { values: q, max_nmse: 1e-7 }),
        CaseBuffer::output("kv", &world.empty_cache(), world.expected_cache(&cache)),
    ];
    if norm.is_some() {
        buffers.push(CaseBuffer::input("aux", &aux));
    }
    Case::new(
        format!("{pairing:?} {k}/{v} d{d}/{d_v} n_rot{n_rot} pos{pos:?} norm{norm:?}"),
        move |caps| call.dispatch(caps),
        buffers,
    )
}
