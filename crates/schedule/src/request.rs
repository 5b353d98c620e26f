//! Requests, and reasons for rejecting them.

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
}

/// A request to continue a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name.
    pub id: RequestId,
    /// The prompt's tokens, at least one.
    pub prompt: Vec<u32>,
    /// Maximum number of tokens to generate; the context limits them as well.
    pub max_tokens: usize,
    /// The party that chooses its tokens.
    pub chooser: Chooser,
    /// Group of LoRA scales: only rows of one group share a step, and only its prefixes are shared.
    pub group: u64,
    /// Requests of a higher priority are admitted first, and preempted last.
    pub priority: i32,
    /// The client: free slots go to the client with the fewest running requests.
    pub client: u64,
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
