//! The measurements: prefill, decode, both, and at a depth.

use std::time::{Duration, Instant};

use chaski::gpu::ExpertReads;
use chaski::steps::Runner;
use chaski::steps::{Change, Executor as _, Want};
use pollster::block_on;

use super::steps::Steps;
use crate::progress::Progress;

/// One test.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    /// Prompt tokens.
    pub(super) n_prompt: u32,
    /// Generated tokens.
    pub(super) n_gen: u32,
    /// Tokens in the KV cache before the test, not timed.
    pub(super) n_depth: u32,
}

impl Test {
    /// The name in tables, such as `pp512 @ d4096`.
    pub(super) fn name(&self) -> String {
        let name = match (self.n_prompt, self.n_gen) {
            (p, 0) => format!("pp{p}"),
            (0, n) => format!("tg{n}"),
            (p, n) => format!("pp{p}+tg{n}"),
        };
        if self.n_depth > 0 { format!("{name} @ d{}", self.n_depth) } else { name }
    }

    /// Context size that the test needs; decoding starts from one token that is already there.
    pub(super) fn n_ctx(&self) -> u32 {
        self.n_depth.saturating_add(self.n_prompt).saturating_add(self.n_gen).saturating_add(1)
    }

    fn n_token(&self) -> u32 {
        self.n_prompt + self.n_gen
    }

    /// The part of it that is run as warm-up: the whole prompt, since its last, shorter chunk may use other kernels.
    fn short(&self) -> Test {
        Test { n_gen: self.n_gen.min(32), n_depth: 0, ..*self }
    }

    /// Tokens of `n` runs, of the depth before them, and of the warm-up if there is one.
    pub(super) fn work(&self, n: u32, warm_up: bool) -> u64 {
        // Decoding starts from a token that each run makes.
        let [first, depth] = match self.n_prompt {
            0 => [1, self.n_depth.max(1) - 1],
            _ => [0, self.n_depth],
        };
        let of = |test: &Test| u64::from(first) + u64::from(test.n_token());
        let before = if warm_up { of(&self.short()) } else { 0 };
        before + u64::from(depth) + u64::from(n) * of(self)
    }
}

/// Times of the repetitions of a test.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub(super) times: Vec<Duration>,
    /// Time to the first generated token; empty for a test without a prompt.
    pub(super) first: Vec<Duration>,
    /// CPU time to record and submit decode steps.
    host: Duration,
    /// Cost of CPU-offloaded experts, if there are any.
    reads: Option<ExpertReads>,
    n_token: u32,
}

/// Cost of CPU-offloaded experts.
pub(super) struct ExpertCost {
    /// Hit rate: the share of requested experts that were already on the device.
    pub(super) hits: f64,
    /// Bytes read per token.
    pub(super) bytes_per_token: f64,
    /// Experts requested per token, summed over layers; an expert that several tokens of a chunk use counts once.
    pub(super) wanted_per_token: f64,
}

impl Samples {
    /// Cost of CPU-offloaded experts, if there are any.
    pub(super) fn expert_cost(&self) -> Option<ExpertCost> {
        let r = self.reads?;
        let n_token = (self.times.len() as f64 * f64::from(self.n_token)).max(1.0);
        let hits = 1.0 - r.read as f64 / (r.wanted as f64).max(1.0);
        let [wanted_per_token, bytes_per_token] = [r.wanted, r.n_byte].map(|n| n as f64 / n_token);
        Some(ExpertCost { hits, bytes_per_token, wanted_per_token })
    }

    pub(super) fn ns(&self) -> Vec<f64> {
        self.times.iter().map(|t| t.as_nanos() as f64).collect()
    }

    pub(super) fn rates(&self) -> Vec<f64> {
        self.times.iter().map(|t| f64::from(self.n_token) / t.as_secs_f64().max(1e-12)).collect()
    }

    /// CPU microseconds per generated token; `None` for tests without any.
    pub(super) fn host_us(&self, test: &Test) -> Option<f64> {
        let n = self.times.len() as f64 * f64::from(test.n_gen);
        (n > 0.0 && !self.host.is_zero()).then(|| self.host.as_secs_f64() * 1e6 / n)
    }

