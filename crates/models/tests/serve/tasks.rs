//! Tasks on one thread, in a seeded order: each is polled only when it was woken.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use crate::fake::mix;

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Maximum number of polls: more indicates a task that is woken endlessly.
const MOST: usize = 1_000_000;

/// Runs tasks to completion. Panics on a deadlock.
pub(crate) fn run_all(seed: u64, tasks: Vec<Task<'_>>) {
    let flag = || Arc::new(Flag(AtomicBool::new(true)));
    let mut open: Vec<(Arc<Flag>, Task<'_>)> = tasks.into_iter().map(|t| (flag(), t)).collect();
    for i in 0..MOST {
        if open.is_empty() {
            return;
        }
        let woken: Vec<usize> = (0..open.len()).filter(|t| open[*t].0.0.load(Ordering::Relaxed)).collect();
        assert!(!woken.is_empty(), "{} tasks wait for ever", open.len());
        let at = woken[mix(seed ^ i as u64) as usize % woken.len()];
        let (flag, task) = &mut open[at];
        flag.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(flag.clone());
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            drop(open.swap_remove(at));
        }
    }
    panic!("{} tasks after {MOST} polls", open.len());
}
