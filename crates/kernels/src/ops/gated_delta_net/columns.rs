//! The gated delta rule over the columns of a batch, with the states of the sequences in place.

use ggml_format::GgmlType;

use super::chunks::DeltaChunks;
use super::reference::{Head, Inputs};
use super::{BETA, G, K, OP, Q, V};
use crate::caps::Caps;
use crate::case::{Case, CaseBuffer, Expected, random_values};
use crate::dispatch::{Dispatch, DispatchError, Step};
use crate::op::Value;
use crate::runs::{Runs, batches};
use crate::state::{State, here};
use crate::tensor::{Call, Tensor, Y, check_f32};

/// A call. The states are `[n_seq, heads, S, S]` f32 and stay where they are; a column at position 0 begins with zeros.
/// How many columns there are, at most those of `q`, and of which sequences, says the step buffer. `a` has the rates of all heads, then their biases.
#[derive(Clone, Copy, Debug)]
pub struct DeltaColumns {
    /// Queries: S channels, heads of queries and keys, columns.
    pub q: Tensor,
    /// Keys, parts of the same columns.
    pub k: Tensor,
    /// Values, parts of the same columns: S channels, heads, columns.
    pub v: Tensor,
    /// Before bias and softplus: heads, columns.
    pub alpha: Tensor,
    /// Before the logistic function: heads, columns.
    pub beta: Tensor,
    /// Heads that share q and k follow one another; else they are as far apart as q has heads.
    pub neighbours: bool,
    /// Added to the sums of squares by which q and k are normalised.
    pub eps: f32,
    /// As `v`.
    pub y: Tensor,
    /// Sequences.
    pub n_seq: u32,
}

impl DeltaColumns {
    /// Values of the state of a sequence.
    pub fn n_state(&self) -> u32 {
        self.v.ne[0] * self.v.ne[0] * self.v.ne[1]
    }

    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not fit, [`DispatchError::Type`] if tensors are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.check()?;
        let op = OP.name;
        let [s, heads, n_tok, _] = self.v.ne;
        let state = State { s, rows: s, heads, n_tok, n_seq: 1, n_snap: 0 };
        let (mut constants, n_group, why) = state.plan_here(op, caps)?;
        constants.extend([
            ("NEIGHBOURS", f64::from(u8::from(self.neighbours))),
            ("EPS", self.eps.into()),
            ("N_SEQ", self.n_seq.into()),
        ]);
        Call {
            op: &OP,
            variant: &[Value::Word(caps.set().word()), Value::Word("head"), Value::Word(here(n_tok))],
            sources: &[(Q, &self.q), (K, &self.k), (V, &self.v), (G, &self.alpha), (BETA, &self.beta)],
            y: &self.y,
            constants,
        }
        .groups(n_group, why, caps)
    }

    /// Whether types and sizes fit.
    pub(super) fn check(&self) -> Result<(), DispatchError> {
        let op = OP.name;
        let [s, heads, n_tok, _] = self.v.ne;
        let sources = [(Q, &self.q), (K, &self.k), (V, &self.v), (G, &self.alpha), (BETA, &self.beta)];
        check_f32(op, &sources, &self.y)?;
        for (names, t) in sources.iter().chain([&(Y, &self.y)]) {
            t.check(op, names.name)?;
        }
        let k_heads = self.q.ne[1].max(1);
        for (what, t) in [("q", &self.q), ("k", &self.k)] {
            t.check_ne(op, what, [s, k_heads, n_tok, 1])?;
        }
        self.y.check_ne(op, "y", self.v.ne)?;
        for (what, t) in [("alpha", &self.alpha), ("beta", &self.beta)] {
            t.check_ne(op, what, [heads, n_tok, 1, 1])?;
        }
        if heads % k_heads != 0 {
            let expected = format!("a multiple of {k_heads} heads of q");
            return Err(DispatchError::Shape { op, what: "heads", expected, found: heads.into() });
        }
        Ok(())
    }
}

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

/// A call for `cols` columns; in a call for chunks columns begin with whole fours.
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

/// `n_col`: columns that the call is planned for; `runs`: those that there are; `chunks`: it takes them a chunk at once.
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
    // Decay; products with key and query; the update: seven operations a value.
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
