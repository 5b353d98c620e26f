//! Work of the driver that only servers ask for: tokens that a caller puts into an answer, and an empty cache.

use chaski_schedule::RequestId;

use super::service::Service;
use crate::exec::Executor;

impl<E: Executor> Service<E> {
    /// Drops the prefixes that no request uses; returns the number of their pages.
    pub(super) fn flush(&mut self) -> usize {
        let n_page = self.scheduler.flush();
        self.publish();
        n_page
    }

    /// Continues an answer with these tokens, unless they came after the first `n_known` of it. What is under way for
    /// it is dropped, and its sequence begins anew from its cached prefix.
    pub(super) fn insert(&mut self, id: RequestId, tokens: &[u32], n_known: usize) {
        let (limit, shared) = (self.scheduler.limits().n_ctx, self.shared.clone());
        let Some(served) = self.served.get_mut(&id) else { return };
        // An answer without room for them is about to end.
        let has_room = served.tokens().len() + tokens.len() <= limit;
        if tokens.is_empty() || !has_room || !served.lacks(&shared.tokenizer, tokens, n_known) {
            return;
        }
        let mut allowed = vec![u32::MAX; self.executor.n_vocab().div_ceil(32)];
        match served.mask(&mut allowed) {
            Ok(()) if allowed[tokens[0] as usize / 32] >> (tokens[0] % 32) & 1 == 1 => {}
            Ok(()) => return,
            Err(error) => return self.fail(id, error.into()),
        }
        self.scheduler.end(id);
        for token in tokens {
            // A token before may have been its last.
            let Some(served) = self.served.get_mut(&id) else { return };
            match served.insert(&shared.tokenizer, *token) {
                Ok(()) => self.accept(id, *token, None),
                Err(error) => return self.fail(id, error.into()),
            }
        }
        let Some(served) = self.served.get_mut(&id) else { return };
        let (request, turn) = served.again();
        match self.scheduler.go_on(request, turn) {
            Ok(()) => self.publish(),
            Err(refused) => self.fail(id, refused.into()),
        }
    }
}
