//! [`First`] in a browser, where a model has one device, and every page would download the code.

use super::lanes::{Told, Values};
use crate::cpu::{CpuConfig, CpuModel};
use crate::error::RuntimeError;
use crate::graph::Graph;
use crate::plan::{CpuStage, MemoryItem};
use crate::step::Column;
use crate::tensors::Tensors;

/// Uninhabited.
pub(super) enum First {}

/// Never made.
pub(super) enum Chosen {
    Columns(Told),
    Tokens(Told),
}

impl First {
    #[allow(clippy::unused_async, reason = "it reads files elsewhere")]
    pub(super) async fn load(
        _: &Graph,
        _: Option<&CpuStage>,
        _: (Option<CpuConfig>, bool),
        _: &impl Tensors,
        _: impl FnMut(u64, u64),
    ) -> Result<Option<First>, RuntimeError> {
        Ok(None)
    }

    pub(super) fn change(&self, _: impl FnOnce(&mut CpuModel)) {
        match *self {}
    }

    pub(super) fn set_rows(&self, _: Vec<f32>) {
        match *self {}
    }

    pub(super) fn run(&self, _: Vec<Column>, _: Option<Chosen>, _: Vec<u32>) -> Values {
        match *self {}
    }

    pub(super) fn has_state(&self) -> bool {
        match *self {}
    }

    pub(super) fn memory(&self) -> MemoryItem {
        match *self {}
    }

    pub(super) fn layout(&self) -> &str {
        match *self {}
    }

    pub(super) fn snapshot_bytes(&self, _: u32) -> u64 {
        match *self {}
    }

    pub(super) fn snapshot(&self, _: u32, _: &[u32]) -> Vec<u8> {
        match *self {}
    }

    pub(super) fn put_back(&self, _: u32, _: &[u32], _: u32, _: &[u8]) {
        match *self {}
    }

    pub(super) fn end(&mut self) {
        match *self {}
    }
}
