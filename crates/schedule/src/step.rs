//! What a device is asked to do: rows that run together, and what changes before them.

use crate::request::RequestId;

/// The token of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// This one.
    Token(u32),
    /// The one that the device chose last for the row's sequence.
    Chosen,
}

/// The output that a row is asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// None: the row only fills the KV cache.
    Nothing,
    /// The id of the next token, chosen on the device by the sequence's sampler.
    Choose,
    /// The logits, from which the caller chooses ([`crate::Scheduler::choose`]).
    Logits,
    /// The final hidden state, which embeddings are made of. The scheduler gives no such rows itself.
    Hidden,
}

/// One token of one sequence.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// The sequence's slot on the device.
    pub seq: u32,
    /// Position in the sequence, in tokens.
    pub pos: u32,
    /// The token.
    pub input: Input,
    /// The output.
    pub want: Want,
}

/// Rows that run together. Rows of one sequence stand together, in the order of their positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The rows.
    pub rows: Vec<Row>,
    /// How often they run, each time one position further and with the token chosen the time before; above 1 only if every
    /// row takes [`Input::Chosen`] and wants [`Want::Choose`].
    pub repeat: u32,
    /// Rows that kernels are chosen for, at least as many as there are. A prompt that a budget cuts into pieces thus runs
    /// with the kernels of its whole chunk, so the size of the pieces changes no result.
    pub n_planned: u32,
}

/// A change on the device that comes before a step, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A request begins in a slot, or goes on there after it was preempted: its sampler is to be set up.
    Start {
        /// The slot.
        seq: u32,
        /// The request.
        id: RequestId,
        /// Tokens of the answer that are chosen already.
        n_drawn: usize,
        /// Tokens of the prompt that are in the KV cache already.
        n_cached: usize,
    },
    /// Entries of a sequence's page table.
    Pages {
        /// The slot.
        seq: u32,
        /// The first entry.
        first: u32,
        /// The pages from there on.
        pages: Vec<u32>,
    },
    /// Copy a page of the KV cache in every layer.
    Copy {
        /// From this page.
        from: u32,
        /// To this one.
        to: u32,
    },
    /// Copy what is not in pages (recurrent state, windows) from a slot into a snapshot.
    Keep {
        /// The slot.
        seq: u32,
        /// The snapshot.
        snapshot: u32,
        /// Tokens that the sequence has.
        n_token: u32,
    },
    /// Copy it back from a snapshot into a slot.
    Restore {
        /// The slot.
        seq: u32,
        /// The snapshot.
        snapshot: u32,
        /// Tokens that the snapshot has seen.
        n_token: u32,
    },
}
