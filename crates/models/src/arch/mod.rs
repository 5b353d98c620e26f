//! Model families: one file each, and one row of [`ARCHS`].

mod adapted;
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

pub(crate) use adapted::Adapters;
pub use builder::{Builder, Config, Linear};

use ggml_format::{Metadata, TensorInfo};

use crate::error::ModelError;

/// A family: the name in `general.architecture`, which models have it, and how its graph is built.
pub struct Arch {
    /// Value of `general.architecture`.
    pub name: &'static str,
    /// Models that have it, as their makers call them.
    pub models: &'static str,
    /// What of these models is not done, or nothing.
    pub lacks: &'static str,
    /// Adds all layers to the builder's graph.
    pub build: fn(&mut Builder<'_>) -> Result<(), ModelError>,
}

/// All families.
pub static ARCHS: &[Arch] = &[
    Arch { name: "cohere2", models: "Command R7B, Command A", lacks: "", build: command_r::build_cohere2 },
    Arch { name: "command-r", models: "Command R, Command R+, Aya 23", lacks: "", build: command_r::build },
    Arch {
        name: "deepseek2",
        models: "DeepSeek V2, V3, R1, Kimi K2, GLM 4.7 Flash",
        lacks: "layers for drafts are left out",
        build: deepseek2::build,
    },
    Arch { name: "ernie4_5", models: "ERNIE 4.5 0.3B", lacks: "", build: ernie4_5::build },
    Arch { name: "exaone4", models: "EXAONE 4.0 1.2B, 32B", lacks: "", build: exaone4::build },
    Arch { name: "falcon-h1", models: "Falcon-H1 0.5B to 34B", lacks: "", build: falcon_h1::build },
    Arch { name: "gemma", models: "Gemma 1", lacks: "", build: gemma::build },
    Arch { name: "gemma2", models: "Gemma 2 2B to 27B", lacks: "", build: gemma2::build },
    Arch { name: "gemma3", models: "Gemma 3 270M to 27B", lacks: "images", build: gemma3::build },
    Arch { name: "gemma3n", models: "Gemma 3n E2B, E4B", lacks: "images, sound", build: gemma3n::build },
    Arch {
        name: "gemma4",
        models: "Gemma 4 E2B, E4B, 26B-A4B, 31B",
        lacks: "images, sound",
        build: gemma4::build,
    },
    Arch { name: "glm4", models: "GLM 4 of 2025 (9B, 32B), GLM-Z1", lacks: "images", build: glm4::build },
    Arch {
        name: "glm4moe",
        models: "GLM 4.5, 4.5 Air, 4.6, 4.7",
        lacks: "images; layers for drafts are left out",
        build: glm4moe::build,
    },
    Arch { name: "gpt-oss", models: "gpt-oss 20B, 120B", lacks: "", build: gpt_oss::build },
    Arch { name: "gpt2", models: "GPT-2", lacks: "", build: gpt2::build },
    Arch { name: "gptneox", models: "Pythia, GPT-NeoX 20B", lacks: "", build: gptneox::build },
    Arch {
        name: "granite",
        models: "Granite 3, Granite 4 without recurrent layers",
        lacks: "images",
        build: granite::build,
    },
    Arch { name: "granitehybrid", models: "Granite 4.0 H", lacks: "", build: granitehybrid::build },
    Arch { name: "granitemoe", models: "Granite 3 1B-A400M, 3B-A800M", lacks: "", build: granite::build },
    Arch { name: "hunyuan-dense", models: "Hunyuan 0.5B to 7B", lacks: "", build: hunyuan_dense::build },
    Arch { name: "internlm2", models: "InternLM 2, 2.5", lacks: "", build: ernie4_5::build },
    Arch { name: "lfm2", models: "LFM 2 and 2.5, 350M to 2.6B", lacks: "images, sound", build: lfm2::build },
    Arch { name: "lfm2moe", models: "LFM 2 8B-A1B", lacks: "", build: lfm2::build_moe },
    Arch {
        name: "llama",
        models: "Llama 2 to 3.3, TinyLlama, SmolLM 1 and 2, Mistral 7B, Mistral Nemo, Mixtral, DeepSeek R1 Distill Llama and many finetunes",
        lacks: "images; files of Mixtral with a tensor for each expert",
        build: llama::build,
    },
    Arch { name: "mamba", models: "Mamba 130M to 2.8B", lacks: "", build: mamba::build },
    Arch { name: "mamba2", models: "Mamba 2, Codestral Mamba", lacks: "", build: mamba2::build },
    Arch {
        name: "mistral3",
        models: "Ministral 3, Mistral Small 3, Devstral",
        lacks: "images",
        build: mistral3::build,
    },
    Arch { name: "nemotron_h", models: "Nemotron-H, Nemotron Nano 2", lacks: "", build: nemotron_h::build },
    Arch { name: "nemotron_h_moe", models: "Nemotron 3 Nano", lacks: "", build: nemotron_h::build },
    Arch { name: "olmo2", models: "OLMo 2, OLMo 3", lacks: "", build: olmo2::build },
    Arch { name: "olmoe", models: "OLMoE 1B-7B", lacks: "", build: olmoe::build },
    Arch { name: "phi2", models: "Phi 1, 1.5, 2", lacks: "", build: phi2::build },
    Arch { name: "phi3", models: "Phi 3, 3.5 mini, 4, 4 mini", lacks: "", build: phi3::build },
    Arch { name: "phimoe", models: "Phi 3.5 MoE", lacks: "", build: phimoe::build },
    Arch {
        name: "qwen2",
        models: "Qwen 1.5 to 2.5, DeepSeek R1 Distill Qwen",
        lacks: "",
        build: qwen2::build,
    },
    Arch {
        name: "qwen2moe",
        models: "Qwen 1.5 MoE A2.7B, Qwen 2 57B-A14B",
        lacks: "",
        build: qwen2moe::build,
    },
    Arch {
        name: "qwen3",
        models: "Qwen 3 0.6B to 32B, Qwen 3 Embedding, Bonsai",
        lacks: "scores of rerankers",
        build: qwen3::build,
    },
    Arch {
        name: "qwen35",
        models: "Qwen 3.5",
        lacks: "images; layers for drafts are left out",
        build: qwen35::build,
    },
    Arch {
        name: "qwen35moe",
        models: "Qwen 3.5 by experts",
        lacks: "images; layers for drafts are left out",
        build: qwen35::build,
    },
    Arch {
        name: "qwen3moe",
        models: "Qwen 3 30B-A3B, 235B-A22B, Qwen 3 Coder",
        lacks: "",
        build: qwen3::build,
    },
    Arch {
        name: "qwen3next",
        models: "Qwen 3 Next 80B-A3B",
        lacks: "layers for drafts are left out",
        build: qwen35::build_next,
    },
    Arch { name: "smollm3", models: "SmolLM 3 3B", lacks: "", build: smollm3::build },
    Arch { name: "stablelm", models: "StableLM 2, StableLM 3B", lacks: "", build: stablelm::build },
    Arch { name: "starcoder2", models: "StarCoder 2 3B to 15B", lacks: "", build: starcoder2::build },
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
