//! Model families: one file each, and one row of [`ARCHS`].

mod afmoe;
mod apertus;
mod arcee;
mod arctic;
mod baichuan;
mod bitnet;
mod bloom;
mod cohere2moe;
mod command_r;
mod dbrx;
mod deci;
mod deepseek;
mod deepseek2;
mod ernie4_5;
mod ernie4_5_moe;
mod exaone4;
mod exaone_moe;
mod falcon;
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
mod grok;
mod hunyuan_dense;
mod hunyuan_moe;
mod jamba;
mod laguna;
mod lfm2;
mod llama;
mod llama4;
mod mamba;
mod mamba2;
mod mellum;
mod mimo2;
mod minicpm;
mod minimax_m2;
mod mistral3;
mod muse_glimmer;
mod nemotron;
mod nemotron_h;
mod olmo;
mod olmo2;
mod olmoe;
mod phi2;
mod phi3;
mod phimoe;
mod plamo;
mod plamo2;
mod plm;
mod qwen;
mod qwen2;
mod qwen2moe;
mod qwen3;
mod qwen35;
mod seed_oss;
mod smallthinker;
mod smollm3;
mod spark;
mod stablelm;
mod starcoder2;
mod talkie;

pub use crate::build::{Builder, Config, Linear, Reads};

use ggml_format::{Metadata, TensorInfo};

use crate::error::ModelError;

