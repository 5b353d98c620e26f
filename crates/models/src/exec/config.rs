//! Configuration of a model run: target, cache, and sizes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use chaski_graph::Graph;
use chaski_runtime::RuntimeError;
use chaski_runtime::cpu::{CpuConfig, Threads};
use chaski_runtime::gpu::{DeviceMemory, Gpu};
use chaski_runtime::kernels::{ActivationPrecision, Caps, Tuning};
use chaski_runtime::plan::{
    CpuLayers, Fusions, Memory, MemoryItem, PlanConfig, PlanError, Streaming, memory_need,
};
use ggml_format::{ByteSource, GgmlType};

use crate::error::{KvTypeError, ModelError};
use crate::model::Model;

/// Target of a model.
#[derive(Clone)]
pub enum Target {
    /// An open device.
    Gpu(Arc<Gpu>),
    /// Several devices, each with some of the layers ([`RunnerConfig::shares`]); the last has the head and samples.
    Gpus(Vec<Arc<Gpu>>),
    /// The CPU with the first layers, and devices with the others ([`RunnerConfig::gpu_layers`]).
    AfterCpu(Vec<Arc<Gpu>>),
    /// The CPU.
    Cpu,
}

/// Types of the KV cache.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum KvType {
    /// f32 while the cache is small (up to 64 MiB), f16 above.
    #[default]
    Auto,
    /// These, of [`chaski_runtime::kernels::KV_TYPES`].
    Of {
        /// Of the keys.
        k: GgmlType,
        /// Of the values.
        v: GgmlType,
    },
}

/// Tokens per page of the KV cache.
pub(super) const PAGE: u32 = 64;

/// Texts that an encoder runs together.
const ENCODED: u32 = 64;

/// Part of the free memory of devices for weights and KV cache, beside activations, logits and what drivers take.
const OF_ROOM: f64 = 0.85;

/// Size up to which [`KvType::Auto`] uses f32.
const SMALL_KV: u64 = 64 << 20;

impl KvType {
    /// f32: exact.
    pub const F32: KvType = KvType::both(GgmlType::F32);
    /// f16: half the memory.
    pub const F16: KvType = KvType::both(GgmlType::F16);

    /// One type for keys and values.
    pub const fn both(ty: GgmlType) -> KvType {
        KvType::Of { k: ty, v: ty }
    }

    /// The types of keys and values in a model's cache of `n_ctx` tokens for each of `n_seq` sequences.
    pub fn types<S: ByteSource>(self, model: &Model<S>, n_ctx: u32, n_seq: u32) -> (GgmlType, GgmlType) {
        let c = model.config();
        let heads: u64 = c.n_head_kv.iter().map(|h| u64::from(*h)).sum();
        let n_byte =
            heads * u64::from(c.d_head + c.d_head_v) * u64::from(n_ctx) * u64::from(n_seq.max(1)) * 4;
        match self {
            KvType::Of { k, v } => (k, v),
            KvType::Auto if n_byte > SMALL_KV => (GgmlType::F16, GgmlType::F16),
            KvType::Auto => (GgmlType::F32, GgmlType::F32),
        }
    }
}

/// The name of both types, or `K/V`.
impl fmt::Display for KvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KvType::Auto => f.pad("auto"),
            KvType::Of { k, v } if k == v => f.pad(k.name()),
            KvType::Of { k, v } => f.pad(&format!("{k}/{v}")),
        }
    }
}

impl FromStr for KvType {
    type Err = KvTypeError;

    fn from_str(s: &str) -> Result<KvType, KvTypeError> {
        if s == "auto" {
            return Ok(KvType::Auto);
        }
        let ty = |s: &str| GgmlType::from_name(s).filter(|t| chaski_runtime::kernels::KV_TYPES.contains(t));
        let (k, v) = s.split_once('/').unwrap_or((s, s));
        match (ty(k), ty(v)) {
            (Some(k), Some(v)) => Ok(KvType::Of { k, v }),
            _ => Err(KvTypeError { found: s.to_owned() }),
        }
    }
}

/// Layers whose experts are not loaded, because others compute them
/// ([`Runner::set_experts`](crate::Runner::set_experts)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbsentExperts {
    /// None: all experts are loaded.
    #[default]
    None,
    /// All layers whose experts can be computed elsewhere.
    All,
    /// These ([`ExpertLayer::layer`](chaski_graph::ExpertLayer::layer)).
    Of(Vec<u16>),
}

