//! Model families: one file each, and one row of [`ARCHS`].

mod builder;
mod llama;

pub use builder::{Builder, Config};

use ggml_format::{Metadata, TensorInfo};

use crate::error::ModelError;

/// A family: the name in `general.architecture`, and how its graph is built.
pub struct Arch {
    /// Value of `general.architecture`.
    pub name: &'static str,
    /// Adds all layers to the builder's graph.
    pub build: fn(&mut Builder<'_>) -> Result<(), ModelError>,
}

/// All families.
pub static ARCHS: &[Arch] = &[Arch { name: "llama", build: llama::build }];

impl Arch {
    /// The family of a file.
    ///
    /// # Errors
    /// [`ModelError::Architecture`], or [`ModelError::Metadata`] if the file does not name one.
    pub fn of(metadata: &Metadata) -> Result<&'static Arch, ModelError> {
        let name = metadata.str("general.architecture")?;
        ARCHS.iter().find(|a| a.name == name).ok_or_else(|| ModelError::Architecture {
            name: name.to_owned(),
            known: ARCHS.iter().map(|a| a.name).collect::<Vec<_>>().join(", "),
        })
    }
}

/// The tensor whose values divide the frequencies of the rotation, for a context of `n_ctx` tokens.
pub(crate) fn rope_factor_tensor<'a>(
    tensor: impl Fn(&str) -> Option<&'a TensorInfo>,
    config: &Config,
    n_ctx: u32,
) -> Option<&'a TensorInfo> {
    let long = n_ctx.div_ceil(256) > config.n_ctx_orig / 256;
    let by_length = if long { "rope_factors_long.weight" } else { "rope_factors_short.weight" };
    tensor("rope_freqs.weight").or_else(|| tensor(by_length))
}