/// A family: the value of `general.architecture`, its models, and its graph builder.
pub struct Arch {
    /// Value of `general.architecture`.
    pub name: &'static str,
    /// The models' official names; empty on wasm32, where pages would load them for nothing.
    pub models: &'static str,
    /// Unsupported features of these models, or empty; likewise.
    pub lacks: &'static str,
    /// Optional tensors that it reads if a file has them.
    pub reads: Reads,
    /// Adds all layers to the builder's graph.
    pub build: fn(&mut Builder<'_>) -> Result<(), ModelError>,
}

/// Text of docs/models.md.
const fn documented(text: &'static str) -> &'static str {
    if cfg!(target_arch = "wasm32") { "" } else { text }
}

/// All families.
pub static ARCHS: &[Arch] = &[
    Arch {
        name: "afmoe",
        models: documented("Arcee Trinity"),
        lacks: "",
        reads: Reads::USUAL,
        build: afmoe::build,
    },
    Arch {
        name: "apertus",
        models: documented("Apertus 8B, 70B"),
        lacks: "",
        reads: Reads::USUAL,
        build: apertus::build,
    },
    Arch {
        name: "arcee",
        models: documented("Arcee AFM 4.5B"),
        lacks: "",
        reads: Reads::USUAL,
        build: arcee::build,
    },
    Arch {
        name: "arctic",
        models: documented("Snowflake Arctic"),
        lacks: "",
        reads: Reads::USUAL,
        build: arctic::build,
    },
    Arch {
        name: "baichuan",
        models: documented("Baichuan 1 and 2"),
        lacks: "",
        reads: Reads::USUAL,
        build: baichuan::build,
    },
    Arch {
        name: "bailingmoe",
        models: documented("Ling 1 Lite, Plus"),
        lacks: "",
        reads: Reads::USUAL,
        build: deepseek::build_ling,
    },
    Arch {
        name: "bailingmoe2",
        models: documented("Ling 2, Ring 2"),
        lacks: documented("MTP layers are ignored"),
        reads: Reads::USUAL,
        build: deepseek::build_ling2,
    },
    Arch {
        name: "bitnet",
        models: documented("BitNet b1.58"),
        lacks: "",
        reads: Reads::SCALES,
        build: bitnet::build,
    },
    Arch { name: "bloom", models: documented("BLOOM"), lacks: "", reads: Reads::USUAL, build: bloom::build },
    Arch {
        name: "chatglm",
        models: documented("ChatGLM 3, GLM 4 of 2024"),
        lacks: "",
        reads: Reads::USUAL,
        build: glm4::build_chat,
    },
    Arch {
        name: "codeshell",
        models: documented("CodeShell 7B"),
        lacks: "",
        reads: Reads::USUAL,
        build: starcoder2::build,
    },
    Arch {
        name: "cogvlm",
        models: documented("CogVLM 1 and 2"),
        lacks: documented("images"),
        reads: Reads::USUAL,
        build: qwen2::build,
    },
    Arch {
        name: "cohere2",
        models: documented("Command R7B, Command A"),
        lacks: "",
        reads: Reads::SCALES,
        build: command_r::build_cohere2,
    },
    Arch {
        name: "cohere2moe",
        models: documented("Command A MoE"),
        lacks: documented("MTP layers are ignored"),
        reads: Reads::SCALES,
        build: cohere2moe::build,
    },
    Arch {
        name: "command-r",
        models: documented("Command R, Command R+, Aya 23"),
        lacks: "",
        reads: Reads::USUAL,
        build: command_r::build,
    },
    Arch { name: "dbrx", models: documented("DBRX"), lacks: "", reads: Reads::USUAL, build: dbrx::build },
    Arch {
        name: "deci",
        models: documented("Llama Nemotron 49B, 51B, 253B"),
        lacks: "",
        reads: Reads::USUAL,
        build: deci::build,
    },
    Arch {
        name: "deepseek",
        models: documented("DeepSeek 1 MoE"),
        lacks: "",
        reads: Reads::USUAL,
        build: deepseek::build,
    },
    Arch {
        name: "deepseek2",
        models: documented("DeepSeek V2, V3, R1, Kimi K2, GLM 4.7 Flash"),
        lacks: documented("MTP layers are ignored"),
        reads: Reads::USUAL,
        build: deepseek2::build,
    },
    Arch {
        name: "deepseek2-ocr",
        models: documented("DeepSeek OCR"),
        lacks: documented("images"),
        reads: Reads::USUAL,
        build: deepseek::build_ocr,
    },
    Arch {
        name: "deepseek32",
        models: documented("DeepSeek V3.2"),
        lacks: documented("contexts longer than what its indexers choose; MTP layers are ignored"),
        reads: Reads::SCALES,
        build: deepseek2::build_sparse,
    },
    Arch {
        name: "dots1",
        models: documented("dots.llm1"),
        lacks: "",
        reads: Reads::USUAL,
        build: deepseek::build_dots,
    },
    Arch {
        name: "ernie4_5",
        models: documented("ERNIE 4.5 0.3B"),
        lacks: "",
        reads: Reads::NO_OUTPUT_BIAS,
        build: ernie4_5::build,
    },
    Arch {
        name: "ernie4_5-moe",
        models: documented("ERNIE 4.5 21B-A3B, 300B-A47B"),
        lacks: "",
        reads: Reads::NO_OUTPUT_BIAS,
        build: ernie4_5_moe::build,
    },
    Arch {
        name: "exaone",
        models: documented("EXAONE 3, 3.5"),
        lacks: "",
        reads: Reads::USUAL,
        build: qwen2::build,
    },
    Arch {
        name: "exaone-moe",
        models: documented("EXAONE 4 MoE"),
        lacks: documented("MTP layers are ignored"),
        reads: Reads::USUAL,
        build: exaone_moe::build,
    },
    Arch {
        name: "exaone4",
        models: documented("EXAONE 4.0 1.2B, 32B"),
        lacks: "",
        reads: Reads::USUAL,
        build: exaone4::build,
    },
    Arch {
        name: "falcon",
        models: documented("Falcon 1 7B, 40B, 180B"),
        lacks: "",
        reads: Reads::USUAL,
        build: falcon::build,
    },
    Arch {
        name: "falcon-h1",
        models: documented("Falcon-H1 0.5B to 34B"),
        lacks: "",
        reads: Reads::NO_OUTPUT_BIAS,
        build: falcon_h1::build,
    },
    Arch {
        name: "gemma",
        models: documented("Gemma 1"),
        lacks: "",
        reads: Reads::USUAL,
        build: gemma::build,
    },
    Arch {
        name: "gemma2",
        models: documented("Gemma 2 2B to 27B"),
        lacks: "",
        reads: Reads::USUAL,
        build: gemma2::build,
    },
    Arch {
        name: "gemma3",
        models: documented("Gemma 3 270M to 27B"),
        lacks: documented("images"),
        reads: Reads::USUAL,
        build: gemma3::build,
    },
    Arch {
        name: "gemma3n",
        models: documented("Gemma 3n E2B, E4B"),
        lacks: documented("images, sound"),
        reads: Reads::USUAL,
        build: gemma3n::build,
    },
    Arch {
        name: "gemma4",
        models: documented("Gemma 4 E2B, E4B, 26B-A4B, 31B"),
        lacks: documented("images, sound"),
        reads: Reads::SCALES,
        build: gemma4::build,
    },
    Arch {
        name: "glm-dsa",
        models: documented("GLM 5"),
        lacks: documented("contexts longer than what its indexers choose; MTP layers are ignored"),
        reads: Reads::SCALES,
        build: deepseek2::build_sparse,
    },
    Arch {
        name: "glm4",
        models: documented("GLM 4 of 2025 (9B, 32B), GLM-Z1"),
        lacks: documented("images"),
        reads: Reads::USUAL,
        build: glm4::build,
    },
    Arch {
        name: "glm4moe",
        models: documented("GLM 4.5, 4.5 Air, 4.6, 4.7"),
        lacks: documented("images; MTP layers are ignored"),
        reads: Reads::USUAL,
        build: glm4moe::build,
    },
    Arch {
        name: "gpt-oss",
        models: documented("gpt-oss 20B, 120B"),
        lacks: "",
        reads: Reads::USUAL,
        build: gpt_oss::build,
    },
    Arch { name: "gpt2", models: documented("GPT-2"), lacks: "", reads: Reads::USUAL, build: gpt2::build },
    Arch {
        name: "gptneox",
        models: documented("Pythia, GPT-NeoX 20B"),
        lacks: "",
        reads: Reads::USUAL,
        build: gptneox::build,
    },
    Arch {
        name: "granite",
        models: documented("Granite 3, Granite 4 without recurrent layers"),
        lacks: documented("images"),
        reads: Reads::USUAL,
        build: granite::build,
    },
    Arch {
        name: "granite_swa",
        models: documented("Granite with windows"),
        lacks: documented("images; an expert for all tokens"),
        reads: Reads::USUAL,
        build: granite::build,
    },
    Arch {
        name: "granitehybrid",
        models: documented("Granite 4.0 H"),
        lacks: "",
        reads: Reads::USUAL,
        build: granitehybrid::build,
    },
    Arch {
        name: "granitemoe",
        models: documented("Granite 3 1B-A400M, 3B-A800M"),
        lacks: "",
        reads: Reads::USUAL,
        build: granite::build,
    },
    Arch {
        name: "grok",
        models: documented("Grok 1, 2"),
        lacks: "",
        reads: Reads::USUAL,
        build: grok::build,
    },
    Arch {
        name: "hunyuan-dense",
        models: documented("Hunyuan 0.5B to 7B"),
        lacks: "",
        reads: Reads::USUAL,
        build: hunyuan_dense::build,
    },
    Arch {
        name: "hunyuan-moe",
        models: documented("Hunyuan A13B, Large"),
        lacks: "",
        reads: Reads::USUAL,
        build: hunyuan_moe::build,
    },
    Arch {
        name: "hy_v3",
        models: documented("Hunyuan 3"),
        lacks: documented("MTP layers are ignored"),
        reads: Reads::SCALES,
        build: deepseek::build_hunyuan,
    },
    Arch {
        name: "hunyuan_vl",
        models: documented("Hunyuan OCR"),
        lacks: documented("images"),
        reads: Reads::USUAL,
        build: hunyuan_dense::build_vl,
    },
    Arch {
        name: "internlm2",
        models: documented("InternLM 2, 2.5"),
        lacks: "",
        reads: Reads::USUAL,
        build: ernie4_5::build,
    },
    Arch {
        name: "jais",
        models: documented("Jais 1"),
        lacks: "",
        reads: Reads::USUAL,
        build: bloom::build_jais,
    },
    Arch {
        name: "jais2",
        models: documented("Jais 2"),
        lacks: "",
        reads: Reads::USUAL,
        build: nemotron::build,
    },
    Arch {
        name: "jamba",
        models: documented("Jamba 1.5, 1.6, 1.7, 3B"),
        lacks: "",
        reads: Reads::USUAL,
        build: jamba::build,
    },
    Arch {
        name: "laguna",
        models: documented("Laguna"),
        lacks: "",
        reads: Reads::USUAL,
        build: laguna::build,
    },
    Arch {
        name: "lfm2",
        models: documented("LFM 2 and 2.5, 350M to 2.6B"),
        lacks: documented("images, sound"),
        reads: Reads::USUAL,
        build: lfm2::build,
    },
    Arch {
        name: "lfm2moe",
        models: documented("LFM 2 8B-A1B"),
        lacks: "",
        reads: Reads::USUAL,
        build: lfm2::build_moe,
    },
    Arch {
        name: "llama",
        models: documented(
            "Llama 2 to 3.3, TinyLlama, SmolLM 1 and 2, Mistral 7B, Mistral Nemo, Mixtral, DeepSeek R1 Distill Llama and many finetunes",
        ),
        lacks: documented("images; files of Mixtral with a tensor for each expert"),
        reads: Reads::SCALES,
        build: llama::build,
    },
    Arch {
        name: "llama4",
        models: documented("Llama 4 Scout, Maverick"),
        lacks: documented("images; contexts of more than 8191 tokens"),
        reads: Reads::USUAL,
        build: llama4::build,
    },
    Arch {
        name: "maincoder",
        models: documented("Maincoder 1B"),
        lacks: "",
        reads: Reads::USUAL,
        build: hunyuan_dense::build_maincoder,
    },
    Arch {
        name: "mamba",
        models: documented("Mamba 130M to 2.8B, Falcon Mamba"),
        lacks: "",
        reads: Reads::USUAL,
        build: mamba::build,
    },
    Arch {
        name: "mamba2",
        models: documented("Mamba 2, Codestral Mamba"),
        lacks: "",
        reads: Reads::USUAL,
        build: mamba2::build,
    },
    Arch {
        name: "maple",
        models: documented("Maple"),
        lacks: "",
        reads: Reads::USUAL,
        build: mellum::build_maple,
    },
    Arch {
        name: "mellum",
        models: documented("Mellum 2"),
        lacks: "",
        reads: Reads::SCALES,
        build: mellum::build,
    },
    Arch {
        name: "mimo2",
        models: documented("MiMo V2 Flash"),
        lacks: documented("MTP layers are ignored"),
        reads: Reads::USUAL,
        build: mimo2::build,
    },
    Arch {
        name: "minicpm",
        models: documented("MiniCPM 1, 2, 4"),
        lacks: "",
        reads: Reads::USUAL,
        build: minicpm::build,
    },
    Arch {
        name: "minicpm3",
        models: documented("MiniCPM 3 4B"),
        lacks: "",
        reads: Reads::USUAL,
        build: minicpm::build_latent,
    },
    Arch {
        name: "minimax-m2",
        models: documented("MiniMax M2"),
        lacks: "",
        reads: Reads::USUAL,
        build: minimax_m2::build,
    },
    Arch {
        name: "mistral3",
        models: documented("Ministral 3, Mistral Small 3, Devstral"),
        lacks: documented("images"),
        reads: Reads::SCALES,
        build: mistral3::build,
    },
    Arch {
        name: "mistral4",
        models: documented("Mistral 4 MoE"),
        lacks: "",
        reads: Reads::USUAL,
        build: deepseek2::build,
    },
    Arch {
        name: "mpt",
        models: documented("MPT 7B, 30B"),
        lacks: documented("norms of q and k"),
        reads: Reads::USUAL,
        build: bloom::build_mpt,
    },
    Arch {
        name: "muse-glimmer",
        models: documented("Muse Glimmer"),
        lacks: "",
        reads: Reads::USUAL,
        build: muse_glimmer::build,
    },
    Arch {
        name: "nemotron",
        models: documented("Nemotron 3 and 4, Minitron"),
        lacks: "",
        reads: Reads::USUAL,
        build: nemotron::build,
    },
    Arch {
        name: "nemotron_h",
        models: documented("Nemotron-H, Nemotron Nano 2"),
        lacks: "",
        reads: Reads::SCALES,
        build: nemotron_h::build,
    },
    Arch {
        name: "nemotron_h_moe",
        models: documented("Nemotron 3 Nano"),
        lacks: "",
        reads: Reads::SCALES,
        build: nemotron_h::build,
    },
    Arch { name: "olmo", models: documented("OLMo 1"), lacks: "", reads: Reads::USUAL, build: olmo::build },
    Arch {
        name: "olmo2",
        models: documented("OLMo 2, OLMo 3"),
        lacks: "",
        reads: Reads::USUAL,
        build: olmo2::build,
    },
    Arch {
        name: "olmoe",
        models: documented("OLMoE 1B-7B"),
        lacks: "",
        reads: Reads::USUAL,
        build: olmoe::build,
    },
    Arch {
        name: "openelm",
        models: documented("OpenELM"),
        lacks: "",
        reads: Reads::USUAL,
        build: qwen3::build,
    },
    Arch {
        name: "orion",
        models: documented("Orion 14B"),
        lacks: "",
        reads: Reads::USUAL,
        build: stablelm::build,
    },
    Arch {
        name: "paddleocr",
        models: documented("PaddleOCR-VL"),
        lacks: documented("images"),
        reads: Reads::USUAL,
        build: qwen2::build_vl,
    },
    Arch {
        name: "pangu-embedded",
        models: documented("openPangu Embedded 1B, 7B"),
        lacks: "",
        reads: Reads::USUAL,
        build: qwen2::build,
    },
    Arch {
        name: "phi2",
        models: documented("Phi 1, 1.5, 2"),
        lacks: "",
        reads: Reads::USUAL,
        build: phi2::build,
    },
    Arch {
        name: "phi3",
        models: documented("Phi 3, 3.5 mini, 4, 4 mini"),
        lacks: "",
        reads: Reads::USUAL,
        build: phi3::build,
    },
    Arch {
        name: "phimoe",
        models: documented("Phi 3.5 MoE"),
        lacks: "",
        reads: Reads::USUAL,
        build: phimoe::build,
    },
    Arch {
        name: "plamo",
        models: documented("PLaMo 13B"),
        lacks: "",
        reads: Reads::USUAL,
        build: plamo::build,
    },
    Arch {
        name: "plamo2",
        models: documented("PLaMo 2 1B, 8B, 2.1"),
        lacks: "",
        reads: Reads::USUAL,
        build: plamo2::build,
    },
    Arch {
        name: "plamo3",
        models: documented("PLaMo 3"),
        lacks: "",
        reads: Reads::USUAL,
        build: plamo::build3,
    },
    Arch { name: "plm", models: documented("PLM 1.8B"), lacks: "", reads: Reads::USUAL, build: plm::build },
    Arch { name: "qwen", models: documented("Qwen 1"), lacks: "", reads: Reads::USUAL, build: qwen::build },
    Arch {
        name: "qwen2",
        models: documented("Qwen 1.5 to 2.5, DeepSeek R1 Distill Qwen"),
        lacks: "",
        reads: Reads::USUAL,
        build: qwen2::build,
    },
    Arch {
        name: "qwen2moe",
        models: documented("Qwen 1.5 MoE A2.7B, Qwen 2 57B-A14B"),
        lacks: "",
        reads: Reads::USUAL,
        build: qwen2moe::build,
    },
    Arch {
        name: "qwen2vl",
        models: documented("Qwen 2 VL, Qwen 2.5 VL"),
        lacks: documented("images"),
        reads: Reads::USUAL,
        build: qwen2::build_vl,
    },
    Arch {
        name: "qwen3",
        models: documented("Qwen 3 0.6B to 32B, Qwen 3 Embedding, Bonsai"),
        lacks: documented("scores of rerankers"),
        reads: Reads::SCALES,
        build: qwen3::build,
    },
    Arch {
        name: "qwen35",
        models: documented("Qwen 3.5"),
        lacks: documented("images; MTP layers are ignored"),
        reads: Reads::SCALES,
        build: qwen35::build,
    },
    Arch {
        name: "qwen35moe",
        models: documented("Qwen 3.5 MoE"),
        lacks: documented("images; MTP layers are ignored"),
        reads: Reads::SCALES,
        build: qwen35::build,
    },
    Arch {
        name: "qwen3moe",
        models: documented("Qwen 3 30B-A3B, 235B-A22B, Qwen 3 Coder"),
        lacks: "",
        reads: Reads::SCALES,
        build: qwen3::build,
    },
    Arch {
        name: "qwen3next",
        models: documented("Qwen 3 Next 80B-A3B"),
        lacks: documented("MTP layers are ignored"),
        reads: Reads::SCALES,
        build: qwen35::build_next,
    },
    Arch {
        name: "qwen3vl",
        models: documented("Qwen 3 VL"),
        lacks: documented("images"),
        reads: Reads::USUAL,
        build: qwen3::build_vl,
    },
    Arch {
        name: "qwen3vlmoe",
        models: documented("Qwen 3 VL MoE"),
        lacks: documented("images"),
        reads: Reads::USUAL,
        build: qwen3::build_vl,
    },
    Arch {
        name: "refact",
        models: documented("Refact 1.6B"),
        lacks: "",
        reads: Reads::NO_OUTPUT_BIAS,
        build: bloom::build_refact,
    },
    Arch {
        name: "seed_oss",
        models: documented("Seed-OSS 36B"),
        lacks: "",
        reads: Reads::USUAL,
        build: seed_oss::build,
    },
    Arch {
        name: "smallthinker",
        models: documented("SmallThinker 4B-A0.6B, 21B-A3B"),
        lacks: "",
        reads: Reads::USUAL,
        build: smallthinker::build,
    },
    Arch {
        name: "smollm3",
        models: documented("SmolLM 3 3B"),
        lacks: "",
        reads: Reads::USUAL,
        build: smollm3::build,
    },
    Arch {
        name: "spark2_5",
        models: documented("Spark 2.5"),
        lacks: "",
        reads: Reads::USUAL,
        build: spark::build,
    },
    Arch {
        name: "stablelm",
        models: documented("StableLM 2, StableLM 3B"),
        lacks: "",
        reads: Reads::USUAL,
        build: stablelm::build,
    },
    Arch {
        name: "starcoder",
        models: documented("StarCoder, SantaCoder"),
        lacks: "",
        reads: Reads::USUAL,
        build: gpt2::build,
    },
    Arch {
        name: "starcoder2",
        models: documented("StarCoder 2 3B to 15B"),
        lacks: "",
        reads: Reads::USUAL,
        build: starcoder2::build,
    },
    Arch {
        name: "step35",
        models: documented("Step 3.5 Flash"),
        lacks: documented("MTP layers are ignored"),
        reads: Reads::USUAL,
        build: mimo2::build_step,
    },
    Arch {
        name: "talkie",
        models: documented("Talkie 13B"),
        lacks: "",
        reads: Reads::USUAL,
        build: talkie::build,
    },
    Arch {
        name: "xverse",
        models: documented("XVERSE 7B to 65B"),
        lacks: "",
        reads: Reads::USUAL,
        build: ernie4_5::build,
    },
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

/// Suffixes of names of tensors that hold one value, a factor of the graph.
pub(crate) const SCALARS: &[&str] = &[".layer_output_scale.weight"];

/// The tensor of divisors of the RoPE frequencies, for a context of `n_ctx` tokens.
pub(crate) fn rope_factor_tensor<'a>(
    tensor: impl Fn(&str) -> Option<&'a TensorInfo>,
    config: &Config,
    n_ctx: u32,
) -> Option<&'a TensorInfo> {
    let long = n_ctx.div_ceil(256) > config.n_ctx_orig / 256;
    let by_length = if long { "rope_factors_long.weight" } else { "rope_factors_short.weight" };
    tensor("rope_freqs.weight").or_else(|| tensor(by_length))
}
