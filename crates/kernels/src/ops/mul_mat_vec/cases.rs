//! Cases of `mul_mat_vec`: every format, every epilogue, odd sizes.

use ggml_format::GgmlType;

use super::{ActivationPrecision, Epilogue, MulMatVec, pairs, reference};
use crate::affine::{Affine, AffineBy};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::format::{FORMATS, Format, Matrix};
use crate::kv::{KvLayout, RopeKv};
use crate::ops::get_rows::cases::table;
use crate::ops::{get_rows, glu, rms_norm, rope_kv};
use crate::rng::random_values;
use crate::tuning::MatVecTune;
use chaski_graph::{Rope, RopePairing, Sections};

/// Plain formats lose only the rounding of f32 sums.
const PLAIN: f64 = 1e-9;
/// Integers carry an offset of 1024 (`shared/bytes.wgsl.jinja`), which costs ten bits of the sums; ggml allows 5e-4.
const SCALED: f64 = 3e-7;

pub(crate) fn limit(f: &Format) -> f64 {
    if f.run == 0 { PLAIN } else { SCALED }
}

/// Scales and biases by row, and by column.
pub(crate) const ROWS: Option<AffineBy> = Some(AffineBy::Row);
pub(crate) const COLUMNS: Option<AffineBy> = Some(AffineBy::Column);

/// Formats that are tested in every shape and epilogue, one for each layout of units in a row; one shape covers what is
/// specific to the others.
pub(super) const TELLING: [&str; 5] = ["f32", "f16", "q8_0", "q4_K", "q6_K"];

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for act in ActivationPrecision::ALL {
        for f in FORMATS.iter().filter(|f| act == ActivationPrecision::F32 || f.run > 0) {
            if TELLING.contains(&f.name) {
                telling(f, act, &mut out);
            } else {
                // Several passes, the last of which is partial.
                let k = 1280 + f.block as u32 % 256;
                let tune = Some(MatVecTune { fill: 64, team: 32, act, doubled: false });
                out.push(plain_of(f, 37, k, Epilogue::Add, None, ROWS, act, tune));
            }
            if act != ActivationPrecision::I8 {
                let tune = Some(MatVecTune { fill: 256, team: 64, act, doubled: true });
                out.push(plain_of(f, 37, 2304, Epilogue::Store, None, None, act, tune));
            }
        }
    }
    for (i, [a, b]) in pairs().enumerate() {
        let telling = [a, b].iter().all(|f| TELLING.contains(&f.name));
        for act in
            if telling { &ActivationPrecision::ALL[..] } else { &ActivationPrecision::ALL[i % 3..][..1] }
        {
            out.push(rope_kv(a, Some(b), (RopePairing::Norm, None), 32, true, ROWS, *act));
            if telling {
                out.push(rope_kv(a, Some(b), (RopePairing::Norm, None), 20, false, None, *act));
            }
        }
    }
    out
}

/// Cases with f32 activations.
pub(crate) fn exact() -> Vec<Case> {
    let mut out = Vec::new();
    for f in FORMATS {
        if TELLING.contains(&f.name) {
            telling(f, ActivationPrecision::F32, &mut out);
        } else {
            let k = 1280 + f.block as u32 % 256;
            out.push(plain_of(f, 37, k, Epilogue::Add, None, ROWS, ActivationPrecision::F32, None));
        }
    }
    out.extend(pairs().map(|[a, b]| {
        rope_kv(a, Some(b), (RopePairing::Norm, None), 32, true, ROWS, ActivationPrecision::F32)
    }));
    out
}

/// Gate and up of a token, and q, k, v, with the device's own precision of x.
pub(crate) fn probes(f: &'static Format) -> [Case; 2] {
    let swiglu = Epilogue::Glu(chaski_graph::Act::Swiglu);
    [
        plain_of(f, 64, 2048, swiglu, Some(1e-5), None, None, None),
        rope_kv(f, None, (RopePairing::Norm, None), 32, true, None, None),
    ]
}

