//! Sessions: a conversation's prefix in the KV cache as bytes, for another time or process.

use chaski_schedule::{Change, Found, Scheduler};
use ggml_format::MaybeSend;

use super::driver::Driver;
use super::error::ServeError;
use crate::error::ModelError;
use crate::error::SessionError;
use crate::exec::Executor;
use crate::run::{Runner, pack, unpack};

/// An executor whose KV cache can be read and written.
pub trait Sessions: Executor {
    /// Identifies models and caches with compatible sessions.
    fn session_name(&self, lora: &[f32]) -> String;

    /// Bytes of a prefix of `n_token` tokens.
    fn session_bytes(&self, n_token: usize) -> u64;

    /// The first `n_token` tokens in pages, and in their snapshot if they have one. No request may run.
    ///
    /// # Errors
    /// Device errors.
    fn read_prefix(
        &mut self,
        found: &Found,
        n_token: usize,
    ) -> impl Future<Output = Result<Vec<u8>, ModelError>> + MaybeSend;

    /// Writes the result of [`Self::read_prefix`]. No request may run.
    ///
    /// # Errors
    /// Device errors.
    fn write_prefix(
        &mut self,
        found: &Found,
        n_token: usize,
        bytes: &[u8],
    ) -> impl Future<Output = Result<(), ModelError>> + MaybeSend;
}

impl Sessions for Runner {
    fn session_name(&self, lora: &[f32]) -> String {
        self.session_of(lora)
    }

    fn session_bytes(&self, n_token: usize) -> u64 {
        Runner::session_bytes(self, n_token)
    }

    async fn read_prefix(&mut self, found: &Found, n_token: usize) -> Result<Vec<u8>, ModelError> {
        // An unused slot carries the state outside pages.
        if let Some(snapshot) = found.snapshot {
            self.change(&Change::Restore { seq: 0, snapshot, n_token: n_token as u32 })?;
        }
        let pages: Vec<u32> = found.pages.iter().copied().chain(found.tail.map(|t| t.0)).collect();
        self.read_session(&pages, n_token).await
    }

    async fn write_prefix(&mut self, found: &Found, n_token: usize, bytes: &[u8]) -> Result<(), ModelError> {
        self.write_session(&found.pages, n_token, bytes).await?;
        match found.snapshot {
            Some(snapshot) => self.change(&Change::Keep { seq: 0, snapshot, n_token: n_token as u32 }),
            None => Ok(()),
        }
    }
}

impl<E: Sessions> Driver<E> {
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
        let known = executor.read_prefix(&found, n_token).await;
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
        let written = executor.write_prefix(&found, tokens.len(), known).await;
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
