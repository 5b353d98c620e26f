//! From times to numbers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Outcome;
use super::mix::Job;

/// The numbers of a measurement; times in milliseconds, at the 50th, 95th and 99th percentile.
pub(crate) struct Summary {
    pub(crate) n_ok: usize,
    pub(crate) n_bad: usize,
    pub(crate) n_left: usize,
    /// Refusals for want of room.
    pub(crate) n_refused: usize,
    /// Tokens of all answers, per second.
    pub(crate) rate: f64,
    pub(crate) seconds: f64,
    pub(crate) ttft: [f64; 3],
    pub(crate) gap: [f64; 3],
    pub(crate) gap_max: f64,
    pub(crate) errors: Vec<String>,
}

/// The value below which this share of the sorted values lies.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or(0.0)
}

fn three(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [0.5, 0.95, 0.99].map(|share| percentile(&values, share))
}

/// Times that count are those of whole answers to ordinary requests.
pub(crate) fn summary(jobs: &[Job], outcomes: &[Option<Outcome>], start: Instant) -> Summary {
    let seconds = start.elapsed().as_secs_f64();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (mut ttft, mut gaps, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    let (mut n_ok, mut n_bad, mut n_left, mut n_token, mut n_refused) = (0, 0, 0, 0, 0);
    for (job, outcome) in jobs.iter().zip(outcomes) {
        let Some(outcome) = outcome else {
            n_bad += 1;
            continue;
        };
        n_refused += outcome.n_refused;
        n_token += outcome.n_token.unwrap_or(outcome.pieces.len());
        if outcome.has_left {
            n_left += 1;
        } else if !outcome.is_whole(job) {
            n_bad += 1;
            let tokens = format!("{:?} tokens instead of {}", outcome.n_token, job.n_out);
            errors.push(outcome.error.clone().unwrap_or(tokens));
        } else {
            n_ok += 1;
            if job.counts {
                ttft.extend(outcome.pieces.first().map(|time| ms(*time)));
                gaps.extend(outcome.pieces.windows(2).map(|pair| ms(pair[1] - pair[0])));
            }
        }
    }
    errors.dedup();
    errors.truncate(5);
    let gap_max = gaps.iter().copied().fold(0.0, f64::max);
    let rate = n_token as f64 / seconds.max(1e-9);
    let (ttft, gap) = (three(ttft), three(gaps));
    Summary { n_ok, n_bad, n_left, n_refused, rate, seconds, ttft, gap, gap_max, errors }
}

impl Summary {
    pub(crate) fn json(&self) -> Value {
        json!({
            "ok": self.n_ok,
            "bad": self.n_bad,
            "left": self.n_left,
            "refused": self.n_refused,
            "tokens_per_second": self.rate,
            "seconds": self.seconds,
            "ttft_ms": {"p50": self.ttft[0], "p95": self.ttft[1], "p99": self.ttft[2]},
            "gap_ms": {"p50": self.gap[0], "p95": self.gap[1], "p99": self.gap[2], "max": self.gap_max},
            "errors": self.errors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occur() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([0.5, 0.95, 0.99].map(|share| percentile(&values, share)), [50.0, 95.0, 99.0]);
        assert_eq!(percentile(&[], 0.5), 0.0);
        assert_eq!(percentile(&[7.0], 0.99), 7.0);
    }
}
