//! `take_chosen`: copies the last chosen token of each sequence into its column, so a batch continues without a
//! readback.

use crate::call::dispatch;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;
use crate::step::{self, Choice};

/// The row of this operation.
pub const OP: Op = Op {
    name: "take_chosen",
    template: template!("take_chosen/take_chosen.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases),
    ggml: &[],
    grid: None,
};

/// Columns per workgroup.
pub const TILE: u32 = 64;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct TakeChosen {
    /// Maximum number of columns.
    pub n_col: u32,
    /// Location of chosen tokens in the step buffer.
    pub choice: Choice,
}

impl TakeChosen {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let constants = vec![("SEQS", self.choice.seqs.into())];
        dispatch(&OP, &[], constants, [self.n_col.div_ceil(TILE), 1, 1], "a thread per column".into())
    }
}

fn cases() -> Vec<Case> {
    [1, 2, 63, 64, 65, 200].into_iter().map(case).collect()
}

/// Three of every five columns take the chosen token; columns past the step's last do not change.
fn case(n_col: u32) -> Case {
    let (max_col, n_seq) = (n_col as usize + 3, 9);
    let choice = Choice::of(max_col, n_seq, 2, 16);
    let mut words: Vec<u32> = (0..step::n_word(max_col, n_seq, 2) as u32).map(|i| 1000 + i).collect();
    words[step::N_COL] = n_col;
    for column in 0..max_col {
        let at = step::HEADER + step::COLUMN * column;
        words[at + step::SEQUENCE] = (column * 4 % n_seq) as u32;
        words[at + step::SOURCE] = if column % 5 < 3 { step::CHOSEN } else { step::TOKEN };
    }
    let mut after = words.clone();
    for column in (0..n_col as usize).filter(|c| c % 5 < 3) {
        after[step::HEADER + step::COLUMN * column] = words[choice.seq_at((column * 4 % n_seq) as u32) + 1];
    }
    let call = TakeChosen { n_col, choice };
    Case::new(
        format!("columns{n_col}"),
        move |_| call.dispatch(),
        vec![CaseBuffer::output("step", &words, Expected::Words(after))],
    )
}
