//! Staging buffers of a thread, used again and again.

use std::sync::Arc;

use super::super::device::Gpu;
use super::pieces::Run;
use crate::error::RuntimeError;
use crate::platform::{Promise, promise, wait};

/// Name in messages.
const LABEL: &str = "staging of weights";

/// Two staging buffers: one is filled while the device copies from the other.
pub(super) struct Staging {
    gpu: Arc<Gpu>,
    slots: [Slot; 2],
    /// The slot that is filled.
    now: usize,
    /// Bytes filled.
    used: u64,
    /// Their copies.
    copies: Vec<(wgpu::Buffer, Run)>,
}

struct Slot {
    buffer: wgpu::Buffer,
    /// The submission that copies from it, and when it is mapped again.
    sent: Option<(wgpu::SubmissionIndex, Promise<Result<(), wgpu::BufferAsyncError>>)>,
}

impl Slot {
    /// A mapped buffer. It is not part of the model's memory, and not counted.
    async fn new(gpu: &Gpu, size: u64) -> Result<Self, RuntimeError> {
        let memory = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let validation = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(LABEL),
            size,
            usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        });
        // Both scopes are popped before any await: they belong to this thread.
        let (refused, out) = (validation.pop(), memory.pop());
        if let Some(e) = refused.await {
            return Err(gpu.failed(LABEL, &e.to_string()));
        }
        if out.await.is_some() {
            return Err(RuntimeError::OutOfMemory { what: LABEL.into(), n_byte: size });
        }
        Ok(Slot { buffer, sent: None })
    }

    /// Waits until the device has copied from it.
    fn wait(&mut self, gpu: &Gpu) -> Result<(), RuntimeError> {
        let Some((index, mapped)) = self.sent.take() else { return Ok(()) };
        loop {
            wait(&gpu.device, &index, None);
            if let Some(mapped) = mapped.take() {
                return mapped.map_err(|e| gpu.failed(LABEL, &e.to_string()));
            }
            // Another thread's wait runs the callback, or the device is lost.
            gpu.check()?;
            std::thread::yield_now();
        }
    }
}

impl Staging {
    /// Buffers for pieces of at most `n_byte` bytes.
    pub(super) async fn new(gpu: &Arc<Gpu>, n_byte: u64) -> Result<Self, RuntimeError> {
        let size = n_byte.next_multiple_of(16).max(16);
        let slots = [Slot::new(gpu, size).await?, Slot::new(gpu, size).await?];
        Ok(Staging { gpu: gpu.clone(), slots, now: 0, used: 0, copies: Vec::new() })
    }

    /// Takes room for a piece: the first byte, and the mapped buffer. If there is too little, what was written is
    /// submitted first.
    pub(super) fn take(&mut self, n_byte: u64) -> Result<(u64, wgpu::BufferViewMut), RuntimeError> {
        if self.used + n_byte > self.slots[self.now].buffer.size() {
            self.submit();
        }
        let slot = &mut self.slots[self.now];
        slot.wait(&self.gpu)?;
        let view =
            slot.buffer.get_mapped_range_mut(..).map_err(|e| self.gpu.failed(LABEL, &e.to_string()))?;
        let at = self.used;
        // A mapped range of any later piece begins at a whole word.
        self.used += n_byte.next_multiple_of(4);
        Ok((at, view))
    }

    /// Copies these runs of the piece at `at` to a buffer, with the next submission.
    pub(super) fn copy(&mut self, at: u64, runs: &[Run], to: &wgpu::Buffer) {
        self.copies.extend(runs.iter().map(|run| (to.clone(), Run { from: at + run.from, ..*run })));
    }

    /// Submits all copies. The buffer is mapped again once the device has made them.
    pub(super) fn submit(&mut self) {
        let slot = &mut self.slots[self.now];
        if self.copies.is_empty() {
            return;
        }
        slot.buffer.unmap();
        let mut encoder = self.gpu.encoder();
        for (to, run) in self.copies.drain(..) {
            encoder.copy_buffer_to_buffer(&slot.buffer, run.from, &to, run.to, run.n_byte);
        }
        let index = self.gpu.submit(Some(encoder));
        let (keeper, mapped) = promise();
        slot.buffer.map_async(wgpu::MapMode::Write, .., move |r| keeper.keep(r));
        slot.sent = Some((index, mapped));
        self.now = 1 - self.now;
        self.used = 0;
    }
}
