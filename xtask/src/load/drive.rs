//! When requests are sent: by users, at random times, or in a burst.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Client, Outcome, Turn};
use super::memory::Memory;
use super::mix::{Job, Random};

/// A request that was sent, and its end.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Its job by number.
    pub(crate) job: usize,
    pub(crate) outcome: Outcome,
}

/// The requests of a measurement.
pub(crate) struct Work<'a> {
    client: &'a Client,
    jobs: &'a [Job],
    /// Jobs that come one after another, each with the answer to the one before.
    talks: Vec<Range<usize>>,
    /// They come again and again until then.
    until: Option<Instant>,
    /// Time between an answer and the next request of a user.
    pause: Duration,
    memory: Option<&'a Memory>,
}

impl<'a> Work<'a> {
    /// `n` requests, which have the jobs in turns.
    pub(crate) fn new(client: &'a Client, jobs: &'a [Job], n: usize, pause: Duration) -> Work<'a> {
        Work { client, jobs, talks: talks(jobs, n), until: None, pause, memory: None }
    }

    /// The same again and again for this time, where there is one.
    pub(crate) fn lasting(self, time: Option<Duration>) -> Work<'a> {
        Work { until: time.map(|time| Instant::now() + time), ..self }
    }

    /// The same, which tells when each request ends.
    pub(crate) fn watched(self, memory: Option<&'a Memory>) -> Work<'a> {
        Work { memory, ..self }
    }

    fn talk(&self, i: usize) -> Option<Range<usize>> {
        match self.until {
            Some(until) => (Instant::now() < until).then(|| self.talks[i % self.talks.len()].clone()),
            None => self.talks.get(i).cloned(),
        }
    }

    /// Asks one turn of a conversation after the other, until one has no whole answer.
    fn hold(&self, talk: Range<usize>, mut due: Instant, asks_again: bool, asked: &Mutex<Vec<Asked>>) {
        let mut history = Vec::new();
        for job_idx in talk.clone() {
            let (job, has_next) = (&self.jobs[job_idx], job_idx + 1 < talk.end);
            let outcome = self.client.ask(Turn { job, history: &history, has_next }, due, asks_again);
            self.memory.inspect(|memory| memory.ended());
            let goes_on = has_next && outcome.is_whole(job);
            if goes_on {
                history = [&outcome.history, &job.prompt, &outcome.tokens].map(Vec::as_slice).concat();
            }
            asked.lock().expect("no thread panics with it").push(Asked { job: job_idx, outcome });
            if !goes_on {
                return;
            }
            thread::sleep(self.pause);
            due = Instant::now();
        }
    }

    /// As many requests at once as there are users, each of whom pauses after an answer.
    pub(crate) fn closed(&self, users: usize) -> Vec<Asked> {
        let (next, asked) = (AtomicUsize::new(0), Mutex::default());
        thread::scope(|scope| {
            for _ in 0..users.max(1) {
                scope.spawn(|| {
                    while let Some(talk) = self.talk(next.fetch_add(1, Ordering::Relaxed)) {
                        self.hold(talk, Instant::now(), true, &asked);
                        thread::sleep(self.pause);
                    }
                });
            }
        });
        asked.into_inner().expect("all threads have ended")
    }

    /// Requests at random times; each counts from its own, even if the client is late. None is sent again that is
    /// refused. Calls `after` when the last has been sent.
    pub(crate) fn open<T>(&self, rate: f64, seed: u64, after: impl FnOnce() -> T) -> (Vec<Asked>, T) {
        let n_job: usize = self.talks.iter().map(ExactSizeIterator::len).sum();
        // Conversations begin so that all their turns make up the rate.
        let rate = rate * self.talks.len() as f64 / n_job.max(1) as f64;
        let mut random = Random::new(seed ^ 0x9e37);
        let (start, mut at) = (Instant::now(), Duration::ZERO);
        let asked = Mutex::default();
        let found = thread::scope(|scope| {
            for talk in &self.talks {
                at += Duration::from_secs_f64(-(1.0 - random.unit()).ln() / rate);
                let (due, asked) = (start + at, &asked);
                thread::sleep(due.saturating_duration_since(Instant::now()));
                scope.spawn(move || self.hold(talk.clone(), due, false, asked));
            }
            after()
        });
        (asked.into_inner().expect("all threads have ended"), found)
    }
}

/// Conversations of `n` jobs in all, of which each has its turns; the jobs come again where they are fewer.
fn talks(jobs: &[Job], n: usize) -> Vec<Range<usize>> {
    let starts: Vec<usize> = (0..jobs.len()).filter(|i| !jobs[*i].is_turn).collect();
    let ends = starts.iter().skip(1).copied().chain([jobs.len()]);
    let all: Vec<Range<usize>> = starts.iter().zip(ends).map(|(start, end)| *start..end).collect();
    let mut left = n;
    let take = |talk: &Range<usize>| {
        let n = talk.len().min(left);
        left -= n;
        (n > 0).then_some(talk.start..talk.start + n)
    };
    all.iter().cycle().map_while(take).collect()
}

/// Longest time in which a server may serve again after a burst.
const RECOVERS: Duration = Duration::from_secs(60);

/// Asks one request after another until one has its first token within `limit`; the time until that one was sent, if
/// there is one.
pub(crate) fn recovery(client: &Client, probes: &[Job], limit: Duration) -> Option<Duration> {
    let start = Instant::now();
    for job in probes.iter().cycle() {
        let due = Instant::now();
        if due.duration_since(start) > RECOVERS {
            break;
        }
        let outcome = client.ask(Turn::new(job), due, false);
        if outcome.is_whole(job) && outcome.pieces.first().is_some_and(|first| *first <= limit) {
            return Some(due.duration_since(start));
        }
        thread::sleep(Duration::from_millis(100));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::mix::Mix;

    #[test]
    fn turns_of_a_conversation_stay_together() {
        let agents = Mix::D.jobs(25, 1, 2000, Some(8), Some(2));
        assert_eq!(talks(&agents, 25), [0..10, 10..20, 20..25]);
        assert_eq!(talks(&agents, 12), [0..10, 10..12]);
        assert_eq!(talks(&agents, 45), [0..10, 10..20, 20..25, 0..10, 10..20]);
        let chats = Mix::A.jobs(2, 1, 2000, Some(8), Some(2));
        assert_eq!(talks(&chats, 3), [0..1, 1..2, 0..1]);
        assert!(talks(&chats, 0).is_empty());
    }
}
