//! Cases of products by experts: separate slots, gated, or summed; matrices that hold all experts or some.

use super::cases::{COLUMNS, ROWS, TELLING, limit, rows_of, seen};
use super::{ActivationPrecision, Epilogue, MatVecExperts, MulMatVec, Slots, reference};
use crate::affine::{Affine, AffineBy};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::format::{FORMATS, Format, Matrix};
use crate::ops::get_rows::cases::table;
use crate::ops::glu;
use crate::rng::random_values;
use crate::route::{Experts, Route};
use crate::tuning::MatVecTune;

/// Options of a case in addition to the format.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Experts, those used per column, and first and number of those that w holds.
    n_expert: u32,
    n_used: u32,
    held: (u32, u32),
    /// Rows of an expert that produce one value each (gated: two rows each), and values per row.
    m: u32,
    k: u32,
    /// All slots share one column of x.
    shared: bool,
    epilogue: Epilogue,
    sum: bool,
    /// Slot i uses expert i.
    by_slot: bool,
    norm: bool,
    affine: Option<AffineBy>,
    act: ActivationPrecision,
    tune: Option<MatVecTune>,
}

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for act in [ActivationPrecision::F32, ActivationPrecision::I16, ActivationPrecision::I8] {
        for f in FORMATS.iter().filter(|f| act == ActivationPrecision::F32 || f.run > 0) {
            let gated = Epilogue::Glu(chaski_graph::Act::Swiglu);
            let shape = |n_expert, n_used, m, k, epilogue| Shape {
                n_expert,
                n_used,
                held: (0, n_expert),
                m,
                k,
                shared: true,
                epilogue,
                sum: false,
                by_slot: false,
                norm: false,
                affine: None,
                act,
                tune: None,
            };
            let few = Some(MatVecTune { fill: 64, team: 64, act, doubled: false });
            let wide = |s| Shape { tune: few, ..s };
            out.push(Shape { norm: true, ..shape(8, 2, 13, 512, gated) }.case(f));
            out.push(wide(Shape { sum: true, shared: false, ..shape(6, 3, 9, 512, Epilogue::Add) }).case(f));
            if act == ActivationPrecision::I8 {
                continue;
            }
            out.push(Shape { affine: ROWS, ..shape(4, 4, 18, 256, gated) }.case(f));
            out.push(
                wide(Shape { affine: ROWS, norm: true, ..shape(5, 3, 33, 512, Epilogue::Store) }).case(f),
            );
            out.push(Shape { shared: false, affine: ROWS, ..shape(4, 2, 10, 256, Epilogue::Store) }.case(f));
            if TELLING.contains(&f.name) {
                out.push(
                    Shape { affine: COLUMNS, norm: true, ..shape(4, 2, 5, 256, Epilogue::Store) }.case(f),
                );
            }
            let down = Shape { sum: true, shared: false, ..shape(16, 10, 7, 256, Epilogue::Store) };
            out.push(down.case(f));
            out.push(Shape { affine: ROWS, epilogue: Epilogue::Add, ..down }.case(f));
            // Heads: as many slots as matrices, and some reused.
            let heads = Shape { by_slot: true, shared: false, ..shape(5, 5, 10, 256, Epilogue::Store) };
            out.push(heads.case(f));
            out.push(Shape { held: (2, 2), affine: ROWS, ..heads }.case(f));
            // Some of the experts: slots of the others are not written, or not summed.
            let some = |s: Shape| Shape { held: (s.n_expert / 4, s.n_expert / 2), ..s };
            out.push(some(shape(8, 5, 6, 256, gated)).case(f));
            out.push(some(Shape { affine: ROWS, epilogue: Epilogue::Add, ..down }).case(f));
            if act == ActivationPrecision::F32 && f.is_plain() {
                for k in [65, 588, 3] {
                    out.push(Shape { sum: true, shared: false, ..shape(4, 3, 5, k, Epilogue::Add) }.case(f));
                    out.push(Shape { shared: false, ..shape(4, 2, 5, k, gated) }.case(f));
                }
            }
        }
    }
    for kind in chaski_graph::Act::ALL {
        let f = FORMATS.iter().find(|f| f.name == "q4_0").expect("a format of the table");
        let s = Shape {
            n_expert: 8,
            n_used: 4,
            held: (0, 8),
            m: 32,
            k: 256,
            shared: true,
            epilogue: Epilogue::Glu(kind),
            sum: false,
            by_slot: false,
            norm: false,
            affine: ROWS,
            act: ActivationPrecision::F32,
            tune: None,
        };
        out.push(s.case(f));
    }
    out
}

/// Distinct random experts for the slots.
pub(crate) fn choose(seed: u64, n_expert: u32, n_used: u32) -> Vec<u32> {
    let random = random_values(seed, n_expert as usize);
    let mut ids: Vec<u32> = (0..n_expert).collect();
    ids.sort_by(|a, b| random[*a as usize].total_cmp(&random[*b as usize]));
    ids.truncate(n_used as usize);
    ids
}

