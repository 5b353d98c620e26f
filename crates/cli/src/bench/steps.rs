//! Prompts and answers as steps of rows, for one sequence or several at once.

use std::ops::Range;
use std::time::{Duration, Instant};

use chaski::steps::Runner;
use chaski::steps::{Executor as _, Input, Row, Step, Want};
use pollster::block_on;

use crate::progress::Progress;

/// Runs that take longer show their progress.
const LONG: Duration = Duration::from_secs(1);

/// Sends steps to a model.
pub(super) struct Steps<'a> {
    pub(super) runner: &'a mut Runner,
    /// Tokens of a sequence per readback.
    group: u32,
    /// Rows of a prompt per step.
    chunk: usize,
    n_sent: usize,
    progress: &'a Progress,
    /// Tokens that the progress does not show yet, and the start of the run.
    unseen: u64,
    start: Instant,
    /// CPU time to record and submit answers, so far.
    pub(super) host: Duration,
}

impl<'a> Steps<'a> {
    pub(super) fn new(runner: &'a mut Runner, group: u32, chunk: u32, progress: &'a Progress) -> Self {
        let most = runner.gpu().map_or(u32::MAX, |g| g.config().max_col);
        // With several sequences a step may have fewer rows.
        let limits = runner.limits();
        let mixed = if limits.n_seq > 1 { limits.max_row } else { usize::MAX };
        let chunk = (chunk.min(most) as usize).min(mixed).max(1);
        let start = Instant::now();
        Steps { runner, group, chunk, n_sent: 0, progress, unseen: 0, start, host: Duration::ZERO }
    }

    /// Runs a part of `tokens` in the first sequence, the last of which has the given output.
    pub(super) fn prompt(&mut self, tokens: &[u32], part: Range<usize>, last: Want) -> anyhow::Result<()> {
        let end = part.end;
        let rows = part.map(|at| {
            let want = if at + 1 == end { last } else { Want::Nothing };
            Row { seq: 0, pos: at as u32, components: None, input: Input::Token(tokens[at]), want }
        });
        self.rows(&rows.collect::<Vec<_>>())
    }

    /// Runs the first `n` of `tokens` in each of the first `n_seq` sequences, which then choose a token.
    pub(super) fn prompts(&mut self, tokens: &[u32], n: u32, n_seq: u32) -> anyhow::Result<()> {
        let row = |seq: u32, pos: u32| {
            let want = if pos + 1 == n { Want::Choose } else { Want::Nothing };
            // Each has other tokens.
            let token = tokens[(pos + 7 * seq) as usize % tokens.len()];
            Row { seq, pos, components: None, input: Input::Token(token), want }
        };
        let rows: Vec<Row> = (0..n_seq).flat_map(|seq| (0..n).map(move |pos| row(seq, pos))).collect();
        self.rows(&rows)
    }

    /// Runs rows in steps of as many as a step may have, and waits for their outputs.
    fn rows(&mut self, rows: &[Row]) -> anyhow::Result<()> {
        let max_want = self.runner.limits().max_want;
        let mut at = 0;
        while at < rows.len() {
            let most = &rows[at..rows.len().min(at + self.chunk)];
            let one_too_many = most.iter().enumerate().filter(|(_, r)| r.want != Want::Nothing).nth(max_want);
            let part = &most[..one_too_many.map_or(most.len(), |(i, _)| i)];
            self.send(part.to_vec(), 1)?;
            at += part.len();
        }
        self.read_all()
    }

    /// Runs `n` more tokens of each of the first sequences, which have so many; the device chooses them.
    pub(super) fn answers(&mut self, n_token: &[u32], n: u32) -> anyhow::Result<()> {
        let max_want = self.runner.limits().max_want;
        let mut sent = 0;
        while sent < n {
            let repeat = self.group.min(n - sent);
            let row = |(seq, pos): (u32, &u32)| Row {
                seq,
                pos: pos + sent,
                components: None,
                input: Input::Chosen,
                want: Want::Choose,
            };
            let rows: Vec<Row> = (0u32..).zip(n_token).map(row).collect();
            for part in rows.chunks(max_want) {
                let start = Instant::now();
                let waited = self.send(part.to_vec(), repeat)?;
                self.host += start.elapsed() - waited;
            }
            sent += repeat;
        }
        self.read_all()
    }

    /// Submits a step, and reads earlier ones if the device wants that first: the time that this took.
    fn send(&mut self, rows: Vec<Row>, repeat: u32) -> anyhow::Result<Duration> {
        let start = Instant::now();
        while self.n_sent > 0 && self.n_sent >= self.runner.max_under_way() {
            self.read()?;
        }
        let waited = start.elapsed();
        let n_planned = rows.len() as u32;
        self.unseen += u64::from(n_planned * repeat);
        self.runner.submit(&Step { rows, repeat, n_planned, ..Step::default() })?;
        self.n_sent += 1;
        // A bar would disturb short runs.
        if self.start.elapsed() > LONG {
            self.show();
        }
        Ok(waited)
    }

    /// Shows the tokens since the last call; a run begins.
    pub(super) fn begin(&mut self) {
        self.show();
        self.start = Instant::now();
    }

    fn show(&mut self) {
        self.progress.add(std::mem::take(&mut self.unseen));
    }

    fn read(&mut self) -> anyhow::Result<()> {
        self.n_sent -= 1;
        block_on(self.runner.read())?;
        Ok(())
    }

    fn read_all(&mut self) -> anyhow::Result<()> {
        while self.n_sent > 0 {
            self.read()?;
        }
        Ok(())
    }
}
