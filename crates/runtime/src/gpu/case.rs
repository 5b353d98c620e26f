//! Runs a test case of an operation on a device, compares it with its reference, and times it.

use std::sync::Arc;
use std::time::Duration;

use chaski_kernels::{Case, Kernel, PlacedStep, Step};

use super::device::Gpu;
use super::pipeline::Compiled;
use super::timer::Timer;
use crate::error::RuntimeError;

/// Outcome of a case.
#[derive(Debug)]
pub struct CaseReport {
    /// The kernel that ran.
    pub kernel: &'static str,
    /// Largest error, as a normalised mean squared error.
    pub nmse: f64,
    /// Description of the failure, if any.
    pub failure: Option<String>,
}

/// Runs one case; outputs are followed by sentinels.
///
/// # Errors
/// [`RuntimeError`] if there is no kernel or the device fails; a wrong result is in the report.
pub async fn run_case(gpu: &Gpu, case: &Case) -> Result<CaseReport, RuntimeError> {
    ReadyCase::new(gpu, case).await?.check().await
}

/// Runs cases, such as [`chaski_kernels::probes`], until one fails.
///
/// # Errors
/// [`RuntimeError::SelfTest`] for the first wrong result; other errors if the device refuses a kernel or fails.
pub async fn self_test(gpu: &Gpu, cases: &[Case]) -> Result<(), RuntimeError> {
    for case in cases {
        let report = run_case(gpu, case).await?;
        if let Some(what) = report.failure {
            return Err(RuntimeError::SelfTest {
                kernel: report.kernel.into(),
                case: case.label.clone(),
                what,
            });
        }
    }
    Ok(())
}

/// A case, ready to run.
pub struct ReadyCase<'a> {
    gpu: &'a Gpu,
    case: &'a Case,
    steps: Vec<(Step, Arc<Compiled>, wgpu::BindGroup)>,
    buffers: Vec<wgpu::Buffer>,
    timer: Timer,
}

/// Maximum number of dispatches per timed pass.
const PASS: u64 = 256;

impl<'a> ReadyCase<'a> {
    /// Compiles the kernels and fills the buffers.
    ///
    /// # Errors
    /// [`RuntimeError`] if there is no kernel or the device fails.
    pub async fn new(gpu: &'a Gpu, case: &'a Case) -> Result<Self, RuntimeError> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let mut buffers = Vec::new();
        for b in &case.buffers {
            let bytes = b.marked();
            let buffer = gpu.buffer(b.binding, bytes.len() as u64, usage).await?;
            gpu.queue.write_buffer(&buffer, 0, &bytes);
            buffers.push(buffer);
        }
        let mut steps = Vec::new();
        for PlacedStep { step, buffers: places } in case.placed(gpu.caps())? {
            let kernel = step.dispatch.kernel;
            let compiled = gpu.compile(&step.dispatch)?;
            let bound: Vec<_> =
                places.iter().map(|(b, i)| (b.name, buffers[*i].as_entire_binding())).collect();
            // A rejection belongs to this case: errors outside a scope would make the device fail from then on.
            let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
            let group = gpu.bind_group(kernel.name, &compiled.layout, kernel, &bound);
            if let Some(e) = scope.pop().await {
                return Err(RuntimeError::Refused { what: kernel.name.into(), reason: e.to_string() });
            }
            steps.push((step, compiled, group));
        }
        Ok(ReadyCase { gpu, case, steps, buffers, timer: Timer::new(gpu).await? })
    }

    /// The kernel that runs last and writes the result.
    ///
    /// # Panics
    /// If the case has no steps.
    pub fn kernel(&self) -> &'static Kernel {
        self.steps.last().expect("a case with at least one step").0.dispatch.kernel
    }

    /// Runs it `n` times in sequence and returns the device time. In-place results are not restored in between, so call
    /// [`Self::check`] first.
    ///
    /// # Errors
    /// Device errors.
    pub async fn time(&self, n: u64) -> Result<Duration, RuntimeError> {
        let (mut left, mut sum) = (n, Duration::ZERO);
        while left > 0 {
            let some = left.min(PASS);
            let record = |pass: &mut wgpu::ComputePass<'_>| (0..some).for_each(|_| self.record(pass));
            sum += self.timer.run(self.gpu, record).await?.device;
            left -= some;
        }
        self.gpu.check()?;
        Ok(sum)
    }

    fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        for (step, compiled, group) in &self.steps {
            let [x, y, z] = step.dispatch.grid;
            pass.set_pipeline(&compiled.pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(x, y, z);
        }
    }

    /// Runs it once and compares.
    ///
    /// # Errors
    /// Device errors; a wrong result is in the report.
    pub async fn check(&self) -> Result<CaseReport, RuntimeError> {
        let (gpu, case) = (self.gpu, self.case);
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        self.record(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()));
        gpu.submit(Some(encoder));
        let mut report = CaseReport { kernel: self.kernel().name, nmse: 0.0, failure: None };
        for (b, buffer) in case.buffers.iter().zip(&self.buffers) {
            if b.expect.is_none() {
                continue;
            }
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            let staging = gpu.buffer("staging", buffer.size(), usage).await?;
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
            let index = gpu.submit(Some(encoder));
            let bytes = gpu.read(&staging, buffer.size(), Some(index)).await?;
            let (nmse, failure) = b.check(&bytes);
            report.nmse = report.nmse.max(nmse);
            report.failure = report.failure.or(failure);
        }
        gpu.check()?;
        Ok(report)
    }
}
