//! Threads that run loops together.

use std::any::Any;
use std::cell::Cell;
#[cfg(not(target_arch = "wasm32"))]
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Weak;
#[cfg(target_arch = "wasm32")]
use std::sync::atomic::AtomicU32;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use web_time::Instant;

/// Time that a thread waits awake for the next loop: longer than the parts of a token between loops.
const AWAKE: Duration = Duration::from_micros(100);

/// A number of threads, of which the caller of a loop is one.
pub(super) struct Team {
    n: usize,
    shared: Arc<Shared>,
    /// None where a page has started them.
    threads: Vec<JoinHandle<()>>,
    /// Held by the caller of a loop: one at a time.
    turn: Mutex<()>,
}

#[derive(Default)]
struct Shared {
    /// Number of loops so far.
    started: AtomicU64,
    /// The last loop.
    current: Mutex<Option<Arc<Loop>>>,
    /// Threads that sleep, or are about to.
    asleep: AtomicUsize,
    bed: Mutex<()>,
    bell: Condvar,
    stop: AtomicBool,
}

/// A loop over the numbers below `n`.
struct Loop {
    /// Valid until all parts are done.
    body: Body,
    n: usize,
    next: AtomicUsize,
    done: AtomicUsize,
    /// The first panic.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

struct Body(*const (dyn Fn(usize) + Sync));

// SAFETY: The function is `Sync`, and `Loop::run` calls it only while the caller of the loop waits.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Send for Body {}
// SAFETY: Likewise.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Sync for Body {}

thread_local! {
    /// True within a part of a loop, which then runs its own loops alone.
    static IN_LOOP: Cell<bool> = const { Cell::new(false) };
}

/// Number of threads of the page that ended by a panic.
#[cfg(target_arch = "wasm32")]
static FAILURES: AtomicU32 = AtomicU32::new(0);

/// The word that counts threads that have failed. A panic ends a thread without another trace, so that the page has to
/// write down what it saw: the caller of a loop, which would wait forever, fails then, too.
#[cfg(target_arch = "wasm32")]
pub fn failures() -> *const u32 {
    FAILURES.as_ptr()
}

/// # Panics
/// If a thread has failed.
#[cfg(target_arch = "wasm32")]
fn check() {
    assert!(FAILURES.load(Ordering::Relaxed) == 0, "a thread of the CPU has failed");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Team {
    /// A team of `n` threads: one that engines use already, or a new one.
    ///
    /// # Errors
    /// The system cannot start as many threads.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn of(n: usize) -> io::Result<Arc<Team>> {
        static TEAMS: Mutex<Vec<Weak<Team>>> = Mutex::new(Vec::new());
        let mut teams = lock(&TEAMS);
        teams.retain(|team| team.strong_count() > 0);
        if let Some(team) = teams.iter().filter_map(Weak::upgrade).find(|team| team.n == n) {
            return Ok(team);
        }
        let mut team =
            Team { n, shared: Arc::default(), threads: Vec::with_capacity(n - 1), turn: Mutex::new(()) };
        for i in 1..n {
            let shared = team.shared.clone();
            let thread = std::thread::Builder::new().name(format!("cpu {i}"));
            // If one cannot start, dropping the team ends the others.
            team.threads.push(thread.spawn(move || shared.work())?);
        }
        let team = Arc::new(team);
        teams.push(Arc::downgrade(&team));
        Ok(team)
    }

    /// A team of `n` threads that a page starts.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn of_page(n: usize) -> Team {
        Team { n, shared: Arc::default(), threads: Vec::new(), turn: Mutex::new(()) }
    }

