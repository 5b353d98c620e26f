//! Prompts that wait for a model, counted in tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{ApiError, Kind};

/// Tokens of the prompts that wait for a model.
#[derive(Default)]
pub(crate) struct Queue(Arc<AtomicUsize>);

/// Tokens that count as waiting until this is dropped.
pub(crate) struct Waiting {
    queue: Arc<AtomicUsize>,
    n_token: usize,
}

impl Queue {
    /// Counts the tokens of a request. One is taken whatever its length if no other waits.
    ///
    /// # Errors
    /// [`Kind::Full`] if more than `limit` would wait.
    pub(crate) fn add(&self, n_token: usize, limit: Option<usize>) -> Result<Waiting, ApiError> {
        let fits = |found: usize| limit.is_none_or(|limit| found == 0 || found + n_token <= limit);
        let more = |found: usize| fits(found).then_some(found + n_token);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Waiting { queue: self.0.clone(), n_token }),
            Err(found) => {
                let limit = limit.unwrap_or(usize::MAX);
                let message = format!(
                    "prompts of {found} tokens wait already, and with {n_token} more there would be more than {limit}"
                );
                Err(ApiError::new(Kind::Full, message).retry(1))
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.queue.fetch_sub(self.n_token, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_wait_up_to_the_limit_and_one_request_whatever_its_length() {
        let queue = Queue::default();
        let first = queue.add(500, Some(100)).unwrap();
        let error = queue.add(1, Some(100)).err().unwrap();
        assert_eq!((error.kind, error.retry_after), (Kind::Full, Some(1)));
        assert!(error.message.contains("500 tokens wait"), "{}", error.message);
        drop(first);
        let held = [queue.add(60, Some(100)).unwrap(), queue.add(40, Some(100)).unwrap()];
        assert!(queue.add(1, Some(100)).is_err() && queue.add(1, None).is_ok());
        drop(held);
        assert!(queue.add(101, Some(100)).is_ok());
    }
}
