//! The places of a model, for those who ask which requests run.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;

/// An answer that runs.
#[derive(Debug)]
pub(crate) struct Task {
    /// Its number among all of the model.
    pub(crate) id: u64,
    pub(crate) prompt: Arc<str>,
    pub(crate) params: Arc<Value>,
    /// Most tokens that it may have, if there is a limit.
    pub(crate) max_tokens: Option<usize>,
    /// Tokens so far.
    n_token: AtomicUsize,
}

impl Task {
    pub(crate) fn n_token(&self) -> usize {
        self.n_token.load(Ordering::Relaxed)
    }
}

/// A place for each sequence. The scheduler has none: here they are only numbered.
#[derive(Debug)]
pub(crate) struct Places {
    taken: Mutex<Vec<Option<Arc<Task>>>>,
    n_task: AtomicU64,
}

/// The place of an answer, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    pub(crate) index: usize,
    task: Arc<Task>,
}

impl Places {
    pub(crate) fn new(n_seq: u32) -> Places {
        Places { taken: Mutex::new(vec![None; n_seq as usize]), n_task: AtomicU64::new(0) }
    }

    fn taken(&self) -> MutexGuard<'_, Vec<Option<Arc<Task>>>> {
        self.taken.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The answers that run, by place.
    pub(crate) fn tasks(&self) -> Vec<Option<Arc<Task>>> {
        self.taken().clone()
    }

    /// A place for an answer: the one that it asks for if that is free, else the first free one. One that is preempted
    /// keeps its place, so there may be none left.
    pub(crate) fn take(
        self: &Arc<Self>,
        asked: Option<u32>,
        prompt: Arc<str>,
        params: Arc<Value>,
        max_tokens: Option<usize>,
    ) -> Option<Place> {
        let mut taken = self.taken();
        let is_free = |index: &usize| taken.get(*index).is_some_and(Option::is_none);
        let asked = asked.map(|index| index as usize).filter(is_free);
        let index = asked.or_else(|| taken.iter().position(Option::is_none))?;
        let id = self.n_task.fetch_add(1, Ordering::Relaxed);
        let task = Arc::new(Task { id, prompt, params, max_tokens, n_token: AtomicUsize::new(0) });
        taken[index] = Some(task.clone());
        Some(Place { places: self.clone(), index, task })
    }
}

impl Place {
    /// The answer has another token.
    pub(crate) fn token(&self) {
        self.task.n_token.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken()[self.index] = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_places_that_they_ask_for_while_these_are_free() {
        let places = Arc::new(Places::new(3));
        let take = |asked| places.take(asked, "a".into(), Arc::default(), None);
        let second = take(Some(1)).unwrap();
        let (first, third) = (take(Some(1)).unwrap(), take(None).unwrap());
        assert_eq!([first.index, second.index, third.index], [0, 1, 2]);
        assert!(take(None).is_none());
        second.token();
        let ids: Vec<_> =
            places.tasks().iter().map(|task| task.as_ref().map(|t| (t.id, t.n_token()))).collect();
        assert_eq!(ids, [Some((1, 0)), Some((0, 1)), Some((2, 0))]);
        drop(second);
        assert_eq!(take(Some(7)).unwrap().index, 1, "no such place");
    }
}
