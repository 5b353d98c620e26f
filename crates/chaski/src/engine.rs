//! The engine: a model on a device.

use std::sync::Arc;

use chaski_models::serve::ModelExecutor;
use chaski_models::{
    GenerateOptions, Generation, Inputs, KvType, Model, Runner, RunnerConfig, Suspended, Target,
};
use chaski_runtime::gpu::{AdapterSummary, ExpertReads, Gpu, GpuOptions, Memory, Progress};
use chaski_runtime::kernels::{FeatureSet, Tuning};
use chaski_text::{AddSpecial, ChatTemplate, Message, ParseSpecial, TemplateOptions, Tokenizer};

use crate::chat::{self, ModelText};
use crate::device::{self, DeviceChoice, DeviceInfo, Opened};
use crate::error::Error;
use crate::handle::{Driver, Handle};
use crate::lora;
use crate::source::{AnySource, ModelInfo, Source};

/// How to make an engine.
#[must_use]
pub struct EngineBuilder {
    source: Source,
    device: DeviceChoice,
    gpu: GpuOptions,
    /// An open device, in place of these two.
    shared: Option<Arc<Gpu>>,
    config: RunnerConfig,
    tuning: Box<dyn Fn(&AdapterSummary) -> Tuning>,
    trusted: Box<dyn Fn(&AdapterSummary) -> bool>,
    progress: Box<dyn FnMut(Progress)>,
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
    pub fn tuning(mut self, known: impl Fn(&AdapterSummary) -> Tuning + 'static) -> Self {
        self.tuning = Box::new(known);
        self
    }

    /// Before anything is loaded, a few kernels are compared with their references, which takes a tenth of a second
    /// where they must be compiled, unless this says that the device was tested before. A device that computes wrong values is
    /// used with fewer features, or not at all ([`DeviceInfo::distrust`], [`DeviceInfo::fallback`]). By default every
    /// device is trusted.
    pub fn self_test(mut self, tested: impl Fn(&AdapterSummary) -> bool + 'static) -> Self {
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
    pub fn on_progress(mut self, f: impl FnMut(Progress) + 'static) -> Self {
        self.progress = Box::new(f);
        self
    }

    /// Opens the device, and takes what was measured on it.
    async fn open(&mut self) -> Result<Opened, Error> {
        let opened = match &self.shared {
            Some(gpu) => device::share(gpu.clone(), &self.trusted).await?,
            None => device::open(&self.device, &mut self.gpu, &self.trusted).await?,
        };
        if let Target::Gpu(g) = &opened.target {
            self.config.tuning = (self.tuning)(g.summary());
        }
        Ok(opened)
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
        let Opened { target, info: device } = self.open().await?;
        let runner = Runner::load(&model, &target, &self.config, &mut self.progress).await?;
        Ok(Engine { builder: self, model, target, device, runner })
    }
}

/// A model on a device, with one conversation; or a service of many requests ([`Self::spawn`]).
pub struct Engine {
    builder: EngineBuilder,
    pub(crate) model: Model<AnySource>,
    target: Target,
    device: DeviceInfo,
    pub(crate) runner: Runner,
}

impl Engine {
    /// An engine for a model.
    pub fn builder(source: Source) -> EngineBuilder {
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

    /// Opens the device anew and loads the model again, after the device was lost; a lost device of
    /// [`EngineBuilder::gpu`] is an error, since only its owner can open another. All sequences are kept: what was in the
    /// cache is run again.
    ///
    /// # Errors
    /// As [`EngineBuilder::build`].
    pub async fn rebuild(&mut self) -> Result<(), Error> {
        let Opened { target, info: device } = self.builder.open().await?;
        // Whoever set them.
        self.model.set_adapter_scales(self.runner.adapter_scales())?;
        let histories: Vec<Vec<u32>> =
            (0..self.runner.n_seq()).map(|seq| self.runner.history_of(seq).to_vec()).collect();
        let mut runner =
            Runner::load(&self.model, &target, &self.builder.config, &mut self.builder.progress).await?;
        for (seq, history) in histories.iter().enumerate() {
            runner.select(seq);
            runner.adapt(self.runner.adapter_scales_of(seq))?;
            runner.feed(history).await?;
        }
        runner.select(self.runner.selected());
        (self.runner, self.device, self.target) = (runner, device, target);
        Ok(())
    }

    /// The model file.
    pub fn model(&self) -> &Model<AnySource> {
        &self.model
    }

    /// What the model file says of itself.
    pub fn info(&self) -> ModelInfo {
        info(&self.model, &self.builder.source)
    }

    /// The device.
    pub fn device(&self) -> &DeviceInfo {
        &self.device
    }

    /// The open device, for measurements; `None` on the processor.
    pub fn gpu(&self) -> Option<&Arc<Gpu>> {
        match &self.target {
            Target::Gpu(g) => Some(g),
            Target::Cpu => None,
        }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.model.tokenizer()
    }

    /// The chat template for a conversation with or without tools, if the model has one.
    ///
    /// # Errors
    /// [`Error::Model`] if it cannot be read.
    pub fn template(&self, has_tools: bool) -> Result<Option<&ChatTemplate>, Error> {
        Ok(self.model.templates().get(has_tools).map_err(chaski_models::ModelError::from)?)
    }

    /// Memory, by what it holds.
    pub fn memory(&self) -> Memory {
        self.runner.memory()
    }

    /// What experts that stay with the processor have cost so far; `None` if there are none ([`EngineBuilder::experts_on_cpu`]).
    pub fn expert_reads(&self) -> Option<ExpertReads> {
        self.runner.gpu().and_then(|g| g.expert_reads())
    }

    /// The sequence, for evaluation by tokens.
    pub fn runner(&mut self) -> &mut Runner {
        &mut self.runner
    }

    /// Tokenizer and sequence at once.
    pub fn parts(&mut self) -> (&Tokenizer, &mut Runner) {
        (self.model.tokenizer(), &mut self.runner)
    }

    /// The conversation as bytes: tokens, keys, values and recurrent state, for [`Self::restore`] by an engine with the same
    /// model, adapters, kind of device and types of cache; in models with windows, with the same chunk and context, too.
    ///
    /// # Errors
    /// [`Error::Model`] if the device fails.
    pub async fn save(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.runner.save().await?)
    }

