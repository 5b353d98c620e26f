//! Answers that wait for a model, and the tokens of their prompts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{ApiError, Kind};

/// Answers whose prompts do not run yet.
#[derive(Debug, Default)]
pub(crate) struct Queue(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    n_answer: AtomicUsize,
    n_token: AtomicUsize,
}

/// An answer that counts as waiting until this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    queue: Arc<Counts>,
    n_token: usize,
}

impl Queue {
    /// Counts the answers of a request: `n` to each of `prompts`, which are numbers of tokens. Further answers to a
    /// prompt find it cached, so its tokens wait with the first. A request is taken whatever its length if no other
    /// waits.
    ///
    /// # Errors
    /// [`Kind::Full`] if more tokens than `limit` would wait.
    pub(crate) fn add(
        &self,
        prompts: impl IntoIterator<Item = usize>,
        n: usize,
        limit: Option<usize>,
    ) -> Result<Vec<Waiting>, ApiError> {
        let answers =
            prompts.into_iter().flat_map(|n_token| (0..n).map(move |i| if i == 0 { n_token } else { 0 }));
        let answers: Vec<usize> = answers.collect();
        let n_token: usize = answers.iter().sum();
        let fits = |found: usize| limit.is_none_or(|limit| found == 0 || found + n_token <= limit);
        let more = |found: usize| fits(found).then_some(found + n_token);
        if let Err(found) = self.0.n_token.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            let limit = limit.unwrap_or(usize::MAX);
            let message = format!(
                "prompts of {found} tokens wait already, and with {n_token} more there would be more than {limit}"
            );
            return Err(ApiError::new(Kind::Full, message));
        }
        self.0.n_answer.fetch_add(answers.len(), Ordering::Relaxed);
        Ok(answers.into_iter().map(|n_token| Waiting { queue: self.0.clone(), n_token }).collect())
    }

    /// Answers that wait.
    pub(crate) fn n_answer(&self) -> usize {
        self.0.n_answer.load(Ordering::Relaxed)
    }

    /// Tokens of prompts that wait.
    pub(crate) fn n_token(&self) -> usize {
        self.0.n_token.load(Ordering::Relaxed)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.queue.n_token.fetch_sub(self.n_token, Ordering::Relaxed);
        self.queue.n_answer.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_wait_up_to_the_limit_and_one_request_whatever_its_length() {
        let queue = Queue::default();
        let first = queue.add([200, 300], 1, Some(100)).unwrap();
        let error = queue.add([1], 1, Some(100)).err().unwrap();
        assert_eq!(error.kind, Kind::Full);
        assert!(error.message.contains("500 tokens wait"), "{}", error.message);
        drop(first);
        let held = [queue.add([60], 1, Some(100)).unwrap(), queue.add([40], 1, Some(100)).unwrap()];
        assert!(queue.add([1], 1, Some(100)).is_err() && queue.add([1], 1, None).is_ok());
        drop(held);
        assert!(queue.add([101], 1, Some(100)).is_ok());
        assert_eq!((queue.n_answer(), queue.n_token()), (0, 0));
    }

    #[test]
    fn a_prompt_of_several_answers_waits_once() {
        let queue = Queue::default();
        let mut held = queue.add([60, 40], 3, Some(100)).unwrap();
        assert_eq!((held.len(), queue.n_answer(), queue.n_token()), (6, 6, 100));
        held.truncate(3);
        assert_eq!((queue.n_answer(), queue.n_token()), (3, 60));
    }
}
