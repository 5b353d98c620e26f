//! Requests, and reasons for rejecting them.

use std::ops::Range;

use crate::embeddings::Embeddings;

/// Identifies a request; the caller chooses unique values.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// Position in the order of service: earlier requests are admitted sooner and preempted later.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Turn(pub(crate) u64);

/// The party that chooses the tokens of a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Chooser {
    /// The device, which may run ahead of the caller.
    Device,
    /// The device, under masks from the caller, which depend on the previous tokens ([`crate::Work::masked`]).
    Masked,
    /// The caller, from logits.
    Caller,
    /// Nobody: the request ends with its prompt, of which the caller reads rows ([`crate::Event::Rows`]).
    Nobody {
        /// Position of the first row to read. Only what precedes it can be cached already.
        first: usize,
        /// Position after the last one, the end of the prompt if that is less. Rows after it need not run.
        end: usize,
        /// The output of these rows.
        read: Read,
    },
}

/// An output of rows of a prompt.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// The final hidden state, for embeddings.
    Hidden,
    /// The logits.
    Logits,
}

/// Keeps the prefixes of requests apart: only those of requests with one salt are shared.
#[cfg(not(target_arch = "wasm32"))]
pub type Salt = u32;

/// On the web, where there is one client, nothing keeps the prefixes of requests apart.
#[cfg(target_arch = "wasm32")]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Salt(());

/// The prefixes that requests of a group with this salt share.
#[cfg(not(target_arch = "wasm32"))]
pub fn prefixes(group: u64, salt: Salt) -> u64 {
    group | u64::from(salt) << 32
}

/// The prefixes that requests of a group share.
#[cfg(target_arch = "wasm32")]
pub fn prefixes(group: u64, _: Salt) -> u64 {
    group
}

/// A request to continue a prompt, or to read rows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name.
    pub id: RequestId,
    /// The prompt's tokens, at least one.
    pub prompt: Vec<u32>,
    /// Rows in place of the prompt's tokens from these positions, in order; the tokens there are placeholders.
    pub embeddings: Vec<(usize, Embeddings)>,
    /// Maximum number of tokens to generate; the context limits them as well. At least 1 if nobody chooses any.
    pub max_tokens: usize,
    /// The party that chooses its tokens.
    pub chooser: Chooser,
    /// Group of LoRA scales, less than 2^32: only its requests share prefixes.
    pub group: u64,
    /// Only requests of a group with the same salt share prefixes.
    pub salt: Salt,
    /// Of one client's requests, those of a higher priority are admitted first, and preempted last.
    pub priority: i32,
    /// The client: free slots go to the one with the fewest tokens served, prompts and answers.
    pub client: u64,
}

impl Request {
    /// The prefixes that it shares.
    pub(crate) fn prefixes(&self) -> u64 {
        prefixes(self.group, self.salt)
    }

    /// Position and output of the first row that the caller reads, if nobody chooses tokens.
    pub(crate) fn read(&self) -> Option<(usize, Read)> {
        self.reads().map(|(rows, read)| (rows.start, read))
    }

    /// Positions of the rows that the caller reads, at least one, and their output.
    pub(crate) fn reads(&self) -> Option<(Range<usize>, Read)> {
        let n = self.prompt.len();
        match self.chooser {
            Chooser::Nobody { first, end, read } => {
                let first = first.min(n - 1);
                Some((first..end.clamp(first + 1, n), read))
            }
            Chooser::Device | Chooser::Masked | Chooser::Caller => None,
        }
    }

    /// Checks that embeddings are in order and within a prompt of `n_token` tokens, and do not overlap.
    ///
    /// # Errors
    /// [`Refused::Embeddings`].
    pub fn check_embeddings(placed: &[(usize, Embeddings)], n_token: usize) -> Result<(), Refused> {
        let mut start = 0;
        for (at, rows) in placed {
            let end = at.saturating_add(rows.len());
            if *at < start || end > n_token {
                return Err(Refused::Embeddings { at: *at, end, start, n_token });
            }
            start = end;
        }
        Ok(())
    }
}

/// Reasons for rejecting a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// An empty prompt.
    #[error("the prompt has no tokens")]
    Empty,
    /// A prompt that fills the context.
    #[error("the prompt has {found} tokens, but the context has {limit}")]
    Context {
        /// Tokens of the prompt.
        found: usize,
        /// Tokens of the context.
        limit: usize,
    },
    /// A prompt that does not fit in a step, for a model whose prompts run whole
    /// ([`Limits::whole`](crate::Limits::whole)).
    #[error(
        "the text has {found} tokens, but the model takes texts at once, of at most {limit} tokens here: a larger context or chunk allows more"
    )]
    Whole {
        /// Tokens of the text.
        found: usize,
        /// Maximum number of tokens.
        limit: usize,
    },
    /// Embeddings outside the prompt, or before the end of earlier ones.
    #[error("embeddings at {at} to {end} do not fit between {start} and {n_token}, the end of the prompt")]
    Embeddings {
        /// Position of the first row.
        at: usize,
        /// Position after the last row.
        end: usize,
        /// Position after the embeddings before them.
        start: usize,
        /// Tokens of the prompt.
        n_token: usize,
    },
    /// The queue is full.
    #[error("{limit} requests are waiting already")]
    Queue {
        /// Capacity of the queue.
        limit: usize,
    },
    /// A duplicate id.
    #[error("there is a request {} already", id.0)]
    Id {
        /// The id.
        id: RequestId,
    },
}
