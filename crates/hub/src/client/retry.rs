//! Tries: which failures end a download, and how long to wait after the others.

use std::time::Duration;

use crate::config::Limits;
use crate::error::HubError;
use crate::event::{Event, Wait};
use crate::job::Job;

/// A failed request.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another try would fail, too.
    Final(HubError),
    /// It may be tried again, after the time that the server asks for.
    Transient { error: HubError, wait: Option<Duration> },
}

impl From<HubError> for Failure {
    fn from(error: HubError) -> Failure {
        Failure::Final(error)
    }
}

/// Counts tries without progress.
pub(crate) struct Tries<'l> {
    limits: &'l Limits,
    n: usize,
    /// Nothing was fetched yet: without a network, the user should know soon.
    is_question: bool,
}

/// Tries of a question that no server answers.
const UNANSWERED: usize = 2;

impl<'l> Tries<'l> {
    pub(crate) fn new(limits: &'l Limits) -> Self {
        Tries { limits, n: 0, is_question: false }
    }

    /// For questions before a download.
    pub(crate) fn of_question(limits: &'l Limits) -> Self {
        Tries { is_question: true, ..Tries::new(limits) }
    }

    /// Bytes came: the count begins again.
    pub(crate) fn progressed(&mut self) {
        self.n = 0;
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// The failure, if it is final or the tries are used up; [`HubError::Interrupted`].
    pub(crate) fn again(&mut self, job: &Job, failure: Failure) -> Result<(), HubError> {
        let (error, wait) = match failure {
            Failure::Final(error) => return Err(error),
            Failure::Transient { error, wait } => (error, wait),
        };
        let is_unanswered = self.is_question && matches!(error, HubError::Connection { .. });
        if is_unanswered && self.n >= UNANSWERED {
            return Err(error);
        }
        let Some(delay) = self.limits.delays.get(self.n) else { return Err(error) };
        self.n += 1;
        let time = wait.map_or(*delay, |wait| wait.min(self.limits.longest_wait));
        let reason = if wait.is_some() { Wait::Server } else { Wait::Retry(error.to_string()) };
        job.tell(Event::Waiting { reason, time: Some(time) });
        job.sleep(time)
    }
}
