//! LoRAs of an engine's model: low-rank matrices next to its own, with scales that may change between runs.

use chaski_models::{Lora, Model, ModelError};

use crate::engine::Engine;
use crate::error::Error;
use crate::source::{AnySource, Source};

/// Summary of a LoRA file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoraInfo {
    /// Name of the file or source.
    pub file: String,
    /// Its scale where a request says nothing.
    pub scale: f32,
    /// The task that the file names (`adapter.lora.task_name`).
    pub task: Option<String>,
    /// The text that the file wants before prompts (`adapter.lora.prompt_prefix`). It is not added to prompts.
    pub prompt_prefix: Option<String>,
}

impl Engine {
    /// The LoRAs, in the order of [`EngineBuilder::lora`](crate::EngineBuilder::lora).
    pub fn loras(&self) -> Vec<LoraInfo> {
        let info = |(lora, scale): (&Lora<AnySource>, f32)| {
            let text = |key: &str| lora.metadata().get(key).and_then(|v| v.to::<&str>()).map(str::to_owned);
            LoraInfo {
                file: lora.name().to_owned(),
                scale,
                task: text("adapter.lora.task_name"),
                prompt_prefix: text("adapter.lora.prompt_prefix"),
            }
        };
        self.model().loras().zip(self.lora_scales()).map(info).collect()
    }

    /// The scale of each LoRA, in the order of [`EngineBuilder::lora`](crate::EngineBuilder::lora), unless
    /// [`GenerateOptions::lora`](crate::GenerateOptions::lora) overrides it.
    pub fn lora_scales(&self) -> Vec<f32> {
        self.loaded().lora_scales().to_vec()
    }

    /// Sets the scale of each LoRA from now on, in all sequences; 0 disables it. If any scale changes,
    /// sequences are cleared, because their keys and values were computed with the old scales.
    ///
    /// # Errors
    /// [`Error::Model`] if the number of scales differs from the number of LoRAs, or a scale is not finite.
    pub fn set_lora_scales(&mut self, scales: &[f32]) -> Result<(), Error> {
        Ok(self.runner().set_lora_scales(scales)?)
    }
}

/// Opens a LoRA and attaches it to a model.
///
/// # Errors
/// [`Error::Lora`], which names the LoRA, with the cause as its source.
pub(crate) async fn attach(model: &mut Model<AnySource>, source: &Source, scale: f32) -> Result<(), Error> {
    let located = |e: ModelError| Error::Lora { file: source.name(), source: Box::new(e) };
    let lora = Lora::open(source.bytes().await?).await.map_err(|e| located(e.into()))?;
    model.attach(lora, scale).map_err(located)
}
