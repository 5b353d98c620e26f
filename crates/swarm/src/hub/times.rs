//! The time of calls by its parts, which add up to it.

use std::time::Duration;

use super::Hub;
use crate::unit::CallId;

/// Sums over calls that an answer of a worker completed: from the call to that answer, the last one that it needed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Calls.
    pub n_call: u64,
    /// Tasks of these calls whose answers were used.
    pub n_answer: u64,
    /// Time of the workers' products for all these tasks, some of it at once.
    pub work: Duration,
    /// Bytes of rows, both ways, of the tasks that completed calls.
    pub n_byte: u64,
    /// From the call to the task: other tasks were in the way, or a worker was lost.
    pub before: Duration,
    /// Frames of the task and of its answer: encoding, sockets, decoding, at both ends.
    pub frames: Duration,
    /// In the worker's queue.
    pub queued: Duration,
    /// The worker's products.
    pub running: Duration,
}

impl Times {
    /// All parts.
    pub fn whole(&self) -> Duration {
        self.before + self.frames + self.queued + self.running
    }
}

/// An answer that may be the last of its call.
pub(super) struct Last {
    pub(super) call: CallId,
    pub(super) begin: Duration,
    pub(super) sent: Duration,
    pub(super) step_columns: u32,
    pub(super) n_byte: u64,
    /// In the queue, and running.
    pub(super) at_worker: [Duration; 2],
}

impl Hub {
    /// Notes an answer after it was used.
    pub(super) fn note_times(&mut self, now: Duration, last: Last) {
        let times = &mut self.times[usize::from(last.step_columns > 1)];
        times.n_answer += 1;
        times.work += last.at_worker[1];
        if self.calls.contains_key(&last.call) {
            return;
        }
        let [queued, running] = last.at_worker;
        let whole = now.saturating_sub(last.sent);
        times.n_call += 1;
        times.n_byte += last.n_byte;
        times.before += last.sent.saturating_sub(last.begin);
        // Clocks of workers are their own, but they cannot have taken longer than it took.
        let queued = queued.min(whole);
        let running = running.min(whole - queued);
        times.queued += queued;
        times.running += running;
        times.frames += whole - queued - running;
    }
}
