//! The times and the progress of an answer, as llama-server tells them.

use chaski::Stats;
use serde_json::{Value, json};

/// Times in milliseconds and tokens per second.
pub(crate) fn timings(stats: &Stats) -> Value {
    let (prompt, decode) = (stats.ttft.as_secs_f64() * 1e3, stats.decode.as_secs_f64() * 1e3);
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

/// The progress of a prompt of which so many tokens are submitted.
pub(crate) fn progress(stats: &Stats, n_sent: usize) -> Value {
    json!({
        "total": stats.n_prompt + stats.n_cached,
        "cache": stats.n_cached,
        "processed": stats.n_cached + n_sent,
    })
}
