//! Slots of a service as llama-server has them: the state of the last request in one as bytes, restored, or erased.
//!
//! Slots are labels here: a request has the one that it asks for, else that of its sequence. Restored tokens are a cached
//! prefix for requests in any slot. The driver does it between two steps while a sequence is free, and other requests go on.

use std::collections::VecDeque;

use chaski_schedule::{Found, Scheduler};
use futures_channel::oneshot;
use rustc_hash::FxHashMap;

use super::entry::Served;
use super::error::ServeError;
use super::handle::{Command, Handle};
use super::service::Service;
use crate::error::{ModelError, SessionError};
use crate::exec::Executor;
use crate::run::{pack, unpack};

/// The state of a slot.
#[derive(Clone, Debug)]
pub struct SlotState {
    /// Tokens in it.
    pub n_token: usize,
    /// Tokens, keys, values and recurrent state.
    pub bytes: Vec<u8>,
}

type Reply<T> = oneshot::Sender<Result<T, ServeError>>;

enum Task {
    Save(Reply<SlotState>),
    Restore { lora: Option<Vec<f32>>, bytes: Vec<u8>, reply: Reply<usize> },
    Erase(Reply<usize>),
}

impl Task {
    /// True if nobody waits for it any more.
    fn is_abandoned(&self) -> bool {
        match self {
            Task::Save(reply) => reply.is_canceled(),
            Task::Restore { reply, .. } | Task::Erase(reply) => reply.is_canceled(),
        }
    }
}

/// Something to do with a slot.
pub(super) struct SlotJob {
    slot: u32,
    task: Task,
}

/// Group of LoRA scales, the scales, and tokens.
pub(super) type Held = (u64, Vec<f32>, Vec<u32>);

/// The slots of a service.
#[derive(Default)]
pub(super) struct Slots {
    jobs: VecDeque<SlotJob>,
    /// The last request of each slot.
    held: FxHashMap<u32, Held>,
    /// No step is submitted until those under way are read.
    is_pausing: bool,
}

impl Handle {
    /// The state of the last request of a slot, as far as a later prompt could reuse it. It waits while a request runs in
    /// that slot.
    ///
    /// # Errors
    /// Device errors, and those of an executor without sessions.
    pub async fn save_slot(&self, slot: u32) -> Result<SlotState, ServeError> {
        self.ask(slot, Task::Save).await
    }

    /// Restores a state of [`Self::save_slot`] as a cached prefix of requests with these LoRA scales, by default the
    /// default scales; returns its number of tokens.
    ///
    /// # Errors
    /// [`SessionError`] for bytes that are no state of this model and kind of cache, longer than the context, or that
    /// there are too few free pages for; nothing changes then. Device errors.
    pub async fn restore_slot(
        &self,
        slot: u32,
        lora: Option<Vec<f32>>,
        bytes: Vec<u8>,
    ) -> Result<usize, ServeError> {
        self.ask(slot, |reply| Task::Restore { lora, bytes, reply }).await
    }

    /// Drops the last request of a slot from the cache, except for what others share; returns the number of tokens that
    /// it had there.
    ///
    /// # Errors
    /// Those of a driver that is gone.
    pub async fn erase_slot(&self, slot: u32) -> Result<usize, ServeError> {
        self.ask(slot, Task::Erase).await
    }

    /// Bytes of the longest state of a slot.
    pub fn max_slot_bytes(&self) -> u64 {
        self.shared.sizes.session
    }

