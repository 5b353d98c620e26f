//! What all families share: the common metadata, and adding tensors and layers to a graph.

use std::collections::BTreeMap;

use chaski_kernels::Route;
use chaski_kernels::ops::norm::Kind;
use chaski_kernels::ops::topk_moe::Routing;
use chaski_kernels::rope::{Rope, RopePairing};
use chaski_runtime::RuntimeError;
use chaski_runtime::graph::recurrent::{Recurrent, StateLayer};
use chaski_runtime::graph::{Graph, KvLayer, Op, Product, RowNorm, ValueId, Weight, WeightId};
use ggml_format::{GgmlType, Metadata, TensorInfo};

use super::{Adapters, unread};
use crate::derived::Transposed;
use crate::error::ModelError;

/// The common metadata of a model, without the family's own.
#[derive(Clone, Debug)]
pub struct Config {
    /// `general.architecture`, the prefix of all keys.
    pub arch: String,
    /// Context that the model was trained for, in tokens.
    pub n_ctx_train: u32,
    /// Width of the residual stream.
    pub n_embd: u32,
    /// Layers that run.
    pub n_layer: u32,
    /// Query heads of each layer.
    pub n_head: Vec<u32>,
    /// KV heads of each layer.
    pub n_head_kv: Vec<u32>,
    /// Width of each layer's feed-forward part.
    pub n_ff: Vec<u32>,
    /// Channels of a key head.
    pub d_head: u32,
    /// Channels of a value head.
    pub d_head_v: u32,
    /// Epsilon of RMS norms.
    pub eps: f32,
    /// Epsilon of layer norms.
    pub eps_layer: f32,
    /// Rotated channels of a head.
    pub n_rot: u32,
    /// Experts of a layer; 0 if there are none.
    pub n_expert: u32,
    /// Experts that a token uses.
    pub n_expert_used: u32,
    /// Entries of the vocabulary.
    pub n_vocab: u32,
    /// Context before any scaling of the rotation, in tokens.
    pub n_ctx_orig: u32,
}

