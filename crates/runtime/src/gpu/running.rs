//! The body of a step that runs stage by stage.

#[cfg(not(target_arch = "wasm32"))]
use std::ops::Range;

use super::ready::{Devices, Ready};
use crate::plan::Columns;

/// A running body.
#[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "browsers run bodies of one stage only"))]
pub(super) struct Run<'a> {
    pub(super) devices: Devices<'a>,
    pub(super) body: &'a [Ready],
    pub(super) columns: Columns,
    /// Columns that choose the plan.
    pub(super) n_planned: u32,
    /// Maximum number of dispatches per submission.
    pub(super) per_submit: usize,
    /// The first unsubmitted dispatch.
    pub(super) from: usize,
}

#[cfg(not(target_arch = "wasm32"))]
impl Run<'_> {
    /// Submits dispatches of one device.
    pub(super) fn send(&mut self, part: Range<usize>) {
        self.from = self.from.max(part.end);
        let Some(first) = self.body[part.clone()].first() else { return };
        let recorder = self.devices.recorder(first.device);
        for cut in self.body[part].chunks(self.per_submit) {
            recorder.send(cut, self.columns, |_| {});
        }
    }
}
