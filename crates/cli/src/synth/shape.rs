//! Shapes of models: tensors, their types in a mix, and metadata.

use anyhow::Result;
use ggml_format::{
    FileType, GgmlType, GgufWriter, MixCounters, ModelFacts, mix_order, needs_importance, tensor_type,
};

/// The shape of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preset {
    pub(super) name: &'static str,
    pub(super) family: &'static Family,
    /// Name of the pre-tokenizer, `tokenizer.ggml.pre`.
    pub(super) pre: &'static str,
    pub(super) n_layer: u32,
    pub(super) n_embd: u32,
    pub(super) n_ff: u32,
    pub(super) n_head: u32,
    pub(super) n_head_kv: u32,
    pub(super) d_head: u32,
    pub(super) n_vocab: u32,
    /// True if the token embeddings are also the output matrix.
    pub(super) is_tied: bool,
    pub(super) rope_base: f32,
    /// RoPE scaling factor of the longest wavelengths: `rope_freqs.weight`.
    pub(super) rope_factor: Option<f32>,
    pub(super) rms_eps: f32,
    pub(super) n_ctx: u32,
    /// Replaces the feed-forward part of each layer.
    pub(super) experts: Option<Experts>,
}

/// MoE parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Experts {
    /// Number of experts, and experts per token.
    pub(super) n_expert: u32,
    pub(super) n_used: u32,
    /// Feed-forward width of an expert.
    pub(super) n_ff: u32,
}

/// A family of models.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) architecture: &'static str,
    /// Name of the norm before the output.
    pub(super) output_norm: &'static str,
    /// Tensors of a layer.
    pub(super) layer: fn(&Preset, u32) -> Vec<Part>,
    /// KV heads of a layer.
    pub(super) n_head_kv: fn(&Preset, u32) -> u32,
    /// Keys beside those of all families.
    pub(super) keys: fn(&Preset, &mut GgufWriter) -> Result<()>,
}

/// A tensor of a layer: its name, values, and shape with the fastest varying dimension first.
pub(super) type Part = (&'static str, Values, Vec<u64>);

/// Kind of values in a tensor.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Values {
    Random,
    Ones,
    RopeFactors,
}

#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) name: String,
    /// Fastest varying first.
    pub(super) ne: Vec<u64>,
    pub(super) values: Values,
    pub(super) ty: GgmlType,
}

impl Tensor {
    pub(super) fn n_row(&self) -> u64 {
        self.ne[1..].iter().product()
    }

    pub(super) fn row_bytes(&self) -> u64 {
        self.ty.row_bytes(self.ne[0]).expect("the mix chooses types that fit the row length")
    }

    pub(super) fn n_byte(&self) -> u64 {
        self.row_bytes() * self.n_row()
    }
}

impl Preset {
    pub(super) fn embd(&self) -> u64 {
        self.n_embd.into()
    }

    pub(super) fn ff(&self) -> u64 {
        self.n_ff.into()
    }

    /// Width of all query heads.
    pub(super) fn q(&self) -> u64 {
        u64::from(self.d_head) * u64::from(self.n_head)
    }

    /// Width of all key heads.
    pub(super) fn kv(&self) -> u64 {
        u64::from(self.d_head) * u64::from(self.n_head_kv)
    }

    /// All tensors as f32, in the order of a quantised file.
    pub(super) fn tensors(&self, n_vocab: u32) -> Vec<Tensor> {
        let mut tensors = Vec::new();
        let mut add = |name: String, values, ne| tensors.push(Tensor { name, ne, values, ty: GgmlType::F32 });
        add("token_embd.weight".into(), Values::Random, vec![self.embd(), n_vocab.into()]);
        if !self.is_tied {
            add("output.weight".into(), Values::Random, vec![self.embd(), n_vocab.into()]);
        }
        add(self.family.output_norm.into(), Values::Ones, vec![self.embd()]);
        if self.rope_factor.is_some() {
            add("rope_freqs.weight".into(), Values::RopeFactors, vec![u64::from(self.d_head) / 2]);
        }
        for layer in 0..self.n_layer {
            for (name, values, ne) in (self.family.layer)(self, layer) {
                add(format!("blk.{layer}.{name}"), values, ne);
            }
        }
        tensors.sort_by(|a, b| mix_order(&a.name).cmp(&mix_order(&b.name)));
        tensors
    }

