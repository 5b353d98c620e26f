//! A thread that calls functions at their time, to some ten microseconds: tokio's clock has whole milliseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

type Job = Box<dyn FnOnce() + Send>;

/// A handle of the thread, which ends with its last handle.
#[derive(Clone)]
pub(super) struct Timer(Sender<(Instant, Job)>);

/// Entry of the heap: the earliest first, in the order in which they came.
struct Entry(Instant, u64, Job);

impl Entry {
    fn key(&self) -> (Instant, u64) {
        (self.0, self.1)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Timer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread.
    pub(super) fn start() -> std::io::Result<Timer> {
        let (sender, receiver) = channel();
        std::thread::Builder::new().name("timer".into()).spawn(move || run(&receiver))?;
        Ok(Timer(sender))
    }

    /// Calls a function on the thread after a pause.
    pub(super) fn after(&self, pause: Duration, job: impl FnOnce() + Send + 'static) {
        // The thread ends only when no handle is left.
        self.0.send((Instant::now() + pause, Box::new(job))).expect("the thread runs");
    }
}

/// Has Linux wake this thread at its time, not up to 50 us later. Without it times are a little longer.
fn wake_in_time() {
    let Ok(path) = std::fs::read_link("/proc/thread-self") else { return };
    if let Some(thread) = path.file_name().and_then(|name| name.to_str()) {
        // Files of other systems, or a thread that may not.
        let _ = std::fs::write(format!("/proc/{thread}/timerslack_ns"), "1");
    }
}

fn run(receiver: &Receiver<(Instant, Job)>) {
    wake_in_time();
    let mut heap: BinaryHeap<Reverse<Entry>> = BinaryHeap::new();
    let mut n = 0;
    loop {
        let received = match heap.peek() {
            Some(Reverse(next)) => receiver.recv_timeout(next.0.saturating_duration_since(Instant::now())),
            None => receiver.recv().map_err(RecvTimeoutError::from),
        };
        match received {
            Ok((at, job)) => {
                heap.push(Reverse(Entry(at, n, job)));
                n += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while heap.peek().is_some_and(|Reverse(next)| next.0 <= Instant::now()) {
            if let Some(Reverse(Entry(_, _, job))) = heap.pop() {
                job();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_in_the_order_of_their_times() {
        let timer = Timer::start().unwrap();
        let (sender, receiver) = channel();
        for ms in [30, 10, 20, 0] {
            let sender = sender.clone();
            timer.after(Duration::from_millis(ms), move || sender.send(ms).unwrap());
        }
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<u64>>(), [0, 10, 20, 30]);
    }
}
