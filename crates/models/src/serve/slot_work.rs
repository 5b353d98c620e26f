//! The driver's work on slots.

use chaski_schedule::{Found, Scheduler};

use super::entry::Served;
use super::error::ServeError;
use super::service::Service;
use super::slots::{SlotJob, SlotState, Task};
use crate::error::{ModelError, SessionError};
use crate::exec::Executor;
use crate::run::{pack, unpack};

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
            // An answer that nobody waits for is dropped.
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
