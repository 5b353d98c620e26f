//! Responses that are kept, for requests that go on from them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// A response, and the conversation up to its end.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) id: String,
    /// Number of the key that asked for it: no other finds it.
    pub(crate) client: u64,
    pub(crate) response: Value,
    /// The items of its input, then those of its output. Responses that go on from each other share them.
    pub(crate) items: Vec<Arc<Value>>,
}

/// The responses of a server. When there are too many, the one that was not used for longest goes.
#[derive(Debug, Default)]
pub(crate) struct KeptResponses {
    most: usize,
    /// The last used is the last.
    all: Mutex<VecDeque<Kept>>,
}

impl KeptResponses {
    /// Keeps at most so many.
    pub(crate) fn new(most: usize) -> KeptResponses {
        KeptResponses { most, all: Mutex::default() }
    }

    /// True if any are kept.
    pub(crate) fn is_on(&self) -> bool {
        self.most > 0
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, kept: Kept) {
        let mut all = self.all();
        all.push_back(kept);
        while all.len() > self.most {
            all.pop_front();
        }
    }

    /// A response of a client.
    pub(crate) fn find(&self, id: &str, client: u64) -> Option<Kept> {
        let mut all = self.all();
        let at = all.iter().position(|kept| kept.id == id && kept.client == client)?;
        let kept = all.remove(at)?;
        all.push_back(kept.clone());
        Some(kept)
    }

    /// Forgets a response of a client; false if there is none.
    pub(crate) fn forget(&self, id: &str, client: u64) -> bool {
        let mut all = self.all();
        let n = all.len();
        all.retain(|kept| kept.id != id || kept.client != client);
        all.len() < n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_not_used_for_longest_goes() {
        let kept = KeptResponses::new(2);
        let add = |id: &str, client| {
            kept.add(Kept { id: id.into(), client, response: Value::Null, items: Vec::new() });
        };
        add("a", 1);
        add("b", 1);
        assert!(kept.find("a", 1).is_some() && kept.find("a", 2).is_none());
        add("c", 1);
        let is_there = ["a", "b", "c"].map(|id| kept.find(id, 1).is_some());
        assert_eq!(is_there, [true, false, true]);
        assert!(!kept.forget("a", 2) && kept.forget("a", 1) && !kept.forget("a", 1));
    }
}
