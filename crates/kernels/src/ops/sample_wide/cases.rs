//! Cases of `sample_wide`.

use super::SampleWide;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::ops::sample::cases::{join, lists_of};
use crate::ops::sample::{
    CHUNK, CHUNK_ALONE, DRAWS_AT, MAX_TOP_K, N_DRAW, N_WORD, Sample, SampleParams, reference,
};
use crate::rng::random_values;
use crate::step::cases::{N_SEQ, Picked, seq_of};

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for chunk in [CHUNK, CHUNK_ALONE] {
        for k in [1, 64, 65, 1025, 5003] {
            let all = Shape::ALL.into_iter().flat_map(|shape| PARAMS.map(|p| (shape, p)));
            out.push(drawn(chunk, k, &all.collect::<Vec<_>>()));
        }
        let [top_p, min_p, all, some] = [0, 1, 2, 4].map(|i| PARAMS[i]);
        let few =
            [(Shape::Spread, top_p), (Shape::Spread, some), (Shape::Flat, all), (Shape::Rounded, min_p)];
        out.push(drawn(chunk, 128_256, &few));
        for (k, n_row) in [(1, 1), (1025, 3), (5003, 2)] {
            out.push(summed(chunk, k, n_row));
        }
    }
    out
}

/// Top-k, top-p, min-p and temperature of rows: without top-k, with more than 64, and as `sample` has them.
const PARAMS: [SampleParams; 10] = [
    SampleParams { top_k: 0, top_p: 0.95, min_p: 0.0, temp: 1.0 },
    SampleParams { top_k: 0, top_p: 1.0, min_p: 0.05, temp: 0.8 },
    SampleParams { top_k: 0, top_p: 1.0, min_p: 0.0, temp: 1.0 },
    SampleParams { top_k: 100, top_p: 1.0, min_p: 0.0, temp: 0.7 },
    SampleParams { top_k: 200, top_p: 0.9, min_p: 0.01, temp: 1.2 },
    SampleParams { top_k: 0, top_p: 0.6, min_p: 0.001, temp: 1.5 },
    SampleParams { top_k: 40, top_p: 0.95, min_p: 0.05, temp: 0.8 },
    SampleParams { top_k: 0, top_p: 1.0, min_p: 1e-4, temp: 1.3 },
    SampleParams { top_k: 64, top_p: 1.0, min_p: 0.0, temp: 1.5 },
    SampleParams { top_k: 0, top_p: 0.999, min_p: 0.0, temp: 0.5 },
];

/// Logits of a row.
#[derive(Clone, Copy)]
enum Shape {
    Spread,
    Flat,
    /// A few are far above the others.
    Peaked,
    /// A mask leaves every seventh.
    Masked,
    /// A mask leaves the last three.
    Last,
    /// Many are equal, some of them zeros of both signs.
    Rounded,
}

impl Shape {
    const ALL: [Shape; 6] =
        [Shape::Spread, Shape::Flat, Shape::Peaked, Shape::Masked, Shape::Last, Shape::Rounded];

    fn logits(self, seed: u64, n: usize) -> Vec<f32> {
        // Random values have outliers, beside which nothing would be drawn.
        let mut x: Vec<f32> = random_values(seed, n).iter().map(|v| (v * 6.0).clamp(-6.0, 6.0)).collect();
        match self {
            Shape::Spread => {}
            Shape::Flat => x.fill(1.5),
            Shape::Peaked => x.iter_mut().skip(3).step_by(67).for_each(|v| *v = v.abs() + 9.0),
            Shape::Masked => (0..n).filter(|i| i % 7 != 0).for_each(|i| x[i] = f32::NEG_INFINITY),
            Shape::Last => x[..n.saturating_sub(3)].fill(f32::NEG_INFINITY),
            Shape::Rounded => x.iter_mut().for_each(|v| *v = v.round()),
        }
        x
    }
}

/// A candidate, and the middle of its range of cumulative shares: of the next few from `at` on, the one with the
/// largest share, which sums in f32 reach as those in f64 do.
fn middle(shares: &[f64], at: f64) -> (usize, f64) {
    let ends: Vec<f64> = shares
        .iter()
        .scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        })
        .collect();
    let from = ends.iter().position(|end| *end >= at).unwrap_or(shares.len() - 1);
    let near = from..shares.len().min(from + 8);
    let largest = near.max_by(|a, b| shares[*a].total_cmp(&shares[*b])).unwrap_or(from);
    (largest, ends[largest] - shares[largest] / 2.0)
}

/// The parameters with the limits between two candidates, so that rounding does not decide.
fn between(logits: &[f32], p: SampleParams) -> SampleParams {
    let top_k = if p.top_k == 0 { u32::MAX } else { p.top_k };
    let sorted = reference::candidates(logits, &SampleParams { top_k, top_p: 1.0, min_p: 0.0, temp: 1.0 });
    let shares: Vec<f64> = sorted.iter().map(|c| c.1).collect();
    let top_p = if p.top_p < 1.0 { middle(&shares, p.top_p.into()).1 as f32 } else { p.top_p };
    let relative: Vec<f64> = shares.iter().map(|share| share / shares[0]).collect();
    let end = relative.iter().position(|r| *r < f64::from(p.min_p)).filter(|n| *n > 0);
    let min_p = end.map_or(p.min_p, |n| (relative[n - 1] * relative[n]).sqrt() as f32);
    SampleParams { top_p, min_p, ..p }
}

