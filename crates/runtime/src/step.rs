//! Steps, on whichever device: tokens that run together, and their outputs.

use crate::error::RuntimeError;

/// A token of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its sequence.
    pub seq: u32,
    /// The token; `None`: the one that was chosen last for the sequence, by a column with [`ColumnOutput::Choice`].
    pub token: Option<u32>,
    /// Its position in the sequence.
    pub pos: u32,
}

/// The output of a column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ColumnOutput {
    /// None.
    Nothing,
    /// The id of the next token of its sequence, by the sequence's sampler.
    Choice,
    /// Its logits.
    Logits,
    /// Its final hidden state: the result of the last norm, which logits are products of.
    Hidden,
}

/// The outputs of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutputs {
    /// The chosen tokens: of all columns that choose, in order, then of all columns of the next repetition. An id beyond the
    /// vocabulary says that no logit was finite.
    pub chosen: Vec<u32>,
    /// The logits of all columns that want them, in order: `[n, n_vocab]`.
    pub logits: Vec<f32>,
    /// The hidden states of all columns that want them, in order: `[n, n_embd]`.
    pub hidden: Vec<f32>,
}

/// Whether the recurrent state of each sequence, which has seen so many tokens, can go on with its columns: they stand together,
/// one right after the other.
pub(crate) fn check_runs(
    columns: &[Column],
    state_at: impl Fn(u32) -> Option<u32>,
) -> Result<(), RuntimeError> {
    let mut seen = Vec::new();
    for run in columns.chunk_by(|a, b| a.seq == b.seq) {
        let Column { seq, pos, .. } = run[0];
        let at = state_at(seq);
        if pos > 0 && at != Some(pos) {
            return Err(RuntimeError::State { found: at, pos });
        }
        if seen.contains(&seq) {
            return Err(RuntimeError::Limit { what: "parts of a sequence in a step", found: 2, limit: 1 });
        }
        seen.push(seq);
        for two in run.windows(2) {
            if two[1].pos != two[0].pos + 1 {
                return Err(RuntimeError::State { found: Some(two[0].pos + 1), pos: two[1].pos });
            }
        }
    }
    Ok(())
}
