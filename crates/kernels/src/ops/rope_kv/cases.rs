//! Cases of `rope_kv`, and a setup of cache, pages and positions that other operations' cases share.

use chaski_graph::NormKind;
use ggml_format::GgmlType;

use super::{CellNorm, Over, RopeKvCols};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::kv::{KV_TYPES, KvLayout, RopeKv};
use crate::ops::norm::reference::norm as normalised;
use crate::rng::random_values;
use crate::step;
use chaski_graph::{Rope, RopePairing, Sections};

/// Positions, page tables and RoPE tables of a call.
pub(crate) struct World {
    pub(crate) step: Vec<u32>,
    pub(crate) tables: Vec<f32>,
    rope: Rope,
    kv: KvLayout,
    pos: Vec<u32>,
    max_col: usize,
}

impl World {
    /// One sequence with columns at `pos`; its pages are in the cache in reverse order.
    pub(crate) fn new(rope: &Rope, kv: KvLayout, pos: &[u32]) -> Self {
        let max_col = (kv.pages_at as usize - step::HEADER) / step::COLUMN;
        let mut words = vec![0u32; step::n_word(max_col, 1, kv.pages_per_seq as usize)];
        words[step::N_COL] = pos.len() as u32;
        for (c, p) in pos.iter().enumerate() {
            words[step::HEADER + step::COLUMN * c + 1] = *p;
        }
        for i in 0..kv.pages_per_seq {
            words[(kv.pages_at + i) as usize] = kv.n_page - 1 - i;
        }
        let tables = crate::rope::tables(rope, kv.page * kv.pages_per_seq);
        let mut world = World { step: words, tables, rope: rope.clone(), kv, pos: pos.to_vec(), max_col };
        if rope.sections.is_some() {
            let shifts = (0..max_col).flat_map(|c| {
                let pos = pos.get(c).copied().unwrap_or(0);
                world.components(c).map(|p| p.wrapping_sub(pos))
            });
            world.step.extend(shifts.collect::<Vec<_>>());
        }
        world
    }

    /// The components of a column's position: three that differ where RoPE has sections.
    pub(crate) fn components(&self, c: usize) -> [u32; 3] {
        let pos = self.pos.get(c).copied().unwrap_or(0);
        match self.rope.sections {
            Some(_) => [pos / 2 + 1, pos + c as u32, pos / 3],
            None => [pos; 3],
        }
    }

    /// Sections, and where the step has the shifts.
    pub(crate) fn sections(&self) -> Option<(Sections, u32)> {
        let at = step::shifts_at(self.max_col, 1, self.kv.pages_per_seq as usize) as u32;
        self.rope.sections.map(|s| (s, at))
    }

    /// Index of a cell.
    pub(crate) fn cell(&self, pos: u32, head: u32) -> usize {
        let kv = &self.kv;
        let page = kv.n_page - 1 - pos / kv.page;
        ((page * kv.n_kv + head) * kv.page + pos % kv.page) as usize
    }

    /// Number of values of keys and values.
    pub(crate) fn n_value(&self) -> usize {
        let stored = if self.kv.in_keys { self.kv.d } else { self.kv.d + self.kv.d_v };
        (self.kv.n_cell() * stored) as usize
    }

    /// A cache of zeros, in words.
    pub(crate) fn empty_cache(&self) -> Vec<u32> {
        vec![0; self.kv.n_byte() as usize / 4]
    }

    /// q after RoPE, and the cache's values (keys, then values), from the rows q, k, v of the columns.
    pub(crate) fn expect(&self, rows: &[f32], m_q: u32, m_k: u32) -> (Vec<f32>, Vec<f32>) {
        self.expect_normed(rows, [m_q, m_k, m_q + m_k], None)
    }