impl Shape {
    fn case(self, f: &'static Format) -> Case {
        let Shape { n_used, m, k, act, .. } = self;
        let (first, n_held) = self.held;
        let gated = matches!(self.epilogue, Epilogue::Glu(_));
        let n_row = if gated { 2 * m } else { m };
        let (ku, used) = (k as usize, n_used as usize);
        // The matrix holds rows of some experts; the reference covers only these.
        let blocks = table(f, (n_held * n_row) as usize, ku, 3);
        let rows = rows_of(f, &blocks, ku, (n_held * n_row) as usize);
        let route = Route { n_expert: self.n_expert, n_used, n_col: 1, tile: 64 };
        let ids = if self.by_slot { (0..n_used).collect() } else { choose(11, self.n_expert, n_used) };
        let weights: Vec<f32> = random_values(12, used).iter().map(|w| w.clamp(-1.0, 1.0)).collect();
        let mut words = ids.clone();
        words.extend(weights.iter().map(|w| w.to_bits()));
        if self.by_slot {
            words = vec![u32::MAX; 4];
        }

        let ldx = k.next_multiple_of(8);
        let mut x = random_values(5, ldx as usize * if self.shared { 1 } else { used });
        x.chunks_exact_mut(ldx as usize).for_each(|c| c[ku..].fill(f32::NAN));
        let norm = random_values(6, ku.next_multiple_of(8));
        let eps = 1e-5;
        let mut aux = norm.clone();
        let affine_at = aux.len() as u32;
        // One scale per expert, one bias per row.
        let (scales, biases) =
            (random_values(7, self.n_expert as usize), random_values(8, (self.n_expert * n_row) as usize));
        for (i, b) in biases.iter().enumerate() {
            aux.extend([scales[i / n_row as usize], *b]);
        }
        aux.resize(aux.len().next_multiple_of(4), 0.0);

        let (y0, ldy) = (3usize, m as usize + 2);
        let y = random_values(9, 2 * y0 + ldy * if self.sum { 1 } else { used });
        let mut values = y.clone();
        let mut total = vec![0.0f64; m as usize];
        for (slot, (id, weight)) in ids.iter().zip(&weights).enumerate() {
            if *id < first || *id >= first + n_held {
                continue;
            }
            let column = if self.shared { &x[..ku] } else { &x[slot * ldx as usize..][..ku] };
            // A sum rounds values after weights and scales, which are one factor per run.
            let seen = seen(f, act, column, self.norm.then_some((&norm[..ku], eps)));
            let row0 = ((id - first) * n_row) as usize;
            let mut r = reference::mul_mat_vec(n_row as usize, |i| rows[row0 + i].clone(), &seen);
            for (i, v) in r.iter_mut().enumerate() {
                match self.affine {
                    None => {}
                    Some(AffineBy::Row) => *v = *v * scales[*id as usize] + biases[(id * n_row) as usize + i],
                    Some(AffineBy::Column) => *v = *v * scales[0] + biases[0],
                }
            }
            if let Epilogue::Glu(kind) = self.epilogue {
                let (g, u) = r.split_at(m as usize);
                r = glu::reference::glu(kind, g, u);
            }
            if self.sum {
                total.iter_mut().zip(&r).for_each(|(t, r)| *t += f64::from(*weight) * f64::from(*r));
            } else {
                values[y0 + slot * ldy..][..m as usize].copy_from_slice(&r);
            }
        }
        if self.sum {
            let add = matches!(self.epilogue, Epilogue::Add);
            for (v, t) in values[y0..].iter_mut().zip(&total) {
                *v = if add { *v + *t as f32 } else { *t as f32 };
            }
        }
        let w = Matrix { format: f, n_row: n_held * n_row, n_col: k };
        let slots = if self.sum { Slots::Sum } else { Slots::Each { ldy: ldy as u32 } };
        let experts = Experts { route, first, n_row, stride: n_row, by_slot: self.by_slot };
        let call = MulMatVec {
            experts: Some(MatVecExperts { experts, ldx: if self.shared { 0 } else { ldx }, slots }),
            norm: self.norm.then_some(eps),
            affine: self.affine.map(|by| Affine { at: affine_at, by }),
            y0: y0 as u32,
            act: Some(act),
            tune: self.tune,
            ..MulMatVec::new(w, self.epilogue)
        };
        Case::new(
            format!("{} {self:?}", f.name),
            move |caps| call.dispatch(caps),
            vec![
                CaseBuffer::input("w", &w.layout().pack_all(f, k, &blocks)),
                CaseBuffer::input("x", &x),
                CaseBuffer::input("aux", &aux),
                CaseBuffer::input("route", &words),
                CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: limit(f) }),
            ],
        )
        .work(2 * u64::from(n_used * n_row) * u64::from(k))
    }
}
