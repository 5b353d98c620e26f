//! Stages: where each part of a plan runs, and which values cross from one to the next.
//!
//! A plan for one device is a single stage. Offloaded experts are stages of the CPU, which must know the experts of the
//! columns before their products run. With several devices, the steps are cut where few values are live and each device
//! gets its share of the bytes; live values cross. The head and sampling run on the last device.

use std::collections::HashSet;

use super::planned::{Planned, Segment, Slot};
use super::streaming::{ExpertSlots, OffloadedExperts};
use crate::graph::ValueId;

/// Location of a stage.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A device of the plan.
    Device(usize),
    /// The CPU has the weights: it reads the route, the stage's input, and uploads the experts of the columns to slots
    /// on a device, which runs the dispatches.
    Cpu {
        /// The device.
        device: usize,
        /// The experts.
        experts: OffloadedExperts,
    },
    /// Rows that others computed are written to the slots of a layer of experts; then a device runs the dispatches.
    Rows {
        /// The device.
        device: usize,
        /// The slots.
        slots: ExpertSlots,
    },
}

impl Place {
    /// The device that runs the dispatches.
    pub fn device(&self) -> usize {
        match *self {
            Place::Device(device) | Place::Cpu { device, .. } | Place::Rows { device, .. } => device,
        }
    }
}

/// A value that crosses between stages.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The value.
    pub value: ValueId,
    /// Its activation buffer on the stage's device.
    pub act: usize,
    /// Words per column; 0 for a route, of which the CPU reads only the words that name experts
    /// ([`OffloadedExperts::words`]).
    pub n_word: u32,
}

/// All dispatches of stages, in order.
pub fn dispatches(stages: &[Stage]) -> impl Iterator<Item = &Planned> {
    stages.iter().flat_map(|s| &s.segment)
}

/// Consecutive dispatches in one place.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The place.
    pub place: Place,
    /// The dispatches.
    pub segment: Segment,
    /// Inputs from the previous stage.
    pub takes: Vec<Crossing>,
    /// Outputs to the next stage: the same values as its inputs, in the same order.
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
