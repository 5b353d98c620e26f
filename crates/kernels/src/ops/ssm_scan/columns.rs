//! The recurrence over the columns of a batch, with the states of the sequences updated in place.

use ggml_format::GgmlType;

use super::{DT, OP, S, X, reference};
use crate::call::{A, B, C, Call, check_f32};
use crate::caps::Caps;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Value;
use crate::rng::random_values;
use crate::runs::{Runs, batches};
use crate::state::{State, here};
use crate::tensor::Tensor;

/// A call. The states are `[n_seq, heads, channels, values]` f32 and updated in place; a column at position 0 starts
/// from zeros. The step buffer holds the number of columns (at most that of `x`) and their sequences.
#[derive(Clone, Copy, Debug)]
pub struct ScanColumns {
    /// Input: channels, heads, columns.
    pub x: Tensor,
    /// Steps before bias and softplus: heads, columns.
    pub dt: Tensor,
    /// Input projection: values of the state, groups, columns.
    pub b: Tensor,
    /// Output projection, as `b`.
    pub c: Tensor,
    /// One decay per state value (Mamba-1) rather than per head (Mamba-2).
    pub fine: bool,
    /// `a` also has, after the decays, one factor per head by which x is added to the result.
    pub skip: bool,
    /// `a` ends with one bias per head of the steps `dt`.
    pub bias: bool,
    /// As `x`.
    pub y: Tensor,
    /// Sequences.
    pub n_seq: u32,
}

impl ScanColumns {
    /// Decays per head.
    fn n_decay(&self) -> u32 {
        if self.fine { self.b.ne[0] } else { 1 }
    }

    /// Values of the vector `a`: decays, skips, biases.
    pub fn n_aux(&self) -> u32 {
        self.x.ne[1] * (self.n_decay() + u32::from(self.skip) + u32::from(self.bias))
    }

    /// Values of the state of a sequence.
    pub fn n_state(&self) -> u32 {
        self.b.ne[0] * self.x.ne[0] * self.x.ne[1]
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, [`DispatchError::Type`] if tensors are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let op = OP.name;
        let [rows, heads, n_tok, _] = self.x.ne;
        let (s, groups) = (self.b.ne[0], self.b.ne[1].max(1));
        check_f32(op, &[(X, &self.x), (DT, &self.dt), (B, &self.b), (C, &self.c)], &self.y)?;
        self.y.check_ne(op, "y", [rows, heads, n_tok, 1])?;
        self.dt.check_ne(op, "dt", [heads, n_tok, 1, 1])?;
        self.b.check_ne(op, "b", [s, groups, n_tok, 1])?;
        self.c.check_ne(op, "c", [s, groups, n_tok, 1])?;
        if heads % groups != 0 {
            let expected = format!("a multiple of {groups} groups");
            return Err(DispatchError::Shape { op, what: "heads", expected, found: heads.into() });
        }
        let state = State { s, rows, heads, n_tok, n_seq: 1, n_snap: 0 };
        let (mut constants, n_group, why) = state.plan_here(op, caps)?;
        let decays = heads * self.n_decay();
        constants.extend([
            ("SKIP", f64::from(u8::from(self.skip))),
            ("SKIP_AT", decays.into()),
            ("BIAS", f64::from(u8::from(self.bias))),
            ("BIAS_AT", f64::from(decays + if self.skip { heads } else { 0 })),
            ("N_SEQ", self.n_seq.into()),
        ]);
        let aux = Tensor::new(GgmlType::F32, [self.n_decay(), heads, 1, 1]);
        let state = Tensor::new(GgmlType::F32, [s, rows, heads, self.n_seq]);
        Call {
            op: &OP,
            variant: &[Value::Word(caps.set().word()), Value::Word(here(n_tok))],
            sources: &[
                (S, &state),
                (X, &self.x),
                (DT, &self.dt),
                (A, &Tensor { n_alloc: self.n_aux(), ..aux }),
                (B, &self.b),
                (C, &self.c),
            ],
            y: &self.y,
            constants,
        }
        .groups(n_group, why, caps)
    }
}

/// Sizes of a case.
struct Sizes {
    s: u32,
    dim: u32,
    heads: u32,
    groups: u32,
    /// Columns the call is planned for, and columns present.
    n_col: u32,
    runs: Runs,
    fine: bool,
    skip: bool,
    bias: bool,
}

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (s, dim, heads, groups) in
        [(128, 64, 2, 1), (16, 1, 70, 1), (33, 3, 6, 3), (256, 5, 4, 2), (1, 1, 1, 1)]
    {
        for (n_col, pos) in [((1, 1), 0), ((1, 1), 5), ((9, 9), 0), ((16, 6), 3), ((4, 1), 0), ((5, 2), 7)] {
            let (fine, runs) = (dim == 1, Runs::one(n_col.1, pos));
            let n_col = n_col.0;
            out.push(case(&Sizes { s, dim, heads, groups, n_col, runs, fine, skip: true, bias: !fine }));
        }
        for runs in batches() {
            let (fine, n_col) = (dim == 1, runs.n_col());
            out.push(case(&Sizes { s, dim, heads, groups, n_col, runs, fine, skip: true, bias: true }));
        }
    }
    out.push(case(&Sizes {
        s: 20,
        dim: 4,
        heads: 4,
        groups: 4,
        n_col: 7,
        runs: Runs::one(7, 1),
        fine: false,
        skip: false,
        bias: false,
    }));
    out
}