impl Config {
    /// Reads the metadata.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for a missing or mistyped key, [`ModelError::Config`] for sizes that cannot be.
    pub fn new(m: &Metadata) -> Result<Config, ModelError> {
        let arch = m.str("general.architecture")?.to_owned();
        let key = |k: &str| format!("{arch}.{k}");
        let n_block = m.u32(&key("block_count"))?;
        let n_next = m.opt_u32(&key("nextn_predict_layers"))?.unwrap_or(0);
        let wrong = |k: &str, found: u64, expected: &str| ModelError::Config {
            key: key(k),
            found: found.to_string(),
            expected: expected.into(),
        };
        if n_block > 4096 || n_next > n_block {
            return Err(wrong("block_count", n_block.into(), "must be at most 4096"));
        }
        let layers = |k: &str, default: Option<Vec<u32>>| -> Result<Vec<u32>, ModelError> {
            match default {
                Some(d) if !m.contains(&key(k)) => Ok(d),
                _ => Ok(m.per_layer::<u32>(&key(k), n_block as usize)?),
            }
        };
        let n_embd = m.u32(&key("embedding_length"))?;
        let n_head = layers("attention.head_count", None)?;
        let n_head_kv = layers("attention.head_count_kv", Some(n_head.clone()))?;
        let n_ff = layers("feed_forward_length", Some(vec![0; n_block as usize]))?;
        // Layers without attention have no heads.
        let first = n_head.iter().copied().find(|n| *n > 0).unwrap_or(0);
        let even = n_embd.checked_div(first).unwrap_or(0);
        let d_head = m.opt_u32(&key("attention.key_length"))?.unwrap_or(even);
        let d_head_v = m.opt_u32(&key("attention.value_length"))?.unwrap_or(even);
        let n_rot = m.opt_u32(&key("rope.dimension_count"))?.unwrap_or(d_head);
        // Models without attention need not say how large a head would be.
        let least = u32::from(first > 0);
        for (k, v, limit, least) in [
            ("embedding_length", n_embd, 1 << 20, 1),
            ("attention.key_length", d_head, 1 << 14, least),
            ("attention.value_length", d_head_v, 1 << 14, least),
        ] {
            if v < least || v > limit {
                return Err(wrong(k, v.into(), &format!("must be {least} to {limit}")));
            }
        }
        if n_rot > d_head || n_rot % 2 != 0 {
            return Err(wrong(
                "rope.dimension_count",
                n_rot.into(),
                "must be even and at most the head's channels",
            ));
        }
        // Sizes whose products are counted in 32 bits.
        for (k, sizes, limit) in [
            ("attention.head_count", &n_head, 1 << 12),
            ("attention.head_count_kv", &n_head_kv, 1 << 12),
            ("feed_forward_length", &n_ff, 1 << 22),
        ] {
            if let Some(n) = sizes.iter().find(|n| **n > limit) {
                return Err(wrong(k, (*n).into(), &format!("must be at most {limit}")));
            }
        }
        for (q, kv) in n_head.iter().zip(&n_head_kv) {
            if *kv != 0 && q % kv != 0 {
                return Err(wrong("attention.head_count_kv", (*kv).into(), "must divide the query heads"));
            }
        }
        let n_expert = m.opt_u32(&key("expert_count"))?.unwrap_or(0);
        let n_expert_used = m.opt_u32(&key("expert_used_count"))?.unwrap_or(0);
        if n_expert > Route::MAX_EXPERT {
            let expected = format!("must be at most {}", Route::MAX_EXPERT);
            return Err(wrong("expert_count", n_expert.into(), &expected));
        }
        if n_expert_used > n_expert || (n_expert > 0 && n_expert_used == 0) {
            let expected = format!("must be 1 to the {n_expert} that there are");
            return Err(wrong("expert_used_count", n_expert_used.into(), &expected));
        }
        let n_ctx_train = m.u32(&key("context_length"))?;
        let n_token = m.array("tokenizer.ggml.tokens").map(|a| a.len() as u32).ok();
        let n_vocab = match m.opt_u32(&key("vocab_size"))?.or(n_token) {
            Some(n) => n,
            None => m.u32(&key("vocab_size"))?,
        };
        Ok(Config {
            n_ctx_train,
            n_embd,
            n_layer: n_block - n_next,
            n_head,
            n_head_kv,
            n_ff,
            d_head,
            d_head_v,
            eps: m.opt_f32(&key("attention.layer_norm_rms_epsilon"))?.unwrap_or(1e-5),
            eps_layer: m.opt_f32(&key("attention.layer_norm_epsilon"))?.unwrap_or(1e-5),
            n_rot,
            n_expert,
            n_expert_used,
            n_vocab,
            n_ctx_orig: m.opt_u32(&key("rope.scaling.original_context_length"))?.unwrap_or(n_ctx_train),
            arch,
        })
    }

    /// The rotation, with the scaling that the metadata ask for.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for mistyped keys, [`ModelError::Unsupported`] for an unknown scaling.
    pub fn rope(
        &self,
        m: &Metadata,
        pairing: RopePairing,
        factors: Option<Vec<f32>>,
    ) -> Result<Rope, ModelError> {
        let key = |k: &str| format!("{}.rope.{k}", self.arch);
        let base = m.opt_f32(&key("freq_base"))?.unwrap_or(10_000.0);
        let kind = m.opt_str(&key("scaling.type"))?.unwrap_or("linear");
        let factor = match m.opt_f32(&key("scaling.factor"))? {
            Some(f) => f,
            None => m.opt_f32(&key("scale_linear"))?.unwrap_or(0.0),
        };
        let factor = if factor == 0.0 { 1.0 } else { f64::from(factor) };
        let attn_factor = f64::from(m.opt_f32(&key("scaling.attn_factor"))?.unwrap_or(1.0));
        let plain = Rope {
            n_ctx_orig: self.n_ctx_orig,
            magnitude: attn_factor,
            factors,
            ..Rope::plain(self.n_rot, pairing, f64::from(base))
        };
        Ok(match kind {
            "none" => plain,
            "linear" | "longrope" => {
                let freq_scale = if kind == "linear" { 1.0 / factor } else { 1.0 };
                Rope { freq_scale, ..plain }
            }
            "yarn" => Rope {
                freq_scale: 1.0 / factor,
                ext_factor: 1.0,
                magnitude: attn_factor * if factor <= 1.0 { 1.0 } else { 1.0 + 0.1 * factor.ln() },
                ..plain
            },
            other => return Err(ModelError::Unsupported { what: format!("rope scaling `{other}`") }),
        })
    }
}