impl AbsentExperts {
    /// The layers of a graph.
    ///
    /// # Errors
    /// [`RuntimeError::NotPlanned`] in a browser, where nothing computes them elsewhere.
    pub(super) fn layers(&self, graph: &Graph) -> Result<Vec<u16>, RuntimeError> {
        match self {
            AbsentExperts::None => Ok(Vec::new()),
            _ if cfg!(target_arch = "wasm32") => {
                Err(RuntimeError::NotPlanned { what: "experts elsewhere in a browser" })
            }
            AbsentExperts::All => Ok(graph.experts().iter().map(|l| l.layer).collect()),
            AbsentExperts::Of(layers) => Ok(layers.clone()),
        }
    }
}

/// Configuration of a runner.
#[derive(Clone, Debug)]
pub struct RunnerConfig {
    /// Maximum number of tokens per sequence; 0: the model's own context, at most 4096.
    pub n_ctx: u32,
    /// Type of the KV cache.
    pub kv: KvType,
    /// Maximum number of prompt tokens per run. That of an encoder is the context at least, since a text runs at once.
    pub chunk: u32,
    /// Prefill may round activations to f16.
    pub f16_tiles: bool,
    /// Precision of activations in products with quantised weights during decode; `None`: [`ActivationPrecision::I16`]
    /// if the device has dot products of four bytes, else [`ActivationPrecision::F32`]. On the CPU, `I8` means `I16`,
    /// and `F32` runs the references for all operations, which is slow.
    pub inputs: Option<ActivationPrecision>,
    /// The bits of a sequence's results do not depend on what else is computed with it: on GPUs every step runs by one
    /// plan, of at most 64 tokens, which takes longer for single answers and for prompts. On the CPU they never do.
    pub deterministic: bool,
    /// A tuner's measurements of this device.
    pub tuning: Tuning,
    /// Fusion rules; fewer are slower, with the same results.
    pub fusions: Fusions,
    /// Number of sequences, each of at most `n_ctx` tokens.
    pub n_seq: u32,
    /// Capacity of the KV cache in tokens, shared by all sequences, in whole pages of 64; `None`: one context per
    /// sequence. With fewer, only a service ([`crate::serve`]) uses all sequences, since it can wait for pages.
    pub kv_tokens: Option<u32>,
    /// The same in bytes of all devices together, without [`Self::kv_tokens`]: as many pages as fit, at least those of
    /// a context. Without effect on encoders, and in browsers.
    pub kv_memory: Option<u64>,
    /// Without both: where a context per sequence is more than a binding or the memory of a device holds, as many pages
    /// as fit, at least those of a context. Without effect on the CPU, encoders, and in browsers.
    pub kv_fits: bool,
    /// CPU offload of experts: number of MoE layers, from the first, whose experts are offloaded; more than the model
    /// has means all. Each caches some of its experts on the device, and missing ones are read from the file. No effect
    /// on the CPU.
    pub experts_on_cpu: u32,
    /// Experts cached on the device per offloaded layer; 0: twice as many as a token uses, or a quarter of all if that
    /// is more.
    pub expert_slots: u32,
    /// Experts may be computed elsewhere ([`Runner::set_experts`](crate::Runner::set_experts)). On a GPU all layers of
    /// experts are offloaded for this, as by [`Self::experts_on_cpu`]. The CPU needs no preparation.
    pub experts_away: bool,
    /// Layers whose experts are not loaded. No effect on a GPU, where experts are read when they are wanted.
    pub absent_experts: AbsentExperts,
    /// Take rows of embeddings in place of tokens, and positions of three components where the model has M-RoPE. On a
    /// GPU this costs a dispatch per step; the CPU always takes them.
    pub rows: bool,
    /// Share of weights and KV cache per device ([`Target::Gpus`]), in any unit; empty: in proportion to the devices'
    /// free memory ([`DeviceMemory::shares`]). Models are cut between steps of the plan, so shares are approximate.
    /// With [`Target::AfterCpu`] the CPU's comes first; empty: the CPU has what does not fit the free memory of the
    /// devices, or an equal share if that is not known.
    pub shares: Vec<f32>,
    /// With [`Target::AfterCpu`]: number of layers on the devices, the last ones; shares are then those of the devices.
    pub gpu_layers: Option<u32>,
    /// Threads that compute on the CPU.
    pub threads: Threads,
    /// On the CPU: map files, where they can be, instead of reading them ([`CpuConfig::map`]).
    pub map: bool,
    /// On the CPU: copy matrices into the order of products ([`CpuConfig::repack`]).
    pub repack: bool,
}

