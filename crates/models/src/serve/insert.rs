//! Work of the driver that only servers ask for: tokens that a caller or a budget puts into an answer, and an empty
//! cache.

use chaski_schedule::RequestId;
use chaski_text::{AddSpecial, ParseSpecial};

use super::entry::Served;
use super::error::ServeError;
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
        let tokenizer = &self.shared.tokenizer;
        if self.served.get(&id).is_some_and(|served| served.lacks(tokenizer, tokens, n_known)) {
            self.force(id, tokens);
        }
    }

    /// Ends the reasoning of an answer that has used up its tokens for it. Returns true if anything that was chosen for
    /// it meanwhile does not count.
    pub(super) fn close_reasoning(&mut self, id: RequestId) -> bool {
        let Some(text) = self.served.get(&id).and_then(Served::due_close) else { return false };
        // A vocabulary that cannot write the marker has no model that reasons with it.
        let Ok(tokens) = self.shared.tokenizer.encode(text, AddSpecial::No, ParseSpecial::Yes) else {
            return false;
        };
        let is_forced = self.force(id, &tokens);
        if let Some(served) = self.served.get_mut(&id).filter(|_| is_forced) {
            served.close();
        }
        is_forced
    }

    /// Continues an answer with these tokens; false if its context has no room for them, or its grammar forbids them.
    /// Its chosen tokens under way are dropped, and its sequence begins anew from its cached prefix.
    fn force(&mut self, id: RequestId, tokens: &[u32]) -> bool {
        let limit = self.scheduler.limits().n_ctx;
        let Some(served) = self.served.get_mut(&id) else { return false };
        // An answer without room for them is about to end.
        let has_room = served.tokens().len() + tokens.len() <= limit;
        let Some(first) = tokens.first().filter(|_| has_room) else { return false };
        let mut allowed = vec![u32::MAX; self.executor.n_vocab().div_ceil(32)];
        match served.mask(&mut allowed) {
            Ok(()) if allowed[*first as usize / 32] >> (first % 32) & 1 == 1 => {}
            Ok(()) => return false,
            Err(error) => {
                self.fail(id, error.into());
                return true;
            }
        }
        self.scheduler.end(id);
        if let Err(error) = self.accept_all(id, tokens) {
            self.fail(id, error);
        }
        true
    }

    /// Takes the tokens into the answer, and queues it again, unless they end it.
    fn accept_all(&mut self, id: RequestId, tokens: &[u32]) -> Result<(), ServeError> {
        let shared = self.shared.clone();
        for token in tokens {
            // A token before may have been its last.
            let Some(served) = self.served.get_mut(&id) else { return Ok(()) };
            served.insert(&shared.tokenizer, *token)?;
            self.accept(id, *token, None);
        }
        let Some(served) = self.served.get_mut(&id) else { return Ok(()) };
        let (request, turn) = served.again();
        self.scheduler.go_on(request, turn)?;
        self.publish();
        Ok(())
    }
}
