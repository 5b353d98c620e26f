//! Where the time of a hub's tokens goes: the model's own work, and the parts of its calls.

use std::time::{Duration, Instant};

use chaski_swarm::Times;

/// Times of calls one after another, in steps of one column and of several.
#[derive(Default)]
pub(crate) struct Account {
    of: [Sums; 2],
    /// The end of the last call, if none has begun since.
    end: Option<Instant>,
    n_open: usize,
}

#[derive(Copy, Clone, Default)]
struct Sums {
    n: u32,
    /// Between a call and the one before.
    model: Duration,
    /// Of the calls.
    calls: Duration,
    /// Of them, from the last answer until the model had it.
    back: Duration,
}

impl Account {
    /// A call begins.
    pub(crate) fn begin(&mut self, now: Instant, step_columns: u32) {
        if let Some(end) = self.end.take() {
            self.of[usize::from(step_columns > 1)].model += now.saturating_duration_since(end);
        }
        self.n_open += 1;
    }

    /// The model has the rows of a call, which began and was complete at these times.
    pub(crate) fn end(&mut self, now: Instant, begin: Instant, complete: Instant, step_columns: u32) {
        let sums = &mut self.of[usize::from(step_columns > 1)];
        sums.n += 1;
        sums.calls += now.saturating_duration_since(begin);
        sums.back += now.saturating_duration_since(complete);
        self.end = (self.n_open == 1).then_some(now);
    }

    /// A call is over, however it ended.
    pub(crate) fn over(&mut self) {
        self.n_open = self.n_open.saturating_sub(1);
    }

    /// A line for each kind of steps, with the parts of the calls that the state machine knows.
    pub(crate) fn lines(&self, times: &[Times; 2]) -> Vec<String> {
        let kinds = ["one column", "several columns"];
        let lines = kinds.iter().zip(&self.of).zip(times).filter(|((_, sums), _)| sums.n > 0);
        lines.map(|((kind, sums), times)| line(kind, sums, times)).collect()
    }
}

fn line(kind: &str, sums: &Sums, times: &Times) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(sums.n);
    let rest = sums.calls.saturating_sub(times.whole() + sums.back);
    format!(
        "steps of {kind}: {} calls, {:.3} ms each: {:.3} model and its readback, {:.3} before the task, {:.3} \
         frames, {:.3} worker's queue, {:.3} worker, {:.3} back to the model, {:.3} others; {:.1} answers a call \
         with {:.3} of workers' time, the last with {:.1} kB of rows",
        sums.n,
        ms(sums.model + sums.calls),
        ms(sums.model),
        ms(times.before),
        ms(times.frames),
        ms(times.queued),
        ms(times.running),
        ms(sums.back),
        ms(rest),
        times.n_answer as f64 / f64::from(sums.n),
        ms(times.work),
        times.n_byte as f64 / 1e3 / f64::from(sums.n),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_calls_add_up_to_their_time() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let mut account = Account::default();
        // Two calls of 10 ms, 5 ms apart; a prompt has none.
        for at in [0, 15] {
            account.begin(begin + ms(at), 1);
            account.end(begin + ms(at + 10), begin + ms(at), begin + ms(at + 8), 1);
            account.over();
        }
        let one = Times {
            n_call: 2,
            n_answer: 4,
            work: ms(9),
            n_byte: 8000,
            before: ms(2),
            frames: ms(4),
            queued: ms(2),
            running: ms(6),
        };
        let lines = account.lines(&[one, Times::default()]);
        let parts = "2 calls, 12.500 ms each: 2.500 model and its readback, 1.000 before the task, 2.000 frames, 1.000 \
                     worker's queue, 3.000 worker, 2.000 back to the model, 1.000 others";
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains(parts), "{}", lines[0]);
    }
}