/// All shapes and epilogues.
fn telling(f: &'static Format, act: ActivationPrecision, out: &mut Vec<Case>) {
    // Teams that process many rows, rows that take several passes, more threads than values.
    let tune = |fill, team| Some(MatVecTune { fill, team, act, doubled: false });
    let swiglu = Epilogue::Glu(chaski_graph::Act::Swiglu);
    out.push(plain_of(f, 64, 512, Epilogue::Store, Some(1e-5), ROWS, act, tune(64, 512)));
    out.push(plain_of(f, 9, 2048, Epilogue::Add, None, ROWS, act, tune(1, 64)));
    out.push(plain_of(f, 18, 2048, swiglu, Some(1e-5), None, act, tune(1, 64)));
    out.push(rope_kv(f, None, (RopePairing::Neox, None), 24, false, ROWS, act));
    let sections = Sections { pairs: [4, 5, 3, 0], take_turns: true };
    out.push(rope_kv(f, None, (RopePairing::Neox, Some(sections)), 24, true, None, act));
    if act == ActivationPrecision::I8 {
        return;
    }
    let doubled = Some(MatVecTune { fill: 1, team: 64, act, doubled: true });
    out.push(plain_of(f, 21, 2048, Epilogue::Add, Some(1e-5), ROWS, act, doubled));
    out.push(plain_of(f, 21, 2048, Epilogue::Store, Some(1e-5), COLUMNS, act, doubled));
    out.push(plain_of(f, 9, 512, Epilogue::Store, Some(1e-5), COLUMNS, act, tune(64, 64)));
    out.push(plain_of(f, 37, 1024, Epilogue::Add, None, COLUMNS, act, tune(64, 32)));
    out.push(plain_of(f, 37, 1024, Epilogue::Add, None, None, act, tune(128, 32)));
    out.push(plain(f, 33, 512, Epilogue::Store, None, None, act));
    out.push(plain(f, 5, 4096, Epilogue::Store, Some(1e-5), ROWS, act));
    out.push(plain(f, 6, 512, swiglu, None, ROWS, act));
    if f.name == "q8_0" {
        for kind in chaski_graph::Act::ALL {
            out.push(plain(f, 14, 256, Epilogue::Glu(kind), None, ROWS, act));
        }
    }
    out.push(rope_kv(f, None, (RopePairing::Norm, None), 32, true, None, act));
    if act == ActivationPrecision::F32 {
        for (m, k) in [(1, 256), (0, 256)] {
            out.push(plain(f, m, k, Epilogue::Store, None, None, act));
        }
        if f.is_plain() {
            for (m, k) in [(5, 65), (4, 3), (64, 588), (9, 172)] {
                out.push(plain(f, m, k, Epilogue::Store, Some(1e-5), None, act));
            }
        }
    }
}

pub(super) fn rows_of(f: &Format, blocks: &[u8], k: usize, n_row: usize) -> Vec<Vec<f32>> {
    (0..n_row).map(|r| get_rows::reference::row(f.ty, blocks, k, r)).collect()
}

/// (scale, bias) of each row.
fn affine_of(n_row: usize) -> Vec<f32> {
    random_values(77, 2 * n_row)
}

/// Applies the pairs of the rows, or the first one.
fn apply(r: &mut [f32], affine: Option<AffineBy>) {
    let a = affine_of(r.len());
    match affine {
        None => {}
        Some(AffineBy::Row) => r.iter_mut().enumerate().for_each(|(i, v)| *v = *v * a[2 * i] + a[2 * i + 1]),
        Some(AffineBy::Column) => r.iter_mut().for_each(|v| *v = *v * a[0] + a[1]),
    }
}

fn plain(
    f: &'static Format,
    m: u32,
    k: u32,
    epilogue: Epilogue,
    norm: Option<f32>,
    affine: Option<AffineBy>,
    act: ActivationPrecision,
) -> Case {
    plain_of(f, m, k, epilogue, norm, affine, act, None)
}

