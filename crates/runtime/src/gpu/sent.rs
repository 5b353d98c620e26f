//! Steps under way: their options, and what the device has got of them.

use std::collections::VecDeque;

use web_time::Instant;

use super::lanes::{ChosenAt, CrossingId};
use super::picks::{Picks, PiecePicks};
use crate::platform::Promise;
use crate::step::Column;

/// Sampling mode of the device; each can also do what those before it do.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SampleMode {
    /// The largest logit.
    Greedy,
    /// With the parameters of [`GpuModel::set_sampler`](crate::gpu::GpuModel::set_sampler), top-k of which is at most
    /// [`MAX_TOP_K`](crate::kernels::sample::MAX_TOP_K).
    Sample,
    /// With parameters whose top-k is off or larger, too.
    SampleWide,
}

/// Maximum number of readbacks in flight.
pub(super) const STAGING: usize = crate::plan::N_READBACK;

/// Options of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StepOptions {
    /// Number of runs, each one position further with the tokens chosen before.
    pub repeat: u32,
    /// Number of columns that kernels are chosen for, at least the actual number: part of a chunk runs with the chunk's
    /// kernels.
    pub n_planned: u32,
    /// The largest mode of all choosing sequences.
    pub choose: SampleMode,
}

/// A submitted, unread step.
pub(super) struct Sent {
    pub(super) columns: Vec<Column>,
    pub(super) picks: Picks,
    pub(super) options: StepOptions,
    /// Submitted columns.
    pub(super) n_sent: usize,
    /// Over several devices: its number, its submitted pieces, when it was sent, and whether it was the only one then.
    pub(super) id: u64,
    pub(super) n_piece: usize,
    pub(super) sent_at: Option<(Instant, bool)>,
    /// Masks of the columns that choose under one; `None` until they are provided.
    pub(super) masks: Option<Vec<u32>>,
    /// Outputs of the last piece that was sent, if its choices wait for masks.
    pub(super) held: Option<PiecePicks>,
    /// Staging slot of the rings.
    pub(super) slot: usize,
    /// Over several devices: the crossing of the rings.
    pub(super) ring: Option<CrossingId>,
    /// Choosing columns: the sequence, and the ring position of its first token.
    pub(super) chosen: Vec<(u32, u32)>,
    /// The last submission.
    pub(super) index: Option<wgpu::SubmissionIndex>,
    /// Completion of a step without outputs.
    pub(super) done: Option<Promise<()>>,
}

impl Sent {
    pub(super) fn is_left(&self) -> bool {
        self.n_sent < self.columns.len() || self.held.is_some()
    }

    /// Choosing columns, the first ones, whose choices were submitted.
    pub(super) fn n_chosen(&self) -> usize {
        let n_sent = self.picks.within(0..self.n_sent as u32).n_choice;
        let n_held = self.held.as_ref().map_or(0, |picks| picks.n_choice);
        (n_sent - n_held) as usize
    }

    /// The sequences, each with the end of its columns.
    pub(super) fn ends(&self) -> impl Iterator<Item = (usize, u32)> {
        let runs = self.columns.chunk_by(|a, b| a.seq == b.seq);
        runs.filter_map(|run| run.last()).map(|c| (c.seq as usize, c.pos + self.options.repeat))
    }
}

/// The last token that a sequence chose over several devices.
#[derive(Copy, Clone)]
pub(super) enum LastChosen {
    /// Only the last device has it.
    Unknown,
    /// It crosses back.
    Sent(ChosenAt),
    /// The caller has read it.
    Read(u32),
}

/// Steps in flight, oldest first.
#[derive(Default)]
pub(super) struct Steps(pub(super) VecDeque<Sent>);