/// A product's tensors.
#[derive(Copy, Clone, Debug)]
pub struct Linear {
    pub(super) weight: WeightId,
    pub(super) bias: Option<WeightId>,
    pub(super) scale: Option<WeightId>,
}

/// Adds tensors and operations to a graph.
pub struct Builder<'a> {
    /// The metadata.
    pub metadata: &'a Metadata,
    /// The common part of them.
    pub config: &'a Config,
    /// Divisors of the rotation's frequencies.
    pub rope_factors: Option<Vec<f32>>,
    /// Tensors of one value that are factors of the graph, by name.
    pub scalars: BTreeMap<String, f32>,
    /// Tokens that a sequence may have.
    n_ctx: u32,
    pub(super) graph: Graph,
    pub(super) adapters: Adapters<'a>,
    tensor: &'a dyn Fn(&str) -> Option<&'a TensorInfo>,
}

impl<'a> Builder<'a> {
    /// An empty graph for a model whose tensors `tensor` finds, and a context of `n_ctx` tokens.
    pub fn new(
        metadata: &'a Metadata,
        config: &'a Config,
        n_ctx: u32,
        rope_factors: Option<Vec<f32>>,
        scalars: BTreeMap<String, f32>,
        tensor: &'a dyn Fn(&str) -> Option<&'a TensorInfo>,
    ) -> Self {
        Builder {
            metadata,
            config,
            rope_factors,
            scalars,
            n_ctx,
            graph: Graph::default(),
            adapters: Adapters::default(),
            tensor,
        }
    }

    /// Adapts the products that are added from now on.
    pub(crate) fn adapt(&mut self, adapters: Adapters<'a>) {
        self.adapters = adapters;
    }

    /// Whether a tensor is used, and its adapters are not.
    pub(crate) fn leaves_unadapted(&self, tensor: &str) -> bool {
        !self.adapters.has(tensor) && self.graph.weights.iter().any(|w| w.name == tensor)
    }

    /// The finished graph.
    pub fn finish(self) -> Graph {
        Graph { n_layer: self.config.n_layer as usize, ..self.graph }
    }

    /// Adds a rotation, and returns its number.
    pub fn add_rope(&mut self, rope: Rope) -> usize {
        self.graph.ropes.push(rope);
        self.graph.ropes.len() - 1
    }

    /// The rotation that the metadata ask for, by the file's factors if it has them.
    ///
    /// # Errors
    /// As [`Config::rope`].
    pub fn rope(&self, pairing: RopePairing) -> Result<Rope, ModelError> {
        self.config.rope(self.metadata, pairing, self.rope_factors.clone())
    }

    /// A number of the family's own, by its key without the family's name.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type, [`ModelError::Config`] if it is not finite.
    pub fn f32(&self, key: &str) -> Result<Option<f32>, ModelError> {
        let key = format!("{}.{key}", self.config.arch);
        match self.metadata.opt_f32(&key)? {
            Some(v) if !v.is_finite() => {
                Err(ModelError::Config { key, found: v.to_string(), expected: "must be finite".into() })
            }
            v => Ok(v),
        }
    }

