//! Calls about slots, and the cache that they share.

use futures_channel::oneshot;

use super::error::ServeError;
use super::handle::{Command, Handle};
use super::slots::{Reply, SlotJob, SlotState, Task};

impl Handle {
    /// The state of the last request of a slot, as far as a later prompt could reuse it. It waits while a request runs
    /// in that slot.
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
    /// [`SessionError`](crate::SessionError) for bytes that are no state of this model and kind of cache, longer than
    /// the context, or that there are too few free pages for; nothing changes then. Device errors.
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

    /// Drops all cached prefixes that no request uses; returns the number of their pages.
    ///
    /// # Errors
    /// Those of a driver that is gone.
    pub async fn flush_cache(&self) -> Result<usize, ServeError> {
        self.reply(Command::Flush).await
    }

    /// Bytes of the longest state of a slot.
    pub fn max_slot_bytes(&self) -> u64 {
        self.shared.sizes.session
    }

    async fn ask<T>(&self, slot: u32, task: impl FnOnce(Reply<T>) -> Task) -> Result<T, ServeError> {
        self.reply(|reply| Command::Slot(Box::new(SlotJob { slot, task: task(reply) }))).await
    }

    /// Sends a command, and waits for its reply.
    async fn reply<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, ServeError> {
        let gone = || self.shared.failure().unwrap_or(ServeError::Stopped);
        let (reply, answer) = oneshot::channel();
        self.commands.unbounded_send(command(reply)).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