/// x as the kernel sees it, normalised (weighted, divided by the root mean square) if `norm`.
pub(super) fn seen(
    format: &Format,
    act: ActivationPrecision,
    x: &[f32],
    norm: Option<(&[f32], f32)>,
) -> Vec<f32> {
    if act != ActivationPrecision::I8 || format.run == 0 {
        return norm.map_or(x.to_vec(), |(w, eps)| rms_norm::reference::rms_norm(x, Some(w), eps));
    }
    // Rounding precedes the division by the root mean square, which is one factor for the row.
    let weighted: Vec<f32> = norm.map_or(x.to_vec(), |(w, _)| x.iter().zip(w).map(|(x, w)| x * w).collect());
    let rounded = reference::round8(&weighted, 4 * format.run);
    let Some((_, eps)) = norm else { return rounded };
    let mean = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (mean + f64::from(eps)).sqrt();
    rounded.iter().map(|v| (f64::from(*v) * scale) as f32).collect()
}

fn plain_of(
    f: &'static Format,
    m: u32,
    k: u32,
    epilogue: Epilogue,
    norm: Option<f32>,
    affine: Option<AffineBy>,
    act: impl Into<Option<ActivationPrecision>>,
    tune: Option<MatVecTune>,
) -> Case {
    let act = act.into();
    let (mu, ku) = (m as usize, k as usize);
    let blocks = table(f, mu, ku, 3);
    let mut x = random_values(5, ku.next_multiple_of(4));
    // Values past the end of a ragged row must be ignored.
    x[ku..].fill(f32::NAN);
    let weights = random_values(6, ku.next_multiple_of(8));
    let xn =
        seen(f, act.unwrap_or(ActivationPrecision::F32), &x[..ku], norm.map(|eps| (&weights[..ku], eps)));
    let rows = rows_of(f, &blocks, ku, mu);
    let mut r = reference::mul_mat_vec(mu, |i| rows[i].clone(), &xn);
    apply(&mut r, affine);
    let y0 = 3usize;
    let y = random_values(8, mu + 2 * y0);
    let mut values = y.clone();
    match epilogue {
        Epilogue::Store => values[y0..y0 + mu].copy_from_slice(&r),
        Epilogue::Add => values[y0..y0 + mu].iter_mut().zip(&r).for_each(|(v, r)| *v += r),
        Epilogue::Glu(act) => {
            let (g, u) = r.split_at(mu / 2);
            values[y0..y0 + mu / 2].copy_from_slice(&glu::reference::glu(act, g, u));
        }
        Epilogue::RopeKv(_) => unreachable!("has its own cases"),
    }
    let matrix = Matrix { format: f, n_row: m, n_col: k };
    let mut aux = weights;
    let at = aux.len() as u32;
    aux.extend(affine_of(mu.max(2)));
    aux.resize(aux.len().next_multiple_of(4), 0.0);
    let call = MulMatVec {
        norm,
        affine: affine.map(|by| Affine { at, by }),
        y0: y0 as u32,
        act,
        tune,
        ..MulMatVec::new(matrix, epilogue)
    };
    let name = match epilogue {
        Epilogue::Store => "store",
        Epilogue::Add => "add",
        Epilogue::Glu(act) => act.word(),
        Epilogue::RopeKv(_) => unreachable!("has its own cases"),
    };
    Case::new(
        format!(
            "{} {m}x{k} {name} {} norm{} affine {affine:?} {tune:?}",
            f.name,
            act.map_or("auto", ActivationPrecision::word),
            norm.is_some()
        ),
        move |caps| call.dispatch(caps),
        vec![
            CaseBuffer::input("w", &matrix.layout().pack_all(f, k, &blocks)),
            CaseBuffer::input("x", &x),
            CaseBuffer::input("aux", &aux),
            CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: limit(f) }),
        ],
    )
    .work(2 * u64::from(m) * u64::from(k))
}

