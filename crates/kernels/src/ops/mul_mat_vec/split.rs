//! Distribution of the rows of a product over the threads of workgroups.

use super::{ActivationPrecision, RUN};
use crate::caps::Caps;
use crate::tuning::MatVecTune;

/// Work to distribute over threads.
pub(super) struct Job {
    /// Values per row, and how many of them a thread keeps.
    pub(super) n_col: u32,
    pub(super) hold: u32,
    /// Batches of rows, rows per team step, and outputs per batch.
    pub(super) n_batch: u32,
    pub(super) rows: u32,
    pub(super) outs: u32,
    /// Columns per step.
    pub(super) cols: u32,
    /// Bytes of codebooks in workgroup memory.
    pub(super) book: u32,
    /// x comes rounded.
    pub(super) rounded: bool,
    /// Workgroups produce whole runs of results.
    pub(super) emits: bool,
}

/// Distribution of the rows of a product over threads.
pub(super) struct Split {
    pub(super) wg: u32,
    pub(super) team: u32,
    pub(super) passes: u32,
    pub(super) subs: u32,
    pub(super) batch: u32,
    /// From [`Job::hold`].
    pub(super) hold: u32,
    pub(super) staged: bool,
}

/// Fewer workgroups are large, if each produces one run of results.
const FEW_RUNS: u32 = 256;
/// Threads of a large workgroup.
const LARGE: u32 = 512;

/// True if workgroups of one run each give the device threads enough for `n_row` results. With fewer, rounding ahead
/// costs more than it saves: 0.6B on an H200, whose layers have 64 runs, lost 10 % of its tokens. A software device has
/// threads enough, and no time to round twice.
pub(super) fn runs_fill(caps: &Caps, n_row: u32) -> bool {
    let n_run = n_row / RUN;
    caps.software || n_run >= FEW_RUNS || n_run * LARGE >= MatVecTune::shipped(caps).0.fill
}

/// Threads of a workgroup that produces one run of results, `outs` per step of a team, and the steps of its teams. Few
/// workgroups are large (measured on an H200: the layers of 8B and 1B models).
fn one_run(caps: &Caps, team: u32, n_batch: u32, outs: u32, rounded: bool) -> (u32, u32) {
    let n_step = RUN / outs;
    let want = match n_batch / n_step {
        ..FEW_RUNS => LARGE,
        // Two teams at least share the rounding of x.
        _ if !rounded => 256,
        _ => 128,
    };
    let most = (want.min(caps.max_threads) / team).clamp(1, n_step);
    let teams = 1 << most.ilog2();
    (team * teams, n_step / teams)
}

impl Split {
    pub(super) fn new(caps: &Caps, tune: &MatVecTune, act: ActivationPrecision, job: &Job) -> Self {
        let Job { n_col, hold, n_batch, rows, outs, cols, book, rounded, emits } = *job;
        // One thread per output of a batch finishes it.
        let want = n_col.div_ceil(hold).max(4).max(outs * cols);
        let cap = caps.max_threads.min(tune.team.max(MatVecTune::LEAST_TEAM));
        let (team, passes, subs) = match caps.subgroup {
            // Part of a subgroup, if the subgroup size is certain.
            Some((min, _)) if want.next_power_of_two() <= min => (want.next_power_of_two(), 1, 1),
            Some((min, max)) => {
                let cap = cap.max(max) / max * max;
                let passes = want.div_ceil(cap);
                let team = want.div_ceil(passes).next_multiple_of(max);
                (team, passes, team / min)
            }
            None => {
                // Reduction trees and a codebook share the memory.
                let cap = if book > 0 { cap.min(256) } else { cap };
                let team = want.next_power_of_two().min(1 << cap.ilog2());
                (team, want.div_ceil(team), 1)
            }
        };
        // Small teams share a workgroup, which rounds x once for all of them.
        let group = if act == ActivationPrecision::F32 { 128 } else { 256 };
        let wg = team * (group.min(caps.max_threads) / team).max(1);
        // Partial sums stay within 2 KiB, and each thread finishes one output.
        let most = 512 / (wg / team) / subs / (rows * cols);
        // Large matrices want more threads in flight; small ones want few teams, since each prepares x.
        let fill = match u64::from(n_batch) * u64::from(team) / u64::from(tune.fill) {
            0..=4 => tune.fill,
            5..=48 => 2 * tune.fill,
            _ => 8 * tune.fill,
        };
        let batch = n_batch.div_ceil((fill / team).max(1)).clamp(1, most.min(team / (outs * cols)).max(1));
        let (wg, batch) = if emits && cfg!(not(target_arch = "wasm32")) {
            one_run(caps, team, n_batch, outs, rounded)
        } else {
            (wg, batch)
        };
        let mut split = Split {
            wg,
            team,
            passes,
            subs,
            batch,
            hold,
            staged: act != ActivationPrecision::F32 && wg > team && cols == 1 && !rounded,
        };
        // A pass begins at a run.
        split.staged &= passes == 1 || hold % 16 == 0;
        // Where memory is short, every team rounds x separately.
        split.staged &= split.n_byte(caps, act, rows, cols) + book <= caps.max_workgroup_bytes;
        split
    }

    /// Bytes of workgroup memory.
    pub(super) fn n_byte(&self, caps: &Caps, act: ActivationPrecision, rows: u32, cols: u32) -> u32 {
        let run = match act {
            ActivationPrecision::F32 => 0,
            ActivationPrecision::I16 => 40,
            ActivationPrecision::I8 => 24,
        };
        let part = self.batch * rows * cols * self.subs * (self.wg / self.team);
        let tree = if caps.subgroup.is_some() { 0 } else { rows * self.wg };
        self.runs() * run + 4 * (part + self.wg + 16 + tree)
    }

    /// Runs of 16 values that the workgroup rounds per pass; the arrays are unused if x is not staged.
    pub(super) fn runs(&self) -> u32 {
        if self.staged { (self.team * self.hold).div_ceil(16) } else { 1 }
    }

    /// Workgroups for `n_batch` batches.
    pub(super) fn groups(&self, n_batch: u32) -> u32 {
        n_batch.div_ceil(self.batch).div_ceil(self.wg / self.team)
    }

    /// `n_sum`: sums per team step.
    pub(super) fn constants(&self, caps: &Caps, n_sum: u32) -> Vec<(&'static str, f64)> {
        let part = self.batch * n_sum * self.subs * (self.wg / self.team);
        let mut c = vec![
            ("WG", self.wg.into()),
            ("T", self.team.into()),
            ("SUBS", self.subs.into()),
            ("PART", part.into()),
            ("PASSES", self.passes.into()),
            ("BATCH", self.batch.into()),
        ];
        if let Some((min, max)) = caps.subgroup {
            let whole = self.team % max == 0;
            let width = match whole {
                true if min == max => max,
                true => 0,
                false => self.team,
            };
            let width = if width < n_sum { 0 } else { width };
            c.extend([("WHOLE", f64::from(u8::from(whole))), ("WIDTH", width.into())]);
        }
        c
    }
}
