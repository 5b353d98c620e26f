//! Speed of matrix-vector products on a device, by weight format.
//!
//! Products of different matrices run side by side, more than any cache holds, so that the numbers are of the kernels
//! alone: in a model a product also waits for the previous one.

use std::time::Duration;

use chaski_kernels::ops::mul_mat_vec::{ActivationPrecision, Epilogue, MulMatVec};
use chaski_kernels::{Format, MatVecTune, Matrix};

use super::device::Gpu;
use super::measure::{Bound, ENOUGH, Measure, storage};
use super::tune::Climb;
use crate::error::RuntimeError;

/// Speed of products in a format.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct FormatRate {
    /// The format's name.
    pub format: &'static str,
    /// Precision of the vector; `None` is the device's default.
    pub act: Option<ActivationPrecision>,
    /// Rows and columns of the matrix.
    pub shape: [u32; 2],
    /// Bytes of weights per second, with the untuned distribution of threads.
    pub bytes: f64,
    /// Weights per second, likewise.
    pub weights: f64,
    /// Bytes per second with the best of the tuner's candidates for products side by side; equal to `bytes` on software
    /// renderers.
    pub tuned: f64,
}

/// Rows and columns: the shape that ggml's test program measures.
const SHAPE: [u32; 2] = [4096, 14336];
/// The same for software renderers.
const SOFTWARE_SHAPE: [u32; 2] = [256, 2048];
/// Minimum total size of the matrices: far above the caches of any device.
const SPREAD: u64 = 512 << 20;
/// Rows per write.
const SLAB: u32 = 256;
/// Share of the time for a tuning candidate.
const TRY: f64 = 0.3;
/// Largest error of a result: activations may be rounded to 8 bits.
const TOLERANCE: f64 = 1e-2;

impl Gpu {
    /// Measures a format for about `budget`, and a third of it per tuning candidate, in the shape 4096 x 14336 (a small
    /// one on software renderers).
    ///
    /// # Errors
    /// [`RuntimeError::WrongResult`] if a product is wrong; an unsupported format; device errors.
    pub async fn measure_format(
        &self,
        format: &'static Format,
        act: Option<ActivationPrecision>,
        budget: Duration,
    ) -> Result<FormatRate, RuntimeError> {
        let [n_row, n_col] = if self.caps().software { SOFTWARE_SHAPE } else { SHAPE };
        let w = Matrix { format, n_row, n_col };
        let layout = w.layout();
        let (row, expected) = one_row(w)?;
        let n = match self.caps().software {
            true => 2,
            false => SPREAD.div_ceil(layout.n_byte).clamp(2, 64),
        };
        let m = Measure::new(self).await?;
        let x = self.gpu_vector(n_col).await?;
        let first = self.buffer("measure, weights", layout.n_byte, storage()).await?;
        let slab = row.repeat(SLAB as usize);
        for row0 in (0..n_row).step_by(SLAB as usize) {
            let put = |at, run: &[u8]| self.queue.write_buffer(&first, at, run);
            layout.pack(format, n_col, row0.into(), &slab, put);
            self.finish().await?;
        }
        let mut buffers = Vec::new();
        for _ in 1..n {
            let copy = self.buffer("measure, weights", layout.n_byte, storage()).await?;
            let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(&first, 0, &copy, 0, layout.n_byte);
            self.submit(Some(encoder));
            buffers.push(copy);
        }
        buffers.push(first);
        let shipped = MatVecTune::shipped(self.caps()).0;
        let call = MulMatVec { act, ..MulMatVec::new(w, Epilogue::Store) };
        let products = Products { m, call, x, buffers, expected };
        let time = products.time(self, shipped, budget).await?;
        let mut tuned = time;
        if !self.caps().software {
            let mut climb = Climb::new(&call, self.caps(), time);
            while let Some(tune) = climb.next() {
                climb.measured(tune, products.time(self, tune, budget.mul_f64(TRY)).await?);
            }
            let (chosen, tried) = climb.end();
            let again = products.time(self, chosen, budget).await?;
            tuned = tried.iter().map(|(_, time)| *time).fold(again, Duration::min);
        }
        let (time, tuned) = (time.as_secs_f64(), tuned.as_secs_f64());
        let weights = f64::from(n_row) * f64::from(n_col);
        let n_byte = f64::from(n_row) * row.len() as f64;
        Ok(FormatRate {
            format: format.name,
            act,
            shape: [n_row, n_col],
            bytes: n_byte / time,
            weights: weights / time,
            tuned: n_byte / tuned,
        })
    }

