//! Stages: where each part of a plan runs, and which values cross from one to the next.
//!
//! A plan for one device is a single stage. Offloaded experts are stages of the CPU: it must know which experts columns use
//! before their products run. With several devices the steps are cut where few values live and each device gets its share of
//! the bytes; what lives there crosses. The head and the choice of tokens run on the last device.

use std::collections::HashSet;

use super::segments::{Planned, Segment, Slot};
use super::streaming::OffloadedExperts;
use crate::graph::ValueId;

/// Where a stage runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A device of the plan.
    Device(usize),
    /// The CPU has the weights: it reads the route, which the stage takes, and brings the experts that columns use to slots on a
    /// device, where the dispatches run.
    Cpu {
        /// The device.
        device: usize,
        /// The experts.
        experts: OffloadedExperts,
    },
}

impl Place {
    /// The device that runs the dispatches.
    pub fn device(&self) -> usize {
        match *self {
            Place::Device(device) | Place::Cpu { device, .. } => device,
        }
    }
}

/// A value that crosses from one stage to another.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The value.
    pub value: ValueId,
    /// Its activation buffer on the device of the stage.
    pub act: usize,
    /// Words of a column; of a route 0, for the CPU reads only the words that name experts ([`OffloadedExperts::words`]).
    pub n_word: u32,
}

/// All dispatches of stages, in order.
pub fn dispatches(stages: &[Stage]) -> impl Iterator<Item = &Planned> {
    stages.iter().flat_map(|s| &s.segment)
}

/// Dispatches that run one after the other in one place.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Where.
    pub place: Place,
    /// The dispatches.
    pub segment: Segment,
    /// Values that come from the stage before.
    pub takes: Vec<Crossing>,
    /// Values that go to the stage after: the same ones as that takes, in the same order.
    pub gives: Vec<Crossing>,
}

/// All slots that dispatches bind, with the parts of a cache as the whole.
pub(super) fn bound<'a>(dispatches: impl IntoIterator<Item = &'a Planned>) -> HashSet<Slot> {
    let slots = dispatches.into_iter().flat_map(|p| p.bind.iter().map(|b| b.1));
    let whole = |slot| match slot {
        Slot::Keys(layer) | Slot::Values(layer) => Slot::Kv(layer),
        other => other,
    };
    slots.map(whole).collect()
}
