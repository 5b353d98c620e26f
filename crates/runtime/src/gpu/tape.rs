//! Recorder of dispatches and copies.

use super::lanes::Given;
use super::ready::{Ready, Recorder};
use crate::plan::Columns;

/// Records a submission. A pass stays open during consecutive dispatches.
pub(super) struct Tape<'a> {
    recorder: Recorder<'a>,
    encoder: wgpu::CommandEncoder,
    pass: Option<wgpu::ComputePass<'static>>,
}

impl<'a> Tape<'a> {
    pub(super) fn new(recorder: Recorder<'a>) -> Self {
        Tape { recorder, encoder: encoder(recorder), pass: None }
    }

    /// Adds dispatches of columns.
    pub(super) fn run(&mut self, segment: &[Ready], columns: impl Into<Columns>) {
        if segment.is_empty() {
            return;
        }
        let Tape { recorder, encoder, pass } = self;
        let pass = pass.get_or_insert_with(|| {
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()).forget_lifetime()
        });
        recorder.record(pass, segment, columns.into());
    }

    /// Adds a copy between buffers, at byte offsets.
    pub(super) fn copy(&mut self, from: (&wgpu::Buffer, u64), to: (&wgpu::Buffer, u64), n_byte: u64) {
        self.pass = None;
        self.encoder.copy_buffer_to_buffer(from.0, from.1, to.0, to.1, n_byte);
    }

    /// Submits what is recorded; more goes to another submission.
    pub(super) fn cut(&mut self) {
        self.pass = None;
        self.recorder.queue().submit(std::mem::replace(&mut self.encoder, encoder(self.recorder)));
    }

    /// Submits the rest; the index of the submission, if it need not wait for its turn in a lane.
    pub(super) fn submit(self) -> Option<wgpu::SubmissionIndex> {
        drop(self.pass);
        self.recorder.queue().submit(self.encoder)
    }

    /// Submits the rest, which fills the staging buffer of a crossing.
    pub(super) fn submit_giving(self, given: Given) {
        drop(self.pass);
        self.recorder.queue().submit_giving(self.encoder, Some(given));
    }
}

fn encoder(recorder: Recorder<'_>) -> wgpu::CommandEncoder {
    recorder.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("chaski") })
}
