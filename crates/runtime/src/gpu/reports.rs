//! Reports of a device: device loss, and uncaptured errors.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A report.
#[derive(Clone, Debug)]
pub(super) enum PendingError {
    Lost(String),
    OutOfMemory(String),
    Refused(String),
}

type OnLost = Box<dyn Fn(&str) + Send + Sync>;
type OnError = Box<dyn Fn(&wgpu::Error) + Send + Sync>;

/// Reports of a device, and their listeners.
#[derive(Default)]
pub(super) struct Reports {
    pending_error: Mutex<Option<PendingError>>,
    on_lost: Mutex<Vec<OnLost>>,
    on_error: Mutex<Vec<OnError>>,
}

impl Reports {
    /// Listens to a device for the lifetime of the reports.
    pub(super) fn of(device: &wgpu::Device) -> Arc<Reports> {
        let reports = Arc::new(Reports::default());
        let weak = Arc::downgrade(&reports);
        device.set_device_lost_callback(move |reason, message| {
            let message =
                if message.is_empty() { format!("{reason:?}").to_ascii_lowercase() } else { message };
            with(&weak, |reports| reports.lost(message));
        });
        let weak = Arc::downgrade(&reports);
        device.on_uncaptured_error(Arc::new(move |error| with(&weak, |reports| reports.failed(&error))));
        reports
    }

    /// The device loss, or else the first error: the first explains the failure, but nothing works without the device.
    pub(super) fn pending_error(&self) -> Option<PendingError> {
        lock(&self.pending_error).clone()
    }

    pub(super) fn on_lost(&self, f: OnLost) {
        match self.pending_error() {
            Some(PendingError::Lost(reason)) => f(&reason),
            _ => lock(&self.on_lost).push(f),
        }
    }

    pub(super) fn on_error(&self, f: OnError) {
        lock(&self.on_error).push(f);
    }

    pub(super) fn lost(&self, reason: String) {
        tracing::error!(reason, "the device was lost");
        *lock(&self.pending_error) = Some(PendingError::Lost(reason.clone()));
        // Moved out of the lock: callbacks may use the device.
        let listeners = std::mem::take(&mut *lock(&self.on_lost));
        listeners.iter().for_each(|f| f(&reason));
    }

    fn failed(&self, error: &wgpu::Error) {
        let text = error.to_string();
        tracing::error!(text, "the device reported an error");
        lock(&self.pending_error).get_or_insert(match error {
            wgpu::Error::OutOfMemory { .. } => PendingError::OutOfMemory(text),
            _ => PendingError::Refused(text),
        });
        lock(&self.on_error).iter().for_each(|f| f(error));
    }
}

fn with(reports: &Weak<Reports>, f: impl FnOnce(&Reports)) {
    if let Some(reports) = reports.upgrade() {
        f(&reports);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
