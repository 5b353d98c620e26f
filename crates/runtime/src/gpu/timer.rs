//! Device time of dispatches: timestamps, or else wall time.

use std::time::Duration;

use super::device::Gpu;
use crate::error::RuntimeError;
use crate::platform::Clock;

/// Measures one pass at a time.
pub(crate) struct Timer {
    /// Timestamp queries, on devices that support them.
    stamps: Option<(wgpu::QuerySet, wgpu::Buffer)>,
    staging: wgpu::Buffer,
    clock: Clock,
}

/// Times of a pass.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Times {
    /// Device time; without timestamps, wall time until the device finished.
    pub(crate) device: Duration,
    /// CPU time to record and submit it.
    pub(crate) host: Duration,
}

impl Timer {
    pub(crate) async fn new(gpu: &Gpu) -> Result<Self, RuntimeError> {
        let stamps = if gpu.has_timestamps() {
            let set = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("timer"),
                ty: wgpu::QueryType::Timestamp,
                count: 2,
            });
            let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
            Some((set, gpu.buffer("timestamps", 16, usage).await?))
        } else {
            None
        };
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        Ok(Timer {
            stamps,
            staging: gpu.buffer("readback of times", 16, usage).await?,
            clock: Clock::start(),
        })
    }

    /// Runs the dispatches that `record` adds to a pass.
    pub(crate) async fn run(
        &self,
        gpu: &Gpu,
        record: impl FnOnce(&mut wgpu::ComputePass<'_>),
    ) -> Result<Times, RuntimeError> {
        let start = self.clock.elapsed();
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            let stamp = |pass: &mut wgpu::ComputePass<'_>, i| {
                if let Some((set, _)) = &self.stamps {
                    pass.write_timestamp(set, i);
                }
            };
            stamp(&mut pass, 0);
            record(&mut pass);
            stamp(&mut pass, 1);
        }
        match &self.stamps {
            Some((set, resolved)) => {
                encoder.resolve_query_set(set, 0..2, resolved, 0);
                encoder.copy_buffer_to_buffer(resolved, 0, &self.staging, 0, 16);
            }
            // Something to wait for.
            None => encoder.clear_buffer(&self.staging, 0, Some(16)),
        }
        let index = gpu.submit(Some(encoder));
        let host = self.clock.elapsed() - start;
        let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&gpu.read(&self.staging, 16, Some(index)).await?);
        let device = match &self.stamps {
            Some(_) => {
                let nanos =
                    ticks[1].saturating_sub(ticks[0]) as f64 * f64::from(gpu.queue.get_timestamp_period());
                // Never 0: callers divide by it.
                Duration::from_nanos(nanos.max(1.0) as u64)
            }
            None => self.clock.elapsed() - start,
        };
        Ok(Times { device, host })
    }
}
