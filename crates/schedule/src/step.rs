//! Work for a device: rows that run together, and the changes that precede them.

use crate::request::{Chooser, RequestId};

/// The input of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A known token.
    Token(u32),
    /// The token that the device last chose for the sequence.
    Chosen,
    /// A row of [`Step::embeddings`], by index, in place of a token's embedding. In families with per-layer embeddings
    /// it has those of token 0, which is padding there.
    Embedding(u32),
}

/// The requested output of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// None: the row only fills the KV cache.
    Nothing,
    /// The id of the next token, chosen on the device by the sequence's sampler.
    Choose,
    /// The same among the tokens that a mask allows; the caller provides it once it knows the previous tokens
    /// ([`crate::Work::masked`]).
    ChooseMasked,
    /// The logits, for the caller to choose from ([`crate::Scheduler::choose`]) or to read ([`crate::Read`]).
    Logits,
    /// The final hidden state, for embeddings.
    Hidden,
}

/// One token of one sequence.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// Slot of the sequence on the device.
    pub seq: u32,
    /// Position in the sequence, in tokens: its place in the KV cache.
    pub pos: u32,
    /// Position of three components for RoPE with sections (M-RoPE: time, height, width); `None`: all equal `pos`.
    pub components: Option<[u32; 3]>,
    /// The token, or the row in its place.
    pub input: Input,
    /// The output.
    pub want: Want,
}

/// Rows that run together. Rows of one sequence are contiguous and in order of position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The rows.
    pub rows: Vec<Row>,
    /// Number of runs, each one position further with the token chosen before; above 1 only if every row takes
    /// [`Input::Chosen`] and wants [`Want::Choose`].
    pub repeat: u32,
    /// Number of rows that kernels are chosen for, at least the actual number. A chunk that the budget splits runs with
    /// the kernels of the whole chunk, so the split does not change results.
    pub n_planned: u32,
    /// Rows of embeddings that [`Input::Embedding`] names: `[n, n_embd]`.
    pub embeddings: Vec<f32>,
}

impl Step {
    /// Adds a row of embeddings; returns the input that names it.
    pub(crate) fn embed(&mut self, row: &[f32]) -> Input {
        let index = self.embeddings.len() / row.len();
        self.embeddings.extend_from_slice(row);
        Input::Embedding(index as u32)
    }
}

/// A change on the device before a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A request starts in a slot, or resumes there after preemption, or another party chooses its tokens from now on
    /// ([`crate::Scheduler::set_chooser`]): set up its sampler.
    Start {
        /// The slot.
        seq: u32,
        /// The request.
        id: RequestId,
        /// The party that chooses its tokens.
        chooser: Chooser,
        /// Tokens of the answer chosen already.
        n_drawn: usize,
        /// Tokens of the prompt in the KV cache already.
        n_cached: usize,
    },
    /// Updates entries of a sequence's page table.
    Pages {
        /// The slot.
        seq: u32,
        /// The first entry.
        first: u32,
        /// The new pages from there.
        pages: Vec<u32>,
    },
    /// Copies a page of the KV cache in every layer.
    Copy {
        /// Source page.
        from: u32,
        /// Destination page.
        to: u32,
    },
    /// Copies the state outside pages (recurrent state, windows) from a slot to a snapshot.
    Keep {
        /// The slot.
        seq: u32,
        /// The snapshot.
        snapshot: u32,
        /// Tokens of the sequence.
        n_token: u32,
    },
    /// Restores a snapshot to a slot.
    Restore {
        /// The slot.
        seq: u32,
        /// The snapshot.
        snapshot: u32,
        /// Tokens that the snapshot covers.
        n_token: u32,
    },
}