    /// The vector of the products.
    async fn gpu_vector(&self, n: u32) -> Result<wgpu::Buffer, RuntimeError> {
        let buffer = self.buffer("measure, vector", u64::from(n) * 4, storage()).await?;
        let values: Vec<f32> = (0..n).map(value).collect();
        self.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&values));
        Ok(buffer)
    }
}

/// Matrices that are multiplied side by side.
struct Products<'a> {
    m: Measure<'a>,
    call: MulMatVec,
    x: wgpu::Buffer,
    buffers: Vec<wgpu::Buffer>,
    expected: f64,
}

impl Products<'_> {
    /// Time per product.
    async fn time(&self, gpu: &Gpu, tune: MatVecTune, budget: Duration) -> Result<Duration, RuntimeError> {
        let (dispatch, w) = (MulMatVec { tune: Some(tune), ..self.call }.dispatch(gpu.caps())?, self.call.w);
        let (mut results, mut bounds) = (Vec::new(), Vec::new());
        for buffer in &self.buffers {
            let y = gpu.buffer("measure, products", u64::from(w.n_row) * 4, storage()).await?;
            bounds
                .push(self.m.bind(&dispatch, &[("w", buffer), ("x", &self.x), ("aux", &self.x), ("y", &y)])?);
            results.push(y);
        }
        let time = best(&self.m, &bounds, budget.as_secs_f64()).await?;
        for y in &results {
            let found = self.m.words(y, w.n_row as usize).await?;
            let right = |bits: &u32| {
                let v = f64::from(f32::from_bits(*bits));
                (v - self.expected).abs() <= TOLERANCE * self.expected.abs()
            };
            if let Some(at) = found.iter().position(|bits| !right(bits)) {
                return Err(RuntimeError::WrongResult { what: w.format.name, at });
            }
        }
        Ok(Duration::from_secs_f64(time))
    }
}

/// Value `i` of the vector and, before quantisation, of each row: in [-1, 1).
fn value(i: u32) -> f32 {
    (i.wrapping_mul(0x9E37_79B9) >> 8) as f32 / 8_388_608.0 - 1.0
}

/// A row of the matrix, and its product with the vector.
fn one_row(w: Matrix) -> Result<(Vec<u8>, f64), RuntimeError> {
    let info = w.format.ty.info();
    let no = || RuntimeError::NoDequantizer { tensor: w.format.name.into(), ty: w.format.ty };
    let (quantize, dequantize) = (info.quantize.ok_or_else(no)?, info.dequantize.ok_or_else(no)?);
    let values: Vec<f32> = (0..w.n_col).map(value).collect();
    let mut row = vec![0; w.n_col as usize / w.format.ty.block_len() * w.format.ty.block_bytes()];
    // Some quantisers require the importance of each column.
    quantize(&values, Some(&vec![1.0; values.len()]), &mut row);
    let mut back = vec![0.0; values.len()];
    dequantize(&row, &mut back);
    let product = values.iter().zip(&back).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    Ok((row, product))
}

/// Seconds per dispatch of several independent ones: the best run within the time.
async fn best(m: &Measure<'_>, bounds: &[Bound], seconds: f64) -> Result<f64, RuntimeError> {
    let mut all: Vec<&Bound> = bounds.iter().collect();
    // The first run may include deferred work of the driver.
    m.run(&all).await?;
    let (start, mut best) = (m.clock.seconds(), f64::MAX);
    loop {
        let (time, _) = m.run(&all).await?;
        best = best.min(time / all.len() as f64);
        if m.clock.seconds() - start > seconds {
            return Ok(best);
        }
        if time < ENOUGH && all.len() < 1024 {
            all.extend(bounds);
        }
    }
}
