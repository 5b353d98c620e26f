//! Differences between native and web: waiting for the device, work aside, time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// A value that a callback will deliver.
pub(crate) struct Promise<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

/// The callback's side of a [`Promise`].
pub(crate) struct Keeper<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

/// A promise and its keeper.
pub(crate) fn promise<T>() -> (Keeper<T>, Promise<T>) {
    let cell = Arc::new(Mutex::new((None, None)));
    (Keeper(cell.clone()), Promise(cell))
}

impl<T> Keeper<T> {
    pub(crate) fn keep(self, value: T) {
        let mut cell = self.0.lock().unwrap_or_else(|e| e.into_inner());
        cell.0 = Some(value);
        if let Some(waker) = cell.1.take() {
            waker.wake();
        }
    }
}

impl<T> Promise<T> {
    /// The value, if it has been delivered.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).0.take()
    }
}

impl<T> Future for Promise<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut cell = self.0.lock().unwrap_or_else(|e| e.into_inner());
        match cell.0.take() {
            Some(value) => Poll::Ready(value),
            None => {
                cell.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Lets callbacks of everything submitted up to `index` run. Natively this waits for the device; in a browser the event
/// loop runs them and the promise wakes the task.
pub(crate) fn settle(device: &wgpu::Device, index: Option<wgpu::SubmissionIndex>) {
    #[cfg(not(target_arch = "wasm32"))]
    {
        poll(device, wgpu::PollType::Wait { submission_index: index, timeout: None });
    }
    #[cfg(target_arch = "wasm32")]
    {
        let _ = (device, index);
    }
}

/// Waits until the device has finished a submission, at most for this time; false if it has not. Of a lost device,
/// true.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn wait(
    device: &wgpu::Device,
    index: &wgpu::SubmissionIndex,
    timeout: Option<std::time::Duration>,
) -> bool {
    poll(device, wgpu::PollType::Wait { submission_index: Some(index.clone()), timeout })
}

/// Polls a device that may be lost; the loss callback runs before this returns. False after a timeout.
#[cfg(not(target_arch = "wasm32"))]
fn poll(device: &wgpu::Device, how: wgpu::PollType) -> bool {
    // wgpu 30 panics here if the driver reports device loss (`handle_error_fatal` in `Device::poll`), after it has
    // called the callback. It holds no locks then, neither wgpu's nor ours.
    let polled = std::panic::AssertUnwindSafe(|| device.poll(how));
    match std::panic::catch_unwind(polled) {
        // A submission that a destroyed device rejected cannot be waited for, and then no callback runs at all.
        Ok(Err(wgpu::PollError::WrongSubmissionIndex(..))) => {
            poll(device, wgpu::PollType::Wait { submission_index: None, timeout: None })
        }
        Ok(Err(wgpu::PollError::Timeout)) => false,
        Ok(Ok(_)) => true,
        Err(_) => {
            tracing::error!("wgpu panicked when the device was polled: it is lost");
            true
        }
    }
}

/// Lets callbacks of finished work run, without waiting. In a browser the event loop does that.
pub(crate) fn glance(device: &wgpu::Device) {
    #[cfg(not(target_arch = "wasm32"))]
    {
        poll(device, wgpu::PollType::Poll);
    }
    #[cfg(target_arch = "wasm32")]
    {
        let _ = device;
    }
}

/// Time since a start.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Clock(web_time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Clock(web_time::Instant::now())
    }

    pub(crate) fn elapsed(&self) -> std::time::Duration {
        self.0.elapsed()
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}

/// Work on another thread.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) struct Background<T>(std::thread::JoinHandle<T>);

#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + 'static> Background<T> {
    pub(crate) fn start(f: impl FnOnce() -> T + Send + 'static) -> Self {
        Background(std::thread::spawn(f))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for it.
    pub(crate) fn join(self) -> T {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Work that runs immediately, without threads.
#[cfg(target_arch = "wasm32")]
pub(crate) struct Background<T>(T);

#[cfg(target_arch = "wasm32")]
impl<T> Background<T> {
    pub(crate) fn start(f: impl FnOnce() -> T) -> Self {
        Background(f())
    }

    pub(crate) fn is_done(&self) -> bool {
        true
    }

    pub(crate) fn join(self) -> T {
        self.0
    }
}

/// Calls `f` for every item, on several threads if available, and returns the results.
#[cfg(not(target_arch = "wasm32"))]
pub fn for_each<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
    use rayon::prelude::*;
    items.par_iter().map(f).collect()
}

/// Calls `f` for every item in sequence: there are no threads.
#[cfg(target_arch = "wasm32")]
pub fn for_each<T, R>(items: &[T], f: impl Fn(&T) -> R) -> Vec<R> {
    items.iter().map(f).collect()
}
