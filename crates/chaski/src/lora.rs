//! Adapters of an engine's model: matrices of few rows beside its own, with scales that may change between runs.

use chaski_models::{Adapter, Model, ModelError};

use crate::engine::Engine;
use crate::error::Error;
use crate::source::{AnySource, Source};

impl Engine {
    /// How much each adapter counts, in the order of [`EngineBuilder::lora`](crate::EngineBuilder::lora), where
    /// [`GenerateOptions::lora`](crate::GenerateOptions::lora) says nothing else.
    pub fn lora_scales(&self) -> Vec<f32> {
        self.runner.adapter_scales().to_vec()
    }

    /// Sets how much each adapter counts from now on, in all sequences; 0 leaves it out. A sequence is forgotten if that
    /// changes anything: its keys and values were made otherwise.
    ///
    /// # Errors
    /// [`Error::Model`] for another number of scales than there are adapters, or one that is not finite.
    pub fn set_lora_scales(&mut self, scales: &[f32]) -> Result<(), Error> {
        Ok(self.runner.set_adapter_scales(scales)?)
    }
}

/// Opens an adapter and attaches it to a model.
///
/// # Errors
/// [`Error::Lora`] that names the adapter, with what is wrong with it as its source.
pub(crate) async fn attach(model: &mut Model<AnySource>, source: &Source, scale: f32) -> Result<(), Error> {
    let located = |e: ModelError| Error::Lora { file: source.name(), source: Box::new(e) };
    let adapter = Adapter::open(source.bytes()?).await.map_err(|e| located(e.into()))?;
    model.attach(adapter, scale).map_err(located)
}
