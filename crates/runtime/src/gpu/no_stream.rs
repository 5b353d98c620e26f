//! [`Streams`] in a browser, where there are none: a page has no file to read experts from on demand and a single
//! device, and every page would download the code.

use super::reads::ExpertReads;
use super::ready::ReadyStage;
use super::running::Run;
use crate::error::RuntimeError;
use crate::experts::Experts;
use crate::graph::Graph;
use crate::plan::Groups;
use crate::tensors::Tensors;

/// Uninhabited.
pub(super) enum Streams {}

impl Streams {
    pub(super) fn new(_: &Graph, _: Groups, _: impl Tensors + Send + Sync + 'static) -> Option<Streams> {
        None
    }

    pub(super) fn set_experts(&mut self, _: Option<Box<dyn Experts>>) -> Option<Box<dyn Experts>> {
        match *self {}
    }

    pub(super) fn reads(&self) -> ExpertReads {
        match *self {}
    }

    pub(super) async fn run(&mut self, _: Run<'_>, _: &[ReadyStage]) -> Result<usize, RuntimeError> {
        match *self {}
    }
}
