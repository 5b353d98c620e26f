//! Drafts in browsers: they have no draft models, which would only take room in their module.

use chaski_runtime::gpu::Memory;

use super::speculate::Speculation;
use crate::error::ModelError;

/// There is none.
pub(crate) enum DraftModel {}

impl DraftModel {
    pub(crate) fn memory(&self) -> Memory {
        match *self {}
    }
}

impl Speculation {
    #[allow(clippy::unused_async, reason = "a model is waited for where there is one")]
    pub(crate) async fn draft(
        self,
        model: &mut DraftModel,
        _: usize,
        _: &[u32],
        _: usize,
    ) -> Result<Vec<u32>, ModelError> {
        match *model {}
    }
}
