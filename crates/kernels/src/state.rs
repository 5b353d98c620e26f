//! Sizing of recurrences that keep their state in registers (`shared/state.wgsl.jinja`).

use crate::caps::Caps;
use crate::dispatch::DispatchError;
use crate::reduce::Teams;
use crate::tensor::Tensor;

/// State values per thread, at most; the templates declare an array of this length.
const KEEP: u32 = 16;

/// Location of the state: `apart` reads one buffer and writes another; `many` and `one` update it in place for many
/// columns or one.
pub(crate) const PLACES: [&str; 3] = ["apart", "many", "one"];

/// The value of [`PLACES`] for a state updated in place.
pub(crate) fn here(n_col: u32) -> &'static str {
    if n_col == 1 { "one" } else { "many" }
}

/// A recurrence: `heads` of `n_seq` sequences, each with `rows` rows of `s` values.
pub(crate) struct State {
    pub(crate) s: u32,
    pub(crate) rows: u32,
    pub(crate) heads: u32,
    pub(crate) n_tok: u32,
    pub(crate) n_seq: u32,
    pub(crate) n_snap: u32,
}

/// Constants, workgroups, and a description.
pub(crate) type Plan = (Vec<(&'static str, f64)>, u32, String);

impl State {
    /// Plan with separate input and output states.
    pub(crate) fn plan(&self, op: &'static str, caps: &Caps) -> Result<Plan, DispatchError> {
        let (mut constants, n_group, why) = self.plan_here(op, caps)?;
        constants.extend([
            ("N_TOK", self.n_tok.into()),
            ("N_SEQ", self.n_seq.into()),
            ("N_SNAP", self.n_snap.into()),
        ]);
        Ok((constants, n_group, why))
    }

    /// Plan with the state updated in place; the step buffer holds the number of tokens.
    pub(crate) fn plan_here(&self, op: &'static str, caps: &Caps) -> Result<Plan, DispatchError> {
        // Half of what a thread can keep: more threads hide the latency of loads.
        let teams = Teams::new(caps, self.s.div_ceil(KEEP / 2), 64);
        let wide = Teams::new(caps, self.s.div_ceil(KEEP), 256);
        let teams = if teams.team * KEEP >= self.s { teams } else { wide };
        if self.s == 0 || teams.team * KEEP < self.s {
            let expected = format!("from 1 to {} values", teams.team * KEEP);
            return Err(DispatchError::Shape {
                op,
                what: "a row of the state",
                expected,
                found: self.s.into(),
            });
        }
        let n = self.rows * self.heads * self.n_seq;
        let mut constants = teams.rows(caps, n);
        constants.extend([
            ("S", self.s.into()),
            ("NS", self.s.div_ceil(teams.team).into()),
            // Without heads nothing runs, but a driver may reject a division by 0 that it can foresee.
            ("HEADS", self.heads.max(1).into()),
            ("ROWS_HEAD", self.rows.max(1).into()),
        ]);
        Ok((constants, teams.groups(n), format!("{} threads per row of the state", teams.team)))
    }

    /// Checks that y is one row of outputs followed by states.
    pub(crate) fn check_y(op: &'static str, y: &Tensor, n_out: u32) -> Result<(), DispatchError> {
        y.check_ne(op, "y", [n_out, 1, 1, 1])?;
        if y.is_contiguous() {
            return Ok(());
        }
        let expected = "1: a row without gaps".into();
        Err(DispatchError::Shape { op, what: "the stride of y", expected, found: y.stride[0].into() })
    }

    /// Number of values of all snapshots.
    pub(crate) fn n_state(&self) -> u32 {
        self.s * self.rows * self.heads * self.n_seq * self.n_snap
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggml_format::GgmlType;

    #[test]
    fn outputs_with_gaps_are_refused() {
        let row = Tensor::new(GgmlType::F32, [6, 1, 1, 1]);
        assert!(State::check_y("ssm_scan", &row, 6).is_ok());
        let apart = Tensor { stride: [2, 12, 12, 12], n_alloc: 12, ..row };
        let e = State::check_y("ssm_scan", &apart, 6).expect_err("every second value");
        assert_eq!(e.to_string(), "ssm_scan: the stride of y is 2, expected 1: a row without gaps");
    }
}
