//! `sample`: samples the next token of every row of logits with top-k, top-p, min-p and temperature, in two dispatches,
//! or three for large vocabularies.

pub(crate) mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value};
use crate::step::Choice;

/// The row of this operation.
pub const OP: Op = Op {
    name: "sample",
    template: template!("sample/sample.wgsl.jinja"),
    variants: || ["chunk", "join", "final"].iter().map(|p| vec![("part", Value::Word(p))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// Values per workgroup; fewer where shader code zeroes workgroup memory word by word.
pub(crate) const CHUNK: u32 = 1024;
pub(crate) const CHUNK_ALONE: u32 = 256;
/// Candidates per chunk, and the largest top-k of this operation; `sample_wide` has no limit.
pub const MAX_TOP_K: u32 = 64;

/// Uniform numbers per sequence and upload: those of the next tokens.
pub const N_DRAW: u32 = 128;
/// Words of the `sampler` buffer per sequence: [`SampleParams::words`], then [`N_DRAW`] uniform numbers.
pub const N_WORD: usize = DRAWS_AT + N_DRAW as usize;
/// The first word of the uniform numbers.
pub const DRAWS_AT: usize = 8;

/// A call: first [`Sample::chunk`], then [`Sample::join`] while there are more lists than [`Sample::max_draw`], then
/// [`Sample::draw`].
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Logits of a row.
    pub k: u32,
    /// Row stride, in values.
    pub ld: u32,
    /// Maximum number of rows.
    pub n_row: u32,
    /// Location of chosen tokens in the step buffer.
    pub choice: Choice,
    /// Values per workgroup, a power of two above [`MAX_TOP_K`].
    pub chunk: u32,
}

/// Sampling parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleParams {
    /// Number of candidates; 0: all. Of more than [`MAX_TOP_K`], only `sample_wide` draws.
    pub top_k: u32,
    /// Cumulative probability to keep.
    pub top_p: f32,
    /// Minimum probability, relative to the largest.
    pub min_p: f32,
    /// Temperature, above 0.
    pub temp: f32,
}

impl SampleParams {
    /// Keeps only the largest logit.
    pub const GREEDY: SampleParams = SampleParams { top_k: 1, top_p: 1.0, min_p: 0.0, temp: 1.0 };

    /// True if `sample` cannot draw with them, only `sample_wide`.
    pub fn is_wide(&self) -> bool {
        !(1..=MAX_TOP_K).contains(&self.top_k)
    }

    /// The first words of a sequence in the `sampler` buffer.
    pub fn words(&self) -> [u32; DRAWS_AT] {
        let inv_t = 1.0 / self.temp;
        [self.top_k, self.top_p.to_bits(), self.min_p.to_bits(), inv_t.to_bits(), 0, 0, 0, 0]
    }
}

impl Sample {
    /// The call with the chunk size that suits a device.
    pub fn of(k: u32, ld: u32, n_row: u32, choice: Choice, caps: &Caps) -> Self {
        Sample { k, ld, n_row, choice, chunk: if caps.alone { CHUNK_ALONE } else { CHUNK } }
    }

    /// Lists of candidates that one workgroup merges.
    fn lists(&self) -> u32 {
        self.chunk / MAX_TOP_K
    }

    /// Lists that one draw can take without a merge before it.
    pub fn max_draw(&self) -> u32 {
        self.lists() - 1
    }

    /// Chunks per row; each produces [`MAX_TOP_K`] pairs of words.
    pub fn n_part(&self) -> u32 {
        self.k.div_ceil(self.chunk)
    }

    /// Finds the best candidates of every chunk; rows are in grid.y, as in [`Self::join`].
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn chunk(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let constants = vec![
            ("WG", caps.tree_threads()),
            ("N", self.chunk.into()),
            ("K", self.k.into()),
            ("LD", self.ld.into()),
            ("N_PART", self.n_part().into()),
        ];
        let why = format!("{} logits per workgroup", self.chunk);
        dispatch(&OP, &[Value::Word("chunk")], constants, [self.n_part(), self.n_row, 1], why)
    }

    /// Number of lists after a [`Self::join`] of `n_list`.
    pub fn joined(&self, n_list: u32) -> u32 {
        n_list.div_ceil(self.lists())
    }

    /// Merges lists, as many per workgroup as it can sort.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn join(&self, caps: &Caps, n_list: u32) -> Result<Dispatch, DispatchError> {
        let n_pair = f64::from(n_list * MAX_TOP_K);
        let constants = vec![
            ("WG", caps.tree_threads()),
            ("N", self.chunk.into()),
            ("K", n_pair),
            ("LD", n_pair),
            ("N_PART", self.joined(n_list).into()),
        ];
        let why = format!("{} lists per workgroup", self.lists());
        dispatch(&OP, &[Value::Word("join")], constants, [self.joined(n_list), self.n_row, 1], why)
    }

    /// Merges `n_list` lists, draws and advances the step; rows are in grid.x.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn draw(&self, caps: &Caps, n_list: u32) -> Result<Dispatch, DispatchError> {
        let mut constants =
            vec![("WG", caps.tree_threads()), ("N", self.chunk.into()), ("N_PART", n_list.into())];
        constants.extend(self.choice.constants());
        dispatch(&OP, &[Value::Word("final")], constants, [self.n_row, 1, 1], "one workgroup a row".into())
    }
}