    pub(super) fn first_ms(&self) -> Option<f64> {
        let ms: Vec<f64> = self.first.iter().map(|t| t.as_secs_f64() * 1e3).collect();
        (!ms.is_empty()).then(|| mean(&ms))
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Sample standard deviation (n - 1).
pub(super) fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let m = mean(values);
    (values.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// Runs the tests.
pub(super) struct Bench<'a> {
    steps: Steps<'a>,
    /// Random tokens that fill the context.
    tokens: Vec<u32>,
    /// Tokens that the KV cache has before a test, if they are there.
    depth: Option<usize>,
    /// Cost of CPU-offloaded experts during the timed runs, so far.
    reads: Option<ExpertReads>,
}

impl<'a> Bench<'a> {
    /// Measures with `group` tokens per readback.
    pub(super) fn new(runner: &'a mut Runner, group: u32, chunk: u32, progress: &'a Progress) -> Self {
        let tokens = random_tokens(runner.n_ctx() as usize, runner.n_vocab());
        Bench { steps: Steps::new(runner, group, chunk, progress), tokens, depth: None, reads: None }
    }

    /// Runs a test once untimed, then `n` times.
    pub(super) fn run(
        &mut self,
        test: &Test,
        n: u32,
        mut before: impl FnMut(u32),
    ) -> anyhow::Result<Samples> {
        let mut samples = Samples { n_token: test.n_token(), ..Samples::default() };
        (self.steps.host, self.reads) = (Duration::ZERO, None);
        for i in 0..n {
            before(i);
            let (time, first) = self.once(test)?;
            samples.times.push(time);
            samples.first.extend(first);
        }
        (samples.host, samples.reads) = (self.steps.host, self.reads);
        Ok(samples)
    }

    /// Runs a short part of a test as warm-up, so that drivers are ready and clocks have risen.
    pub(super) fn warm_up(&mut self, test: &Test) -> anyhow::Result<()> {
        self.once(&test.short()).map(drop)
    }

    fn once(&mut self, test: &Test) -> anyhow::Result<(Duration, Option<Duration>)> {
        self.steps.begin();
        // Decoding starts from the token chosen after at least one other.
        let depth = if test.n_prompt == 0 { test.n_depth.max(1) } else { test.n_depth } as usize;
        if test.n_prompt == 0 {
            self.fill(depth - 1)?;
            self.steps.prompt(&self.tokens, depth - 1..depth, Want::Choose)?;
        } else {
            self.fill(depth)?;
        }
        block_on(self.steps.runner.finish())?;
        let (start, before) = (Instant::now(), self.expert_reads());
        let end = depth + test.n_prompt as usize;
        let first = if test.n_prompt > 0 {
            self.steps.prompt(&self.tokens, depth..end, Want::Choose)?;
            Some(start.elapsed())
        } else {
            None
        };
        self.steps.answers(&[end as u32], test.n_gen)?;
        let time = start.elapsed();
        self.steps.begin();
        self.count_reads(before);
        Ok((time, first))
    }

    fn expert_reads(&self) -> Option<ExpertReads> {
        self.steps.runner.gpu().and_then(|g| g.expert_reads())
    }

    /// Adds what was read since the last call.
    fn count_reads(&mut self, before: Option<ExpertReads>) {
        if let (Some(now), Some(before)) = (self.expert_reads(), before) {
            self.reads = Some(self.reads.unwrap_or_default() + (now - before));
        }
    }

    /// Brings the first sequence to `n` tokens.
    fn fill(&mut self, n: usize) -> anyhow::Result<()> {
        let has_snapshots = self.steps.runner.limits().n_snapshot.is_some();
        let (seq, snapshot, n_token) = (0, 0, n as u32);
        if self.depth != Some(n) {
            self.steps.prompt(&self.tokens, 0..n, Want::Nothing)?;
            self.depth = Some(n);
            if has_snapshots && n > 0 {
                self.steps.runner.change(&Change::Keep { seq, snapshot, n_token })?;
            }
        } else if has_snapshots && n > 0 {
            // The run overwrote recurrent state and windows.
            self.steps.runner.change(&Change::Restore { seq, snapshot, n_token })?;
        }
        Ok(())
    }
}

/// The same tokens in every run.
pub(super) fn random_tokens(n: usize, n_vocab: u32) -> Vec<u32> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32 % n_vocab.max(1)
    };
    (0..n).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_every_token_that_is_run() {
        let work = |n_prompt, n_gen, n_depth, warm| Test { n_prompt, n_gen, n_depth }.work(3, warm);
        assert_eq!((work(512, 0, 0, false), work(512, 0, 0, true)), (1536, 2048));
        assert_eq!(work(10, 2, 100, true), 12 + 100 + 36);
        // One token before each answer, of which the depth is the beginning.
        assert_eq!((work(0, 64, 0, true), work(0, 64, 100, false)), (33 + 3 * 65, 99 + 3 * 65));
    }

    #[test]
    fn names_of_tests() {
        let name = |n_prompt, n_gen, n_depth| Test { n_prompt, n_gen, n_depth }.name();
        assert_eq!(name(512, 0, 0), "pp512");
        assert_eq!(name(0, 128, 2048), "tg128 @ d2048");
        assert_eq!(name(512, 128, 0), "pp512+tg128");
    }

    #[test]
    fn mean_and_deviation() {
        assert_eq!((mean(&[1.0, 3.0]), deviation(&[1.0, 3.0])), (2.0, 2f64.sqrt()));
        assert_eq!(deviation(&[5.0]), 0.0);
    }
}