    /// The same with a norm by the weights of q, then k, and with values from row `v_at`. Without rows of k the cache
    /// does not change.
    fn expect_normed(
        &self,
        rows: &[f32],
        [m_q, m_k, v_at]: [u32; 3],
        norm: Option<(CellNorm, &[f32])>,
    ) -> (Vec<f32>, Vec<f32>) {
        let (d, d_v, m) = (self.kv.d as usize, self.kv.d_v as usize, rows.len() / self.pos.len());
        let (mut q, mut cache) = (Vec::new(), vec![0.0; self.n_value()]);
        for (c, (col, pos)) in rows.chunks_exact(m).zip(&self.pos).enumerate() {
            let mut qk = col[..(m_q + m_k) as usize].to_vec();
            let normalise = |qk: &mut [f32], late: bool| {
                let Some((n, weights)) = norm.filter(|(n, _)| (n.over == Over::Rotated) == late) else {
                    return;
                };
                let (of_q, of_k) = qk.split_at_mut(m_q as usize);
                // Weights of q, then of k: one per row, or one per channel of a head.
                let n_weight = if n.own { m_q as usize } else { d };
                let kind = if n.mean { NormKind::Norm } else { NormKind::Rms };
                for (rows, weights) in [(of_q, weights), (of_k, &weights[n_weight..])] {
                    let span = if n.over == Over::Rows { rows.len().max(1) } else { d };
                    for (i, run) in rows.chunks_exact_mut(span).enumerate() {
                        scale(run, kind, n.eps, |j| weights[if n.own { i * span + j } else { j % d }]);
                    }
                }
            };
            normalise(&mut qk, false);
            self.rope.rotate_by(&mut qk, d, self.components(c));
            normalise(&mut qk, true);
            q.extend_from_slice(&qk[..m_q as usize]);
            for h in 0..(m_k / self.kv.d) as usize {
                let cell = self.cell(*pos, h as u32);
                cache[cell * d..][..d].copy_from_slice(&qk[m_q as usize + h * d..][..d]);
                let value = &mut cache[self.kv.n_cell() as usize * d + cell * d_v..][..d_v];
                value.copy_from_slice(&col[v_at as usize + h * d_v..][..d_v]);
                if let Some((n, _)) = norm.filter(|(n, _)| n.values) {
                    scale(value, NormKind::Rms, n.eps, |_| 1.0);
                }
            }
        }
        (q, cache)
    }

    /// Expected contents of the cache: these values, rounded to its types.
    pub(crate) fn expected_cache(&self, values: &[f32]) -> Expected {
        let rounded = self.kv.decode(&self.kv.encode(values));
        // A sum may round differently.
        let quantised = [self.kv.k, self.kv.v].iter().any(|ty| ty.block_len() > 1);
        let max_nmse = if quantised { 1e-5 } else { 1e-6 };
        Expected::Cells { kv: self.kv, values: rounded, max_nmse }
    }
}

/// Normalises a run in place and multiplies it by its weights.
fn scale(run: &mut [f32], kind: NormKind, eps: f32, weight: impl Fn(usize) -> f32) {
    let wide: Vec<f64> = run.iter().map(|v| f64::from(*v)).collect();
    let made = normalised(kind, eps.into(), &wide);
    run.iter_mut().zip(made).enumerate().for_each(|(j, (v, n))| *v = (n * f64::from(weight(j))) as f32);
}

/// Options of a case.
#[derive(Clone, Copy, Debug)]
struct Setting<'a> {
    pairing: RopePairing,
    types: (GgmlType, GgmlType),
    d: u32,
    d_v: u32,
    n_rot: u32,
    pos: &'a [u32],
    norm: Option<CellNorm>,
    /// Values are computed from the rows of the keys.
    from_keys: bool,
    /// Queries only.
    bare: bool,
    /// Pairs follow three components of a position.
    sections: Option<Sections>,
}

