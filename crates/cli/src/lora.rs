//! LoRA options, named as in llama.cpp.

use std::path::PathBuf;

use chaski::{EngineBuilder, Source};

use crate::failure::Usage;

/// LoRA files.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct LoraArgs {
    /// LoRA file in GGUF; may be repeated or comma-separated
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    lora: Vec<PathBuf>,
    /// LoRA file and its scale; may be repeated
    #[arg(long, num_args = 2, value_names = ["FILE", "SCALE"], allow_negative_numbers = true)]
    lora_scaled: Vec<String>,
}

impl LoraArgs {
    /// Files and scales.
    ///
    /// # Errors
    /// [`Usage`] if a scale is not a finite number.
    fn all(&self) -> Result<Vec<(PathBuf, f32)>, Usage> {
        let mut all: Vec<(PathBuf, f32)> = self.lora.iter().map(|file| (file.clone(), 1.0)).collect();
        for pair in self.lora_scaled.chunks_exact(2) {
            let scale = pair[1].parse().ok().filter(|s: &f32| s.is_finite());
            let wrong = || Usage(format!("--lora-scaled {} {}: expected a finite scale", pair[0], pair[1]));
            all.push((pair[0].clone().into(), scale.ok_or_else(wrong)?));
        }
        Ok(all)
    }

    /// The files.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let scaled = self.lora_scaled.chunks_exact(2).map(|pair| PathBuf::from(&pair[0]));
        self.lora.iter().cloned().chain(scaled).collect()
    }

    /// Adds them to an engine's builder.
    ///
    /// # Errors
    /// [`Usage`] if a scale is not a finite number.
    pub(crate) fn attach(&self, mut builder: EngineBuilder) -> Result<EngineBuilder, Usage> {
        for (file, scale) in self.all()? {
            builder = builder.lora(Source::path(file), scale);
        }
        Ok(builder)
    }
}