/// Draws from `k` logits in each of these rows.
fn drawn(chunk: u32, k: u32, rows: &[(Shape, SampleParams)]) -> Case {
    let n_row = rows.len();
    let Picked { choice, words: before } = Picked::new(n_row, 8, 125);
    let ld = k.next_multiple_of(8);
    let call = SampleWide(Sample { k, ld, n_row: n_row as u32, choice, chunk });
    // Behind a row is anything.
    let mut x = vec![50.0f32; ld as usize * n_row];
    let mut lists = Vec::new();
    let mut sums = Vec::new();
    let mut sampler = vec![0x7fc0_0000; N_WORD * N_SEQ as usize];
    let mut tokens = Vec::new();
    for (row, (shape, params)) in rows.iter().enumerate() {
        let logits = shape.logits(100 + row as u64, k as usize);
        x[row * ld as usize..][..k as usize].copy_from_slice(&logits);
        let list = lists_of(chunk, &logits);
        // As in plans, large numbers of lists are merged first.
        lists.extend(match list.len() > 4096 {
            true => list.chunks(chunk as usize).flat_map(join).collect(),
            false => list,
        });
        let params = between(&logits, *params);
        sums.extend(logits.chunks(chunk as usize).flat_map(|part| sum(part, &params)));
        let shares = reference::candidates(&logits, &params);
        let only: Vec<f64> = shares.iter().map(|c| c.1).collect();
        let (nth, uniform) = middle(&only, [0.0, 0.3, 0.6, 0.9][row % 4]);
        tokens.push(shares[nth].0);
        let seq = seq_of(row, n_row);
        let at = N_WORD * seq as usize;
        sampler[at..at + DRAWS_AT].copy_from_slice(&params.words());
        let n_chosen = (before[choice.seq_at(seq)] % N_DRAW) as usize;
        sampler[at + DRAWS_AT + n_chosen] = (uniform as f32).to_bits();
    }
    let n_list = (lists.len() / n_row) as u32 / MAX_TOP_K;
    let ring_before = vec![9u32; (8 * N_SEQ) as usize];
    let (mut after, mut ring) = (before.clone(), ring_before.clone());
    choice.advance(&mut after, &mut ring, &tokens);
    Case::new(
        format!("final k{k} of {chunk} rows{n_row}"),
        move |caps| call.draw(caps, n_list),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::input("lists", &lists.concat()),
            CaseBuffer::input("sums", &sums),
            CaseBuffer::input("sampler", &sampler),
            CaseBuffer::output("step", &before, Expected::Words(after)),
            CaseBuffer::output("ring", &ring_before, Expected::Words(ring)),
        ],
    )
}

/// The largest logit of a chunk, and its sums.
fn sum(part: &[f32], p: &SampleParams) -> [f32; 4] {
    let most = part.iter().copied().fold(f32::MIN, f32::max);
    let total = |temp: f32| -> f64 {
        let of = |v: &f32| ((f64::from(*v) - f64::from(most)) / f64::from(temp)).exp();
        part.iter().filter(|v| v.is_finite()).map(of).sum()
    };
    [most, total(1.0) as f32, total(p.temp) as f32, 0.0]
}

/// Sums of chunks in which masks leave something.
fn summed(chunk: u32, k: u32, n_row: usize) -> Case {
    let Picked { choice, words: step } = Picked::new(n_row, 8, 125);
    let ld = k.next_multiple_of(8);
    let call = SampleWide(Sample { k, ld, n_row: n_row as u32, choice, chunk });
    let mut x = vec![50.0f32; ld as usize * n_row];
    let mut expected = Vec::new();
    let mut sampler = vec![0x7fc0_0000; N_WORD * N_SEQ as usize];
    for row in 0..n_row {
        let logits = [Shape::Masked, Shape::Peaked, Shape::Spread][row % 3].logits(row as u64, k as usize);
        x[row * ld as usize..][..k as usize].copy_from_slice(&logits);
        let params = PARAMS[row + 3];
        sampler[N_WORD * seq_of(row, n_row) as usize..][..DRAWS_AT].copy_from_slice(&params.words());
        expected.extend(logits.chunks(chunk as usize).flat_map(|part| sum(part, &params)));
    }
    Case::new(
        format!("sum k{k} of {chunk} rows{n_row}"),
        move |caps| call.sum(caps),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::input("sampler", &sampler),
            CaseBuffer::input("step", &step),
            CaseBuffer::output(
                "sums",
                &vec![0.0f32; expected.len()],
                Expected::F32 { values: expected, max_nmse: 1e-10 },
            ),
        ],
    )
}
