//! The times and the progress of an answer, as llama-server tells them.

use std::time::Instant;

use chaski::{ChatEvent, Stats};
use serde_json::{Value, json};

/// Times in milliseconds and tokens per second. The time in the queue belongs to neither the prompt nor the answer.
pub(crate) fn timings(stats: &Stats) -> Value {
    let (prompt, decode) = (stats.prefill().as_secs_f64() * 1e3, stats.decode.as_secs_f64() * 1e3);
    let rate = |n: usize, ms: f64| if ms > 0.0 { n as f64 * 1e3 / ms } else { 0.0 };
    let each = |n: usize, ms: f64| if n > 0 { ms / n as f64 } else { 0.0 };
    let mut timings = json!({
        "cache_n": stats.n_cached,
        "prompt_n": stats.n_prompt,
        "prompt_ms": prompt,
        "prompt_per_token_ms": each(stats.n_prompt, prompt),
        "prompt_per_second": rate(stats.n_prompt, prompt),
        "predicted_n": stats.n_token,
        "predicted_ms": decode,
        "predicted_per_token_ms": each(stats.n_token, decode),
        "predicted_per_second": rate(stats.n_token.saturating_sub(1), decode),
    });
    if stats.n_drafted > 0 {
        timings["draft_n"] = stats.n_drafted.into();
        timings["draft_n_accepted"] = stats.n_accepted.into();
    }
    timings
}

/// The progress of a prompt: at its start, at each of its steps, and when all of it has run.
#[derive(Clone, Default)]
pub(crate) struct PromptProgress {
    /// The time of the start, and the tokens that were told last.
    told: Option<(Instant, usize)>,
}

impl PromptProgress {
    /// The progress and the times so far, if this event changes them. `stats` are those after the event.
    pub(crate) fn next(&mut self, event: &ChatEvent, stats: &Stats) -> Option<(Value, Value)> {
        let n_sent = match (event, self.told) {
            (ChatEvent::Started { .. }, None) => 0,
            (ChatEvent::Prompt { n_sent }, Some((_, last))) if *n_sent > last => *n_sent,
            (ChatEvent::Piece(_) | ChatEvent::Finished { .. }, Some((_, last))) if last < stats.n_prompt => {
                stats.n_prompt
            }
            _ => return None,
        };
        let now = Instant::now();
        let start = self.told.map_or(now, |(start, _)| start);
        self.told = Some((start, n_sent));
        let so_far =
            Stats { n_prompt: n_sent, n_cached: stats.n_cached, ttft: now - start, ..Stats::default() };
        let progress = json!({
            "total": stats.n_prompt + stats.n_cached,
            "cache": stats.n_cached,
            "processed": stats.n_cached + n_sent,
            "time_ms": (now - start).as_millis() as u64,
        });
        Some((progress, timings(&so_far)))
    }
}
