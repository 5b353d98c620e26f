//! Experts elsewhere in a browser, where nothing computes them yet, and every page would download the code.

use super::CpuModel;
use crate::error::RuntimeError;
use crate::experts::Experts;
use crate::step::{Column, ColumnOutput, StepOutputs};

impl CpuModel {
    /// # Errors
    /// [`RuntimeError::NotPlanned`].
    pub async fn run_step_away(
        &mut self,
        _: &[Column],
        _: &[ColumnOutput],
        _: u32,
        _: &mut dyn Experts,
    ) -> Result<StepOutputs, RuntimeError> {
        Err(RuntimeError::NotPlanned { what: "experts elsewhere in a browser" })
    }
}
