//! Device time by dispatch.

use chaski_kernels::Unit;

use super::model::GpuModel;
use crate::error::RuntimeError;

/// Time of one kernel in one part of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileRow {
    /// Part of the model, for example `qkv`.
    pub part: &'static str,
    /// The kernel.
    pub kernel: &'static str,
    /// Number of dispatches.
    pub count: u32,
    /// Total microseconds.
    pub micros: f64,
    /// The arithmetic unit it uses.
    pub unit: Unit,
    /// Bytes of weights read.
    pub n_weight_byte: u64,
    /// Bytes of weights, activations and KV cache that must be moved.
    pub n_byte: u64,
    /// Operations of products and sums.
    pub n_flop: u64,
}

/// Time of one run of a batch.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Sums by part and kernel, longest first.
    pub rows: Vec<ProfileRow>,
    /// Every dispatch: part, start and length in microseconds.
    pub events: Vec<(&'static str, f64, f64)>,
}

impl GpuModel {
    /// Times one run of `n_col` tokens at `pos`, the median of `repeat`; `None` without timestamps. The cache is
    /// overwritten from `pos`.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] past the context or for more columns than a chunk has; [`RuntimeError::NeedsExperts`]
    /// with offloaded experts; device errors.
    pub async fn profile(
        &mut self,
        n_col: u32,
        pos: u32,
        repeat: u32,
    ) -> Result<Option<Profile>, RuntimeError> {
        self.needs_experts("a profile")?;
        let gpu = self.gpu().clone();
        if !gpu.has_timestamps() {
            return Ok(None);
        }
        let (end, config) = (u64::from(pos) + u64::from(n_col), self.config());
        for (what, found, limit) in
            [("tokens of the sequence", end, config.n_ctx), ("tokens at once", n_col.into(), config.max_col)]
        {
            if found > u64::from(limit) {
                return Err(RuntimeError::Limit { what, found, limit: limit.into() });
            }
        }
        let plan: Vec<_> = self
            .timeline(n_col, pos)
            .into_iter()
            .map(|p| ProfileRow {
                part: p.part,
                kernel: p.dispatch.kernel.name,
                count: 1,
                micros: 0.0,
                unit: p.dispatch.kernel.unit(),
                n_weight_byte: p.work.weights,
                n_byte: p.work.n_byte(n_col, pos),
                n_flop: p.work.n_flop(n_col, pos),
            })
            .collect();
        let n = plan.len() as u32 + 1;
        let set = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("profile"),
            ty: wgpu::QueryType::Timestamp,
            count: n,
        });
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let resolved = gpu.buffer("timestamps", u64::from(n) * 8, usage).await?;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = gpu.buffer("readback of timestamps", u64::from(n) * 8, usage).await?;
        let tokens: Vec<u32> = (0..n_col).collect();
        let mut runs: Vec<Vec<f64>> = Vec::new();
        for _ in 0..repeat.max(1) {
            let columns = self.stage_columns(&tokens, pos);
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                pass.write_timestamp(&set, 0);
                let mut i = 0;
                self.record_timed(&mut pass, columns, pos, |pass| {
                    i += 1;
                    pass.write_timestamp(&set, i);
                });
            }
            encoder.resolve_query_set(&set, 0..n, &resolved, 0);
            encoder.copy_buffer_to_buffer(&resolved, 0, &staging, 0, u64::from(n) * 8);
            let index = gpu.submit(Some(encoder));
            let bytes = gpu.read(&staging, u64::from(n) * 8, Some(index)).await?;
            let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&bytes);
            let period = f64::from(gpu.queue.get_timestamp_period()) / 1000.0;
            runs.push(ticks.windows(2).map(|w| w[1].saturating_sub(w[0]) as f64 * period).collect());
        }
        self.forget_choices();
        let mut profile = Profile::default();
        let mut at = 0.0;
        for (i, mut row) in plan.into_iter().enumerate() {
            let mut times: Vec<f64> = runs.iter().map(|r| r[i]).collect();
            times.sort_by(f64::total_cmp);
            row.micros = times[times.len() / 2];
            profile.events.push((row.part, at, row.micros));
            at += row.micros;
            match profile.rows.iter_mut().find(|r| r.part == row.part && r.kernel == row.kernel) {
                Some(r) => {
                    r.count += 1;
                    r.micros += row.micros;
                    r.n_weight_byte += row.n_weight_byte;
                    r.n_byte += row.n_byte;
                    r.n_flop += row.n_flop;
                }
                None => profile.rows.push(row),
            }
        }
        profile.rows.sort_by(|a, b| b.micros.total_cmp(&a.micros));
        Ok(Some(profile))
    }
}