fn case(z: &Sizes) -> Case {
    // x, b and c are parts of the same columns, like the output of a convolution; dt is at the end of another buffer's.
    let (n_x, n_b, cols) = (z.dim * z.heads, z.s * z.groups, z.n_col);
    let (all, ld_dt) = (n_x + 2 * n_b + 3, z.heads + 5);
    let part = |at, inner: u32, outer: u32| Tensor {
        ty: GgmlType::F32,
        ne: [inner, outer, cols, 1],
        stride: [1, inner, all, all * cols],
        offset: at,
        n_alloc: all * cols,
    };
    let dt = Tensor {
        ty: GgmlType::F32,
        ne: [z.heads, cols, 1, 1],
        stride: [1, ld_dt, ld_dt * cols, ld_dt * cols],
        offset: 5,
        n_alloc: ld_dt * cols,
    };
    let ldy = n_x + 2;
    let y = Tensor {
        ty: GgmlType::F32,
        ne: [z.dim, z.heads, cols, 1],
        stride: [1, z.dim, ldy, ldy * cols],
        offset: 0,
        n_alloc: ldy * cols,
    };
    let call = ScanColumns {
        x: part(0, z.dim, z.heads),
        b: part(n_x, z.s, z.groups),
        c: part(n_x + n_b, z.s, z.groups),
        dt,
        fine: z.fine,
        skip: z.skip,
        bias: z.bias,
        y,
        n_seq: z.runs.n_seq,
    };
    let xs = random_values(1, (all * cols) as usize);
    let dts = random_values(2, (ld_dt * cols) as usize);
    let before = random_values(3, (call.n_state() * z.runs.n_seq) as usize);
    let (heads, n_decay) = (z.heads as usize, call.n_decay() as usize);
    let mut aux: Vec<f32> = random_values(4, heads * n_decay).iter().map(|v| -0.1 - v.abs()).collect();
    aux.extend(random_values(5, call.n_aux() as usize - aux.len()));
    let mut states = before.clone();
    let mut out = vec![7.0; (ldy * cols) as usize];
    let rest = heads * n_decay;
    let n_row = z.dim * z.heads;
    for (run, row) in z.runs.all.iter().flat_map(|r| (0..n_row).map(move |row| (r, row))) {
        let state = &mut states[((run.seq * n_row + row) * z.s) as usize..][..z.s as usize];
        if run.pos == 0 {
            state.fill(0.0);
        }
        let col = |t: usize| run.first + t as u32;
        let (head, j) = (row / z.dim, row % z.dim);
        let h = head as usize;
        let g = head / (z.heads / z.groups);
        let skip = if z.skip { aux[rest + h] } else { 0.0 };
        let bias = if z.bias { aux[rest + heads * usize::from(z.skip) + h] } else { 0.0 };
        let made = reference::columns(
            state,
            &aux[h * n_decay..][..n_decay],
            run.n as usize,
            (skip, bias),
            (|t| dts[dt.index([head, col(t), 0, 0])], |t| xs[call.x.index([j, head, col(t), 0])]),
            |t, i| xs[call.b.index([i as u32, g, col(t), 0])],
            |t, i| xs[call.c.index([i as u32, g, col(t), 0])],
        );
        for (t, v) in made.into_iter().enumerate() {
            out[y.index([j, head, col(t), 0])] = v;
        }
    }
    Case::new(
        format!(
            "columns {}x{}x{}/{} {}: {} {} {} {}",
            z.s,
            z.dim,
            z.heads,
            z.groups,
            z.n_col,
            z.runs.label(),
            z.fine,
            z.skip,
            z.bias
        ),
        move |caps| call.dispatch(caps),
        vec![
            CaseBuffer::output("s", &before, Expected::F32 { values: states, max_nmse: 1e-9 }),
            CaseBuffer::input("x", &xs),
            CaseBuffer::input("dt", &dts),
            CaseBuffer::input("a", &aux),
            CaseBuffer::input("b", &xs),
            CaseBuffer::input("c", &xs),
            CaseBuffer::input("step", &z.runs.step()),
            CaseBuffer::output("y", &vec![7.0f32; out.len()], Expected::F32 { values: out, max_nmse: 1e-9 }),
        ],
    )
}
