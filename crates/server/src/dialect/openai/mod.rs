//! OpenAI's dialect.

pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod embeddings;
pub(super) mod logprobs;
pub(super) mod messages;
pub(crate) mod models;
pub(crate) mod responses;
#[cfg(test)]
mod tests;

use chaski::Finish;
use serde_json::{Value, json};

use super::Told;
use crate::answers::Outcome;
use crate::error::ApiError;
use crate::fields::Fields;

/// The reason for the end of an answer.
fn finish_reason(finish: Finish, has_calls: bool) -> &'static str {
    match finish {
        Finish::Length | Finish::Context => "length",
        Finish::Stop | Finish::StopText if has_calls => "tool_calls",
        Finish::Stop | Finish::StopText => "stop",
    }
}

/// The tokens of prompts and answers. A prompt counts once, whatever the number of its answers.
#[derive(Copy, Clone, Default)]
struct Usage {
    n_cached: usize,
    n_token: usize,
    n_reasoning: usize,
}

impl Usage {
    fn of(outcomes: &[Outcome]) -> Usage {
        outcomes.iter().fold(Usage::default(), |sum, outcome| Usage {
            n_cached: sum.n_cached.max(outcome.stats.n_cached),
            n_token: sum.n_token + outcome.stats.n_token,
            n_reasoning: sum.n_reasoning + outcome.n_reasoning,
        })
    }

    fn json(self, told: &Told) -> Value {
        let n_prompt = told.n_prompt();
        json!({
            "prompt_tokens": n_prompt,
            "completion_tokens": self.n_token,
            "total_tokens": n_prompt + self.n_token,
            "prompt_tokens_details": {"cached_tokens": self.n_cached},
            "completion_tokens_details": {"reasoning_tokens": self.n_reasoning},
        })
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

/// Number of answers.
fn n_answers(fields: &Fields<'_>) -> Result<usize, ApiError> {
    let n = fields.integer("n", 1..=MOST_ANSWERS)?;
    let n = match n {
        Some(n) => Some(n),
        None => fields.integer("best_of", 1..=MOST_ANSWERS)?,
    };
    Ok(n.unwrap_or(1) as usize)
}

/// Most answers to a prompt.
const MOST_ANSWERS: i64 = 8;
