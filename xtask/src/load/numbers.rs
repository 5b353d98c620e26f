//! From times to numbers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Outcome;
use super::drive::Asked;
use super::mix::{Job, has_schema};

/// Most milliseconds to the first token of an answer, and from token to token, with which it serves its user.
pub(crate) const SERVES: (f64, f64) = (1000.0, 50.0);

/// Answers that ended after the first tenth of the requests, or the first of each user, and until the last was sent:
/// without the time in which a server fills, and that in which it empties.
pub(crate) struct Window {
    pub(crate) seconds: f64,
    /// Tokens of answers, per second.
    pub(crate) token_rate: f64,
    /// Answers, per second.
    pub(crate) request_rate: f64,
}

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
    /// `None` if all requests were sent before a tenth had ended.
    pub(crate) window: Option<Window>,
    /// Whole answers that serve their users ([`SERVES`]), per second.
    pub(crate) goodput: f64,
    pub(crate) ttft: [f64; 3],
    /// Of each answer, the time from its first to its last token by its tokens but one.
    pub(crate) tpot: [f64; 3],
    pub(crate) gap: [f64; 3],
    pub(crate) gap_max: f64,
    /// Answers with a schema.
    pub(crate) structured: Structured,
    /// The part of the tokens of prompts that the server had cached, where it tells them.
    pub(crate) cached: Option<f64>,
    /// The same for further turns, as a part of the tokens that were computed before: those of earlier turns.
    pub(crate) cached_of_turns: Option<f64>,
    pub(crate) errors: Vec<String>,
}

/// Answers with a schema; the whole ones count.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Structured {
    /// Those that have it.
    pub(crate) n_valid: usize,
    /// Those that the limit of tokens cut.
    pub(crate) n_cut: usize,
    /// Tokens of all.
    pub(crate) n_token: usize,
}

