//! OpenAI's dialect.

pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod embeddings;
pub(super) mod logprobs;
pub(super) mod messages;
pub(crate) mod models;
pub(crate) mod rerank;
pub(crate) mod responses;
#[cfg(test)]
mod tests;

use chaski::{Finish, Stats};
use serde_json::{Map, Value, json};

use super::Told;
use crate::answers::{Gathered, Outcome};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Facts;

/// The reason for the end of an answer.
fn finish_reason(finish: Finish, has_calls: bool) -> &'static str {
    match finish {
        Finish::Length | Finish::Context => "length",
        Finish::Stop | Finish::StopText if has_calls => "tool_calls",
        Finish::Stop | Finish::StopText => "stop",
    }
}

/// vLLM's `stop_reason`: the stop string, or the token of `stop_token_ids`, that ended an answer.
fn stop_reason(stats: &Stats, stop: &[String]) -> Option<Value> {
    let text = stats.stop.and_then(|index| stop.get(index));
    text.map(|text| text.as_str().into()).or(stats.stop_token.map(Value::from))
}

/// The beginning of all bodies and chunks.
fn head(told: &Told, object: &str) -> Map<String, Value> {
    let mut head = Map::new();
    head.insert("id".into(), told.id.as_str().into());
    head.insert("object".into(), object.into());
    head.insert("created".into(), told.created.into());
    head.insert("model".into(), told.model.as_str().into());
    head.insert("system_fingerprint".into(), told.fingerprint.as_str().into());
    head
}

/// The tokens of prompts and answers. A prompt counts once, whatever the number of its answers.
#[derive(Copy, Clone, Default)]
struct Usage {
    n_cached: usize,
    n_token: usize,
    n_reasoning: usize,
    n_drafted: usize,
    n_accepted: usize,
}

impl Usage {
    /// Of answers in order: their statistics, and how many of their tokens are reasoning.
    fn of<'a>(told: &Told, answers: impl Iterator<Item = (&'a Stats, usize)>) -> Usage {
        let mut usage = Usage::default();
        // The answers to a prompt share it; those after the first find more of it in the cache.
        let mut cached = vec![usize::MAX; told.prompts.len()];
        for (i, (stats, n_reasoning)) in answers.enumerate() {
            let least = &mut cached[i / told.n];
            *least = (*least).min(stats.n_cached);
            usage.n_token += stats.n_token;
            usage.n_reasoning += n_reasoning;
            usage.n_drafted += stats.n_drafted;
            usage.n_accepted += stats.n_accepted;
        }
        usage.n_cached = cached.into_iter().filter(|n| *n < usize::MAX).sum();
        usage
    }

    fn of_outcomes(told: &Told, outcomes: &[Outcome]) -> Usage {
        Usage::of(told, outcomes.iter().map(|outcome| (&outcome.stats, outcome.n_reasoning)))
    }

    fn of_gathered<'a>(told: &Told, gathered: impl Iterator<Item = &'a Gathered>) -> Usage {
        Usage::of(told, gathered.map(|one| (&one.stats, one.n_reasoning)))
    }

    fn json(self, told: &Told) -> Value {
        let n_prompt = told.n_prompt();
        let mut usage = json!({
            "prompt_tokens": n_prompt,
            "completion_tokens": self.n_token,
            "total_tokens": n_prompt + self.n_token,
            "prompt_tokens_details": {"cached_tokens": self.n_cached},
            "completion_tokens_details": {"reasoning_tokens": self.n_reasoning},
        });
        if self.n_drafted > 0 {
            let details = &mut usage["completion_tokens_details"];
            details["accepted_prediction_tokens"] = self.n_accepted.into();
            details["rejected_prediction_tokens"] = (self.n_drafted - self.n_accepted).into();
        }
        usage
    }
}

/// `stream`, and whether the usage ends it.
fn stream_options(fields: &Fields<'_>) -> Result<(bool, bool, bool), ApiError> {
    let stream = fields.flag("stream")?.unwrap_or(false);
    let options = fields.object("stream_options")?;
    let flag = |name| match &options {
        Some(options) => options.flag(name).map(|flag| flag.unwrap_or(false)),
        None => Ok(false),
    };
    Ok((stream, flag("include_usage")?, flag("continuous_usage_stats")?))
}

/// The priority for the scheduler, where more is served first. In vLLM's field less is.
fn priority(fields: &Fields<'_>) -> Result<i32, ApiError> {
    let asked = fields.integer("priority", -1000..=1000)?.unwrap_or(0);
    Ok(-(asked as i32))
}

/// The salt of the cached prefixes that a request may share, as vLLM has it.
fn cache_salt(fields: &Fields<'_>) -> Result<Option<String>, ApiError> {
    match fields.text("cache_salt")? {
        Some("") => Err(fields.wrong("cache_salt", "a text that is not empty")),
        salt => Ok(salt.map(String::from)),
    }
}

/// Number of answers.
fn n_answers(fields: &Fields<'_>, facts: &Facts) -> Result<usize, ApiError> {
    let most = i64::from(facts.dialects.max_n);
    let n = fields.integer("n", 1..=most)?;
    let best = fields.integer("best_of", 1..=most)?;
    match (n, best) {
        (Some(n), Some(best)) if best != n => {
            Err(fields.wrong("best_of", "the same as `n`: all answers are told"))
        }
        _ => Ok(n.or(best).unwrap_or(1) as usize),
    }
}
