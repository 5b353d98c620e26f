//! Input rows that columns use in place of their tokens' embeddings.

use super::model::GpuModel;
use crate::error::RuntimeError;
use crate::step::RowInput;

impl GpuModel {
    /// Inputs other than tokens that the plan takes ([`PlanConfig::rows`](crate::plan::PlanConfig::rows)).
    pub fn row_input(&self) -> RowInput {
        RowInput { width: self.rows.0, components: self.config.rows && self.has_sections }
    }

    /// Uploads input rows that columns may use in place of embeddings ([`Column::row`](crate::Column::row)), `[n,
    /// n_embd]`, for steps submitted from now on. The values enter the residual stream unchanged: embedding scales do
    /// not apply to them.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] for more rows than a chunk has columns, if the plan has no rows
    /// ([`PlanConfig::rows`](crate::plan::PlanConfig::rows)), and while an incompletely submitted step, which needs the
    /// earlier rows, waits to be read ([`Self::takes_step`]); [`RuntimeError::Shape`] if the values are not whole rows.
    pub fn set_rows(&mut self, rows: &[f32]) -> Result<(), RuntimeError> {
        let (width, ld) = self.rows;
        let n = self.row_input().n_row(rows, self.config.max_col)?;
        if self.has_step_left() {
            return Err(RuntimeError::Limit { what: "steps that were not sent whole", found: 1, limit: 0 });
        }
        if let Some(first) = &self.first {
            first.set_rows(rows.to_vec());
        }
        for (queue, buffers) in self.parts() {
            let Some(buffer) = &buffers.rows else { continue };
            for (i, row) in rows.chunks_exact(width.max(1) as usize).enumerate() {
                let at = 4 * u64::from(ld) * i as u64;
                queue.write(buffer, at, bytemuck::cast_slice(row));
            }
        }
        self.n_row = n;
        Ok(())
    }
}