impl Structured {
    fn json(self) -> Option<Value> {
        let Structured { n_valid, n_cut, n_token } = self;
        (n_valid + n_cut > 0).then(|| json!({"valid": n_valid, "cut": n_cut, "tokens": n_token}))
    }
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
pub(crate) fn summary(jobs: &[Job], asked: &[Asked], start: Instant, users: usize) -> Summary {
    let seconds = start.elapsed().as_secs_f64();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (mut ttft, mut tpot, mut gaps, mut errors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut structured = Structured::default();
    let mut n_good = 0;
    let (mut n_ok, mut n_bad, mut n_left, mut n_token, mut n_refused) = (0, 0, 0, 0, 0);
    for Asked { job, outcome } in asked {
        let job = &jobs[*job];
        n_refused += outcome.n_refused;
        n_token += tokens(outcome);
        if outcome.is_refused() {
            continue;
        }
        if outcome.has_left {
            n_left += 1;
        } else if !outcome.is_whole(job) {
            n_bad += 1;
            let tokens = format!("{:?} tokens instead of {}", outcome.n_token, job.n_out);
            errors.push(outcome.error.clone().unwrap_or(tokens));
        } else {
            n_ok += 1;
            if job.is_structured {
                let is_valid = has_schema(&outcome.text);
                structured.n_valid += usize::from(is_valid);
                structured.n_cut += usize::from(!is_valid);
                structured.n_token += tokens(outcome);
            }
            if job.counts {
                let first = outcome.pieces.first().map(|time| ms(*time));
                let each = per_token(outcome).map(ms);
                let is_good = first.is_some_and(|t| t <= SERVES.0) && each.is_none_or(|t| t <= SERVES.1);
                n_good += usize::from(is_good);
                ttft.extend(first);
                tpot.extend(each);
                gaps.extend(outcome.pieces.windows(2).map(|pair| ms(pair[1] - pair[0])));
            }
        }
    }
    errors.dedup();
    errors.truncate(5);
    let gap_max = gaps.iter().copied().fold(0.0, f64::max);
    let rate = n_token as f64 / seconds.max(1e-9);
    let goodput = f64::from(n_good as u32) / seconds.max(1e-9);
    let window = window(asked, users);
    let (cached, cached_of_turns) = (cached(jobs, asked, false), cached(jobs, asked, true));
    let (ttft, tpot, gap) = (three(ttft), three(tpot), three(gaps));
    Summary {
        n_ok,
        n_bad,
        n_left,
        n_refused,
        rate,
        seconds,
        window,
        goodput,
        ttft,
        tpot,
        gap,
        gap_max,
        structured,
        cached,
        cached_of_turns,
        errors,
    }
}

/// The part of the tokens of prompts that the server had cached; of further turns, of those before their own.
fn cached(jobs: &[Job], asked: &[Asked], of_turns: bool) -> Option<f64> {
    let told = asked.iter().map(|asked| (&jobs[asked.job], &asked.outcome));
    let told = told.filter(|(job, _)| job.counts && (job.is_turn || !of_turns));
    let sizes = told.filter_map(|(job, outcome)| {
        let n_own = if of_turns { 0 } else { job.prompt.len() };
        let (n, n_cached) = (outcome.history.len() + n_own, outcome.n_cached?);
        // A conversation that was held before has all of its prompts in the cache.
        Some((n, n_cached.min(n)))
    });
    let (n, n_cached) = sizes.fold((0, 0), |(n, c), (all, cached)| (n + all, c + cached));
    (n > 0).then(|| n_cached as f64 / n as f64)
}

/// Tokens by the server's count, or by pieces.
fn tokens(outcome: &Outcome) -> usize {
    outcome.n_token.unwrap_or(outcome.pieces.len())
}

/// Time of each token after the first.
fn per_token(outcome: &Outcome) -> Option<Duration> {
    let (first, last) = (outcome.pieces.first()?, outcome.pieces.last()?);
    let n = u32::try_from(tokens(outcome)).ok()?.checked_sub(1).filter(|n| *n > 0)?;
    Some((*last - *first) / n)
}

fn window(asked: &[Asked], users: usize) -> Option<Window> {
    let outcomes = || asked.iter().map(|asked| &asked.outcome);
    let answered: Vec<&Outcome> = outcomes().filter(|o| o.is_done).collect();
    let mut ends: Vec<Instant> = answered.iter().map(|o| o.due + o.end).collect();
    ends.sort_unstable();
    // Users whose answers have equal lengths wait for them in step: both ends are those of a round.
    let from = *ends.get((ends.len() / 10).max(users).saturating_sub(1))?;
    let to = outcomes().map(|o| o.due).max()?;
    let seconds = to.checked_duration_since(from)?.as_secs_f64();
    let inside = |o: &&&Outcome| from < o.due + o.end && o.due + o.end <= to;
    let n = answered.iter().filter(inside).count();
    let n_token: usize = answered.iter().filter(inside).map(|o| tokens(o)).sum();
    // Of few answers a rate would be that of chance.
    if n < 8 {
        return None;
    }
    Some(Window { seconds, token_rate: n_token as f64 / seconds, request_rate: n as f64 / seconds })
}

impl Summary {
    /// Answers a second, without the beginning and the end where there is more.
    pub(crate) fn request_rate(&self) -> f64 {
        let whole = self.n_ok as f64 / self.seconds.max(1e-9);
        self.window.as_ref().map_or(whole, |window| window.request_rate)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "ok": self.n_ok,
            "bad": self.n_bad,
            "left": self.n_left,
            "refused": self.n_refused,
            "tokens_per_second": self.rate,
            "seconds": self.seconds,
            "window": self.window.as_ref().map(|w| json!({
                "seconds": w.seconds,
                "tokens_per_second": w.token_rate,
                "requests_per_second": w.request_rate,
            })),
            "goodput_requests_per_second": self.goodput,
            "ttft_ms": {"p50": self.ttft[0], "p95": self.ttft[1], "p99": self.ttft[2]},
            "tpot_ms": {"p50": self.tpot[0], "p95": self.tpot[1], "p99": self.tpot[2]},
            "gap_ms": {"p50": self.gap[0], "p95": self.gap[1], "p99": self.gap[2], "max": self.gap_max},
            "schema": self.structured.json(),
            "cached": self.cached,
            "cached_of_turns": self.cached_of_turns,
            "errors": self.errors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(n_out: usize) -> Job {
        Job { prompt: vec![1], is_turn: false, n_out, leaves_after: None, counts: true, is_structured: false }
    }

    /// An answer to a request of this time: its first token after 100 ms, the others each after as many.
    fn answer(start: Instant, due: u64, n_token: u32, each: u64) -> Outcome {
        let ms = Duration::from_millis;
        let pieces: Vec<Duration> = (0..n_token).map(|i| ms(100) + ms(each) * i).collect();
        let end = *pieces.last().expect("tokens");
        let n = n_token as usize;
        Outcome { pieces, end, n_token: Some(n), is_done: true, ..Outcome::new(start + ms(due)) }
    }

    fn all(outcomes: impl IntoIterator<Item = Outcome>) -> Vec<Asked> {
        outcomes.into_iter().enumerate().map(|(job, outcome)| Asked { job, outcome }).collect()
    }

    #[test]
    fn answers_that_are_slow_from_token_to_token_serve_nobody() {
        let start = Instant::now().checked_sub(Duration::from_secs(10)).expect("a clock that began before");
        let outcomes = all([answer(start, 0, 11, 10), answer(start, 0, 11, 60)]);
        let found = summary(&[job(11), job(11)], &outcomes, start, 1);
        assert_eq!((found.n_ok, found.n_bad), (2, 0));
        assert_eq!(found.tpot[0].round(), 10.0);
        assert_eq!(found.tpot[2].round(), 60.0);
        assert!((found.goodput - 0.1).abs() < 0.01, "{}", found.goodput);
    }

    #[test]
    fn refused_requests_are_counted_apart() {
        let start = Instant::now();
        let refused = Outcome { n_refused: 1, ..Outcome::new(start) };
        let found = summary(&[job(2), job(2)], &all([refused, answer(start, 0, 2, 1)]), start, 1);
        assert_eq!((found.n_ok, found.n_bad, found.n_refused), (1, 0, 1));
    }

    /// A request a second, each of 10 tokens in a second: those that end with the tenth, before, or after the last was
    /// sent are left out.
    #[test]
    fn a_window_has_neither_the_beginning_nor_the_end() {
        let start = Instant::now();
        let outcomes = all((0..100).map(|i| answer(start, 1000 * i, 10, 100)));
        let found = window(&outcomes, 1).expect("a window");
        // From the end of the tenth, at 10 s, to the sending of the last, at 99 s.
        assert!((found.seconds - 89.0).abs() < 0.1, "{}", found.seconds);
        assert!((found.request_rate - 1.0).abs() < 0.02 && (found.token_rate - 10.0).abs() < 0.2);
        assert!(window(&outcomes[..9], 1).is_none(), "too few");
        let at_once = all((0..100).map(|_| answer(start, 0, 10, 100)));
        assert!(window(&at_once, 100).is_none(), "all were sent before any had ended");
        // Eight users in step, four rounds of a second: two of them are inside.
        let rounds = all((0..32).map(|i| answer(start, i / 8 * 1000, 10, 100)));
        let found = window(&rounds, 8).expect("a window");
        assert!(
            (found.seconds - 2.0).abs() < 0.01 && (found.request_rate - 8.0).abs() < 0.01,
            "{}",
            found.request_rate
        );
    }

    #[test]
    fn cached_tokens_of_turns_are_parts_of_what_was_computed_before() {
        let start = Instant::now();
        let first = Job { prompt: vec![1; 30], counts: false, ..job(2) };
        let turn = Job { prompt: vec![1; 10], is_turn: true, ..job(2) };
        let of = |n_cached, n_history| Outcome {
            n_cached: Some(n_cached),
            history: vec![1; n_history],
            ..answer(start, 0, 2, 1)
        };
        let jobs = [first, turn.clone(), turn];
        let found = summary(&jobs, &all([of(0, 0), of(28, 32), of(40, 44)]), start, 1);
        assert_eq!((found.cached, found.cached_of_turns), (Some(68.0 / 96.0), Some(68.0 / 76.0)));
        let untold = summary(&jobs, &all([answer(start, 0, 2, 1)]), start, 1);
        assert_eq!((untold.cached, untold.cached_of_turns), (None, None));
    }

    #[test]
    fn answers_have_their_schema_or_are_cut() {
        let start = Instant::now();
        let job = Job { is_structured: true, ..job(20) };
        let of = |text: &str, n_token| Outcome { text: text.into(), ..answer(start, 0, n_token, 1) };
        let valid = r#"{"color": "red", "is_big": true, "name": ""}"#;
        let outcomes = all([of(valid, 12), of("{\"color\": \"r", 20), of("{}", 2)]);
        let found = summary(&[job.clone(), job.clone(), job], &outcomes, start, 1);
        assert_eq!((found.n_ok, found.n_bad), (2, 1));
        assert_eq!(found.structured, Structured { n_valid: 1, n_cut: 1, n_token: 32 });
    }

    #[test]
    fn percentiles_are_values_that_occur() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([0.5, 0.95, 0.99].map(|share| percentile(&values, share)), [50.0, 95.0, 99.0]);
        assert_eq!(percentile(&[], 0.5), 0.0);
        assert_eq!(percentile(&[7.0], 0.99), 7.0);
    }
}