    /// A count of the family's own, likewise.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type.
    pub fn u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        Ok(self.metadata.opt_u32(&format!("{}.{key}", self.config.arch))?)
    }

    /// A switch of the family's own, likewise.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, ModelError> {
        Ok(self.metadata.opt_bool(&format!("{}.{key}", self.config.arch))?)
    }

    /// How far back each layer sees, in tokens; 0 is all the way. Of every `period` layers the last sees all, unless the
    /// file says otherwise; a file without `attention.sliding_window` has `default`.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for a pattern that is neither a count nor a list.
    pub fn windows(&self, default: u32, period: u32) -> Result<Vec<u32>, ModelError> {
        self.windows_but(default, period, |period| period - 1)
    }

    /// The same where the first of every `period` layers sees all.
    ///
    /// # Errors
    /// As [`Self::windows`].
    pub fn windows_after_first(&self, default: u32, period: u32) -> Result<Vec<u32>, ModelError> {
        self.windows_but(default, period, |_| 0)
    }

    /// The same where `all` says which of the layers sees all.
    fn windows_but(&self, default: u32, period: u32, all: fn(u32) -> u32) -> Result<Vec<u32>, ModelError> {
        let window = self.u32("attention.sliding_window")?.unwrap_or(default);
        let key = format!("{}.attention.sliding_window_pattern", self.config.arch);
        let n = self.config.n_head.len();
        let m = self.metadata;
        let every = |p: u32| (0..n as u32).map(|i| p > 0 && i % p != all(p)).collect();
        let local: Vec<bool> = if m.contains(&key) && m.array(&key).is_err() {
            every(m.u32(&key)?)
        } else {
            self.flags("attention.sliding_window_pattern")?.unwrap_or_else(|| every(period))
        };
        Ok(local.into_iter().map(|local| if local { window } else { 0 }).collect())
    }

    /// A switch of each layer, as truth values or as numbers that are not 0.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for another type, or another number of layers.
    pub fn flags(&self, key: &str) -> Result<Option<Vec<bool>>, ModelError> {
        let key = format!("{}.{key}", self.config.arch);
        let (m, n) = (self.metadata, self.config.n_head.len());
        if !m.contains(&key) {
            return Ok(None);
        }
        if let Ok(list) = m.per_layer::<bool>(&key, n) {
            return Ok(Some(list));
        }
        Ok(Some(m.per_layer::<u32>(&key, n)?.into_iter().map(|v| v != 0).collect()))
    }

    /// Says that the model has no positions beyond the first `limit`.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] if the context is longer.
    pub fn limit_context(&self, limit: u32) -> Result<(), ModelError> {
        let (what, found) = ("tokens of the context", u64::from(self.n_ctx));
        if self.n_ctx > limit {
            return Err(RuntimeError::Limit { what, found, limit: limit.into() }.into());
        }
        Ok(())
    }

    /// Values a column of a value.
    pub fn width(&self, x: ValueId) -> u32 {
        self.graph.width(x)
    }

    /// An error about a key of the family's own, by its name without the family's.
    pub fn wrong(&self, key: &str, found: impl ToString, expected: impl Into<String>) -> ModelError {
        let key = format!("{}.{key}", self.config.arch);
        ModelError::Config { key, found: found.to_string(), expected: expected.into() }
    }

    /// Whether the file has a tensor.
    pub fn has(&self, name: &str) -> bool {
        (self.tensor)(name).is_some()
    }

    /// Rows of a tensor of the file.
    pub fn n_row(&self, name: &str) -> Option<u64> {
        (self.tensor)(name).map(|t| t.ne.iter().skip(1).product())
    }

    fn find(&self, name: &str, shape: &[u64]) -> Result<&'a TensorInfo, ModelError> {
        let t = (self.tensor)(name).ok_or_else(|| ModelError::NoTensor { tensor: name.to_owned() })?;
        if shape.contains(&0) {
            let what = format!("the tensor `{name}` of no values, {shape:?}");
            return Err(ModelError::Unsupported { what });
        }
        let found: Vec<u64> = t.ne.iter().rev().copied().collect();
        let mut expected = vec![1; 4 - shape.len()];
        expected.extend_from_slice(shape);
        if found != expected {
            let strip = |v: Vec<u64>| v.into_iter().skip(4 - shape.len()).collect();
            let found = if found[..4 - shape.len()].iter().all(|n| *n == 1) { strip(found) } else { found };
            return Err(ModelError::Shape { tensor: name.to_owned(), expected: shape.to_vec(), found });
        }
        Ok(t)
    }

    /// A vector of `n` values.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn vector(&mut self, name: &str, n: u32) -> Result<WeightId, ModelError> {
        let t = self.find(name, &[n.into()])?;
        Ok(self.graph.weight(Weight::new(name.to_owned(), t.ty, 1, n)))
    }

    /// A matrix of `n_out` rows of `n_in` values.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn matrix(&mut self, name: &str, n_out: u32, n_in: u32) -> Result<WeightId, ModelError> {
        let t = self.find(name, &[n_out.into(), n_in.into()])?;
        Ok(self.graph.weight(Weight::new(name.to_owned(), t.ty, n_out, n_in)))
    }

    /// `stem.weight` with its optional `stem.bias` and `stem.scale`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn linear(&mut self, stem: &str, n_out: u32, n_in: u32) -> Result<Linear, ModelError> {
        let weight = self.matrix(&format!("{stem}.weight"), n_out, n_in)?;
        let ty = self.graph.weights[weight.0].ty;
        let bias = match self.bias_of(stem) {
            Some(bias) => Some(self.vector(&bias, n_out)?),
            None => None,
        };
        let scale = self.scale_of(stem, ty, 1)?;
        if let (Some(bias), true) = (bias, unread::scales_bias(stem, ty)) {
            self.graph.weights[bias.0].times = scale;
        }
        Ok(Linear { weight, bias, scale })
    }

    /// The name of the bias of products with `stem.weight`, if the family has one and the file, too.
    fn bias_of(&self, stem: &str) -> Option<String> {
        let name = format!("{stem}.bias");
        (self.has(&name) && unread::reads_bias(&self.config.arch, stem)).then_some(name)
    }

    /// The `n` scales of products with `stem.weight`, which is of this type, likewise.
    fn scale_of(&mut self, stem: &str, ty: GgmlType, n: u32) -> Result<Option<WeightId>, ModelError> {
        let name = format!("{stem}.scale");
        if !self.has(&name) || !unread::reads_scale(&self.config.arch, stem, ty) {
            return Ok(None);
        }
        self.vector(&name, n).map(Some)
    }

    /// Matrices that the file stacks, as one.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn stacked(&mut self, name: &str, n: u32, n_out: u32, n_in: u32) -> Result<Linear, ModelError> {
        let t = self.find(name, &[n.into(), n_out.into(), n_in.into()])?;
        let weight = self.graph.weight(Weight::new(name.to_owned(), t.ty, n * n_out, n_in));
        Ok(Linear { weight, bias: None, scale: None })
    }

    /// The matrix alone, whatever else stands under its name.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn bare(&mut self, name: &str, n_out: u32, n_in: u32) -> Result<Linear, ModelError> {
        Ok(Linear { weight: self.matrix(name, n_out, n_in)?, bias: None, scale: None })
    }

    /// A matrix of a single row that the file holds as a vector.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn row(&mut self, name: &str, n_in: u32) -> Result<Linear, ModelError> {
        Ok(Linear { weight: self.vector(name, n_in)?, bias: None, scale: None })
    }

    /// q, k and v: three tensors, or one that holds their rows one after the other.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn qkv(&mut self, block: &str, rows: [u32; 3], n_in: u32) -> Result<[Linear; 3], ModelError> {
        let fused = format!("{block}.attn_qkv.weight");
        if !self.has(&fused) {
            let [q, k, v] = rows;
            return Ok([
                self.linear(&format!("{block}.attn_q"), q, n_in)?,
                self.linear(&format!("{block}.attn_k"), k, n_in)?,
                self.linear(&format!("{block}.attn_v"), v, n_in)?,
            ]);
        }
        self.joined(&format!("{block}.attn_qkv"), rows, n_in)
    }

    /// Products whose rows follow one another in `stem.weight`, with its optional `stem.bias` and `stem.scale`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn joined<const N: usize>(
        &mut self,
        stem: &str,
        rows: [u32; N],
        n_in: u32,
    ) -> Result<[Linear; N], ModelError> {
        self.alternating(stem, 1, rows, n_in)
    }

    /// Products whose rows alternate in `stem.weight`, with its optional `stem.bias` and `stem.scale`: `n` times those of
    /// the first, those of the second and so on, so many of each at a time. Each is made of its own rows alone.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn alternating<const N: usize>(
        &mut self,
        stem: &str,
        n: u32,
        rows: [u32; N],
        n_in: u32,
    ) -> Result<[Linear; N], ModelError> {
        let name = format!("{stem}.weight");
        let stride: u32 = rows.iter().sum();
        let all = n * stride;
        let ty = self.find(&name, &[all.into(), n_in.into()])?.ty;
        let bias = match self.bias_of(stem) {
            Some(bias) => Some((self.find(&bias, &[all.into()])?.ty, bias)),
            None => None,
        };
        if let Some((ty, bias)) = bias.as_ref().filter(|b| b.0.block_len() > 1) {
            return Err(ModelError::Unsupported { what: format!("the tensor `{bias}` in {ty}") });
        }
        let scale = self.scale_of(stem, ty, 1)?;
        let times = scale.filter(|_| unread::scales_bias(stem, ty));
        let mut row0 = 0;
        Ok(rows.map(|run| {
            let part = |w: Weight| Weight { row0, run, stride, ..w };
            let weight = self.graph.weight(part(Weight::new(name.clone(), ty, n * run, n_in)));
            // A part of the bias is made of single values.
            let bias = bias.as_ref().map(|(ty, bias)| {
                let whole = Weight { times, ..Weight::new(bias.clone(), *ty, n * run, 1) };
                self.graph.weight(part(whole))
            });
            row0 += run;
            Linear { weight, bias, scale }
        }))
    }

    /// The matrices of all experts: `stem.weight` with its optional `stem.bias` and `stem.scale`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn experts(
        &mut self,
        stem: &str,
        n_expert: u32,
        n_out: u32,
        n_in: u32,
    ) -> Result<Linear, ModelError> {
        let name = format!("{stem}.weight");
        let t = self.find(&name, &[n_expert.into(), n_out.into(), n_in.into()])?;
        let whole = Weight::new(name, t.ty, n_expert * n_out, n_in);
        let weight = self.graph.weight(Weight { n_expert, run: n_out, stride: n_out, ..whole });
        let bias = match self.bias_of(stem) {
            Some(bias) => Some(self.matrix(&bias, n_expert, n_out)?),
            None => None,
        };
        let scale = self.scale_of(stem, t.ty, n_expert)?;
        Ok(Linear { weight, bias, scale })
    }

    /// A matrix for every head, some rows of each stretch of `stride` rows of a matrix: those from `row0` on.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn heads_of(
        &mut self,
        name: &str,
        n_head: u32,
        (row0, n_out, stride): (u32, u32, u32),
        n_in: u32,
    ) -> Result<WeightId, ModelError> {
        let t = self.find(name, &[u64::from(n_head) * u64::from(stride), n_in.into()])?;
        let whole = Weight::new(name.to_owned(), t.ty, n_head * n_out, n_in);
        Ok(self.graph.weight(Weight { row0, n_expert: n_head, run: n_out, stride, ..whole }))
    }

    /// The matrices of all heads, one after the other.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn heads(&mut self, name: &str, n_head: u32, n_out: u32, n_in: u32) -> Result<WeightId, ModelError> {
        let t = self.find(name, &[n_head.into(), n_out.into(), n_in.into()])?;
        let whole = Weight::new(name.to_owned(), t.ty, n_head * n_out, n_in);
        Ok(self.graph.weight(Weight { n_expert: n_head, run: n_out, stride: n_out, ..whole }))
    }

    /// The matrices that `derived` makes of a tensor of the file, which must have this shape.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn derived(
        &mut self,
        derived: &Transposed,
        (name, from): (&str, &str),
    ) -> Result<WeightId, ModelError> {
        let Transposed { n_matrix, n_row, n_col, stride } = *derived;
        let t = self.find(from, &[u64::from(n_matrix) * u64::from(stride), n_col.into()])?;
        let whole = Weight::new(name.to_owned(), Transposed::ty(t.ty), n_matrix * n_col, n_row);
        Ok(self.graph.weight(Weight { n_expert: n_matrix, run: n_col, stride: n_col, ..whole }))
    }

    /// Gate and up of all experts: two tensors, or one that holds the rows of both for each expert, gate first.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn gate_up_experts(
        &mut self,
        block: &str,
        n_expert: u32,
        n_out: u32,
        n_in: u32,
    ) -> Result<[Linear; 2], ModelError> {
        let fused = format!("{block}.ffn_gate_up_exps.weight");
        if !self.has(&fused) {
            return Ok([
                self.experts(&format!("{block}.ffn_gate_exps"), n_expert, n_out, n_in)?,
                self.experts(&format!("{block}.ffn_up_exps"), n_expert, n_out, n_in)?,
            ]);
        }
        for other in ["bias", "scale"].map(|end| format!("{block}.ffn_gate_up_exps.{end}")) {
            if self.has(&other) {
                return Err(ModelError::Unsupported { what: format!("the tensor `{other}`") });
            }
        }
        let t = self.find(&fused, &[n_expert.into(), 2 * u64::from(n_out), n_in.into()])?;
        Ok([0, n_out].map(|row0| {
            let part = Weight::new(fused.clone(), t.ty, n_expert * n_out, n_in);
            let weight = self.graph.weight(Weight { row0, n_expert, run: n_out, stride: 2 * n_out, ..part });
            Linear { weight, bias: None, scale: None }
        }))
    }

    /// Embeddings of the batch's tokens.
    pub fn embed(&mut self, table: WeightId) -> ValueId {
        let x = self.graph.push(Op::Embed { table }, self.config.n_embd);
        self.adapted_rows(table, x)
    }

    /// RMS norm with weights.
    pub fn norm(&mut self, x: ValueId, weight: WeightId) -> ValueId {
        let width = self.graph.width(x);
        self.graph.push(Op::RmsNorm { x, weight, eps: self.config.eps }, width)
    }

    /// Norm of this kind by `stem.weight` and, if the file has it, `stem.bias`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn norm_of(&mut self, x: ValueId, stem: &str, kind: Kind) -> Result<ValueId, ModelError> {
        let d = self.graph.width(x);
        // Some families' files leave the end of these names off.
        let name = format!("{stem}.weight");
        let bare = !self.has(&name) && self.has(stem);
        let weight = self.vector(if bare { stem } else { &name }, d)?;
        let bias = format!("{stem}.bias");
        let bias = if self.has(&bias) { Some(self.vector(&bias, d)?) } else { None };
        if kind == Kind::Rms && bias.is_none() {
            return Ok(self.norm(x, weight));
        }
        let eps = if kind == Kind::Rms { self.config.eps } else { self.config.eps_layer };
        let norm = RowNorm { kind, d, eps, weight: Some(weight), bias };
        Ok(self.graph.push(Op::Norm { x, norm }, d))
    }

    /// Norm of this kind without weights.
    pub fn plain_norm(&mut self, x: ValueId, kind: Kind) -> ValueId {
        let d = self.graph.width(x);
        let eps = if kind == Kind::Rms { self.config.eps } else { self.config.eps_layer };
        self.graph.push(Op::Norm { x, norm: RowNorm { kind, d, eps, weight: None, bias: None } }, d)
    }

    /// Product.
    pub fn mul(&mut self, x: ValueId, l: Linear) -> ValueId {
        let width = self.graph.weights[l.weight.0].n_row;
        let y = self.graph.push(Op::MulMat { x, weight: l.weight, bias: l.bias, scale: l.scale }, width);
        self.adapted(x, l, y)
    }

    /// Products of one input as one value, the rows of each after those of the one before.
    pub fn mul_all(&mut self, x: ValueId, linears: &[Linear]) -> ValueId {
        let width = linears.iter().map(|l| self.graph.weights[l.weight.0].n_row).sum();
        let part = |l: &Linear| Product { weight: l.weight, bias: l.bias, scale: l.scale };
        let y = self.graph.push(Op::Products { x, parts: linears.iter().map(part).collect() }, width);
        self.adapted_all(x, linears, y)
    }

    /// Experts and their weights from router logits; `bias` is added for choosing only.
    pub fn route(&mut self, x: ValueId, bias: Option<WeightId>, routing: Routing) -> ValueId {
        // An expert and its weight for each slot.
        self.graph.push(Op::TopkMoe { x, bias, routing }, 2)
    }

    /// Products by the experts of a route.
    pub fn mul_id(&mut self, x: ValueId, route: ValueId, l: Linear) -> ValueId {
        let width = self.graph.weights[l.weight.0].expert_rows();
        let Linear { weight, bias, scale } = l;
        let y = self.graph.push(Op::MulMatId { x, route, weight, bias, scale }, width);
        self.adapted_id(x, route, l, y)
    }

    /// x * by.
    pub fn scaled(&mut self, x: ValueId, by: f32) -> ValueId {
        let width = self.graph.width(x);
        if by == 1.0 { x } else { self.graph.push(Op::Scale { x, by }, width) }
    }

    /// An operation on recurrent state, or one that goes with them; `width` values a column.
    pub fn recurrent(&mut self, op: Recurrent, width: u32) -> ValueId {
        self.graph.push(Op::Recurrent(op), width)
    }

    /// A new layer of recurrent state of `n` values.
    pub fn state(&mut self, n: u32) -> usize {
        self.graph.states.push(StateLayer { n });
        self.graph.states.len() - 1
    }

    /// Sum.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let width = self.graph.width(a);
        self.graph.push(Op::Add { a, b }, width)
    }

    /// Any operation; `width` values a column.
    pub fn push(&mut self, op: Op, width: u32) -> ValueId {
        self.graph.push(op, width)
    }

    /// A new layer of the KV cache.
    pub fn kv_layer(&mut self, layer: KvLayer) -> usize {
        self.graph.kv.push(layer);
        self.graph.kv.len() - 1
    }

    /// The result: products with `output.weight`, or the embeddings where the file has none, and what `then` makes of
    /// them value by value.
    ///
    /// # Errors
    /// [`ModelError::Shape`].
    pub fn logits(
        &mut self,
        x: ValueId,
        embeddings: WeightId,
        then: impl FnOnce(&mut Self, ValueId) -> ValueId,
    ) -> Result<(), ModelError> {
        let n_vocab = self.config.n_vocab;
        let is_table = self.graph.weights[embeddings.0].name == "output.weight";
        let mut head = if self.has("output.weight") && !is_table {
            self.linear("output", n_vocab, self.config.n_embd)?
        } else {
            Linear { weight: embeddings, bias: None, scale: None }
        };
        if head.bias.is_none() && self.has("output.bias") {
            head.bias = Some(self.vector("output.bias", n_vocab)?);
        }
        self.graph.hidden = Some(x);
        let logits = self.mul(x, head);
        self.graph.logits = Some(then(self, logits));
        Ok(())
    }
}
