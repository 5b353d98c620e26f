//! Browsers multiply from the bytes of the file alone: kernels of tiles would be a part of what a page downloads.

use super::weights::Bytes;
use crate::graph::{Graph, Weight, WeightId};
use crate::workers::Workers;

/// There are none.
pub(super) enum Packed {}

#[derive(Default)]
pub(super) struct Tiles {}

impl Tiles {
    pub(super) fn n_byte_of(_: &Graph, _: bool, _: impl Fn(&WeightId) -> bool) -> i64 {
        0
    }

    pub(super) fn pack(&mut self, _: &Uses, _: (WeightId, &Weight), bytes: Bytes, _: &Workers) -> Bytes {
        bytes
    }

    pub(super) fn get(&self, _: WeightId) -> Option<&Packed> {
        None
    }

    pub(super) fn has(&self, _: WeightId) -> bool {
        false
    }

    pub(super) fn n_byte(&self) -> u64 {
        0
    }
}

#[derive(Default)]
pub(super) struct Uses {}

impl Uses {
    pub(super) fn of(_: &Graph) -> Self {
        Uses {}
    }
}

pub(super) fn packed(_: &Weight, _: &[u8], _: &Workers) -> Option<Packed> {
    None
}

pub(super) fn packed_bytes(_: &Packed) -> u64 {
    0
}