impl Default for RunnerConfig {
    fn default() -> Self {
        RunnerConfig {
            n_ctx: 0,
            kv: KvType::Auto,
            chunk: 512,
            f16_tiles: false,
            inputs: None,
            deterministic: false,
            tuning: Tuning::default(),
            fusions: Fusions::ALL,
            n_seq: 1,
            kv_tokens: None,
            kv_memory: None,
            kv_fits: false,
            experts_on_cpu: 0,
            expert_slots: 0,
            experts_away: false,
            absent_experts: AbsentExperts::None,
            rows: false,
            shares: Vec::new(),
            gpu_layers: None,
            threads: Threads::default(),
            map: true,
            repack: true,
        }
    }
}

impl RunnerConfig {
    /// The context size for a model.
    pub fn n_ctx_for<S: ByteSource>(&self, model: &Model<S>) -> u32 {
        if self.n_ctx > 0 { self.n_ctx } else { model.config().n_ctx_train.clamp(1, 4096) }
    }

    /// [`Runner::memory`](crate::Runner::memory) of a model on a device with these capabilities, before loading.
    ///
    /// # Errors
    /// [`ModelError`]: missing or invalid tensors, or a model that cannot be planned for such a device.
    pub async fn memory_on_device<S: ByteSource>(
        &self,
        model: &Model<S>,
        caps: &Caps,
    ) -> Result<Memory, ModelError> {
        let mut all = self.memory_on_devices(model, &[caps]).await?;
        Ok(all.pop().unwrap_or_default())
    }

    /// Memory of a model on each of several devices with these capabilities, before loading. Without
    /// [`Self::shares`], equal ones, since nothing is known of the devices' memory, which does not bound a pool that
    /// fits ([`Self::kv_fits`]) either.
    ///
    /// # Errors
    /// As [`Self::memory_on_device`].
    pub async fn memory_on_devices<S: ByteSource>(
        &self,
        model: &Model<S>,
        devices: &[&Caps],
    ) -> Result<Vec<Memory>, ModelError> {
        let first = narrowest(devices.iter().copied()).ok_or(RuntimeError::Plan(PlanError::NoDevice))?;
        let config = self.plan_for(model, first);
        let graph = model.graph(config.n_ctx).await?;
        let config = self.pooled(config, &graph, devices)?;
        Ok(memory_need(&graph, devices, &config).map_err(RuntimeError::Plan)?.0)
    }

    /// Memory of a model on the CPU and on each of several devices ([`Target::AfterCpu`]), before loading; with what is
    /// free there, if it is known.
    ///
    /// # Errors
    /// As [`Self::memory_on_device`].
    pub async fn memory_after_cpu<S: ByteSource>(
        &self,
        model: &Model<S>,
        devices: &[&Caps],
        free: &[Option<DeviceMemory>],
    ) -> Result<Vec<Memory>, ModelError> {
        let first = narrowest(devices.iter().copied()).ok_or(RuntimeError::Plan(PlanError::NoDevice))?;
        let config = self.plan_for(model, first);
        let graph = model.graph(config.n_ctx).await?;
        let config = self.after_cpu(self.pooled(config, &graph, devices)?, free);
        let (memory, stage) = memory_need(&graph, devices, &config).map_err(RuntimeError::Plan)?;
        let sizes = CpuConfig { pool: config.pool, ..self.cpu_for(model) };
        let of_cpu = stage.map_or(0, |stage| sizes.n_byte(&graph.only(&stage.nodes)));
        Ok([in_cpu_memory(of_cpu)].into_iter().chain(memory).collect())
    }

