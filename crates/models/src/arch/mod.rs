//! Model families: one file each, and one row of [`ARCHS`].

mod afmoe;
mod apertus;
mod arcee;
mod arctic;
mod baichuan;
mod bert;
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
mod eurobert;
mod exaone4;
mod exaone_moe;
mod falcon;
mod falcon_h1;
mod gemma;
mod gemma2;
mod gemma3;
mod gemma3n;
mod gemma4;
mod gemma_embedding;
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
mod modern_bert;
mod muse_glimmer;
mod nemotron;
mod nemotron_h;
mod neo_bert;
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
use crate::heads::Ranks;

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
    /// An encoder: it makes embeddings and scores, and no text.
    pub is_encoder: bool,
    /// How its rerankers make scores, if there are any.
    pub ranks: Option<Ranks>,
    /// Adds all layers to the builder's graph.
    pub build: fn(&mut Builder<'_>) -> Result<(), ModelError>,
}

impl Arch {
    /// A family that reads the usual tensors and lacks nothing.
    const fn new(
        name: &'static str,
        models: &'static str,
        build: fn(&mut Builder<'_>) -> Result<(), ModelError>,
    ) -> Self {
        Arch {
            name,
            models: documented(models),
            lacks: "",
            reads: Reads::USUAL,
            is_encoder: false,
            ranks: None,
            build,
        }
    }

    const fn reads(self, reads: Reads) -> Self {
        Arch { reads, ..self }
    }

    const fn encodes(self) -> Self {
        Arch { is_encoder: true, ranks: Some(Ranks::CLS), ..self }
    }

    const fn ranks(self, ranks: Ranks) -> Self {
        Arch { ranks: Some(ranks), ..self }
    }

    const fn lacks(self, lacks: &'static str) -> Self {
        Arch { lacks: documented(lacks), ..self }
    }
}

/// Text of docs/models.md.
const fn documented(text: &'static str) -> &'static str {
    if cfg!(target_arch = "wasm32") { "" } else { text }
}

/// All families.
pub static ARCHS: &[Arch] = &[
    Arch::new("afmoe", "Arcee Trinity", afmoe::build),
    Arch::new("apertus", "Apertus 8B, 70B", apertus::build),
    Arch::new("arcee", "Arcee AFM 4.5B", arcee::build),
    Arch::new("arctic", "Snowflake Arctic", arctic::build),
    Arch::new("baichuan", "Baichuan 1 and 2", baichuan::build),
    Arch::new("bailingmoe", "Ling 1 Lite, Plus", deepseek::build_ling),
    Arch::new("bailingmoe2", "Ling 2, Ring 2", deepseek::build_ling2).lacks("MTP layers are ignored"),
    Arch::new("bert", "BERT, MiniLM, E5, BGE, Snowflake Arctic Embed, XLM-RoBERTa, and rerankers made of them", bert::build).encodes(),
    Arch::new("bitnet", "BitNet b1.58", bitnet::build).reads(Reads::SCALES),
    Arch::new("bloom", "BLOOM", bloom::build),
    Arch::new("chatglm", "ChatGLM 3, GLM 4 of 2024", glm4::build_chat),
    Arch::new("codeshell", "CodeShell 7B", starcoder2::build),
    Arch::new("cogvlm", "CogVLM 1 and 2", qwen2::build).lacks("images"),
    Arch::new("cohere2", "Command R7B, Command A", command_r::build_cohere2).reads(Reads::SCALES),
    Arch::new("cohere2moe", "Command A MoE", cohere2moe::build).reads(Reads::SCALES).lacks("MTP layers are ignored"),
    Arch::new("command-r", "Command R, Command R+, Aya 23", command_r::build),
    Arch::new("dbrx", "DBRX", dbrx::build),
    Arch::new("deci", "Llama Nemotron 49B, 51B, 253B", deci::build),
    Arch::new("deepseek", "DeepSeek 1 MoE", deepseek::build),
    Arch::new("deepseek2", "DeepSeek V2, V3, R1, Kimi K2, GLM 4.7 Flash", deepseek2::build).lacks("MTP layers are ignored"),
    Arch::new("deepseek2-ocr", "DeepSeek OCR", deepseek::build_ocr).lacks("images"),
    Arch::new("deepseek32", "DeepSeek V3.2", deepseek2::build_sparse).reads(Reads::SCALES).lacks("contexts longer than what its indexers choose; MTP layers are ignored"),
    Arch::new("dots1", "dots.llm1", deepseek::build_dots),
    Arch::new("ernie4_5", "ERNIE 4.5 0.3B", ernie4_5::build).reads(Reads::NO_OUTPUT_BIAS),
    Arch::new("ernie4_5-moe", "ERNIE 4.5 21B-A3B, 300B-A47B", ernie4_5_moe::build).reads(Reads::NO_OUTPUT_BIAS),
    Arch::new("eurobert", "EuroBERT 210M to 2.1B", eurobert::build).encodes(),
    Arch::new("exaone", "EXAONE 3, 3.5", qwen2::build),
    Arch::new("exaone-moe", "EXAONE 4 MoE", exaone_moe::build).lacks("MTP layers are ignored"),
    Arch::new("exaone4", "EXAONE 4.0 1.2B, 32B", exaone4::build),
    Arch::new("falcon", "Falcon 1 7B, 40B, 180B", falcon::build),
    Arch::new("falcon-h1", "Falcon-H1 0.5B to 34B", falcon_h1::build).reads(Reads::NO_OUTPUT_BIAS),
    Arch::new("gemma", "Gemma 1", gemma::build),
    Arch::new("gemma-embedding", "EmbeddingGemma 300M", gemma_embedding::build).encodes(),
    Arch::new("gemma2", "Gemma 2 2B to 27B", gemma2::build),
    Arch::new("gemma3", "Gemma 3 270M to 27B", gemma3::build).lacks("images"),
    Arch::new("gemma3n", "Gemma 3n E2B, E4B", gemma3n::build).lacks("images, sound"),
    Arch::new("gemma4", "Gemma 4 E2B, E4B, 26B-A4B, 31B", gemma4::build).reads(Reads::SCALES).lacks("images, sound"),
    Arch::new("glm-dsa", "GLM 5", deepseek2::build_sparse).reads(Reads::SCALES).lacks("contexts longer than what its indexers choose; MTP layers are ignored"),
    Arch::new("glm4", "GLM 4 of 2025 (9B, 32B), GLM-Z1", glm4::build).lacks("images"),
    Arch::new("glm4moe", "GLM 4.5, 4.5 Air, 4.6, 4.7", glm4moe::build).lacks("images; MTP layers are ignored"),
    Arch::new("gpt-oss", "gpt-oss 20B, 120B", gpt_oss::build),
    Arch::new("gpt2", "GPT-2", gpt2::build),
    Arch::new("gptneox", "Pythia, GPT-NeoX 20B", gptneox::build),
    Arch::new("granite", "Granite 3, Granite 4 without recurrent layers", granite::build).lacks("images"),
    Arch::new("granite_swa", "Granite with windows", granite::build).lacks("images; an expert for all tokens"),
    Arch::new("granitehybrid", "Granite 4.0 H", granitehybrid::build),
    Arch::new("granitemoe", "Granite 3 1B-A400M, 3B-A800M", granite::build),
    Arch::new("grok", "Grok 1, 2", grok::build),
    Arch::new("hunyuan-dense", "Hunyuan 0.5B to 7B", hunyuan_dense::build),
    Arch::new("hunyuan-moe", "Hunyuan A13B, Large", hunyuan_moe::build),
    Arch::new("hy_v3", "Hunyuan 3", deepseek::build_hunyuan).reads(Reads::SCALES).lacks("MTP layers are ignored"),
    Arch::new("hunyuan_vl", "Hunyuan OCR", hunyuan_dense::build_vl).lacks("images"),
    Arch::new("internlm2", "InternLM 2, 2.5", ernie4_5::build),
    Arch::new("jais", "Jais 1", bloom::build_jais),
    Arch::new("jais2", "Jais 2", nemotron::build),
    Arch::new("jamba", "Jamba 1.5, 1.6, 1.7, 3B", jamba::build),
    Arch::new("jina-bert-v2", "Jina Embeddings v2, Jina Reranker v1", bert::build_jina2).encodes(),
    Arch::new("jina-bert-v3", "Jina Embeddings v3", bert::build_jina3).encodes(),
    Arch::new("laguna", "Laguna", laguna::build),
    Arch::new("lfm2", "LFM 2 and 2.5, 350M to 2.6B", lfm2::build).lacks("images, sound"),
    Arch::new("lfm2moe", "LFM 2 8B-A1B", lfm2::build_moe),
    Arch::new("llama", "Llama 2 to 3.3, TinyLlama, SmolLM 1 and 2, Mistral 7B, Mistral Nemo, Mixtral, DeepSeek R1 Distill Llama and many finetunes", llama::build).reads(Reads::SCALES).lacks("images; files of Mixtral with a tensor for each expert"),
    Arch::new("llama4", "Llama 4 Scout, Maverick", llama4::build).lacks("images; contexts of more than 8191 tokens"),
    Arch::new("maincoder", "Maincoder 1B", hunyuan_dense::build_maincoder),
    Arch::new("mamba", "Mamba 130M to 2.8B, Falcon Mamba", mamba::build),
    Arch::new("mamba2", "Mamba 2, Codestral Mamba", mamba2::build),
    Arch::new("maple", "Maple", mellum::build_maple),
    Arch::new("mellum", "Mellum 2", mellum::build).reads(Reads::SCALES),
    Arch::new("mimo2", "MiMo V2 Flash", mimo2::build).lacks("MTP layers are ignored"),
    Arch::new("minicpm", "MiniCPM 1, 2, 4", minicpm::build),
    Arch::new("minicpm3", "MiniCPM 3 4B", minicpm::build_latent),
    Arch::new("minimax-m2", "MiniMax M2", minimax_m2::build),
    Arch::new("mistral3", "Ministral 3, Mistral Small 3, Devstral", mistral3::build).reads(Reads::SCALES).lacks("images"),
    Arch::new("mistral4", "Mistral 4 MoE", deepseek2::build),
    Arch::new("modern-bert", "ModernBERT, Granite Embedding R2, GTE ModernBERT and its reranker", modern_bert::build).encodes().ranks(Ranks::MEAN),
    Arch::new("mpt", "MPT 7B, 30B", bloom::build_mpt).lacks("norms of q and k"),
    Arch::new("muse-glimmer", "Muse Glimmer", muse_glimmer::build),
    Arch::new("nemotron", "Nemotron 3 and 4, Minitron", nemotron::build),
    Arch::new("nemotron_h", "Nemotron-H, Nemotron Nano 2", nemotron_h::build).reads(Reads::SCALES),
    Arch::new("nemotron_h_moe", "Nemotron 3 Nano", nemotron_h::build).reads(Reads::SCALES),
    Arch::new("neo-bert", "NeoBERT", neo_bert::build).encodes(),
    Arch::new("nomic-bert", "Nomic Embed v1, v1.5", bert::build_nomic).encodes(),
    Arch::new("nomic-bert-moe", "Nomic Embed v2 MoE", bert::build_nomic_moe).encodes(),
    Arch::new("olmo", "OLMo 1", olmo::build),
    Arch::new("olmo2", "OLMo 2, OLMo 3", olmo2::build),
    Arch::new("olmoe", "OLMoE 1B-7B", olmoe::build),
    Arch::new("openelm", "OpenELM", qwen3::build),
    Arch::new("orion", "Orion 14B", stablelm::build),
    Arch::new("paddleocr", "PaddleOCR-VL", qwen2::build_vl).lacks("images"),
    Arch::new("pangu-embedded", "openPangu Embedded 1B, 7B", qwen2::build),
    Arch::new("phi2", "Phi 1, 1.5, 2", phi2::build),
    Arch::new("phi3", "Phi 3, 3.5 mini, 4, 4 mini", phi3::build),
    Arch::new("phimoe", "Phi 3.5 MoE", phimoe::build),
    Arch::new("plamo", "PLaMo 13B", plamo::build),
    Arch::new("plamo2", "PLaMo 2 1B, 8B, 2.1", plamo2::build),
    Arch::new("plamo3", "PLaMo 3", plamo::build3),
    Arch::new("plm", "PLM 1.8B", plm::build),
    Arch::new("qwen", "Qwen 1", qwen::build),
    Arch::new("qwen2", "Qwen 1.5 to 2.5, DeepSeek R1 Distill Qwen", qwen2::build),
    Arch::new("qwen2moe", "Qwen 1.5 MoE A2.7B, Qwen 2 57B-A14B", qwen2moe::build),
    Arch::new("qwen2vl", "Qwen 2 VL, Qwen 2.5 VL", qwen2::build_vl).lacks("images"),
    Arch::new("qwen3", "Qwen 3 0.6B to 32B, Qwen 3 Embedding, Bonsai", qwen3::build).reads(Reads::SCALES).ranks(Ranks::WORDS),
    Arch::new("qwen35", "Qwen 3.5", qwen35::build).reads(Reads::SCALES).lacks("images; MTP layers are ignored"),
    Arch::new("qwen35moe", "Qwen 3.5 MoE", qwen35::build).reads(Reads::SCALES).lacks("images; MTP layers are ignored"),
    Arch::new("qwen3moe", "Qwen 3 30B-A3B, 235B-A22B, Qwen 3 Coder", qwen3::build).reads(Reads::SCALES),
    Arch::new("qwen3next", "Qwen 3 Next 80B-A3B", qwen35::build_next).reads(Reads::SCALES).lacks("MTP layers are ignored"),
    Arch::new("qwen3vl", "Qwen 3 VL", qwen3::build_vl).lacks("images"),
    Arch::new("qwen3vlmoe", "Qwen 3 VL MoE", qwen3::build_vl).lacks("images"),
    Arch::new("refact", "Refact 1.6B", bloom::build_refact).reads(Reads::NO_OUTPUT_BIAS),
    Arch::new("seed_oss", "Seed-OSS 36B", seed_oss::build),
    Arch::new("smallthinker", "SmallThinker 4B-A0.6B, 21B-A3B", smallthinker::build),
    Arch::new("smollm3", "SmolLM 3 3B", smollm3::build),
    Arch::new("spark2_5", "Spark 2.5", spark::build),
    Arch::new("stablelm", "StableLM 2, StableLM 3B", stablelm::build),
    Arch::new("starcoder", "StarCoder, SantaCoder", gpt2::build),
    Arch::new("starcoder2", "StarCoder 2 3B to 15B", starcoder2::build),
    Arch::new("step35", "Step 3.5 Flash", mimo2::build_step).lacks("MTP layers are ignored"),
    Arch::new("talkie", "Talkie 13B", talkie::build),
    Arch::new("xverse", "XVERSE 7B to 65B", ernie4_5::build),
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
