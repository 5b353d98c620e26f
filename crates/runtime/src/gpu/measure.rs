//! Device peaks: bandwidth, arithmetic throughput, and the cost of a dispatch and a readback.
//!
//! Each number is the best of several runs of a small kernel whose result is verified. Work grows until a run takes
//! some milliseconds, so the same code serves a graphics card and a software renderer.

use std::time::Duration;

use chaski_kernels::ops::measure::{Coop, Rate, Stream, Unit, Way, reference};
use chaski_kernels::ops::scale::Scale;
use chaski_kernels::{Dispatch, DispatchError};
use half::f16;

use super::device::Gpu;
use super::pipeline::Compiled;
use super::timer::Timer;
use crate::error::RuntimeError;
use crate::platform::Clock;

/// Measured limits of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peaks {
    /// Bytes per second read by a reduction over a large buffer.
    pub read: f64,
    /// Bytes per second of a copy, read and written.
    pub copy: f64,
    /// Operations per second of each unit that the device has; a multiply-add is two.
    pub rates: Vec<(Unit, f64)>,
    /// Device seconds of a tiny dispatch that depends on the previous one.
    pub dependent_dispatch: f64,
    /// Device seconds of a tiny independent dispatch.
    pub independent_dispatch: f64,
    /// CPU seconds to record and submit a dispatch.
    pub host_dispatch: f64,
    /// Seconds from submitting a dispatch to receiving its result.
    pub round_trip: f64,
}

impl Peaks {
    /// Operations per second of a unit, if the device has it.
    pub fn rate(&self, unit: Unit) -> Option<f64> {
        self.rates.iter().find(|(u, _)| *u == unit).map(|(_, r)| *r)
    }
}

/// Minimum duration of a run; in shorter ones clocks and scheduling would dominate.
pub(super) const ENOUGH: f64 = 4e-3;

/// Size of the largest buffer: far above the caches of any device.
const STREAM_BYTES: u64 = 512 << 20;

/// The same for software renderers, which share the system's memory.
const SOFTWARE_BYTES: u64 = 32 << 20;

/// Bytes written from the CPU; copies of them fill the rest.
const PATTERN: u64 = 1 << 20;

/// Dispatches per run when measuring their cost.
const CHAIN: u32 = 256;

impl Gpu {
    /// Measures the device; takes about `budget` in total, longer where kernels compile slowly.
    ///
    /// # Errors
    /// [`RuntimeError::WrongResult`] if a measured kernel returns a wrong result; device errors.
    pub async fn measure(&self, budget: Duration) -> Result<Peaks, RuntimeError> {
        let m = Measure::new(self).await?;
        // Seconds per number.
        let share = budget.as_secs_f64() / 8.0;
        let round_trip = m.round_trip().await?;
        let (dependent_dispatch, host_dispatch) = m.dispatches(1, share).await?;
        let (independent_dispatch, _) = m.dispatches(CHAIN, share).await?;
        let (read, copy) = m.stream(share).await?;
        let mut rates = Vec::new();
        for unit in [Unit::F32, Unit::F16, Unit::Int8, Unit::Coop] {
            if let Some(rate) = m.rate(unit, share).await? {
                rates.push((unit, rate));
            }
        }
        self.check()?;
        Ok(Peaks { read, copy, rates, dependent_dispatch, independent_dispatch, host_dispatch, round_trip })
    }
}

/// A dispatch with its pipeline and buffers.
pub(super) struct Bound {
    compiled: std::sync::Arc<Compiled>,
    group: wgpu::BindGroup,
    grid: [u32; 3],
}

impl Bound {
    fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        pass.set_pipeline(&self.compiled.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        pass.dispatch_workgroups(self.grid[0], self.grid[1], self.grid[2]);
    }
}

pub(super) struct Measure<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) clock: Clock,
    timer: Timer,
    staging: wgpu::Buffer,
}

pub(super) fn storage() -> wgpu::BufferUsages {
    wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC
}