    /// A plan whose first layers are on the CPU, beside devices with this memory.
    pub(super) fn after_cpu(&self, plan: PlanConfig, free: &[Option<DeviceMemory>]) -> PlanConfig {
        let room: Option<u64> = free.iter().map(|memory| Some(memory.as_ref()?.n_free)).sum();
        let by_room = || if free.len() > 1 { DeviceMemory::shares(free) } else { Vec::new() };
        let (cpu, shares) = match (self.gpu_layers, room) {
            (Some(n), _) if plan.shares.is_empty() => (CpuLayers::AllBut(n), by_room()),
            (Some(n), _) => (CpuLayers::AllBut(n), plan.shares),
            (None, Some(room)) if plan.shares.is_empty() => {
                (CpuLayers::Beyond((room as f64 * OF_ROOM) as u64), by_room())
            }
            (None, _) => (CpuLayers::Share, plan.shares),
        };
        PlanConfig { cpu: Some(cpu), shares, ..plan }
    }

    /// [`Runner::memory`](crate::Runner::memory) of a model on the CPU ([`Target::Cpu`]), before loading.
    ///
    /// # Errors
    /// [`ModelError`]: missing or invalid tensors.
    pub async fn memory_on_cpu<S: ByteSource>(&self, model: &Model<S>) -> Result<Memory, ModelError> {
        let graph = model.graph(self.n_ctx_for(model)).await?;
        let absent = self.absent_experts.layers(&graph)?;
        Ok(in_cpu_memory(self.cpu_within_memory(model, &graph)?.n_byte_without(&graph, &absent)))
    }

    /// Number of sequences: texts of an encoder that run together cost no memory.
    fn n_seq_for<S: ByteSource>(&self, model: &Model<S>) -> u32 {
        self.n_seq.max(if model.arch().is_encoder { ENCODED } else { 1 })
    }

    /// The sizes of a model on the CPU.
    pub fn cpu_for<S: ByteSource>(&self, model: &Model<S>) -> CpuConfig {
        let n_ctx = self.n_ctx_for(model);
        CpuConfig {
            n_ctx,
            n_seq: self.n_seq_for(model),
            page: PAGE,
            pool: self.kv_tokens.map(|n| n / PAGE),
            kv: self.kv.types(model, n_ctx, self.n_seq),
            threads: self.threads,
            map: self.map,
            repack: self.repack && self.inputs != Some(ActivationPrecision::F32),
        }
    }

    /// The sizes of a model's plan on a GPU.
    pub fn plan_for<S: ByteSource>(&self, model: &Model<S>, caps: &Caps) -> PlanConfig {
        let n_ctx = self.n_ctx_for(model);
        // Columns are along an axis of some grids.
        let max_col = match (model.arch().is_encoder, self.deterministic) {
            // A text runs in one step.
            (true, _) => self.chunk.max(n_ctx).clamp(1, caps.max_groups),
            (false, true) => self.chunk.min(PlanConfig::MAX_DETERMINISTIC).clamp(1, n_ctx),
            (false, false) => self.chunk.clamp(1, n_ctx.min(caps.max_groups)),
        };
        // Texts of an encoder that run together share tiles of attention.
        let is_alone = model.arch().is_encoder && self.deterministic;
        let n_seq = if is_alone { 1 } else { self.n_seq_for(model) };
        PlanConfig {
            page: PAGE,
            kv: self.kv.types(model, n_ctx, self.n_seq),
            f16_tiles: self.f16_tiles,
            inputs: self.inputs,
            deterministic: self.deterministic,
            tuning: self.tuning.clone(),
            pool: self.kv_tokens.map(|n| n / PAGE),
            ring: 128,
            fusions: self.fusions,
            experts: Streaming {
                n_layer: if self.experts_away { u32::MAX } else { self.experts_on_cpu },
                n_slot: self.expert_slots,
            },
            away: self.experts_away,
            rows: self.rows,
            shares: self.shares.clone(),
            ..PlanConfig::new(n_ctx, n_seq, max_col)
        }
    }
}

/// The device whose chunk size suits all.
pub(super) fn narrowest<'a>(devices: impl Iterator<Item = &'a Caps>) -> Option<&'a Caps> {
    devices.min_by_key(|caps| caps.max_groups)
}

/// Memory of devices at present.
pub(super) fn memory_of(gpus: &[Arc<Gpu>]) -> Vec<Option<DeviceMemory>> {
    gpus.iter().map(|gpu| gpu.memory()).collect()
}

/// Memory of a model on the CPU.
pub(super) fn in_cpu_memory(n_byte: u64) -> Memory {
    Memory { items: vec![MemoryItem { what: Memory::ON_CPU, n_buffer: 0, n_byte }] }
}
