//! The answers of a request, for those who ask which run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::ask::{Ask, Read};
use crate::model::Facts;
use crate::places::{Place, Places};
use crate::sampling;

/// Facts that are told of the answers of a request while they run.
#[derive(Clone)]
pub(super) struct Tasks {
    prompts: Vec<Arc<str>>,
    params: Arc<Value>,
    max_tokens: Option<usize>,
    /// Answers to each prompt.
    n: usize,
    /// The slot that the request asks for.
    asked: Option<u32>,
    /// The place of each answer, once it has one.
    pub(super) slots: Arc<[AtomicUsize]>,
}

impl Tasks {
    pub(super) fn new(ask: &Ask, prompts: &[Read], facts: &Facts) -> Tasks {
        let mut params = sampling::told(&ask.options.sampler, facts);
        let limit = ask.options.max_tokens.map_or(json!(-1), |n| json!(n));
        params.insert("n_predict".into(), limit.clone());
        params.insert("max_tokens".into(), limit);
        params.insert("stop".into(), json!(ask.options.stop));
        params.insert("stream".into(), ask.stream.into());
        Tasks {
            prompts: prompts.iter().map(|prompt| prompt.text.as_str().into()).collect(),
            params: Arc::new(params.into()),
            max_tokens: ask.options.max_tokens,
            n: ask.n,
            asked: ask.slot,
            slots: (0..prompts.len() * ask.n).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// The place of an answer that begins to run.
    pub(super) fn place(&self, places: &Arc<Places>, index: usize) -> Option<Place> {
        let prompt = self.prompts[index / self.n].clone();
        let place = places.take(self.asked, prompt, self.params.clone(), self.max_tokens)?;
        self.slots[index].store(place.index, Ordering::Relaxed);
        Some(place)
    }
}
