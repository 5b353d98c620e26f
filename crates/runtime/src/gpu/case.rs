//! Runs a test case of an operation on a device, compares with its reference, and times it.

use std::sync::Arc;
use std::time::Duration;

use chaski_kernels::{Case, Expected, Kernel, Step};

use super::device::Gpu;
use super::pipeline::Compiled;
use super::timer::Timer;
use crate::error::RuntimeError;

/// What came of a case.
#[derive(Debug)]
pub struct CaseReport {
    /// The kernel that ran.
    pub kernel: &'static str,
    /// Largest error seen, as a normalised mean squared error.
    pub nmse: f64,
    /// What is wrong, if anything.
    pub failure: Option<String>,
}

/// Bytes around every output that must stay as they are.
const SENTINEL: usize = 256;
const MARK: u8 = 0xA5;

/// Runs one case; outputs are followed by sentinels.
///
/// # Errors
/// [`RuntimeError`] if there is no kernel or the device fails; a wrong result is in the report.
pub async fn run_case(gpu: &Gpu, case: &Case) -> Result<CaseReport, RuntimeError> {
    ReadyCase::new(gpu, case).await?.check().await
}

/// A case with everything in place to run it.
pub struct ReadyCase<'a> {
    gpu: &'a Gpu,
    case: &'a Case,
    steps: Vec<(Step, Arc<Compiled>, wgpu::BindGroup)>,
    buffers: Vec<wgpu::Buffer>,
    timer: Timer,
}

/// Dispatches of one pass that is timed, at most.
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
            let n = b.bytes.len().next_multiple_of(16).max(16);
            let buffer = gpu.buffer(b.binding, (n + SENTINEL) as u64, usage).await?;
            let mut bytes = b.bytes.clone();
            bytes.resize(n + SENTINEL, MARK);
            gpu.queue.write_buffer(&buffer, 0, &bytes);
            buffers.push(buffer);
        }
        let mut steps = Vec::new();
        let mut unused: Vec<&str> = case.buffers.iter().map(|b| b.binding).collect();
        for step in (case.steps)(gpu.caps())? {
            let kernel = step.dispatch.kernel;
            let compiled = gpu.compile(&step.dispatch)?;
            let mut bound = Vec::new();
            for b in &kernel.bindings {
                let name = step.buffer(b.name);
                unused.retain(|n| *n != name);
                if let Some(i) = case.buffers.iter().position(|b| b.binding == name) {
                    bound.push((b.name, buffers[i].as_entire_binding()));
                }
            }
            let group = gpu.bind_group(kernel.name, &compiled.layout, kernel, &bound);
            steps.push((step, compiled, group));
        }
        assert!(unused.is_empty(), "{}: nothing binds {unused:?}", case.label);
        Ok(ReadyCase { gpu, case, steps, buffers, timer: Timer::new(gpu).await? })
    }

    /// The kernel that runs last, which writes the result.
    ///
    /// # Panics
    /// If the case has no steps.
    pub fn kernel(&self) -> &'static Kernel {
        self.steps.last().expect("a case with at least one step").0.dispatch.kernel
    }

    /// Runs it `n` times, one after the other, and says how long the device took. What it writes in place is not
    /// restored in between, so [`Self::check`] comes first.
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
            let Some(expected) = &b.expect else { continue };
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            let staging = gpu.buffer("staging", buffer.size(), usage).await?;
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
            let index = gpu.submit(Some(encoder));
            let bytes = gpu.read(&staging, buffer.size(), Some(index)).await?;
            let n = b.bytes.len();
            let mut fail = |what: String| {
                report.failure.get_or_insert(format!("`{}`: {what}", b.binding));
            };
            if bytes[n..].iter().any(|v| *v != MARK) {
                fail("values after the end were written".into());
            }
            if let Some((nmse, failure)) = expected.compare_tensor(&b.bytes, &bytes[..n]) {
                report.nmse = report.nmse.max(nmse);
                failure.into_iter().for_each(&mut fail);
            }
            let e = hold(&bytes[..n], expected, &mut fail);
            report.nmse = report.nmse.max(e);
        }
        gpu.check()?;
        Ok(report)
    }
}

/// Compares bytes with what they must be; returns the error of floats.
fn hold(bytes: &[u8], expected: &Expected, fail: &mut dyn FnMut(String)) -> f64 {
    match expected {
        // Compared with their surroundings, by the catalogue itself.
        Expected::Bytes(_) | Expected::Tensor { .. } => 0.0,
        Expected::Words(words) => {
            let found: Vec<u32> = bytemuck::pod_collect_to_vec(bytes);
            if let Some(i) = (0..words.len()).find(|i| words[*i] != found[*i]) {
                fail(format!("word {i} is {:#x}, must be {:#x}", found[i], words[i]));
            }
            0.0
        }
        Expected::F32 { values, max_nmse } => {
            let found: Vec<f32> = bytemuck::pod_collect_to_vec(bytes);
            compare(&found, values, *max_nmse, fail)
        }
        Expected::F16 { values, max_nmse } => {
            let found: Vec<half::f16> = bytemuck::pod_collect_to_vec(bytes);
            let found: Vec<f32> = found.into_iter().map(half::f16::to_f32).collect();
            compare(&found, values, *max_nmse, fail)
        }
        Expected::Cells { kv, values, max_nmse } => compare(&kv.decode(bytes), values, *max_nmse, fail),
        Expected::Runs(runs) => {
            let (mut at, mut worst) = (0, 0.0f64);
            for (i, (n_word, expected)) in runs.iter().enumerate() {
                let mut in_run = |what: String| fail(format!("run {i}: {what}"));
                worst = worst.max(hold(&bytes[at..at + 4 * n_word], expected, &mut in_run));
                at += 4 * n_word;
            }
            worst
        }
    }
}

/// Normalised mean squared error; values that are not finite must agree one by one.
fn compare(found: &[f32], wanted: &[f32], limit: f64, fail: &mut dyn FnMut(String)) -> f64 {
    let (mut error, mut size) = (0.0, 0.0);
    for (i, (a, b)) in found.iter().zip(wanted).enumerate() {
        if !a.is_finite() || !b.is_finite() {
            if a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()) {
                fail(format!("value {i} is {a}, must be {b}"));
            }
            continue;
        }
        if limit == 0.0 && a.to_bits() != b.to_bits() && !(*a == 0.0 && *b == 0.0) {
            fail(format!("value {i} is {a:e}, must be {b:e} exactly"));
        }
        error += f64::from(a - b) * f64::from(a - b);
        size += f64::from(*b) * f64::from(*b);
    }
    let nmse = if error == 0.0 { 0.0 } else { error / size.max(1e-30) };
    if nmse > limit {
        let at = found.iter().zip(wanted).enumerate().max_by(|x, y| {
            let d = |p: &(usize, (&f32, &f32))| (p.1.0 - p.1.1).abs();
            d(x).total_cmp(&d(y))
        });
        let worst = at.map_or(String::new(), |(i, (a, b))| format!("; worst at {i}: {a} for {b}"));
        fail(format!("the error is {nmse:.3e}, at most {limit:.1e} is allowed{worst}"));
    }
    nmse
}
