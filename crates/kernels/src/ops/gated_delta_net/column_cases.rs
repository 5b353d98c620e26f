//! Cases of the gated delta rule over the columns of a batch, column by column and in chunks.

use ggml_format::GgmlType;

use super::chunks::DeltaChunks;
use super::columns::DeltaColumns;
use super::reference::{Head, Inputs};
use crate::caps::Caps;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::dispatch::Step;
use crate::rng::random_values;
use crate::runs::{Runs, batches};
use crate::tensor::Tensor;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (s, heads, k_heads) in [(128, 4, 2), (16, 6, 3), (33, 2, 2), (1, 1, 1), (64, 3, 1)] {
        for (n_col, pos) in [((1, 1), 0), ((1, 1), 9), ((8, 8), 0), ((20, 5), 3)] {
            for neighbours in [false, true] {
                let runs = Runs::one(n_col.1, pos);
                out.push(case(s, heads, k_heads, n_col.0, &runs, neighbours, false));
            }
        }
        for runs in batches() {
            out.push(case(s, heads, k_heads, runs.n_col() + 1, &runs, true, false));
        }
    }
    out
}

pub(super) fn chunk_cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (s, heads, k_heads) in [(128, 4, 2), (16, 6, 3), (36, 2, 2), (4, 1, 1), (64, 3, 1), (256, 2, 1)] {
        for (n_col, pos) in [((2, 1), 0), ((8, 8), 5), ((40, 33), 3), ((100, 96), 0), ((64, 7), 9)] {
            for neighbours in [false, true] {
                let runs = Runs::one(n_col.1, pos);
                out.push(case(s, heads, k_heads, n_col.0, &runs, neighbours, true));
            }
        }
    }
    // Several states, of which the columns use one.
    let runs = Runs::of(3, &[(1, 5, 40)]);
    out.push(case(36, 2, 2, 64, &runs, false, true));
    out
}

/// A call for `cols` columns; chunked calls need columns aligned to four values.
pub(super) fn call(
    s: u32,
    heads: u32,
    k_heads: u32,
    cols: u32,
    neighbours: bool,
    chunks: bool,
) -> DeltaColumns {
    let (n_k, n_v) = (s * k_heads, s * heads);
    let tensor = |at, ne: [u32; 2], stride: [u32; 2]| Tensor {
        ty: GgmlType::F32,
        ne: [ne[0], ne[1], cols, 1],
        stride: [1, stride[0], stride[1], stride[1] * cols],
        offset: at,
        n_alloc: stride[1] * cols,
    };
    let (ld, ldy, ldh) = (2 * n_k + n_v + if chunks { 4 } else { 1 }, n_v + 2, 2 * heads + 1);
    let per_head = |at| Tensor {
        ty: GgmlType::F32,
        ne: [heads, cols, 1, 1],
        stride: [1, ldh, ldh * cols, ldh * cols],
        offset: at,
        n_alloc: ldh * cols,
    };
    DeltaColumns {
        q: tensor(0, [s, k_heads], [s, ld]),
        k: tensor(n_k, [s, k_heads], [s, ld]),
        v: tensor(2 * n_k, [s, heads], [s, ld]),
        alpha: per_head(0),
        beta: per_head(heads),
        neighbours,
        eps: 1e-3,
        y: tensor(0, [s, heads], [s, ldy]),
        n_seq: 1,
    }
}

/// `n_col`: columns the call is planned for; `runs`: columns present; `chunks`: process them in chunks.
pub(super) fn case(
    s: u32,
    heads: u32,
    k_heads: u32,
    n_col: u32,
    runs: &Runs,
    neighbours: bool,
    chunks: bool,
) -> Case {
    let n_seq = runs.n_seq;
    let call = DeltaColumns { n_seq, ..call(s, heads, k_heads, n_col, neighbours, chunks) };
    let x = random_values(1, call.q.n_alloc as usize);
    let gates = random_values(2, call.alpha.n_alloc as usize);
    let before = random_values(3, (n_seq * call.n_state()) as usize);
    let mut a: Vec<f32> = random_values(4, heads as usize).iter().map(|v| -0.05 - v.abs()).collect();
    a.extend(random_values(5, heads as usize));
    let mut states = before.clone();
    let mut y = vec![7.0; call.y.n_alloc as usize];
    for (run, h) in runs.all.iter().flat_map(|r| (0..heads).map(move |h| (r, h))) {
        let state = &mut states[((run.seq * heads + h) * s * s) as usize..][..(s * s) as usize];
        if run.pos == 0 {
            state.fill(0.0);
        }
        let of_k = if neighbours { h / (heads / k_heads) } else { h % k_heads };
        let row = |t: &Tensor, head, col| &x[t.index([0, head, col, 0])..][..s as usize];
        let inputs = (run.first..run.first + run.n).map(|t| Inputs {
            q: row(&call.q, of_k, t),
            k: row(&call.k, of_k, t),
            v: row(&call.v, h, t),
            alpha: gates[call.alpha.index([h, t, 0, 0])],
            beta: gates[call.beta.index([h, t, 0, 0])],
        });
        let head = Head { a: a[h as usize], bias: a[(heads + h) as usize], eps: call.eps };
        for (t, made) in (run.first..).zip(head.columns(state, inputs).chunks_exact(s as usize)) {
            y[call.y.index([0, h, t, 0])..][..s as usize].copy_from_slice(made);
        }
    }
    let mut buffers = vec![
        CaseBuffer::input(if chunks { "x" } else { "q" }, &x),
        CaseBuffer::input("a", &a),
        CaseBuffer::input("step", &runs.step()),
        CaseBuffer::input("g", &gates),
        CaseBuffer::input("beta", &gates),
        CaseBuffer::output("s", &before, Expected::F32 { values: states, max_nmse: 1e-9 }),
        CaseBuffer::output("y", &vec![7.0f32; y.len()], Expected::F32 { values: y, max_nmse: 1e-9 }),
    ];
    // Decay, products with key and query, update: seven operations per value.
    let n_flop = 7 * u64::from(call.n_state()) * u64::from(runs.n_col());
    let label = format!("columns {s}x{heads}/{k_heads} {n_col}: {} neighbours {neighbours}", runs.label());
    if !chunks {
        return Case::new(label, move |caps| call.dispatch(caps), buffers).work(n_flop);
    }
    buffers.push(CaseBuffer::scratch("parts", 4 * DeltaChunks::n_word(&call)));
    let steps = move |caps: &Caps| {
        let chunks = DeltaChunks::of(&call, caps)?;
        let DeltaChunks { prepare, advance } = chunks.expect("the case is one for chunks");
        Ok(vec![Step::from(prepare), advance.into()])
    };
    Case::new(label, steps, buffers).work(n_flop)
}