pub(super) fn cases() -> Vec<Case> {
    use GgmlType::{BF16, F16, F32};
    let mut out = Vec::new();
    for pairing in [RopePairing::Norm, RopePairing::Neox] {
        let new = |types, (d, d_v), n_rot, pos| Setting {
            pairing,
            types,
            d,
            d_v,
            n_rot,
            pos,
            norm: None,
            from_keys: false,
            bare: false,
            sections: None,
        };
        for ty in [F16, F32] {
            for n_rot in [32, 20, 64] {
                for pos in [&[0u32, 1, 2][..], &[31, 32, 33, 95], &[50], &[]] {
                    out.push(new((ty, ty), (64, 64), n_rot, pos));
                }
            }
        }
        let heads = CellNorm::heads(0.25);
        let late = CellNorm { over: Over::Rotated, ..heads };
        for k in KV_TYPES {
            out.push(new((*k, *k), (64, 128), 64, &[0, 1, 33]));
            out.push(new((*k, F16), (96, 32), 20, &[5]));
            out.push(new((BF16, *k), (32, 64), 32, &[64, 63]));
            for norm in [heads, late] {
                let norm = Some(norm);
                out.push(Setting { norm, ..new((*k, *k), (96, 64), 20, &[3, 95]) });
                out.push(Setting { norm, ..new((*k, F32), (64, 128), 0, &[40, 41, 42]) });
            }
        }
        // Heads whose quads of channels do not fill a subgroup, and more quads than a small workgroup has threads.
        for (d, n_rot) in [(8, 8), (40, 20), (256, 256), (512, 64)] {
            let norm = Some(CellNorm::heads(1e-6));
            out.push(Setting { norm, ..new((F16, F16), (d, d), n_rot, &[7, 8]) });
        }
        for types in [(F16, F16), (F32, F32), (GgmlType::Q8_0, GgmlType::Q4_0)] {
            let plain = new(types, (64, 64), 32, &[9, 64, 10]);
            out.push(Setting { bare: true, ..plain });
            out.push(Setting { from_keys: true, ..plain });
            // Whole rows, per-row weights, layer norms, and normalised values.
            for (over, mean, own) in [
                (Over::Rows, false, true),
                (Over::Rows, true, false),
                (Over::Heads, true, true),
                (Over::Rotated, true, false),
                (Over::Rotated, false, true),
            ] {
                for (d, d_v) in [(64, 96), (128, 32), (32, 32)] {
                    let norm = Some(CellNorm { over, mean, own, ..heads });
                    out.push(Setting { norm, ..new(types, (d, d_v), 32, &[9, 64]) });
                }
            }
            for (d, from_keys, bare) in [(64, false, false), (256, true, false), (64, false, true)] {
                let norm = Some(CellNorm { values: true, ..heads });
                out.push(Setting { norm, from_keys, bare, ..new(types, (d, d), 32, &[9, 64]) });
            }
        }
    }
    for (pairs, take_turns) in
        [([6, 5, 5, 0], false), ([6, 5, 5, 0], true), ([2, 9, 1, 4], false), ([1, 2, 0, 0], true)]
    {
        let sections = Some(Sections { pairs, take_turns });
        for (types, norm) in
            [((F16, F16), None), ((F32, F32), Some(CellNorm::heads(0.25))), ((GgmlType::Q8_0, F16), None)]
        {
            let plain = out[0];
            out.push(Setting { types, norm, sections, n_rot: 32, pos: &[0, 40, 41, 90], ..plain });
        }
    }
    out.into_iter().map(case).collect()
}

fn case(s: Setting<'_>) -> Case {
    let Setting { pairing, types: (k, v), d, d_v, n_rot, pos, norm, .. } = s;
    let m_q = 3 * d;
    let (m_k, m_v) = if s.bare { (0, 0) } else { (2 * d, 2 * d_v) };
    let v_at = if s.from_keys { m_q } else { m_q + m_k };
    let pages_at = 16 + 4 * 5;
    let kv = KvLayout {
        n_kv: 2,
        d,
        d_v,
        in_keys: false,
        k,
        v,
        n_page: 4,
        page: 32,
        n_seq: 1,
        pages_per_seq: 3,
        pages_at,
        wrap: 0,
    };
    let rope = Rope {
        ext_factor: 1.0,
        freq_scale: 0.25,
        n_ctx_orig: 16,
        magnitude: 1.14,
        factors: Some((0..n_rot / 2).map(|i| 1.0 + i as f32 * 0.1).collect()),
        sections: s.sections,
        ..Rope::plain(n_rot, pairing, 10_000.0)
    };
    let world = World::new(&rope, kv, pos);
    let m = (v_at + m_v).max(m_q + m_k) as usize;
    let n_col = pos.len() as u32;
    let x = random_values(3, m * pos.len().max(1));
    let aux = random_values(4, (m_q + m_k) as usize + d as usize);
    let (q, cache) = if pos.is_empty() {
        (vec![0.0; m_q as usize], vec![0.0; world.n_value()])
    } else {
        world.expect_normed(&x, [m_q, m_k, v_at], norm.map(|n| (n, &aux[..])))
    };
    let call = RopeKvCols {
        rows: RopeKv { m_q, m_k, n_rot, pairing, sections: world.sections(), kv },
        m_v,
        v_at,
        norm,
        ldx: m as u32,
        ldy: m_q,
        n_col,
    };
    let mut buffers = vec![
        CaseBuffer::input("x", &x),
        CaseBuffer::input("step", &world.step),
        // RoPE of no channels has no tables.
        CaseBuffer::input("rope", if n_rot == 0 { &[0.0; 4] } else { &world.tables[..] }),
        CaseBuffer::output("y", &vec![0.0f32; q.len()], Expected::F32 { values: q, max_nmse: 1e-7 }),
        CaseBuffer::output("kv", &world.empty_cache(), world.expected_cache(&cache)),
    ];
    if norm.is_some() {
        buffers.push(CaseBuffer::input("aux", &aux));
    }
    Case::new(
        format!(
            "{pairing:?} {k}/{v} d{d}/{d_v} rows{m_q}+{m_k}+{m_v} values at {v_at} n_rot{n_rot} pos{pos:?} {norm:?}{}",
            s.sections.map_or(String::new(), |s| format!(" {s:?}"))
        ),
        move |caps| call.dispatch(caps),
        buffers,
    )
}
