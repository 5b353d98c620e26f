//! Cases of `short_conv`.

use super::{Gates, ShortConv, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::dispatch::Step;
use crate::rng::random_values;
use crate::runs::{Runs, batches};

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (n, taps) in [(70, 4), (64, 3), (5, 2), (1, 9)] {
        for (n_col, pos) in [((1, 1), 0), ((1, 1), 1), ((1, 1), 40), ((20, 20), 0), ((32, 2), 0), ((9, 1), 3)]
        {
            for (gated, bias, silu) in
                [(false, true, true), (false, false, true), (true, false, false), (true, true, true)]
            {
                out.push(case(n, taps, n_col.0, &Runs::one(n_col.1, pos), gated, bias, silu));
            }
        }
        for runs in batches() {
            for gated in [false, true] {
                out.push(case(n, taps, runs.n_col(), &runs, gated, true, true));
                out.push(case(n, taps, 20, &runs, gated, false, false));
            }
        }
    }
    out
}

/// `n_col`: columns the call is planned for; `runs`: columns present.
fn case(n: u32, taps: u32, n_col: u32, runs: &Runs, gated: bool, bias: bool, silu: bool) -> Case {
    let (ldx, ldy) = (3 * n + 6, n + 1);
    let gates = gated.then_some(Gates { before: 1, after: n + 1 });
    let call = ShortConv { n, taps, at: 2 * n + 3, ldx, ldy, n_col, n_seq: runs.n_seq, gates, bias, silu };
    let x = random_values(1, (ldx * n_col) as usize);
    let aux = random_values(2, (n * (taps + 1)) as usize);
    let before = random_values(3, (runs.n_seq * n * (taps - 1)) as usize);
    let mut state = before.clone();
    let mut y = vec![7.0; (ldy * n_col) as usize];
    for (run, c) in runs.all.iter().flat_map(|r| (0..n).map(move |c| (r, c))) {
        let at = |t: u32, first: u32| x[((run.first + t) * ldx + first + c) as usize];
        let u: Vec<f32> =
            (0..run.n).map(|t| at(t, call.at) * gates.map_or(1.0, |g| at(t, g.before))).collect();
        // Inputs before position 0 are zeros, whatever the state holds.
        let place = |back: u32| (((run.seq + 1) * (taps - 1) - back) * n + c) as usize;
        let mut line: Vec<f32> =
            (1..taps).rev().map(|back| if back <= run.pos { before[place(back)] } else { 0.0 }).collect();
        let weight = &aux[(c * taps) as usize..][..taps as usize];
        let b = if bias { aux[(n * taps + c) as usize] } else { 0.0 };
        let made = reference::channel(&mut line, weight, b, silu, &u);
        for (t, v) in (0..).zip(made) {
            y[((run.first + t) * ldy + c) as usize] = v * gates.map_or(1.0, |g| at(t, g.after));
        }
        for (back, v) in (1..taps).rev().zip(line) {
            state[place(back)] = v;
        }
    }
    Case::new(
        format!("n{n} taps{taps} {n_col}: {} gated {gated} bias {bias} silu {silu}", runs.label()),
        move |_| Ok(call.dispatch()?.into_iter().map(|(d, _)| Step::from(d)).collect::<Vec<_>>()),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::input("aux", &aux),
            CaseBuffer::output("s", &before, Expected::F32 { values: state, max_nmse: 1e-12 }),
            CaseBuffer::input("step", &runs.step()),
            CaseBuffer::output("y", &vec![7.0f32; y.len()], Expected::F32 { values: y, max_nmse: 1e-10 }),
        ],
    )
}
