//! How an engine is made.

use std::sync::Arc;

use chaski_models::{Inputs, KvType};
use chaski_runtime::gpu::{AdapterSummary, Gpu, Progress};
use chaski_runtime::kernels::{FeatureSet, Tuning};
use ggml_format::{MaybeSend, MaybeSync};

use crate::device::DeviceChoice;
use crate::engine::Engine;
use crate::error::Error;
use crate::executor::ModelExecutor;
use crate::loader::Loader;
use crate::lora;
use crate::source::Source;

/// How to make an engine.
#[must_use]
pub struct EngineBuilder {
    loader: Loader,
    loras: Vec<(Source, f32)>,
    /// Requests that may wait for a sequence ([`Engine::spawn`]).
    max_waiting: usize,
}

impl Engine {
    /// An engine for a model.
    pub fn builder(source: Source) -> EngineBuilder {
        EngineBuilder::new(source)
    }
}

impl EngineBuilder {
    /// Adapts the model by the matrices of another file (LoRA), which count `scale` times; may be given several times.
    pub fn lora(mut self, adapter: Source, scale: f32) -> Self {
        self.loras.push((adapter, scale));
        self
    }

    /// Tokens of the sequence at most; by default the model's own context, at most 4096.
    pub fn context(mut self, n_ctx: u32) -> Self {
        self.loader.config.n_ctx = n_ctx;
        self
    }

    /// Sequences that can be in the making at once ([`Engine::spawn`]), each of a context at most; by default one.
    pub fn sequences(mut self, n: u32) -> Self {
        self.loader.config.n_seq = n;
        self
    }

    /// Tokens that the KV cache of all sequences on a GPU has room for, at least those of one context; by default a context
    /// for each. With less, requests of [`Engine::spawn`] wait for pages, or begin again later, but none fails. Prefixes that
    /// several requests begin with take room once.
    pub fn kv_tokens(mut self, n: u32) -> Self {
        self.loader.config.kv_tokens = Some(n);
        self
    }

    /// Requests of [`Engine::spawn`] that may wait for a sequence, beyond those that run; others are refused. By default 1024.
    pub fn max_waiting(mut self, n: usize) -> Self {
        self.max_waiting = n;
        self
    }

    /// Keeps the experts of the first `n_layer` layers with experts in the processor's memory, where the device has too little:
    /// each of these layers has room on the device for some of its experts ([`Self::expert_slots`]), and those that tokens want
    /// and that are not there are read from the file, which the system keeps in memory if it can. More layers than there are
    /// means all. Results are the same; what it costs, [`Engine::expert_reads`] says. By default all experts are on the device.
    ///
    /// [`Self::build`] then fails with [`PlanError::NoExperts`](crate::errors::PlanError::NoExperts) for a model without
    /// experts, in a browser with [`PlanError::NoStreaming`](crate::errors::PlanError::NoStreaming). On the processor this changes
    /// nothing.
    pub fn experts_on_cpu(mut self, n_layer: u32) -> Self {
        self.loader.config.experts_on_cpu = n_layer;
        self
    }

    /// Experts that the device has room for in each layer of [`Self::experts_on_cpu`], and has no more memory for later: at
    /// least as many as a token uses, at most as many as there are, else [`Self::build`] fails with
    /// [`PlanError::ExpertSlots`](crate::errors::PlanError::ExpertSlots). By default, or with 0, twice as many as a token
    /// uses, or a quarter of all if that is more.
    pub fn expert_slots(mut self, n: u32) -> Self {
        self.loader.config.expert_slots = n;
        self
    }

    /// Type of the KV cache; by default f32 while it is small, else f16.
    pub fn kv(mut self, kv: KvType) -> Self {
        self.loader.config.kv = kv;
        self
    }

    /// Tokens of a prompt that run at once at most; by default 512.
    pub fn chunk(mut self, n: u32) -> Self {
        self.loader.config.chunk = n;
        self
    }

