//! Model families: one file each, and one row of [`ARCHS`].

mod builder;
mod command_r;
mod deepseek2;
mod ernie4_5;
mod exaone4;
mod falcon_h1;
mod gemma;
mod gemma2;
mod gemma3;
mod gemma3n;
mod gemma4;
mod glm4;
mod glm4moe;
mod gpt2;
mod gpt_oss;
mod gptneox;
mod granite;
mod granitehybrid;
mod hunyuan_dense;
mod lfm2;
mod llama;
mod mamba;
mod mamba2;
mod mistral3;
mod nemotron_h;
mod olmo2;
mod olmoe;
mod phi2;
mod phi3;
mod phimoe;
mod qwen2;
mod qwen2moe;
mod qwen3;
mod qwen35;
mod smollm3;
mod stablelm;
mod starcoder2;

pub use builder::{Builder, Config, Linear};

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
pub static ARCHS: &[Arch] = &[
    Arch { name: "cohere2", build: command_r::build_cohere2 },
    Arch { name: "command-r", build: command_r::build },
    Arch { name: "deepseek2", build: deepseek2::build },
    Arch { name: "ernie4_5", build: ernie4_5::build },
    Arch { name: "exaone4", build: exaone4::build },
    Arch { name: "falcon-h1", build: falcon_h1::build },
    Arch { name: "gemma", build: gemma::build },
    Arch { name: "gemma2", build: gemma2::build },
    Arch { name: "gemma3", build: gemma3::build },
    Arch { name: "gemma3n", build: gemma3n::build },
    Arch { name: "gemma4", build: gemma4::build },
    Arch { name: "glm4", build: glm4::build },
    Arch { name: "glm4moe", build: glm4moe::build },
    Arch { name: "gpt-oss", build: gpt_oss::build },
    Arch { name: "gpt2", build: gpt2::build },
    Arch { name: "gptneox", build: gptneox::build },
    Arch { name: "granite", build: granite::build },
    Arch { name: "granitehybrid", build: granitehybrid::build },
    Arch { name: "granitemoe", build: granite::build },
    Arch { name: "hunyuan-dense", build: hunyuan_dense::build },
    Arch { name: "internlm2", build: ernie4_5::build },
    Arch { name: "lfm2", build: lfm2::build },
    Arch { name: "lfm2moe", build: lfm2::build_moe },
    Arch { name: "llama", build: llama::build },
    Arch { name: "mamba", build: mamba::build },
    Arch { name: "mamba2", build: mamba2::build },
    Arch { name: "mistral3", build: mistral3::build },
    Arch { name: "nemotron_h", build: nemotron_h::build },
    Arch { name: "nemotron_h_moe", build: nemotron_h::build },
    Arch { name: "olmo2", build: olmo2::build },
    Arch { name: "olmoe", build: olmoe::build },
    Arch { name: "phi2", build: phi2::build },
    Arch { name: "phi3", build: phi3::build },
    Arch { name: "phimoe", build: phimoe::build },
    Arch { name: "qwen2", build: qwen2::build },
    Arch { name: "qwen2moe", build: qwen2moe::build },
    Arch { name: "qwen3", build: qwen3::build },
    Arch { name: "qwen35", build: qwen35::build },
    Arch { name: "qwen35moe", build: qwen35::build },
    Arch { name: "qwen3moe", build: qwen3::build },
    Arch { name: "qwen3next", build: qwen35::build_next },
    Arch { name: "smollm3", build: smollm3::build },
    Arch { name: "stablelm", build: stablelm::build },
    Arch { name: "starcoder2", build: starcoder2::build },
];

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

/// Ends of the names of tensors that hold one value, a factor of the graph.
pub(crate) const SCALARS: &[&str] = &[".layer_output_scale.weight"];

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
