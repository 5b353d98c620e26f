//! Slots of a service as llama-server has them: the state of the last request in one as bytes, restored, or erased.
//!
//! Slots are labels here: a request has the one that it asks for, else that of its sequence. Restored tokens are a
//! cached prefix for requests in any slot. The driver does it between two steps while a sequence is free
//! (`slot_work.rs`), and other requests go on; a handle asks for it (`slot_calls.rs`).

use std::collections::VecDeque;

use futures_channel::oneshot;
use rustc_hash::FxHashMap;

use super::error::ServeError;

/// The state of a slot.
#[derive(Clone, Debug)]
pub struct SlotState {
    /// Tokens in it.
    pub n_token: usize,
    /// Tokens, keys, values and recurrent state.
    pub bytes: Vec<u8>,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, ServeError>>;

/// The thing to do.
pub(super) enum Task {
    Save(Reply<SlotState>),
    Restore { lora: Option<Vec<f32>>, bytes: Vec<u8>, reply: Reply<usize> },
    Erase(Reply<usize>),
}

impl Task {
    /// True if nobody waits for it any more.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Task::Save(reply) => reply.is_canceled(),
            Task::Restore { reply, .. } | Task::Erase(reply) => reply.is_canceled(),
        }
    }
}

/// Something to do with a slot.
pub(super) struct SlotJob {
    pub(super) slot: u32,
    pub(super) task: Task,
}

/// Group of LoRA scales, the scales, and tokens.
pub(super) type Held = (u64, Vec<f32>, Vec<u32>);

/// The slots of a service.
#[derive(Default)]
pub(super) struct Slots {
    pub(super) jobs: VecDeque<SlotJob>,
    /// The last request of each slot.
    pub(super) held: FxHashMap<u32, Held>,
    /// No step is submitted until those under way are read.
    pub(super) is_pausing: bool,
}