    /// The metadata without the tokenizer.
    pub(super) fn describe(&self, head: &mut GgufWriter, n_vocab: u32, mix: FileType) -> Result<()> {
        let architecture = self.family.architecture;
        head.set("general.architecture", architecture)?
            .set("general.type", "model")?
            .set("general.name", format!("{} (random weights)", self.name))?;
        let key = |name: &str| format!("{architecture}.{name}");
        head.set(&key("block_count"), self.n_layer)?
            .set(&key("context_length"), self.n_ctx)?
            .set(&key("embedding_length"), self.n_embd)?
            .set(&key("feed_forward_length"), self.n_ff)?
            .set(&key("attention.head_count"), self.n_head)?
            .set(&key("attention.key_length"), self.d_head)?
            .set(&key("attention.value_length"), self.d_head)?
            .set(&key("attention.layer_norm_rms_epsilon"), self.rms_eps)?
            .set(&key("rope.dimension_count"), self.d_head)?
            .set(&key("rope.freq_base"), self.rope_base)?
            .set(&key("vocab_size"), n_vocab)?;
        let of_layer: Vec<u32> = (0..self.n_layer).map(|i| (self.family.n_head_kv)(self, i)).collect();
        match of_layer.iter().all(|n| *n == self.n_head_kv) {
            true => head.set(&key("attention.head_count_kv"), self.n_head_kv)?,
            false => head.set(&key("attention.head_count_kv"), of_layer)?,
        };
        if let Some(Experts { n_expert, n_used, n_ff }) = self.experts {
            head.set(&key("expert_count"), n_expert)?
                .set(&key("expert_used_count"), n_used)?
                .set(&key("expert_feed_forward_length"), n_ff)?;
        }
        (self.family.keys)(self, head)?;
        head.set("general.file_type", mix.id())?.set("general.quantization_version", 2u32)?;
        Ok(())
    }

    /// RoPE scaling factor of each channel pair.
    ///
    /// # Source
    /// Llama 3.1: wavelengths above the original context are stretched by the full factor, those below a quarter of it
    /// not at all; in between the factor is interpolated.
    pub(super) fn rope_factors(&self) -> Vec<f32> {
        const N_CTX_BEFORE: f32 = 8192.0;
        const LOW: f32 = 1.0;
        const HIGH: f32 = 4.0;
        let factor = self.rope_factor.unwrap_or(1.0);
        let n_pair = self.d_head / 2;
        let of_pair = |pair: u32| {
            let frequency = self.rope_base.powf(-(pair as f32) / n_pair as f32);
            let n_turn = N_CTX_BEFORE * frequency / std::f32::consts::TAU;
            let blend = ((n_turn - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
            1.0 / ((1.0 - blend) / factor + blend)
        };
        (0..n_pair).map(of_pair).collect()
    }
}

/// Assigns a type to each tensor.
pub(super) fn typed(mut tensors: Vec<Tensor>, preset: &Preset, mix: FileType) -> Result<Vec<Tensor>> {
    let mut facts = ModelFacts {
        n_layer: preset.n_layer,
        n_attn_v: tensors.iter().filter(|t| t.name.ends_with("attn_v.weight")).count() as u32,
        gqa: preset.n_head / preset.n_head_kv,
        n_expert: preset.experts.map_or(0, |e| e.n_expert),
        has_output: !preset.is_tied,
        // As llama.cpp recognises it.
        is_70b: preset.family.architecture == "llama" && preset.n_layer == 80,
        is_falcon: false,
        has_importance: false,
    };
    // Files of some types always use importance weights, which change the rules.
    for has_importance in [false, true] {
        facts.has_importance = has_importance;
        let mut counters = MixCounters::default();
        for t in &mut tensors {
            t.ty = tensor_type(mix, &t.name, &t.ne, &facts, &mut counters)?.unwrap_or(GgmlType::F32);
        }
        if !tensors.iter().any(|t| needs_importance(mix, &t.name, t.ty)) {
            break;
        }
    }
    Ok(tensors)
}
