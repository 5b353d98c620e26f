//! [`Lanes`] in a browser, where a model has one device, and every page would download the code.

use super::buffers::Part;
use crate::error::RuntimeError;

/// Uninhabited.
pub(super) enum Lanes {}

/// Uninhabited.
#[derive(Copy, Clone)]
pub(super) enum Given {}

pub(super) type CrossingId = u64;

/// Uninhabited.
pub(super) enum Values {}

/// Uninhabited.
pub(super) enum Told {}

/// A token that a device chooses.
#[derive(Copy, Clone)]
pub(super) struct ChosenAt {
    pub(super) ring: CrossingId,
    #[expect(dead_code, reason = "there are no lanes to read it")]
    pub(super) word: usize,
}

impl Given {
    pub(super) fn crossing(&self) -> CrossingId {
        match *self {}
    }
}

impl Lanes {
    pub(super) fn new(_: &[Part], _: bool) -> Option<Lanes> {
        None
    }

    pub(super) fn write(&self, _: usize, _: &wgpu::Buffer, _: u64, _: &[u8]) {
        match *self {}
    }

    pub(super) fn submit(&self, _: usize, _: wgpu::CommandEncoder, _: Option<Given>) {
        match *self {}
    }

    pub(super) fn give(&self, _: usize, _: u64, _: usize) -> (Given, wgpu::Buffer) {
        match *self {}
    }

    pub(super) fn give_from_cpu(&self, _: Values) -> CrossingId {
        match *self {}
    }

    pub(super) fn take_on_cpu(&self, _: CrossingId) -> Told {
        match *self {}
    }

    pub(super) fn tell_chosen(&self, _: &[ChosenAt]) -> Told {
        match *self {}
    }

    pub(super) fn write_chosen(&self, _: usize, _: &wgpu::Buffer, _: Vec<u64>, _: &[ChosenAt]) {
        match *self {}
    }

    pub(super) fn give_ring(&self, _: usize, _: u64) -> Given {
        match *self {}
    }

    pub(super) fn ring(&self, _: CrossingId) -> Result<Vec<u32>, RuntimeError> {
        match *self {}
    }

    pub(super) fn take(&self, _: usize, _: CrossingId, _: Vec<(wgpu::Buffer, u64)>) {
        match *self {}
    }

    pub(super) fn mark(&self, _: u64) {
        match *self {}
    }

    pub(super) fn close(&self, _: String) {
        match *self {}
    }

    pub(super) fn check(&self) -> Result<(), RuntimeError> {
        match *self {}
    }

    pub(super) fn pump(&self) -> Result<(), RuntimeError> {
        match *self {}
    }

    pub(super) fn drain(&self) -> Result<(), RuntimeError> {
        match *self {}
    }

    pub(super) fn reach(&self, _: u64) -> Result<wgpu::SubmissionIndex, RuntimeError> {
        match *self {}
    }
}
