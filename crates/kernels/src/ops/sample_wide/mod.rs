//! `sample_wide`: samples the next token of every row of logits where top-k is off or larger than a list of `sample`:
//! the first dispatches are those of `sample`, then come [`SampleWide::sum`] and [`SampleWide::draw`].

mod cases;

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value};
use crate::ops::sample::Sample;

/// The row of this operation.
pub const OP: Op = Op {
    name: "sample_wide",
    template: template!("sample_wide/sample_wide.wgsl.jinja"),
    variants: || ["sum", "final"].iter().map(|p| vec![("part", Value::Word(p))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// Words per chunk of a row in the buffer `sums`.
pub const N_SUM_WORD: u32 = 4;

/// A call with the chunks and lists of a [`Sample`], whose row stride is a multiple of 4.
#[derive(Clone, Copy, Debug)]
pub struct SampleWide(pub Sample);

impl SampleWide {
    /// Words of the buffer `sums`.
    pub fn sum_words(&self) -> u64 {
        u64::from(N_SUM_WORD * self.0.n_part()) * u64::from(self.0.n_row)
    }

    /// Sums the exponentials of every chunk; rows are in grid.y.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn sum(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let mut constants = self.constants(caps.tree_threads());
        constants.push(("N_PART", self.0.n_part().into()));
        let why = format!("{} logits per workgroup", self.0.chunk);
        dispatch(&OP, &[Value::Word("sum")], constants, [self.0.n_part(), self.0.n_row, 1], why)
    }

    /// Merges `n_list` lists, draws and advances the step; rows are in grid.x.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn draw(&self, caps: &Caps, n_list: u32) -> Result<Dispatch, DispatchError> {
        // Software drivers end a kernel's loops after 65,535 iterations, so a few threads cannot read the logits often.
        let mut constants = self.constants(caps.tree_threads().max(64.0));
        constants.extend([("N_PART", n_list.into()), ("N_SUM", self.0.n_part().into())]);
        dispatch(&OP, &[Value::Word("final")], constants, [self.0.n_row, 1, 1], "one workgroup a row".into())
    }

    fn constants(&self, threads: f64) -> Vec<(&'static str, f64)> {
        let s = &self.0;
        let own = [("WG", threads), ("N", s.chunk.into()), ("K", s.k.into()), ("LD", s.ld.into())];
        own.into_iter().chain(s.choice.constants()).collect()
    }
}