/// Maximum number of bytes of results to verify.
const CHECKED_BYTES: u64 = 1 << 20;

impl<'a> Measure<'a> {
    pub(super) async fn new(gpu: &'a Gpu) -> Result<Self, RuntimeError> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = gpu.buffer("measured results", CHECKED_BYTES, usage).await?;
        Ok(Measure { gpu, clock: Clock::start(), timer: Timer::new(gpu).await?, staging })
    }

    pub(super) fn bind(
        &self,
        d: &Dispatch,
        buffers: &[(&str, &wgpu::Buffer)],
    ) -> Result<Bound, RuntimeError> {
        let compiled = self.gpu.compile(d)?;
        let bound: Vec<_> = buffers.iter().map(|(n, b)| (*n, b.as_entire_binding())).collect();
        let group = self.gpu.bind_group(d.kernel.name, &compiled.layout, d.kernel, &bound);
        Ok(Bound { compiled, group, grid: d.grid })
    }

    /// The first words of a buffer.
    pub(super) async fn words(&self, buffer: &wgpu::Buffer, n: usize) -> Result<Vec<u32>, RuntimeError> {
        let n_byte = (4 * n as u64).min(CHECKED_BYTES);
        let mut encoder = self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &self.staging, 0, n_byte);
        let index = self.gpu.submit(Some(encoder));
        Ok(bytemuck::pod_collect_to_vec(&self.gpu.read(&self.staging, n_byte, Some(index)).await?))
    }

    /// Runs dispatches in one pass: device seconds, and CPU seconds to submit them.
    pub(super) async fn run(&self, all: &[&Bound]) -> Result<(f64, f64), RuntimeError> {
        let times = self.timer.run(self.gpu, |pass| all.iter().for_each(|b| b.record(pass))).await?;
        Ok((times.device.as_secs_f64(), times.host.as_secs_f64()))
    }

    /// Best rate of the dispatches that `make` creates for a number of workgroups: the number doubles until a run takes
    /// long enough, then runs repeat for `share` seconds. Returns units of work per second.
    async fn best(
        &self,
        max_group: u32,
        work: impl Fn(u32) -> u64,
        make: impl Fn(u32) -> Result<Bound, RuntimeError>,
        share: f64,
    ) -> Result<f64, RuntimeError> {
        let (mut n, mut best) = (8u32.min(max_group), 0.0f64);
        let mut bound = make(n)?;
        // A kernel's first run may include deferred work of the driver.
        self.run(&[&bound]).await?;
        let start = self.clock.seconds();
        loop {
            let (time, _) = self.run(&[&bound]).await?;
            best = best.max(work(n) as f64 / time);
            if self.clock.seconds() - start > share {
                return Ok(best);
            }
            if time < ENOUGH && n < max_group {
                n = (2 * n).min(max_group);
                bound = make(n)?;
            }
        }
    }

    async fn round_trip(&self) -> Result<f64, RuntimeError> {
        let y = self.gpu.buffer("measure", 256, storage()).await?;
        let add = Scale { k: 64, ldy: 64, n_col: 1, by: 1.0, bias: 1.0 };
        let bound = self.bind(&add.dispatch()?, &[("y", &y)])?;
        let mut times = Vec::new();
        for _ in 0..40 {
            let start = self.clock.seconds();
            let mut encoder =
                self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                bound.record(&mut pass);
            }
            encoder.copy_buffer_to_buffer(&y, 0, &self.staging, 0, 16);
            let index = self.gpu.submit(Some(encoder));
            self.gpu.read(&self.staging, 16, Some(index)).await?;
            times.push(self.clock.seconds() - start);
        }
        self.must(&self.words(&y, 64).await?, &[40.0f32.to_bits(); 64], "a dispatch that adds one")?;
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    /// Seconds of a tiny dispatch, on the device and to submit it; over `n_buffer` buffers in turn.
    async fn dispatches(&self, n_buffer: u32, share: f64) -> Result<(f64, f64), RuntimeError> {
        let add = Scale { k: 64, ldy: 64, n_col: 1, by: 1.0, bias: 1.0 }.dispatch()?;
        let (mut buffers, mut bounds) = (Vec::new(), Vec::new());
        for _ in 0..n_buffer {
            let y = self.gpu.buffer("measure", 256, storage()).await?;
            bounds.push(self.bind(&add, &[("y", &y)])?);
            buffers.push(y);
        }
        let all: Vec<&Bound> = bounds.iter().cycle().take(CHAIN as usize).collect();
        let (mut device, mut host, mut n_run) = (f64::MAX, f64::MAX, 0u32);
        let start = self.clock.seconds();
        while n_run < 3 || (n_run < 30 && self.clock.seconds() - start < share) {
            let (time, sent) = self.run(&all).await?;
            (device, host, n_run) = (device.min(time), host.min(sent), n_run + 1);
        }
        let each = CHAIN / n_buffer * n_run;
        for y in &buffers {
            let found = self.words(y, 64).await?;
            self.must(&found, &[(each as f32).to_bits(); 64], "a chain of dispatches")?;
        }
        Ok((device / f64::from(CHAIN), host / f64::from(CHAIN)))
    }

    /// Bytes per second of reading, and of copying.
    async fn stream(&self, share: f64) -> Result<(f64, f64), RuntimeError> {
        let gpu = self.gpu;
        let caps = gpu.caps();
        let most = if caps.software { SOFTWARE_BYTES } else { STREAM_BYTES };
        let mut n_byte = most.min(caps.max_binding_bytes / PATTERN * PATTERN);
        // Use less memory on a device with little.
        let (x, y) = loop {
            let x = gpu.buffer("measure, read", n_byte, storage()).await;
            let y = gpu.buffer("measure, written", n_byte, storage()).await;
            match (x, y) {
                (Ok(x), Ok(y)) => break (x, y),
                (Err(RuntimeError::OutOfMemory { .. }), _) | (_, Err(RuntimeError::OutOfMemory { .. }))
                    if n_byte > 8 * PATTERN =>
                {
                    n_byte = n_byte / 2 / PATTERN * PATTERN;
                }
                (x, y) => break (x?, y?),
            }
        };
        let pattern: Vec<u32> =
            (0..PATTERN as u32 / 4).map(|i| i.wrapping_mul(0x9E37_79B9) ^ (i >> 3)).collect();
        let source = gpu.buffer("measure, pattern", PATTERN, storage()).await?;
        gpu.queue.write_buffer(&source, 0, bytemuck::cast_slice(&pattern));
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for at in (0..n_byte).step_by(PATTERN as usize) {
            encoder.copy_buffer_to_buffer(&source, 0, &x, at, PATTERN);
        }
        gpu.submit(Some(encoder));
        let n = (n_byte / 16) as u32;
        let sums = gpu.buffer("measure, sums", CHECKED_BYTES, storage()).await?;
        let max_group = (CHECKED_BYTES / 1024) as u32;
        let read = |from: &wgpu::Buffer, n_group| {
            self.bind(&Stream { way: Way::Read, n, n_group }.dispatch()?, &[("x", from), ("y", &sums)])
        };
        let copy =
            |n_group| self.bind(&Stream { way: Way::Copy, n, n_group }.dispatch()?, &[("x", &x), ("y", &y)]);
        // Few groups read as much as many, only more slowly: increase the number while runs repeat.
        let mut rates = [0.0f64; 2];
        for (rate, reads) in rates.iter_mut().zip([true, false]) {
            for n_group in [max_group / 8, max_group / 4, max_group / 2, max_group] {
                let bound = if reads { read(&x, n_group)? } else { copy(n_group)? };
                let start = self.clock.seconds();
                let mut n_run = 0;
                while n_run < 2 || (n_run < 20 && self.clock.seconds() - start < share / 4.0) {
                    let (time, _) = self.run(&[&bound]).await?;
                    *rate = rate.max(n_byte as f64 / time * if reads { 1.0 } else { 2.0 });
                    n_run += 1;
                }
            }
        }
        // The sums of the read and the copied data equal those of the pattern.
        let total =
            pattern.iter().fold(0u32, |s, v| s.wrapping_add(*v)).wrapping_mul((n_byte / PATTERN) as u32);
        for from in [&x, &y] {
            self.run(&[&read(from, max_group)?]).await?;
            let found = self.words(&sums, (CHECKED_BYTES / 4) as usize).await?;
            let found = found.iter().fold(0u32, |s, v| s.wrapping_add(*v));
            self.must(&[found], &[total], "the sum of a large buffer")?;
        }
        Ok((rates[0], rates[1]))
    }

    /// Operations per second of a unit; `None` if the device lacks it.
    async fn rate(&self, unit: Unit, share: f64) -> Result<Option<f64>, RuntimeError> {
        let gpu = self.gpu;
        let loops = if gpu.caps().software { 21 } else { 801 };
        let coop = |n_group| gpu.caps().coop.map(|shape| Coop { shape, loops, n_group });
        let coop = move |n_group| if unit == Unit::Coop { coop(n_group) } else { None };
        if unit == Unit::Coop && coop(1).is_none() {
            return Ok(None);
        }
        let (x_words, per_group): (Vec<u32>, u64) = match coop(1) {
            Some(call) => {
                let bits: Vec<u16> = call.input().into_iter().map(f16::to_bits).collect();
                (bytemuck::pod_collect_to_vec(&bits), 4 * u64::from(call.n_sum()))
            }
            None => (Rate::input(unit).to_vec(), 128 * 4),
        };
        let plan = |n_group| match coop(n_group) {
            Some(call) => call.dispatch(gpu.caps()),
            None => Rate { unit, loops, n_group }.dispatch(gpu.caps()),
        };
        match plan(1) {
            Err(DispatchError::Lacks { .. }) => return Ok(None),
            first => first?,
        };
        let max_group = caps_groups(gpu, per_group);
        let x = gpu.buffer("measure, factors", 4 * x_words.len() as u64, storage()).await?;
        gpu.queue.write_buffer(&x, 0, bytemuck::cast_slice(&x_words));
        let y = gpu.buffer("measure, results", per_group * u64::from(max_group), storage()).await?;
        let work = |n_group| {
            coop(n_group).map_or_else(|| Rate { unit, loops, n_group }.n_flop(), |call| call.n_flop())
        };
        let bind = |n_group| self.bind(&plan(n_group)?, &[("x", &x), ("y", &y)]);
        let rate = self.best(max_group, work, bind, share).await?;
        // The first workgroup's results.
        let found = self.words(&y, per_group as usize / 4).await?;
        let chains = || (0..128).map(|t| reference::chains(t, Rate::C)).collect();
        let expected: Vec<f32> = coop(1).map_or_else(chains, |call| call.expected());
        // A sum of products that are all -0 is +0 on a device that starts from +0.
        let expected: Vec<u32> = expected.into_iter().map(|v| (v + 0.0).to_bits()).collect();
        self.must(&found, &expected, unit.word())?;
        Ok(Some(rate))
    }

    /// Fails if a kernel's result is wrong.
    fn must(&self, found: &[u32], expected: &[u32], what: &'static str) -> Result<(), RuntimeError> {
        self.gpu.check()?;
        match found.iter().zip(expected).position(|(f, e)| f != e) {
            None if found.len() == expected.len() => Ok(()),
            at => Err(RuntimeError::WrongResult { what, at: at.unwrap_or(found.len().min(expected.len())) }),
        }
    }
}

/// Maximum number of workgroups per run: as many as the result buffer holds.
fn caps_groups(gpu: &Gpu, per_group: u64) -> u32 {
    let room = (64u64 << 20) / per_group;
    gpu.caps().max_groups.min(room as u32).min(1 << 15)
}
