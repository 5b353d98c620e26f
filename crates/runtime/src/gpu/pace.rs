//! Splits prefill into submissions of bounded duration.
//!
//! Drivers reset a device whose submission takes too long, pages do not respond meanwhile, and submitted work cannot be
//! cancelled. So the dispatches of a piece of a chunk go in several submissions if they would exceed a time bound,
//! estimated from earlier pieces. A piece has as many columns as fit in several bounds, since few columns leave large
//! devices idle, and whole tiles of them, since a partial tile takes as long. Neither changes a bit of the results.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use web_time::Instant;

use super::device::Gpu;
use crate::error::RuntimeError;
use crate::platform::{Promise, glance, promise, settle};

/// Maximum duration of a submission.
const BOUND: Duration = Duration::from_millis(100);
/// Bounds of a piece whose columns nobody else waits for: 128 columns of a model with 70B weights take 0.12 s on a
/// datacentre card, 512 of them 0.36. In a browser nothing is cut, and the page shares the device.
const PIECE: f64 = if cfg!(target_arch = "wasm32") { 1.0 } else { 4.0 };
/// Pieces in flight may take this many times the bound together before another is sent, so that the device is never
/// idle.
const AHEAD: f64 = 2.0;
/// Submissions of the very first piece, before anything is measured.
const FIRST_CUTS: usize = 16;

/// A piece in flight.
struct Sent {
    n_col: usize,
    at: Instant,
    /// No other piece was in flight, so it started when it was submitted.
    alone: bool,
    index: wgpu::SubmissionIndex,
    done: Promise<()>,
}

/// Reports of callbacks: pieces finished since the last look, and when the last one finished.
#[derive(Default)]
struct Ended {
    n: usize,
    at: Option<Instant>,
}

/// Sizing of pieces, and pieces in flight.
pub(super) struct Pace {
    bound: Duration,
    /// Columns per tile: a piece is a multiple of it, unless a chunk ends with it.
    tile: usize,
    /// Seconds per column.
    cost: Option<f64>,
    sent: VecDeque<Sent>,
    ended: Arc<Mutex<Ended>>,
    /// When the last piece finished, if that was observed.
    last: Option<Instant>,
}

impl Pace {
    pub(super) fn new(tile: usize) -> Pace {
        let (sent, ended) = (VecDeque::new(), Arc::default());
        Pace { bound: BOUND, tile: tile.max(2), cost: None, sent, ended, last: None }
    }

    pub(super) fn set_bound(&mut self, bound: Duration) {
        self.bound = bound;
    }

    /// Columns of the next piece, of `left` in its chunk. It never leaves a single column, which would use another
    /// plan.
    pub(super) fn n_col(&self, left: usize) -> usize {
        self.n_col_in(PIECE, left)
    }

    /// Columns of a piece beside others who wait for it.
    pub(super) fn n_col_beside(&self, left: usize) -> usize {
        self.n_col_in(1.0, left)
    }

    /// Columns that take so many bounds.
    fn n_col_in(&self, n_bound: f64, left: usize) -> usize {
        let bound = n_bound * self.bound.as_secs_f64();
        let fit = self.cost.map_or(self.tile, |cost| (bound / cost).min(1e6) as usize);
        let n = (fit / self.tile).max(1) * self.tile;
        if n + 1 >= left { left } else { n }
    }

    /// Number of submissions of a piece of `n_col` columns.
    pub(super) fn n_cut(&self, n_col: usize) -> usize {
        let time = self.cost.map(|cost| cost * n_col as f64 / self.bound.as_secs_f64().max(1e-6));
        time.map_or(FIRST_CUTS, |t| t.ceil().clamp(1.0, 1e6) as usize)
    }

    /// Records a piece that starts at `at`: before the submission, since some devices work during it.
    pub(super) fn sent(&mut self, gpu: &Gpu, n_col: usize, at: Instant, index: wgpu::SubmissionIndex) {
        // Bounds the list of callers that never wait for room.
        self.learn(cfg!(target_arch = "wasm32"));
        let (keeper, done) = promise();
        let ended = self.ended.clone();
        gpu.queue.on_submitted_work_done(move || {
            let mut e = ended.lock().unwrap_or_else(|e| e.into_inner());
            *e = Ended { n: e.n + 1, at: Some(Instant::now()) };
            keeper.keep(());
        });
        let alone = self.sent.is_empty();
        self.sent.push_back(Sent { n_col, at, alone, index, done });
    }

