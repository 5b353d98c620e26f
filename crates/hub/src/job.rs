//! Work on threads of its own, so that a caller can stop it at once whatever a connection does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::error::HubError;
use crate::event::Event;

/// The caller's side of a piece of work: it may stop it, and is told events on its own thread.
pub struct Watch<'a> {
    /// Set to stop; files keep what came.
    pub cancel: Arc<AtomicBool>,
    /// Told events.
    pub tell: &'a mut dyn FnMut(Event),
}

/// The side of the work.
#[derive(Clone)]
pub(crate) struct Job {
    stop: [Arc<AtomicBool>; 2],
    events: Sender<Event>,
}

/// Time between two looks at the caller's flag.
const LOOK: Duration = Duration::from_millis(40);
/// Time for work to end by itself after it was stopped; a part that is not flushed then loses its last bytes.
const FAREWELL: Duration = Duration::from_millis(400);

impl Job {
    /// Runs work on another thread, and tells its events on this one.
    ///
    /// # Errors
    /// Those of the work; [`HubError::Interrupted`].
    pub(crate) fn run<T: Send + 'static>(
        watch: &mut Watch<'_>,
        work: impl FnOnce(&Job) -> Result<T, HubError> + Send + 'static,
    ) -> Result<T, HubError> {
        let (events, inbox) = mpsc::channel();
        let job = Job { stop: [watch.cancel.clone(), Arc::default()], events };
        let thread = std::thread::Builder::new()
            .name("hub".into())
            .spawn(move || work(&job))
            .map_err(|source| HubError::File { path: "a thread".into(), source })?;
        let mut stopped = None;
        loop {
            match inbox.recv_timeout(LOOK) {
                Ok(event) => (watch.tell)(event),
                Err(RecvTimeoutError::Timeout) => {}
                // The work has ended.
                Err(RecvTimeoutError::Disconnected) => {
                    return thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause));
                }
            }
            if watch.cancel.load(Ordering::Relaxed)
                && stopped.get_or_insert_with(Instant::now).elapsed() > FAREWELL
            {
                return Err(HubError::Interrupted);
            }
        }
    }

    /// Work beside this that stops with it, and that [`Self::stop`] stops alone.
    pub(crate) fn part(&self) -> Job {
        Job { stop: [self.stop[0].clone(), Arc::default()], events: self.events.clone() }
    }

    /// Stops the work.
    pub(crate) fn stop(&self) {
        self.stop[1].store(true, Ordering::Relaxed);
    }

    /// Tells an event; nobody may listen any more.
    pub(crate) fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }

    /// # Errors
    /// [`HubError::Interrupted`] if the work must stop.
    pub(crate) fn check(&self) -> Result<(), HubError> {
        match self.stop.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            true => Err(HubError::Interrupted),
            false => Ok(()),
        }
    }

    /// Waits, unless the work must stop.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), HubError> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}
