//! Cases of products that round their result, each followed by a product that reads it.

use super::cases::{COLUMNS, ROWS, TELLING, limit, rows_of, seen};
use super::{ActivationPrecision, Epilogue, MulMatVec, reference, rounded_words};
use crate::affine::{Affine, AffineBy};
use crate::caps::Caps;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::dispatch::{DispatchError, Step};
use crate::format::{FORMATS, Format, Matrix};
use crate::ops::get_rows::cases::table;
use crate::ops::glu;
use crate::rng::random_values;

const EPS: f32 = 1e-5;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    let swiglu = Epilogue::Glu(chaski_graph::Act::Swiglu);
    for act in [ActivationPrecision::I16, ActivationPrecision::I8] {
        for f in FORMATS.iter().filter(|f| f.run > 0 && TELLING.contains(&f.name)) {
            // Teams of one and of several subgroups.
            for (m, k, affine) in [(256, 256, None), (512, 2048, ROWS)] {
                out.push(Pair { f, m, k, epilogue: Epilogue::Add, affine, act }.case());
                out.push(Pair { f, m, k, epilogue: swiglu, affine, act }.case());
            }
            out.push(Pair { f, m: 256, k: 512, epilogue: Epilogue::Add, affine: COLUMNS, act }.case());
        }
    }
    out
}

/// A product of m results from k values, and one that reads them.
#[derive(Clone, Copy, Debug)]
struct Pair {
    f: &'static Format,
    m: u32,
    k: u32,
    epilogue: Epilogue,
    affine: Option<AffineBy>,
    act: ActivationPrecision,
}

impl Pair {
    fn case(self) -> Case {
        let Pair { f, m, k, epilogue, affine, act } = self;
        let is_sum = matches!(epilogue, Epilogue::Add);
        let (mu, ku) = (m as usize, k as usize);
        let n_row = if is_sum { mu } else { 2 * mu };
        let blocks = table(f, n_row, ku, 3);
        let rows = rows_of(f, &blocks, ku, n_row);
        let x = random_values(5, ku);
        // The norm behind a sum, or the one before a gated value; then scales and biases.
        let weights = random_values(6, if is_sum { mu } else { ku });
        let before = (!is_sum).then_some((&weights[..], EPS));
        let mut r = reference::mul_mat_vec(n_row, |i| rows[i].clone(), &seen(f, act, &x, before));
        let mut aux = weights.clone();
        if let Some(by) = affine {
            let pairs = random_values(77, 2 * n_row);
            let pair = |row: usize| if by == AffineBy::Row { 2 * row } else { 0 };
            r.iter_mut().enumerate().for_each(|(i, v)| *v = *v * pairs[pair(i)] + pairs[pair(i) + 1]);
            aux.extend(pairs);
        }
        let mut y = random_values(8, mu + rounded_words(m) as usize);
        let made: Vec<f32> = match epilogue {
            Epilogue::Glu(act) => glu::reference::glu(act, &r[..mu], &r[mu..]),
            _ => y.iter().zip(&r).map(|(y, r)| y + r).collect(),
        };
        let blocks2 = table(f, 24, mu, 19);
        let rows2 = rows_of(f, &blocks2, mu, 24);
        let after = is_sum.then_some((&weights[..], EPS));
        let read = reference::mul_mat_vec(24, |i| rows2[i].clone(), &seen(f, act, &made, after));
        if !is_sum {
            y.fill(0.0);
        }
        // Only the sums are the same on devices without rounded values.
        let sums = if is_sum { made } else { Vec::new() };

        let w = Matrix { format: f, n_row: n_row as u32, n_col: k };
        let w2 = Matrix { format: f, n_row: 24, n_col: m };
        let affine_at = weights.len() as u32;
        let steps = move |caps: &Caps| -> Result<Vec<Step>, DispatchError> {
            let first = MulMatVec {
                norm: (!is_sum).then_some(EPS),
                affine: affine.map(|by| Affine { at: affine_at, by }),
                act: Some(act),
                ..MulMatVec::new(w, epilogue)
            };
            let at = first.can_emit(caps).then_some(if is_sum { m } else { 0 });
            let second = MulMatVec {
                norm: is_sum.then_some(EPS),
                rounded: at,
                act: Some(act),
                ..MulMatVec::new(w2, Epilogue::Store)
            };
            let renamed = [("w", "w2"), ("x", "y"), ("y", "out")];
            let first = MulMatVec { emit: at, ..first }.dispatch(caps)?;
            Ok(vec![first.into(), Step::renamed(second.dispatch(caps)?, &renamed)])
        };
        Case::new(
            format!("{} {m}x{k} {} {} then 24 rows affine {affine:?}", f.name, epilogue.word(), act.word()),
            steps,
            vec![
                CaseBuffer::input("w", &w.layout().pack_all(f, k, &blocks)),
                CaseBuffer::input("x", &x),
                CaseBuffer::input("aux", &aux),
                CaseBuffer::output(
                    "y",
                    &y,
                    Expected::Runs(vec![(sums.len(), Expected::F32 { values: sums, max_nmse: limit(f) })]),
                ),
                CaseBuffer::input("w2", &w2.layout().pack_all(f, m, &blocks2)),
                CaseBuffer::output(
                    "out",
                    &[0.0f32; 24],
                    Expected::F32 { values: read, max_nmse: 2.0 * limit(f) },
                ),
            ],
        )
        .work(2 * u64::from(k) * n_row as u64 + 48 * u64::from(m))
    }
}
