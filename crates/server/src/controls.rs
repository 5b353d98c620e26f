//! Answers that run, by the ids that their clients know, for wishes of the clients.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The wishes for the answers of a request.
#[derive(Debug, Default)]
pub(crate) struct Control {
    client: u64,
    /// Its reasoning is to end.
    ends_reasoning: AtomicBool,
}

impl Control {
    /// True if the reasoning is to end.
    pub(crate) fn ends_reasoning(&self) -> bool {
        self.ends_reasoning.load(Ordering::Relaxed)
    }

    /// Wishes for the end of the reasoning.
    pub(crate) fn end_reasoning(&self) {
        self.ends_reasoning.store(true, Ordering::Relaxed);
    }
}

/// All of them. A request is known as long as somebody holds its control.
#[derive(Default)]
pub(crate) struct Controls(Mutex<HashMap<String, Weak<Control>>>);

/// Entries above which those of ended requests are dropped.
const MANY: usize = 64;

impl Controls {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Weak<Control>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The control of a request of a client from now on.
    pub(crate) fn add(&self, id: &str, client: u64) -> Arc<Control> {
        let control = Arc::new(Control { client, ..Control::default() });
        let mut all = self.all();
        if all.len() >= MANY {
            all.retain(|_, known| known.strong_count() > 0);
        }
        all.insert(id.to_owned(), Arc::downgrade(&control));
        control
    }

    /// The control of a request of this client that runs.
    pub(crate) fn find(&self, id: &str, client: u64) -> Option<Arc<Control>> {
        self.all().get(id)?.upgrade().filter(|control| control.client == client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_known_to_their_clients_while_they_run() {
        let controls = Controls::default();
        let control = controls.add("a", 7);
        assert!(controls.find("a", 8).is_none() && controls.find("b", 7).is_none());
        controls.find("a", 7).unwrap().end_reasoning();
        assert!(control.ends_reasoning());
        drop(control);
        assert!(controls.find("a", 7).is_none());
        (0..1000).for_each(|i| drop(controls.add(&i.to_string(), 7)));
        assert!(controls.all().len() <= MANY);
    }
}
