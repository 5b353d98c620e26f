//! `ssm_scan`: the state space recurrence of Mamba-1 and Mamba-2.

mod cases;
mod columns;
pub mod reference;

pub use columns::ScanColumns;

use ggml_format::GgmlType;

use crate::call::{A, B, C, Call, IDS, Names, check_f32, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::state::State;
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "ssm_scan",
    template: template!("ssm_scan/ssm_scan.wgsl.jinja"),
    variants: || {
        let sets = ["base", "sg"].iter();
        let both = sets.flat_map(|s| crate::state::PLACES.iter().map(move |p| (s, p)));
        both.map(|(s, p)| vec![("set", Value::Word(s)), ("state", Value::Word(p))]).collect()
    },
    cases: Op::cases(|| cases::by_hand().into_iter().chain(columns::cases()).collect()),
    ggml: &["SSM_SCAN"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

const S: Names = names!("s");
const X: Names = names!("x");
const DT: Names = names!("dt");

/// A call; all tensors but `ids` are f32.
#[derive(Clone, Copy, Debug)]
pub struct SsmScan {
    /// States: values, channels, heads, stored sequences.
    pub s: Tensor,
    /// Input: channels, heads, tokens, sequences.
    pub x: Tensor,
    /// Steps before softplus: heads, tokens, sequences.
    pub dt: Tensor,
    /// Decay, negative: values of the state or one for all, heads.
    pub a: Tensor,
    /// Input projection: values of the state, groups, tokens, sequences.
    pub b: Tensor,
    /// Output projection, as `b`.
    pub c: Tensor,
    /// Index of the state that each sequence continues, i32; out-of-range ids select the last.
    pub ids: Tensor,
    /// Number of state snapshots to keep, after the last `n_snap` tokens.
    pub n_snap: u32,
    /// The sizes of x, then `n_snap` times the states of these sequences (newest first), contiguous in one row.
    pub y: Tensor,
}

impl SsmScan {
    fn state(&self) -> State {
        let [rows, heads, n_tok, n_seq] = self.x.ne;
        State { s: self.s.ne[0], rows, heads, n_tok, n_seq, n_snap: self.n_snap }
    }

    /// Values of y.
    pub fn n_out(&self) -> u32 {
        self.x.n_elem() + self.state().n_state()
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, [`DispatchError::Type`] for other types.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let op = OP.name;
        let State { s, rows, heads, n_tok, n_seq, n_snap } = self.state();
        let floats = [(S, &self.s), (X, &self.x), (DT, &self.dt), (A, &self.a), (B, &self.b), (C, &self.c)];
        check_f32(op, &floats, &self.y)?;
        self.ids.check_type(op, "ids", GgmlType::I32)?;
        let groups = self.b.ne[1].max(1);
        self.s.check_ne(op, "s", [s, rows, heads, self.s.ne[3]])?;
        self.dt.check_ne(op, "dt", [heads, n_tok, n_seq, 1])?;
        self.a.check_ne(op, "a", [if self.a.ne[0] == 1 { 1 } else { s }, heads, 1, 1])?;
        self.b.check_ne(op, "b", [s, groups, n_tok, n_seq])?;
        self.c.check_ne(op, "c", [s, groups, n_tok, n_seq])?;
        self.ids.check_ne(op, "ids", [n_seq, 1, 1, 1])?;
        State::check_y(op, &self.y, self.n_out())?;
        if heads % groups != 0 {
            let expected = format!("a multiple of {groups} groups");
            return Err(DispatchError::Shape { op, what: "heads", expected, found: heads.into() });
        }
        if n_snap > n_tok {
            let expected = format!("at most {n_tok} tokens");
            return Err(DispatchError::Shape { op, what: "n_snap", expected, found: n_snap.into() });
        }
        let (constants, groups, why) = self.state().plan(op, caps)?;
        Call {
            op: &OP,
            variant: &[Value::Word(caps.set().word()), Value::Word("apart")],
            sources: &[
                (S, &self.s),
                (X, &self.x),
                (DT, &self.dt),
                (A, &self.a),
                (B, &self.b),
                (C, &self.c),
                (IDS, &self.ids),
            ],
            y: &self.y,
            constants,
        }
        .groups(groups, why, caps)
    }
}