/// Four query heads over two KV heads of 32 channels, position 70 on the third page.
fn rope_kv(
    f: &'static Format,
    f2: Option<&'static Format>,
    (pairing, sections): (RopePairing, Option<Sections>),
    n_rot: u32,
    f16: bool,
    affine: Option<AffineBy>,
    act: impl Into<Option<ActivationPrecision>>,
) -> Case {
    let act = act.into();
    let (k, d, m_q, m_k) = (256usize, 32u32, 128u32, 64u32);
    let m = (m_q + 2 * m_k) as usize;
    let m1 = if f2.is_some() { (m_q + m_k) as usize } else { m };
    let blocks = table(f, m1, k, 13);
    let mut rows = rows_of(f, &blocks, k, m1);
    let w = Matrix { format: f, n_row: m1 as u32, n_col: k as u32 };
    let mut buffers = vec![CaseBuffer::input("w", &w.layout().pack_all(f, k as u32, &blocks))];
    let w2 = f2.map(|f2| {
        let blocks = table(f2, m - m1, k, 500);
        rows.extend(rows_of(f2, &blocks, k, m - m1));
        let w2 = Matrix { format: f2, n_row: (m - m1) as u32, n_col: k as u32 };
        buffers.push(CaseBuffer::input("w2", &w2.layout().pack_all(f2, k as u32, &blocks)));
        w2
    });
    let x = random_values(5, k);
    let weights = random_values(6, k);
    let eps = 1e-5;
    let formats: Vec<&Format> = [Some(f), f2].into_iter().flatten().collect();
    // With one plain format, the other is not rounded either.
    let rounded = if formats.iter().all(|f| f.run > 0) {
        act.unwrap_or(ActivationPrecision::F32)
    } else {
        ActivationPrecision::F32
    };
    let norm = Some((&weights[..], eps));
    let mut r = reference::mul_mat_vec(m1, |i| rows[i].clone(), &seen(formats[0], rounded, &x, norm));
    let second = seen(formats.last().expect("one or two"), rounded, &x, norm);
    r.extend(reference::mul_mat_vec(m - m1, |i| rows[m1 + i].clone(), &second));
    apply(&mut r, affine);
    let mut aux = weights.clone();
    aux.extend(affine_of(m));

    let ty = if f16 { GgmlType::F16 } else { GgmlType::F32 };
    let kv = KvLayout {
        n_kv: 2,
        d,
        d_v: d,
        in_keys: false,
        k: ty,
        v: ty,
        n_page: 4,
        page: 32,
        n_seq: 1,
        pages_per_seq: 3,
        pages_at: 20,
        wrap: 0,
    };
    let rope = Rope { magnitude: 1.1, sections, ..Rope::plain(n_rot, pairing, 10_000.0) };
    let world = rope_kv::cases::World::new(&rope, kv, &[70]);
    let (q, cache) = world.expect(&r, m_q, m_k);
    buffers.extend([
        CaseBuffer::input("x", &x),
        CaseBuffer::input("aux", &aux),
        CaseBuffer::input("step", &world.step),
        CaseBuffer::input("rope", &world.tables),
        CaseBuffer::output("y", &vec![0.0f32; m_q as usize], Expected::F32 { values: q, max_nmse: limit(f) }),
        CaseBuffer::output("kv", &world.empty_cache(), world.expected_cache(&cache)),
    ]);
    let call = MulMatVec {
        w2,
        norm: Some(eps),
        affine: affine.map(|by| Affine { at: k as u32, by }),
        act,
        ..MulMatVec::new(
            w,
            Epilogue::RopeKv(RopeKv { m_q, m_k, n_rot, pairing, sections: world.sections(), kv }),
        )
    };
    let second = f2.map_or(String::new(), |f| format!("+{}", f.name));
    Case::new(
        format!(
            "{}{second} rope_kv {} {pairing:?} n_rot{n_rot} sections {} f16{f16} affine {affine:?}",
            f.name,
            act.map_or("auto", ActivationPrecision::word),
            sections.is_some()
        ),
        move |caps| call.dispatch(caps),
        buffers,
    )
    .work(2 * (m * k) as u64)
}