    /// Goes on with a conversation of [`Self::save`], without running it again.
    ///
    /// # Errors
    /// [`Error::Model`] with [`SessionError`](chaski_models::SessionError) for bytes that do not fit, which change nothing; device
    /// errors.
    pub async fn restore(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.runner.restore(bytes).await?)
    }

    /// The driver's compiled pipelines, for a later [`EngineBuilder::pipeline_cache`]; `None` where there is no such
    /// cache.
    pub fn pipeline_cache(&self) -> Option<Vec<u8>> {
        self.gpu().and_then(|g| g.pipeline_cache())
    }

    /// Continues a text as it stands; special tokens in it count as such.
    ///
    /// # Errors
    /// [`Error::Model`] for a model without text, a text longer than the context, or a device that fails.
    pub fn generate(&mut self, prompt: &str, options: GenerateOptions) -> Result<Generation<'_>, Error> {
        let tokens = self
            .model
            .tokenizer()
            .encode(prompt, AddSpecial::Yes, ParseSpecial::Yes)
            .map_err(chaski_models::ModelError::from)?;
        self.generate_tokens(&tokens, options)
    }

    /// Continues a sequence of tokens; what the cache has of them already is not run again.
    ///
    /// # Errors
    /// [`Error::Model`] for unknown tokens, a prompt longer than the context, or a device that fails.
    pub fn generate_tokens(
        &mut self,
        prompt: &[u32],
        options: GenerateOptions,
    ) -> Result<Generation<'_>, Error> {
        Ok(Generation::start(&mut self.runner, self.model.tokenizer(), prompt, options)?)
    }

    /// Goes on with an answer of [`Generation::suspend`], as after [`Self::rebuild`]: what comes is what would have come.
    ///
    /// # Errors
    /// [`Error::Model`] if the device fails.
    pub fn resume(&mut self, suspended: Suspended) -> Result<Generation<'_>, Error> {
        Ok(Generation::resume(&mut self.runner, self.model.tokenizer(), suspended)?)
    }

    /// The prompt of a conversation, by the model's template; by the one for tools if there are any.
    ///
    /// # Errors
    /// [`Error::NoTemplate`]; [`Error::Model`] if the template cannot be read, or refuses the messages.
    pub fn chat_prompt(&self, messages: &[Message], options: &TemplateOptions) -> Result<String, Error> {
        chat::prompt(self.model.tokenizer(), self.model.templates(), messages, options)
    }

    /// Becomes a service of many requests at once, as many as there are [`EngineBuilder::sequences`], and others after them, on
    /// a thread of its own. Conversations that the engine has are forgotten.
    ///
    /// # Errors
    /// [`Error::Thread`] if the system has no thread to give; [`Error::Serve`] if the KV cache has no room for a context.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn spawn(self) -> Result<Handle, Error> {
        let (handle, driver) = self.serve()?;
        driver.spawn().map_err(Error::Thread)?;
        Ok(handle)
    }

    /// As [`Self::spawn`], for callers who run the future themselves: [`Driver::run`] serves while it is polled. Natively it
    /// blocks its thread while the device works; in a browser it gives way to other tasks.
    ///
    /// # Errors
    /// [`Error::Serve`] if the KV cache has no room for a context.
    pub fn serve(self) -> Result<(Handle, Driver), Error> {
        let (tokenizer, templates) = self.model.shared_text();
        let executor = ModelExecutor::new(self.runner, self.builder.max_waiting);
        Ok(Handle::new(executor, ModelText { tokenizer, templates })?)
    }

    /// Answers a conversation.
    ///
    /// # Errors
    /// As [`Self::chat_prompt`] and [`Self::generate`].
    pub fn chat(
        &mut self,
        messages: &[Message],
        template: &TemplateOptions,
        options: GenerateOptions,
    ) -> Result<Generation<'_>, Error> {
        let prompt = self.chat_prompt(messages, template)?;
        self.generate(&prompt, options)
    }
}

/// What a model file says of itself.
pub(crate) fn info(model: &Model<AnySource>, source: &Source) -> ModelInfo {
    let file = source.name();
    ModelInfo {
        description: model.describe(),
        file,
        n_byte: model.n_byte(),
        n_param: model.n_param(),
        n_ctx_train: model.config().n_ctx_train,
        n_vocab: model.config().n_vocab,
    }
}
