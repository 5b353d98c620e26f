//! Sessions: a conversation's prefix in the KV cache as bytes, for another time or process, by the driver's owner.

use chaski_schedule::{Found, Scheduler};

use super::driver::Driver;
use super::error::ServeError;
use crate::error::ModelError;
use crate::error::SessionError;
use crate::exec::Executor;
use crate::run::{pack, unpack};

impl<E: Executor> Driver<E> {
    /// The last conversation as bytes, as far as a later prompt could reuse it: tokens, keys, values and recurrent
    /// state. Running requests are served first.
    ///
    /// # Errors
    /// Device errors.
    pub async fn save(&mut self) -> Result<Vec<u8>, ServeError> {
        while self.turn().await? {}
        let (executor, scheduler, last) = self.service().parts();
        let (group, lora, tokens) = last;
        let found = scheduler.hold(group, &tokens);
        let n_token = found.pages.len() * scheduler.limits().page + found.tail.map_or(0, |t| t.1);
        let known = executor.read_prefix(0, &found, n_token).await;
        scheduler.release(&found);
        Ok(pack(&executor.session_name(&lora), &tokens[..n_token], n_token, &known?))
    }

    /// Restores a conversation of [`Self::save`] to the KV cache: a prompt that begins with it does not run it again.
    ///
    /// # Errors
    /// [`SessionError`] for bytes that are no session of this model and kind of cache, or longer than the context;
    /// nothing changes then. Device errors.
    pub async fn restore(&mut self, bytes: &[u8]) -> Result<(), ServeError> {
        while self.turn().await? {}
        let (group, lora) = self.service().default_group()?;
        let (executor, scheduler, _) = self.service().parts();
        let session = |e: SessionError| ServeError::from(ModelError::from(e));
        let (tokens, _, known) = unpack(bytes, &executor.session_name(&lora)).map_err(session)?;
        let n_vocab = executor.n_vocab();
        if let Some(token) = tokens.iter().copied().find(|t| *t as usize >= n_vocab) {
            return Err(ModelError::Token { token, n_vocab: n_vocab as u32 }.into());
        }
        if known.len() as u64 != executor.session_bytes(tokens.len()) {
            let what = "its cache is not that of its tokens";
            return Err(session(SessionError::Damaged { what }));
        }
        let found = adopt(scheduler, group, &tokens).map_err(session)?;
        let written = executor.write_prefix(0, &found, &found.pages, tokens.len(), known).await;
        scheduler.release(&found);
        Ok(written?)
    }
}

fn adopt(scheduler: &mut Scheduler, group: u64, tokens: &[u32]) -> Result<Found, SessionError> {
    let (found, limit) = (tokens.len(), scheduler.limits().n_ctx);
    if found > limit {
        return Err(SessionError::Long { found, limit });
    }
    let what = "its tokens are not whole pages";
    scheduler.adopt(group, tokens).ok_or(SessionError::Damaged { what })
}
