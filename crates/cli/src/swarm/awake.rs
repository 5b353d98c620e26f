//! Threads that stay awake between the layers of a token.
//!
//! A task takes less time than waking up the threads that pass it on: on an H200's machine a round trip to the device
//! took 200 us from a thread that had been busy, and 580 from one that had slept for 2 ms.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The time for which threads stay awake after the last task or answer: several layers' time.
const AWAKE: Duration = Duration::from_millis(5);

/// A process has up to three such threads, which would take the time of others on machines with fewer cores.
const LEAST_CORES: usize = 8;

/// Turns of a waiting loop between two looks at the clock.
const TURNS: u32 = 64;

/// The time of the last task or answer.
pub(crate) struct Awake {
    begin: Instant,
    /// Microseconds after `begin`.
    last: AtomicU64,
    notify: Notify,
    is_on: bool,
}

impl Awake {
    /// Asleep. Threads of machines with few cores stay so, and those of programs whose CPU multiplies.
    pub(crate) fn new(on_gpu: bool) -> Arc<Awake> {
        let n_core = std::thread::available_parallelism().map_or(1, usize::from);
        Awake::with(on_gpu && n_core >= LEAST_CORES)
    }

    fn with(is_on: bool) -> Arc<Awake> {
        Arc::new(Awake { begin: Instant::now(), last: AtomicU64::new(0), notify: Notify::new(), is_on })
    }

    fn now(&self) -> u64 {
        self.begin.elapsed().as_micros() as u64
    }

    fn is_awake(&self) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        self.is_on && last > 0 && self.now().saturating_sub(last) < AWAKE.as_micros() as u64
    }

    /// A task or an answer has come.
    pub(crate) fn touch(&self) {
        if self.is_on {
            self.last.store(self.now().max(1), Ordering::Relaxed);
            // Behind the store: who looks before it hears of it.
            self.notify.notify_waiters();
        }
    }

    /// Keeps the thread that polls it awake; never ends.
    pub(crate) async fn keep(self: Arc<Awake>) -> Infallible {
        loop {
            let notified = self.notify.notified();
            if self.is_awake() {
                tokio::task::yield_now().await;
            } else {
                notified.await;
            }
        }
    }

    /// The next message of a channel; `None` at its end.
    pub(crate) fn receive<T>(&self, inbox: &Receiver<T>) -> Option<T> {
        while self.is_awake() {
            for _ in 0..TURNS {
                match inbox.try_recv() {
                    Ok(message) => return Some(message),
                    Err(TryRecvError::Disconnected) => return None,
                    Err(TryRecvError::Empty) => std::hint::spin_loop(),
                }
            }
        }
        inbox.recv().ok()
    }

    /// A future for a thread that has nothing else to do, which waits for it without sleep.
    pub(crate) async fn wait<F: Future>(self: Arc<Awake>, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(move |context| {
            loop {
                for _ in 0..TURNS {
                    if let Poll::Ready(output) = future.as_mut().poll(context) {
                        self.touch();
                        return Poll::Ready(output);
                    }
                    std::hint::spin_loop();
                }
                if !self.is_awake() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn threads_are_awake_for_a_while_after_a_task() {
        let (on, off) = (Awake::with(true), Awake::with(false));
        assert!(!on.is_awake());
        // A busy machine may need more time than that for the next line.
        assert!((0..1000).any(|_| {
            on.touch();
            on.is_awake()
        }));
        off.touch();
        assert!(!off.is_awake());
        std::thread::sleep(2 * AWAKE);
        assert!(!on.is_awake());
    }

    #[test]
    fn messages_and_values_come_awake_or_not() {
        for is_on in [true, false] {
            let awake = Awake::with(is_on);
            awake.touch();
            let (sender, inbox) = mpsc::channel();
            let late = std::thread::spawn(move || {
                // The second one comes when the other thread sleeps.
                for (i, pause) in [Duration::from_millis(1), 3 * AWAKE].into_iter().enumerate() {
                    std::thread::sleep(pause);
                    sender.send(i).expect("a receiver");
                }
            });
            assert_eq!([0, 1].map(|_| awake.receive(&inbox)), [Some(0), Some(1)]);
            late.join().expect("it sends");
            assert_eq!(awake.receive(&inbox), None, "the end of a channel");
            for pause in [Duration::from_millis(1), 3 * AWAKE] {
                awake.touch();
                let (sender, receiver) = tokio::sync::oneshot::channel();
                let late = std::thread::spawn(move || {
                    std::thread::sleep(pause);
                    sender.send(7).expect("a receiver");
                });
                assert_eq!(pollster::block_on(awake.clone().wait(receiver)), Ok(7));
                late.join().expect("it sends");
            }
        }
    }

    #[test]
    fn what_keeps_a_thread_awake_lets_others_run() {
        let awake = Awake::with(true);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread");
        runtime.spawn(awake.clone().keep());
        for _ in 0..3 {
            awake.touch();
            assert_eq!(runtime.block_on(runtime.spawn(async { 3 })).expect("it runs"), 3);
            std::thread::sleep(2 * AWAKE);
        }
    }
}