    async fn ask<T>(&self, slot: u32, task: impl FnOnce(Reply<T>) -> Task) -> Result<T, ServeError> {
        let gone = || self.shared.failure().unwrap_or(ServeError::Stopped);
        let (reply, answer) = oneshot::channel();
        let job = SlotJob { slot, task: task(reply) };
        self.commands.unbounded_send(Command::Slot(Box::new(job))).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl<E: Executor> Service<E> {
    pub(super) fn take_job(&mut self, job: SlotJob) {
        self.slots.jobs.push_back(job);
    }

    /// True while no step may be submitted.
    pub(super) fn is_pausing(&self) -> bool {
        self.slots.is_pausing
    }

    /// Records the last request of its slot.
    pub(super) fn leave_slot(&mut self, served: &Served) {
        if let Some(slot) = served.slot() {
            self.slots.held.insert(slot, served.session());
        }
    }

    /// Does one thing with a slot, if that is due; `false` if there was nothing to do, or steps have to be read first.
    pub(super) async fn work_on_slots(&mut self) -> bool {
        self.slots.jobs.retain(|job| !job.task.is_abandoned());
        let busy = |slot: u32| self.served.values().any(|served| served.slot() == Some(slot));
        let due = self.slots.jobs.iter().position(|job| !busy(job.slot));
        let seq = self.scheduler.free_slot();
        self.slots.is_pausing = due.is_some() && seq.is_some();
        let (Some(due), Some(seq)) = (due, seq) else { return false };
        if !self.under_way.is_empty() {
            return false;
        }
        self.slots.is_pausing = false;
        if let Some(SlotJob { slot, task }) = self.slots.jobs.remove(due) {
            // Whoever does not wait any more needs no answer.
            match task {
                Task::Save(reply) => drop(reply.send(self.save_slot(slot, seq).await)),
                Task::Restore { lora, bytes, reply } => {
                    drop(reply.send(self.restore_slot(slot, seq, lora.as_deref(), &bytes).await));
                }
                Task::Erase(reply) => drop(reply.send(Ok(self.erase_slot(slot)))),
            }
        }
        self.publish();
        true
    }

    async fn save_slot(&mut self, slot: u32, seq: u32) -> Result<SlotState, ServeError> {
        let (group, lora, tokens) = match self.slots.held.get(&slot) {
            Some(held) => held.clone(),
            None => {
                let (group, lora) = self.default_group()?;
                (group, lora, Vec::new())
            }
        };
        let name = self.executor.session_name(&lora);
        let found = self.scheduler.hold(group, &tokens);
        let n_token = found.pages.len() * self.scheduler.limits().page + found.tail.map_or(0, |t| t.1);
        let known = match n_token {
            0 => Ok(Vec::new()),
            _ => self.executor.read_prefix(seq, &found, n_token).await,
        };
        self.scheduler.release(&found);
        Ok(SlotState { n_token, bytes: pack(&name, &tokens[..n_token], n_token, &known?) })
    }

    async fn restore_slot(
        &mut self,
        slot: u32,
        seq: u32,
        lora: Option<&[f32]>,
        bytes: &[u8],
    ) -> Result<usize, ServeError> {
        let lora = self.executor.lora(lora)?;
        let group = self.groups.of(&lora);
        let (tokens, known) = self.check_state(&lora, bytes)?;
        if !tokens.is_empty() {
            let (found, into) = adopt(&mut self.scheduler, group, &tokens).map_err(ModelError::from)?;
            let written = self.executor.write_prefix(seq, &found, &into, tokens.len(), known).await;
            self.scheduler.release(&found);
            if let Err(error) = written {
                // Its pages hold anything now.
                self.scheduler.erase(group, &tokens);
                return Err(error.into());
            }
        }
        let n_token = tokens.len();
        self.slots.held.insert(slot, (group, lora, tokens));
        Ok(n_token)
    }

    /// The tokens of a state, and the device's part, if it can be restored.
    fn check_state<'b>(&self, lora: &[f32], bytes: &'b [u8]) -> Result<(Vec<u32>, &'b [u8]), ModelError> {
        let (tokens, _, known) = unpack(bytes, &self.executor.session_name(lora))?;
        let n_vocab = self.executor.n_vocab();
        if let Some(token) = tokens.iter().copied().find(|t| *t as usize >= n_vocab) {
            return Err(ModelError::Token { token, n_vocab: n_vocab as u32 });
        }
        let (found, limit) = (tokens.len(), self.scheduler.limits().n_ctx);
        if found > limit {
            return Err(SessionError::Long { found, limit }.into());
        }
        let expected = if tokens.is_empty() { 0 } else { self.executor.session_bytes(tokens.len()) };
        if known.len() as u64 != expected {
            return Err(SessionError::Damaged { what: "its cache is not that of its tokens" }.into());
        }
        Ok((tokens, known))
    }

    fn erase_slot(&mut self, slot: u32) -> usize {
        let Some((group, _, tokens)) = self.slots.held.remove(&slot) else { return 0 };
        self.scheduler.erase(group, &tokens);
        tokens.len()
    }
}

/// Pages for tokens, and those to write: pages that are known already are not written.
fn adopt(scheduler: &mut Scheduler, group: u64, tokens: &[u32]) -> Result<(Found, Vec<u32>), SessionError> {
    if scheduler.limits().n_snapshot.is_some() && tokens.len() % scheduler.limits().page != 0 {
        return Err(SessionError::Damaged { what: "its tokens are not whole pages" });
    }
    scheduler.adopt_beside(group, tokens).ok_or(SessionError::Full { found: tokens.len() })
}
