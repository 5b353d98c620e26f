//! The queue of a device, as a model sees it.

use super::device::Gpu;
use super::lanes::{Given, Lanes};

/// Where writes and submissions for a device go: to its queue, or with several devices to its lane, where they may have
/// to wait for their turn.
#[derive(Copy, Clone)]
pub(super) struct DeviceQueue<'a> {
    pub(super) gpu: &'a Gpu,
    /// The lanes, and the index of the device.
    pub(super) lane: Option<(&'a Lanes, usize)>,
}

impl DeviceQueue<'_> {
    /// Writes to a buffer, after everything sent before.
    pub(super) fn write(&self, buffer: &wgpu::Buffer, at: u64, bytes: &[u8]) {
        match self.lane {
            Some((lanes, device)) => lanes.write(device, buffer, at, bytes),
            None => self.gpu.queue.write_buffer(buffer, at, bytes),
        }
    }

    /// Submits commands; the index of the submission, if it need not wait for its turn in a lane.
    pub(super) fn submit(&self, encoder: wgpu::CommandEncoder) -> Option<wgpu::SubmissionIndex> {
        match self.lane {
            Some(_) => {
                self.submit_giving(encoder, None);
                None
            }
            None => Some(self.gpu.submit(Some(encoder))),
        }
    }

    /// Submits commands that fill the staging buffer of a crossing, in a lane.
    pub(super) fn submit_giving(&self, encoder: wgpu::CommandEncoder, gives: Option<Given>) {
        let (lanes, device) = self.lane.expect("values cross between lanes");
        lanes.submit(device, encoder, gives);
    }
}
