//! How an engine is made.

use std::sync::Arc;

use chaski_models::{Inputs, KvType, Model, Runner, RunnerConfig, Target};
use chaski_runtime::gpu::{AdapterSummary, Gpu, GpuOptions, Progress};
use chaski_runtime::kernels::{FeatureSet, Tuning};
use ggml_format::{MaybeSend, MaybeSync};

use crate::device::{self, DeviceChoice, DeviceInfo, Opened};
use crate::engine::Engine;
use crate::error::Error;
use crate::executor::ModelExecutor;
use crate::hooks::{IsTrusted, OnProgress, TuningFor};
use crate::lora;
use crate::source::{AnySource, Source};

/// How to make an engine.
#[must_use]
pub struct EngineBuilder {
    source: Source,
    device: DeviceChoice,
    gpu: GpuOptions,
    /// An open device, in place of these two.
    shared: Option<Arc<Gpu>>,
    config: RunnerConfig,
    tuning: TuningFor,
    trusted: IsTrusted,
    progress: OnProgress,
    loras: Vec<(Source, f32)>,
    /// Requests that may wait for a sequence ([`Engine::spawn`]).
    max_waiting: usize,
}

impl EngineBuilder {
    /// Adapts the model by the matrices of another file (LoRA), which count `scale` times; may be given several times.
    pub fn lora(mut self, adapter: Source, scale: f32) -> Self {
        self.loras.push((adapter, scale));
        self
    }

    /// Tokens of the sequence at most; by default the model's own context, at most 4096.
    pub fn context(mut self, n_ctx: u32) -> Self {
        self.config.n_ctx = n_ctx;
        self
    }

    /// Sequences that can be in the making at once ([`Engine::spawn`]), each of a context at most; by default one.
    pub fn sequences(mut self, n: u32) -> Self {
        self.config.n_seq = n;
        self
    }

