//! What is asked for, and why it can be refused.

/// Names a request; the caller chooses it, once each.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A request's place in the order of service: the earlier, the sooner it is admitted and the later it is preempted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Turn(pub(crate) u64);

/// A request for tokens after a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name.
    pub id: RequestId,
    /// The prompt's tokens, at least one.
    pub prompt: Vec<u32>,
    /// Tokens to choose at most; the context bounds them, too.
    pub max_tokens: usize,
    /// The caller chooses from logits; else the device chooses, and may be tokens ahead of the caller.
    pub logits: bool,
    /// Only rows of the same group run in one step, and only its prefixes are shared: the LoRA scales, by number.
    pub group: u64,
    /// Requests of a higher priority are admitted first, and preempted last.
    pub priority: i32,
    /// Whose request it is: the free slot goes to the client with the fewest running requests.
    pub client: u64,
}

/// Why a request cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A prompt without tokens.
    #[error("the prompt has no tokens")]
    Empty,
    /// A prompt that leaves no room in the context.
    #[error("the prompt has {found} tokens, but the context has {limit}")]
    Context {
        /// The prompt's tokens.
        found: usize,
        /// Tokens of the context.
        limit: usize,
    },
    /// Too many requests wait.
    #[error("{limit} requests are waiting already")]
    Queue {
        /// Requests that may wait.
        limit: usize,
    },
    /// A name that is in use.
    #[error("there is a request {} already", id.0)]
    Id {
        /// The name.
        id: RequestId,
    },
}
