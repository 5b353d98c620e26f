//! The dialects of the API. Each reads bodies into an [`Ask`] and writes events as its clients expect them; neither
//! knows of sockets.

pub(crate) mod anthropic;
mod conversation;
pub(crate) mod llama;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod timings;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chaski::ChatEvent;
use serde_json::Value;

use crate::answers::Outcome;
use crate::ask::{Ask, Read};
use crate::error::ApiError;
use crate::model::Facts;

/// Reads the body of a request for answers.
pub(crate) type ReadAsk = fn(&Value, &Facts) -> Result<(Ask, Box<dyn Writer>), ApiError>;

/// An endpoint that answers.
pub(crate) struct Dialect {
    pub(crate) ask: ReadAsk,
    pub(crate) wire: Wire,
    /// Requests have to name a model.
    pub(crate) needs_model: bool,
    /// Beginning of the answers' names.
    pub(crate) prefix: &'static str,
}

/// How frames follow each other.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Server-sent events; `ends` with the line `[DONE]`.
    Events { ends: bool, ping: Ping },
    /// A JSON value per line.
    Lines,
}

/// Sent in silence, so that nobody on the way cuts the connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ping {
    /// A comment.
    Comment,
    /// Anthropic's event.
    Event,
}

impl Wire {
    /// Silence after which a ping is due; none in lines.
    pub(crate) fn ping(self) -> Option<Duration> {
        match self {
            Wire::Events { ping: Ping::Comment, .. } => Some(Duration::from_secs(15)),
            Wire::Events { ping: Ping::Event, .. } => Some(Duration::from_secs(10)),
            Wire::Lines => None,
        }
    }
}

/// A part of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Frame {
    /// A value.
    Data(Value),
    /// A value with the name of its event.
    Event(&'static str, Value),
}

/// The facts that all writers tell.
pub(crate) struct Told {
    /// Name of the answer.
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// Name of the model.
    pub(crate) model: String,
    /// Name of the build.
    pub(crate) fingerprint: String,
    pub(crate) facts: Arc<Facts>,
    pub(crate) prompts: Vec<Read>,
    /// Answers to each prompt.
    pub(crate) n: usize,
    /// Scales of the model's LoRAs; none without LoRAs.
    pub(crate) lora: Vec<f32>,
    /// The place of each answer, once it runs.
    pub(crate) slots: Arc<[AtomicUsize]>,
}

impl Told {
    /// Answers in all.
    pub(crate) fn n_answer(&self) -> usize {
        self.prompts.len() * self.n
    }

    /// The place of an answer; 0 before it has one.
    pub(crate) fn slot(&self, index: usize) -> usize {
        self.slots.get(index).map_or(0, |slot| slot.load(Ordering::Relaxed))
    }

    /// Tokens of all prompts.
    pub(crate) fn n_prompt(&self) -> usize {
        self.prompts.iter().map(|prompt| prompt.tokens.len()).sum()
    }
}

/// Writes the answers to a request.
pub(crate) trait Writer: Send + Sync {
    /// The body of a request that is not streamed.
    fn whole(&mut self, told: &Told, outcomes: &[Outcome]) -> Value;

    /// The frames of a stream at an event of the answer with this index.
    fn event(&mut self, told: &Told, index: usize, event: &ChatEvent) -> Vec<Frame>;

    /// The frames of a stream after the last event.
    fn end(&mut self, told: &Told) -> Vec<Frame>;

    /// The frames of a stream that fails; `None`: the error as any response says it.
    fn failed(&mut self, _: &Told, _: &ApiError) -> Option<Vec<Frame>> {
        None
    }
}

/// One value for each answer.
pub(crate) fn per_answer<T: Default + Clone>(told: &Told, values: &mut Vec<T>) {
    if values.is_empty() {
        values.resize(told.n_answer(), T::default());
    }
}