    /// Makes the caller one of its threads, until the team ends.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn serve(&self) {
        self.shared.work();
    }

    pub(super) fn n(&self) -> usize {
        self.n
    }

    /// Calls `f(i)` for all `i` below `n`, in any order, on all threads. A panic of `f` is passed on after the others.
    pub(super) fn each(&self, n: usize, f: &(dyn Fn(usize) + Sync)) {
        if n < 2 || self.n < 2 || IN_LOOP.get() {
            return (0..n).for_each(f);
        }
        let _turn = lock(&self.turn);
        #[cfg(target_arch = "wasm32")]
        check();
        // SAFETY: Only the lifetime changes. `run` calls the function for numbers below `n` alone, each of which is
        // counted when it is done, and this function returns after all are.
        #[allow(unsafe_code, reason = "see above")]
        let body = Body(unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const (dyn Fn(usize) + Sync + 'static)>(
                f,
            )
        });
        let this = Arc::new(Loop {
            body,
            n,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            panic: Mutex::new(None),
        });
        *lock(&self.shared.current) = Some(this.clone());
        self.shared.started.fetch_add(1, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) > 0 {
            let _bed = lock(&self.shared.bed);
            self.shared.bell.notify_all();
        }
        this.run();
        this.wait();
        let panic = lock(&this.panic).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.started.fetch_add(1, Ordering::SeqCst);
        drop(lock(&self.shared.bed));
        self.shared.bell.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked outside of a loop has nothing to say here.
            let _ = thread.join();
        }
    }
}

impl Loop {
    /// Takes numbers until there are none.
    fn run(&self) {
        IN_LOOP.set(true);
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= self.n {
                break;
            }
            // SAFETY: The caller of the loop waits until `done` counts this number.
            #[allow(unsafe_code, reason = "see above")]
            let body = unsafe { &*self.body.0 };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(i))) {
                lock(&self.panic).get_or_insert(panic);
            }
            self.done.fetch_add(1, Ordering::Release);
        }
        IN_LOOP.set(false);
    }

    /// Waits until all numbers are done. A thread that works on one may have lost its core to another program.
    fn wait(&self) {
        let mut turns = 0u32;
        while self.done.load(Ordering::Acquire) < self.n {
            turns += 1;
            #[cfg(target_arch = "wasm32")]
            check();
            if turns % 256 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

impl Shared {
    /// Runs loops until the team ends.
    fn work(&self) {
        let mut seen = 0;
        loop {
            seen = self.next_loop(seen);
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            let current = lock(&self.current).clone();
            if let Some(current) = current {
                current.run();
            }
        }
    }

    /// Waits for a loop after the first `seen`, first awake, then asleep.
    fn next_loop(&self, seen: u64) -> u64 {
        let start = Instant::now();
        while start.elapsed() < AWAKE {
            for _ in 0..64 {
                let started = self.started.load(Ordering::SeqCst);
                if started != seen {
                    return started;
                }
                std::hint::spin_loop();
            }
        }
        let mut bed = lock(&self.bed);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        // A caller that did not count this thread has started its loop before.
        let started = loop {
            let started = self.started.load(Ordering::SeqCst);
            if started != seen {
                break started;
            }
            bed = self.bell.wait(bed).unwrap_or_else(|e| e.into_inner());
        };
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_runs_once() {
        for n_thread in [1, 2, 3, 16] {
            let team = Team::of(n_thread).expect("threads");
            for n in [0, 1, 2, 7, 100, 1000] {
                for _ in 0..20 {
                    let counts: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                    team.each(n, &|i| {
                        counts[i].fetch_add(1, Ordering::Relaxed);
                        // A loop within a loop.
                        team.each(3, &|_| ());
                    });
                    assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1), "{n} parts");
                }
            }
            // Long enough for all to sleep.
            std::thread::sleep(3 * AWAKE);
        }
    }

    #[test]
    fn callers_take_turns() {
        let team = Team::of(3).expect("threads");
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        team.each(10, &|i| {
                            total.fetch_add(i, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 4 * 200 * 45);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_goes_on() {
        let team = Team::of(4).expect("threads");
        let result = catch_unwind(AssertUnwindSafe(|| team.each(50, &|i| assert_ne!(i, 17, "seventeen"))));
        assert!(result.is_err());
        let n = AtomicUsize::new(0);
        team.each(50, &|_| {
            n.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(n.into_inner(), 50);
    }

    #[test]
    fn engines_of_as_many_threads_share_them() {
        let (a, b) = (Team::of(5).expect("threads"), Team::of(5).expect("threads"));
        assert!(Arc::ptr_eq(&a, &b));
        drop((a, b));
        assert_eq!(Team::of(5).expect("threads").threads.len(), 4);
    }
}