    /// Products over many tokens may round their inputs to f16: faster, a little less exact. Off by default.
    pub fn f16_tiles(mut self, on: bool) -> Self {
        self.loader.config.f16_tiles = on;
        self
    }

    /// Asked, once the device is open, what a tuner measured on it
    /// ([`GpuModel::tune`](chaski_runtime::gpu::GpuModel::tune)).
    pub fn tuning(
        mut self,
        known: impl Fn(&AdapterSummary) -> Tuning + MaybeSend + MaybeSync + 'static,
    ) -> Self {
        self.loader.tuning = Box::new(known);
        self
    }

    /// Before anything is loaded, a few kernels are compared with their references, which takes a tenth of a second
    /// where they must be compiled, unless this says that the device was tested before. A device that computes wrong values is
    /// used with fewer features, or not at all ([`DeviceInfo::distrust`](crate::DeviceInfo::distrust), [`DeviceInfo::fallback`](crate::DeviceInfo::fallback)). By default every
    /// device is trusted.
    pub fn self_test(
        mut self,
        tested: impl Fn(&AdapterSummary) -> bool + MaybeSend + MaybeSync + 'static,
    ) -> Self {
        self.loader.trusted = Box::new(tested);
        self
    }

    /// How products with quantised weights take their inputs when they make one token.
    pub fn inputs(mut self, inputs: Inputs) -> Self {
        self.loader.config.inputs = inputs;
        self
    }

    /// The device.
    pub fn device(mut self, device: DeviceChoice) -> Self {
        self.loader.device = device;
        self
    }

    /// A device that is open: that of another engine ([`Engine::gpu`]), or the program's own ([`Gpu::with_device`]). What else
    /// is said of the device here is without effect.
    pub fn gpu(mut self, gpu: Arc<Gpu>) -> Self {
        self.loader.shared = Some(gpu);
        self
    }

    /// Use no more than this feature set.
    pub fn feature_set(mut self, set: FeatureSet) -> Self {
        self.loader.gpu.set = Some(set);
        self
    }

    /// Bounds checks in shaders; off by default.
    pub fn checked(mut self, on: bool) -> Self {
        self.loader.gpu.checked = on;
        self
    }

    /// The driver's compiled pipelines of an earlier run, from [`Engine::pipeline_cache`].
    pub fn pipeline_cache(mut self, data: Option<Vec<u8>>) -> Self {
        self.loader.gpu.pipeline_cache = data;
        self
    }

    /// Pretends that the device binds no more bytes at once, to test how large tensors are split.
    pub fn max_binding_bytes(mut self, n_byte: u64) -> Self {
        self.loader.gpu.max_binding_bytes = Some(n_byte);
        self
    }

    /// In a browser: the page has `requestDevice` ask for subgroups ([`GpuOptions::web_subgroups`](crate::gpu::GpuOptions::web_subgroups)).
    pub fn web_subgroups(mut self, on: bool) -> Self {
        self.loader.gpu.web_subgroups = on;
        self
    }

    /// Called while kernels are compiled and weights are loaded.
    pub fn on_progress(mut self, f: impl FnMut(Progress) + MaybeSend + MaybeSync + 'static) -> Self {
        self.loader.progress = Box::new(f);
        self
    }

    /// An engine for a model.
    pub(crate) fn new(source: Source) -> Self {
        EngineBuilder { loader: Loader::new(source), loras: Vec::new(), max_waiting: 1024 }
    }

    /// Opens the device and loads the model.
    ///
    /// # Errors
    /// [`Error`]: no such file or device, a file that is wrong, a model that does not fit.
    pub async fn build(mut self) -> Result<Engine, Error> {
        let mut model = self.loader.source.open().await?;
        for (adapter, scale) in &self.loras {
            lora::attach(&mut model, adapter, *scale).await?;
        }
        let (runner, target, device) = self.loader.load(&model).await?;
        let max_waiting = self.max_waiting;
        Engine::new(ModelExecutor::new(self.loader, model, runner, target, device), max_waiting)
    }
}
