//! Cases of `adjust`.

use super::{Adjust, AdjustParams, N_WORD, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;
use crate::step::cases::{N_SEQ, Picked, seq_of};

/// Start of the first row's ring, tokens chosen since the start, and the window.
struct At {
    ring: u32,
    end: u32,
    said: u32,
    last_n: u32,
}

pub(super) fn cases() -> Vec<Case> {
    let ats = [
        At { ring: 128, end: 1000, said: 500, last_n: 64 },
        At { ring: 128, end: 1000, said: 500, last_n: 128 },
        // The window is not full; it wraps around the ring, and the index wraps around u32.
        At { ring: 128, end: 130, said: 7, last_n: 64 },
        At { ring: 256, end: 3, said: 40, last_n: 128 },
        At { ring: 128, end: 77, said: 77, last_n: 0 },
        At { ring: 128, end: 5, said: 0, last_n: 64 },
        // A ring smaller than the window.
        At { ring: 8, end: 21, said: 21, last_n: 64 },
        At { ring: 8, end: 1, said: 1, last_n: 1 },
    ];
    let mut out = Vec::new();
    for (i, k) in [1u32, 2, 100, 2003, 32_000].into_iter().enumerate() {
        for (j, at) in ats.iter().enumerate() {
            for (l, (n_bias, repeat, freq, present)) in
                [(0, 1.1, 0.0, 0.0), (1, 1.5, 0.25, -0.5), (7, 1.0, 0.5, 0.25), (64, 0.7, -0.125, 1.0)]
                    .into_iter()
                    .enumerate()
            {
                let seed = (100 * i + 10 * j + n_bias) as u64;
                let p =
                    AdjustParams { last_n: at.last_n, repeat, freq, present, bias: biases(seed, k, n_bias) };
                let n_row = if k < 3000 { [1, 2, 7, 64][(i + j + l) % 4] } else { 1 };
                out.push(case(seed, k, n_row, at, &p));
            }
        }
    }
    out
}

fn case(seed: u64, k: u32, n_row: usize, at: &At, p: &AdjustParams) -> Case {
    let Picked { choice, words: step } = Picked::new(n_row, at.ring, at.end);
    let ld = k.next_multiple_of(8);
    let mut y = random_values(seed, ld as usize * n_row);
    // Few different tokens, so that they repeat; some are outside the vocabulary.
    let n_slot = (at.ring * N_SEQ) as usize;
    let tokens: Vec<u32> = random_values(seed + 7, n_slot).iter().map(|v| (v.abs() * 60.0) as u32).collect();
    let mut adjust = vec![0; N_WORD * N_SEQ as usize];
    let mut values = Vec::new();
    for (row, y) in y.chunks_mut(ld as usize).enumerate() {
        y[0] = 0.0;
        if k > 60 {
            y[51] = f32::NEG_INFINITY;
        }
        let seq = seq_of(row, n_row);
        let end = step[choice.seq_at(seq)];
        let slot = |index: u32| tokens[(seq * at.ring + (index & (at.ring - 1))) as usize];
        let n = at.said.min(at.ring);
        let recent: Vec<u32> = (0..n).map(|i| slot(end.wrapping_sub(n).wrapping_add(i))).collect();
        // Every third sequence leaves its logits unchanged.
        let off = AdjustParams { last_n: 0, repeat: 1.0, freq: 0.0, present: 0.0, bias: Vec::new() };
        let own = if row % 3 == 2 { &off } else { p };
        adjust[N_WORD * seq as usize..][..N_WORD].copy_from_slice(&own.words(end.wrapping_sub(at.said)));
        let mut expected = y.to_vec();
        reference::adjust(&mut expected[..k as usize], own, &recent);
        values.extend(expected);
    }
    let call = Adjust { k, ld, n_row: n_row as u32, choice };
    Case::new(
        format!(
            "k{k} rows{n_row} ring{} end{} said{} last{} bias{} repeat{}",
            at.ring,
            at.end,
            at.said,
            p.last_n,
            p.bias.len(),
            p.repeat
        ),
        move |_| call.dispatch(),
        vec![
            CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: 1e-12 }),
            CaseBuffer::input("adjust", &adjust),
            CaseBuffer::input("step", &step),
            CaseBuffer::input("ring", &tokens),
        ],
    )
}

/// Biases of distinct tokens, half of them recent ones; one excludes its token, one token is out of range.
fn biases(seed: u64, k: u32, n: usize) -> Vec<(u32, f32)> {
    let values = random_values(seed + 3, n);
    let bias = |(i, v): (usize, &f32)| {
        let value = if i == 3 { f32::NEG_INFINITY } else { 4.0 * v };
        (if i == 5 { k + 1000 } else { i as u32 * if i % 2 == 0 { 3 } else { 17 } }, value)
    };
    let mut all: Vec<(u32, f32)> = values.iter().enumerate().map(bias).collect();
    all.sort_by_key(|b| b.0);
    all.dedup_by_key(|b| b.0);
    all
}