    /// Updates the estimate from finished pieces. `seen`: their callbacks ran when they finished; otherwise the time is
    /// an upper bound.
    fn learn(&mut self, seen: bool) {
        let Ended { n, at } = std::mem::take(&mut *self.ended.lock().unwrap_or_else(|e| e.into_inner()));
        let (Some(end), Some(first)) = (at, self.sent.front()) else { return };
        let start = self.last.map_or(first.at, |last| last.max(first.at));
        let is_sure = seen && (first.alone || self.last.is_some());
        let n_col: usize = self.sent.drain(..n).map(|s| s.n_col).sum();
        let cost = (end.saturating_duration_since(start).as_secs_f64() / n_col.max(1) as f64).max(1e-9);
        self.cost = Some(self.cost.filter(|_| !is_sure).map_or(cost, |known| known.min(cost)));
        self.last = seen.then_some(end);
    }

    /// Records a step that took this long, with all waits. Less than a tile takes as long as one, so it is an upper
    /// bound.
    pub(super) fn took(&mut self, n_col: usize, time: Duration) {
        let cost = (time.as_secs_f64() / n_col.max(1) as f64).max(1e-9);
        self.cost = Some(self.cost.filter(|_| n_col < self.tile).map_or(cost, |known| known.min(cost)));
    }

    /// True if another piece may be submitted now; does not wait.
    pub(super) fn has_room(&mut self, gpu: &Gpu) -> bool {
        if self.sent.is_empty() {
            return true;
        }
        glance(&gpu.device);
        // In a browser callbacks run when pieces finish.
        self.learn(cfg!(target_arch = "wasm32"));
        let n_col: usize = self.sent.iter().map(|s| s.n_col).sum();
        match self.cost {
            None => n_col == 0,
            Some(cost) => n_col as f64 * cost <= AHEAD * self.bound.as_secs_f64(),
        }
    }

    /// Waits until another piece may be submitted.
    ///
    /// # Errors
    /// Device errors.
    pub(super) async fn room(&mut self, gpu: &Gpu) -> Result<(), RuntimeError> {
        while !self.has_room(gpu) {
            let Some(oldest) = self.sent.front_mut() else { break };
            settle(&gpu.device, Some(oldest.index.clone()));
            gpu.check()?;
            (&mut oldest.done).await;
            self.learn(true);
        }
        gpu.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_whole_tiles_and_leave_no_single_column() {
        let mut pace = Pace::new(64);
        assert_eq!((pace.n_col(512), pace.n_col(65), pace.n_col(66), pace.n_col(1)), (64, 65, 64, 1));
        assert_eq!(pace.n_cut(64), FIRST_CUTS);
        // A millisecond a column.
        pace.cost = Some(1.001e-3);
        assert_eq!((pace.n_col_beside(512), pace.n_cut(64), pace.n_cut(512)), (64, 1, 6));
        assert_eq!((pace.n_col(512), pace.n_col(2000), pace.n_cut(384)), (384, 384, 4));
        pace.cost = Some(0.5e-3);
        assert_eq!([512, 193, 194].map(|left| pace.n_col_beside(left)), [192, 193, 192]);
        assert_eq!((pace.n_col(512), pace.n_col(2000)), (512, 768));
        pace.cost = Some(1e-6);
        assert_eq!((pace.n_col(512), pace.n_col_beside(512), pace.n_cut(512)), (512, 512, 1));
        pace.took(100, Duration::from_millis(50));
        assert_eq!((pace.n_col_beside(512), pace.n_cut(512)), (192, 3));
        pace.took(2, Duration::from_millis(50));
        assert_eq!(pace.n_col_beside(512), 192);
        // A device on which a tile takes six seconds.
        pace.cost = Some(0.1);
        assert_eq!((pace.n_col(512), pace.n_cut(64)), (64, 64));
        pace.set_bound(Duration::ZERO);
        assert_eq!(pace.n_col(512), 64);
        assert!(pace.n_cut(64) > 1000);
    }
}
