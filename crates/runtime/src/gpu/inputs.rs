//! Rows of values that columns have in place of their tokens' embeddings.

use super::model::GpuModel;
use crate::error::RuntimeError;
use crate::step::n_row;

impl GpuModel {
    /// Uploads rows of values that columns may have in place of embeddings ([`Column::row`](crate::Column::row)), `[n, n_embd]`:
    /// the steps that are sent from now on have them. The values go to the residual stream as they are: families that multiply
    /// embeddings by a factor do not multiply rows.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] for more rows than a chunk has columns, if the plan has no rows
    /// ([`PlanConfig::rows`](crate::plan::PlanConfig::rows)), and while a step waits to be read that was not sent whole
    /// ([`Self::takes_step`]), which needs the rows before; [`RuntimeError::Shape`] if values are no whole rows.
    pub fn set_rows(&mut self, rows: &[f32]) -> Result<(), RuntimeError> {
        let (width, ld) = self.rows;
        let most = if width == 0 { 0 } else { self.config.max_col };
        let n = n_row(rows, width, most)?;
        if self.has_step_left() {
            return Err(RuntimeError::Limit { what: "steps that were not sent whole", found: 1, limit: 0 });
        }
        for (gpu, buffers) in self.parts() {
            let Some(buffer) = &buffers.rows else { continue };
            for (i, row) in rows.chunks_exact(width.max(1) as usize).enumerate() {
                let at = 4 * u64::from(ld) * i as u64;
                gpu.queue.write_buffer(buffer, at, bytemuck::cast_slice(row));
            }
        }
        self.n_row = n;
        Ok(())
    }
}
