//! Configuration of an engine.

use std::sync::Arc;

use chaski_models::{AbsentExperts, KvType, MetadataChanges};
use chaski_runtime::Experts;
use chaski_runtime::cpu::Threads;
use chaski_runtime::gpu::{AdapterSummary, Gpu, Progress};
use chaski_runtime::kernels::{ActivationPrecision, FeatureSet, Tuning};
use ggml_format::{MaybeSend, MaybeSync, OwnedValue};

use crate::device::{DeviceChoice, Wanted};
use crate::engine::Engine;
use crate::error::Error;
use crate::executor::ModelExecutor;
use crate::loader::Loader;
use crate::lora;
use crate::source::Source;

/// Configures and builds an engine.
#[must_use]
pub struct EngineBuilder {
    loader: Loader,
    loras: Vec<(Source, f32)>,
    /// Keys and values that replace those of the file.
    metadata: MetadataChanges,
    /// Capacity of the request queue ([`Engine::spawn`]).
    max_waiting: usize,
    /// Tokens of a step ([`Engine::spawn`]).
    #[cfg(not(target_arch = "wasm32"))]
    step_tokens: Option<usize>,
    /// Experts elsewhere.
    experts: Option<Box<dyn Experts>>,
}

impl Engine {
    /// A builder of an engine for a model.
    pub fn builder(source: Source) -> EngineBuilder {
        EngineBuilder::new(source)
    }
}

impl EngineBuilder {
    /// Adds a LoRA with a scale; may be called several times.
    pub fn lora(mut self, file: Source, scale: f32) -> Self {
        self.loras.push((file, scale));
        self
    }