    /// Tokens that the KV cache of all sequences on a GPU has room for, at least those of one context; by default a context
    /// for each. With less, requests of [`Engine::spawn`] wait for pages, or begin again later, but none fails. Prefixes that
    /// several requests begin with take room once.
    pub fn kv_tokens(mut self, n: u32) -> Self {
        self.config.kv_tokens = Some(n);
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
    /// [`Self::build`] then fails with [`PlanError::NoExperts`](crate::PlanError::NoExperts) for a model without
    /// experts, in a browser with [`PlanError::NoStreaming`](crate::PlanError::NoStreaming). On the processor this changes
    /// nothing.
    pub fn experts_on_cpu(mut self, n_layer: u32) -> Self {
        self.config.experts_on_cpu = n_layer;
        self
    }

    /// Experts that the device has room for in each layer of [`Self::experts_on_cpu`], and has no more memory for later: at
    /// least as many as a token uses, at most as many as there are, else [`Self::build`] fails with
    /// [`PlanError::ExpertSlots`](crate::PlanError::ExpertSlots). By default, or with 0, twice as many as a token
    /// uses, or a quarter of all if that is more.
    pub fn expert_slots(mut self, n: u32) -> Self {
        self.config.expert_slots = n;
        self
    }

    /// Type of the KV cache; by default f32 while it is small, else f16.
    pub fn kv(mut self, kv: KvType) -> Self {
        self.config.kv = kv;
        self
    }

    /// Tokens of a prompt that run at once at most; by default 512.
    pub fn chunk(mut self, n: u32) -> Self {
        self.config.chunk = n;
        self
    }

    /// Products over many tokens may round their inputs to f16: faster, a little less exact. Off by default.
    pub fn f16_tiles(mut self, on: bool) -> Self {
        self.config.f16_tiles = on;
        self
    }

    /// Asked, once the device is open, what a tuner measured on it
    /// ([`GpuModel::tune`](chaski_runtime::gpu::GpuModel::tune)).
    pub fn tuning(
        mut self,
        known: impl Fn(&AdapterSummary) -> Tuning + MaybeSend + MaybeSync + 'static,
    ) -> Self {
        self.tuning = Box::new(known);
        self
    }

    /// Before anything is loaded, a few kernels are compared with their references, which takes a tenth of a second
    /// where they must be compiled, unless this says that the device was tested before. A device that computes wrong values is
    /// used with fewer features, or not at all ([`DeviceInfo::distrust`], [`DeviceInfo::fallback`]). By default every
    /// device is trusted.
    pub fn self_test(
        mut self,
        tested: impl Fn(&AdapterSummary) -> bool + MaybeSend + MaybeSync + 'static,
    ) -> Self {
        self.trusted = Box::new(tested);
        self
    }

    /// How products with quantised weights take their inputs when they make one token.
    pub fn inputs(mut self, inputs: Inputs) -> Self {
        self.config.inputs = inputs;
        self
    }

    /// The device.
    pub fn device(mut self, device: DeviceChoice) -> Self {
        self.device = device;
        self
    }

    /// A device that is open: that of another engine ([`Engine::gpu`]), or the program's own ([`Gpu::with_device`]). What else
    /// is said of the device here is without effect.
    pub fn gpu(mut self, gpu: Arc<Gpu>) -> Self {
        self.shared = Some(gpu);
        self
    }

    /// Use no more than this feature set.
    pub fn feature_set(mut self, set: FeatureSet) -> Self {
        self.gpu.set = Some(set);
        self
    }

    /// Bounds checks in shaders; off by default.
    pub fn checked(mut self, on: bool) -> Self {
        self.gpu.checked = on;
        self
    }

    /// The driver's compiled pipelines of an earlier run, from [`Engine::pipeline_cache`].
    pub fn pipeline_cache(mut self, data: Option<Vec<u8>>) -> Self {
        self.gpu.pipeline_cache = data;
        self
    }

    /// Pretends that the device binds no more bytes at once, to test how large tensors are split.
    pub fn max_binding_bytes(mut self, n_byte: u64) -> Self {
        self.gpu.max_binding_bytes = Some(n_byte);
        self
    }

    /// In a browser: the page has `requestDevice` ask for subgroups ([`GpuOptions::web_subgroups`]).
    pub fn web_subgroups(mut self, on: bool) -> Self {
        self.gpu.web_subgroups = on;
        self
    }

    /// Called while kernels are compiled and weights are loaded.
    pub fn on_progress(mut self, f: impl FnMut(Progress) + MaybeSend + MaybeSync + 'static) -> Self {
        self.progress = Box::new(f);
        self
    }

    /// An engine for a model.
    pub(crate) fn new(source: Source) -> Self {
        EngineBuilder {
            source,
            device: DeviceChoice::default(),
            gpu: GpuOptions::default(),
            shared: None,
            config: RunnerConfig::default(),
            tuning: Box::new(|_| Tuning::default()),
            trusted: Box::new(|_| true),
            progress: Box::new(|_| {}),
            loras: Vec::new(),
            max_waiting: 1024,
        }
    }

    /// The source of the model.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Opens the device and loads the model onto it.
    pub(crate) async fn load(
        &mut self,
        model: &Model<AnySource>,
    ) -> Result<(Runner, Target, DeviceInfo), Error> {
        let Opened { target, info } = match &self.shared {
            Some(gpu) => device::share(gpu.clone(), &self.trusted).await?,
            None => device::open(&self.device, &mut self.gpu, &self.trusted).await?,
        };
        if let Target::Gpu(g) = &target {
            self.config.tuning = (self.tuning)(g.summary());
        }
        let runner = Runner::load(model, &target, &self.config, &mut self.progress).await?;
        Ok((runner, target, info))
    }

    /// Opens the device and loads the model.
    ///
    /// # Errors
    /// [`Error`]: no such file or device, a file that is wrong, a model that does not fit.
    pub async fn build(mut self) -> Result<Engine, Error> {
        let mut model = self.source.open().await?;
        for (adapter, scale) in &self.loras {
            lora::attach(&mut model, adapter, *scale).await?;
        }
        let (runner, target, device) = self.load(&model).await?;
        let max_waiting = self.max_waiting;
        Engine::new(ModelExecutor::new(self, model, runner, target, device), max_waiting)
    }
}