    /// Another value for a key of the file's metadata, or a value for a key that it lacks; may be called several times.
    /// `{arch}` in a key stands for the file's architecture: `{arch}.rope.freq_base`.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<OwnedValue>) -> Self {
        self.metadata.set(key, value);
        self
    }

    /// Maximum number of tokens per sequence; default: the model's own context, at most 4096.
    pub fn context(mut self, n_ctx: u32) -> Self {
        self.loader.config.n_ctx = n_ctx;
        self
    }

    /// Maximum number of concurrent sequences ([`Engine::spawn`]), each up to the context size; default: one.
    pub fn sequences(mut self, n: u32) -> Self {
        self.loader.config.n_seq = n;
        self
    }

    /// Capacity of the GPU's KV cache in tokens, shared by all sequences; at least one context. Default: one context
    /// per sequence. With less, requests of [`Engine::spawn`] wait for pages or are preempted, but none fails. A prefix
    /// shared by several requests is stored once.
    pub fn kv_tokens(mut self, n: u32) -> Self {
        self.loader.config.kv_tokens = Some(n);
        self
    }

    /// The same in bytes of all devices together, without [`Self::kv_tokens`]: as many pages as fit. [`Self::build`]
    /// fails with [`ModelError::SmallKvMemory`](crate::errors::ModelError::SmallKvMemory) if a context does not.
    pub fn kv_memory(mut self, n_byte: u64) -> Self {
        self.loader.config.kv_memory = Some(n_byte);
        self
    }

    /// Without [`Self::kv_tokens`] and [`Self::kv_memory`]: where a context per sequence is more than a binding or the
    /// memory of a GPU holds, the KV cache has as many pages as fit, at least those of a context; default: off, which
    /// is an error. [`Runner::kv_tokens`](crate::steps::Runner::kv_tokens) is its capacity then.
    pub fn kv_fits(mut self, on: bool) -> Self {
        self.loader.config.kv_fits = on;
        self
    }

    /// The most tokens of a step, answers and prompts together; no more than [`Self::chunk`], and on the CPU no more
    /// than 64. Prompts get at least 64 of a step, where it has room for them. Default: as many as run in a fraction of
    /// a second on the device.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn step_tokens(mut self, n: usize) -> Self {
        self.step_tokens = Some(n);
        self
    }

    /// Capacity of the queue of [`Engine::spawn`], excluding running requests; further requests are refused. Default:
    /// 1024.
    pub fn max_waiting(mut self, n: usize) -> Self {
        self.max_waiting = n;
        self
    }

    /// CPU offload of experts: keeps the experts of the first `n_layer` MoE layers in host memory, for devices with too
    /// little memory. Each of these layers caches some experts on the device ([`Self::expert_slots`]); missing experts
    /// are read from the file, which the system keeps in its page cache if it can. More layers than the model has means
    /// all. Results do not change; [`Engine::expert_reads`] reports the cost. Default: all experts are on the device.
    ///
    /// [`Self::build`] fails with [`PlanError::NoExperts`](crate::errors::PlanError::NoExperts) for a model without
    /// experts, and in a browser with [`PlanError::NoStreaming`](crate::errors::PlanError::NoStreaming). No effect on
    /// the CPU.
    pub fn experts_on_cpu(mut self, n_layer: u32) -> Self {
        self.loader.config.experts_on_cpu = n_layer;
        self
    }

    /// Experts cached on the device in each layer of [`Self::experts_on_cpu`]: at least as many as a token uses, at
    /// most all, otherwise [`Self::build`] fails with
    /// [`PlanError::ExpertSlots`](crate::errors::PlanError::ExpertSlots). The memory is allocated at load. Default, or
    /// 0: twice as many as a token uses, or a quarter of all if that is more.
    pub fn expert_slots(mut self, n: u32) -> Self {
        self.loader.config.expert_slots = n;
        self
    }

    /// Lets others compute experts: each step asks them for the homes of a layer's experts, and sends those that are
    /// away. Answers do not change if they compute what the model would. While a step waits for them, its future does,
    /// and no thread. If they fail, the step runs again; after a few attempts, requests fail with
    /// [`ExpertError`](crate::experts::ExpertError). On the CPU, what they have in the KV cache stays there.
    ///
    /// On a GPU the experts of all layers are offloaded, as by [`Self::experts_on_cpu`]: those that are not away are
    /// read from the file, and [`Self::expert_slots`] of each layer stay on the device.
    pub fn experts(mut self, experts: impl Experts + 'static) -> Self {
        self.experts = Some(Box::new(experts));
        self.loader.config.experts_away = true;
        self
    }

    /// Layers whose experts are not loaded, because all of them are away ([`Self::experts`]). Default: none.
    pub fn absent_experts(mut self, layers: AbsentExperts) -> Self {
        self.loader.config.absent_experts = layers;
        self
    }

    /// Allows rows of embeddings in prompts ([`Request::embeddings`](crate::serve::Request::embeddings)) and in steps
    /// ([`Step::embeddings`](crate::steps::Step::embeddings)), and positions of three components for models with
    /// M-RoPE. On a GPU every step takes a dispatch more; the CPU always allows them. Default: off.
    pub fn input_rows(mut self, on: bool) -> Self {
        self.loader.config.rows = on;
        self
    }

    /// Type of the KV cache; default: f32 while it is small, else f16.
    pub fn kv(mut self, kv: KvType) -> Self {
        self.loader.config.kv = kv;
        self
    }

    /// Maximum number of prompt tokens per run; default: 512.
    pub fn chunk(mut self, n: u32) -> Self {
        self.loader.config.chunk = n;
        self
    }

    /// Allows prefill to round activations to f16: faster, slightly less accurate. Default: off.
    pub fn f16_tiles(mut self, on: bool) -> Self {
        self.loader.config.f16_tiles = on;
        self
    }

    /// Answers do not depend on what else runs, to the bit: neither on the requests beside them, nor on how prompts are
    /// cut into steps or which prefixes are reused. On GPUs every step then runs by one plan, of at most 64 tokens,
    /// which takes longer for single answers and for prompts; without it the number of tokens in a step chooses the
    /// kernels, whose sums may differ in the last bits. On the CPU answers never depend on it. Default: off.
    pub fn deterministic(mut self, on: bool) -> Self {
        self.loader.config.deterministic = on;
        self
    }

    /// Called once the device is open; returns a tuner's measurements of it
    /// ([`GpuModel::tune`](chaski_runtime::gpu::GpuModel::tune)).
    pub fn tuning(
        mut self,
        known: impl Fn(&AdapterSummary) -> Tuning + MaybeSend + MaybeSync + 'static,
    ) -> Self {
        self.loader.tuning = Box::new(known);
        self
    }

    /// Enables a self-test: before loading, a few kernels are compared with their references, unless the function
    /// returns true for a device tested before. It takes a tenth of a second if they must be compiled. A device that
    /// computes wrong values is used with fewer features, or not at all
    /// ([`DeviceInfo::distrust`](crate::DeviceInfo::distrust), [`DeviceInfo::fallback`](crate::DeviceInfo::fallback)).
    /// Default: every device is trusted.
    pub fn self_test(
        mut self,
        tested: impl Fn(&AdapterSummary) -> bool + MaybeSend + MaybeSync + 'static,
    ) -> Self {
        self.loader.trusted = Box::new(tested);
        self
    }

    /// Precision of activations in products with quantised weights during decode; `None` suits the device.
    pub fn inputs(mut self, inputs: impl Into<Option<ActivationPrecision>>) -> Self {
        self.loader.config.inputs = inputs.into();
        self
    }

    /// The device to use.
    pub fn device(mut self, device: DeviceChoice) -> Self {
        self.loader.device = device;
        self
    }

    /// The GPUs to use, by part of their names or their indices, each with some of the layers in this order, and `cpu`
    /// for layers on the CPU: [`DeviceChoice::Gpus`].
    ///
    /// ```no_run
    /// # async fn load() -> Result<(), chaski::Error> {
    /// use chaski::{Engine, Source};
    ///
    /// let builder = Engine::builder(Source::path("large.gguf")).devices(["0", "1"]);
    /// let engine = builder.shares(vec![3.0, 1.0]).build().await?;
    /// for (device, memory) in engine.memory_by_device() {
    ///     println!("{device}: {} bytes", memory.n_byte());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn devices(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.device(DeviceChoice::Gpus(names.into_iter().map(Into::into).collect()))
    }

    /// Uses an open device: that of another engine ([`Engine::gpu`]), or the program's own ([`Gpu::with_device`]).
    /// Other device options then have no effect.
    pub fn gpu(mut self, gpu: Arc<Gpu>) -> Self {
        self.loader.shared = vec![gpu];
        self
    }

    /// Uses several open devices, each with some of the layers, in this order, as [`DeviceChoice::Gpus`] does. Other
    /// device options then have no effect. Answers are those of one device, to the bit, if all have the same kernels.
    pub fn gpus(mut self, gpus: Vec<Arc<Gpu>>) -> Self {
        self.loader.shared = gpus;
        self
    }

    /// The number of layers on the GPU or GPUs: the last ones, with the head. The CPU has the others, as with `cpu`
    /// among [`Self::devices`]; 0: all are on the CPU. Shares are then those of the GPUs. No effect in a browser, with
    /// at least as many as the model has, or if there is no GPU. Default: all.
    pub fn gpu_layers(mut self, n: u32) -> Self {
        self.loader.config.gpu_layers = Some(n);
        self
    }

    /// Shares of weights and KV cache of several devices, in any unit: as many as devices. Models are cut between
    /// layers, so shares are approximate. Default: in proportion to their free memory,
    /// or equal ones where that is not known; the CPU beside GPUs gets what does not fit there. [`Self::build`] fails
    /// with [`PlanError::Shares`](crate::errors::PlanError::Shares) for another number of shares. No effect on the CPU.
    pub fn shares(mut self, shares: Vec<f32>) -> Self {
        self.loader.config.shares = shares;
        self
    }

    /// Threads that compute on the CPU: `decode` for one token, `batch` for several, such as a prompt; 0: `decode`
    /// threads, and all of them for `decode`. Results do not depend on them. Default: one for each core. No effect on a
    /// GPU.
    pub fn threads(mut self, decode: u32, batch: u32) -> Self {
        self.loader.config.threads = Threads { decode, batch };
        self
    }

    /// Maps the file, if the model runs on the CPU, instead of reading it; default: on. Processes share a mapped file,
    /// and the operating system loads its parts when they are used, and may drop them again. The file must not change
    /// meanwhile. No effect on a GPU.
    pub fn map(mut self, on: bool) -> Self {
        self.loader.config.map = on;
        self
    }

    /// Copies matrices into the order of products while they load, if the model runs on the CPU; default: on. Answers
    /// come up to twice as fast; the copy, about as large as the weights, is memory that processes do not share. No
    /// effect on a GPU.
    pub fn repack(mut self, on: bool) -> Self {
        self.loader.config.repack = on;
        self
    }

    /// Limits kernels to this feature set.
    pub fn feature_set(mut self, set: FeatureSet) -> Self {
        self.loader.gpu.set = Some(set);
        self
    }

    /// Enables bounds checks in shaders; default: off.
    pub fn checked(mut self, on: bool) -> Self {
        self.loader.gpu.checked = on;
        self
    }

    /// Compiled pipelines of an earlier run, from [`Engine::pipeline_cache`].
    pub fn pipeline_cache(mut self, data: Option<Vec<u8>>) -> Self {
        self.loader.gpu.pipeline_cache = data;
        self
    }

    /// Limits the size of bindings, to test the splitting of large tensors.
    pub fn max_binding_bytes(mut self, n_byte: u64) -> Self {
        self.loader.gpu.max_binding_bytes = Some(n_byte);
        self
    }

    /// In a browser: the page makes `requestDevice` request subgroups
    /// ([`GpuOptions::web_subgroups`](crate::gpu::GpuOptions::web_subgroups)).
    pub fn web_subgroups(mut self, on: bool) -> Self {
        self.loader.gpu.web_subgroups = on;
        self
    }

    /// Called while kernels are compiled and weights are loaded.
    pub fn on_progress(mut self, f: impl FnMut(Progress) + MaybeSend + MaybeSync + 'static) -> Self {
        self.loader.progress = Box::new(f);
        self
    }

    /// A builder of an engine for a model.
    pub(crate) fn new(source: Source) -> Self {
        EngineBuilder {
            loader: Loader::new(source),
            loras: Vec::new(),
            metadata: MetadataChanges::default(),
            max_waiting: 1024,
            #[cfg(not(target_arch = "wasm32"))]
            step_tokens: None,
            experts: None,
        }
    }

    /// Opens the device and loads the model. Natively the future reads the file and waits for the device while it is
    /// polled, so it blocks its thread; dropping it stops loading and frees what was loaded.
    ///
    /// # Errors
    /// [`Error`]: missing file or device, invalid file, or a model that does not fit.
    pub async fn build(mut self) -> Result<Engine, Error> {
        let mut model = self.loader.source.open_with(&self.metadata).await?;
        for (file, scale) in &self.loras {
            lora::attach(&mut model, file, *scale).await?;
        }
        let (mut runner, target, device) = self.loader.load(&model, Wanted::All).await?;
        if self.experts.is_some() {
            runner.set_experts(self.experts)?;
        }
        let max_waiting = self.max_waiting;
        let executor = ModelExecutor::new(self.loader, model, runner, target, device);
        let engine = Engine::new(executor, max_waiting)?;
        #[cfg(not(target_arch = "wasm32"))]
        let engine = engine.with_step_tokens(self.step_tokens);
        Ok(engine)
    }
}
