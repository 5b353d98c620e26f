//! The engine: a model on a device.

use std::sync::Arc;

use chaski_models::{
    AddSpecial, ChatTemplate, GenerateOptions, Generation, Inputs, KvType, Message, Model, ParseSpecial,
    Runner, RunnerConfig, Target, TemplateOptions, Tokenizer, strip_added_special,
};
use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::{AdapterSummary, Gpu, GpuOptions, Memory, Progress};
use chaski_runtime::kernels::{Caps, FeatureSet, Tuning};

use crate::error::Error;
use crate::source::{AnySource, ModelInfo, Source};

/// Which device to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The fastest GPU; the processor if there is none.
    #[default]
    Auto,
    /// A GPU, by part of its name or its number; the fastest if `None`.
    Gpu(Option<String>),
    /// The processor.
    Cpu,
}

/// The device that an engine runs on.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// The adapter's name, or `processor`.
    pub name: String,
    /// Interface and driver.
    pub driver: String,
    /// What kernels can use; `None` on the processor.
    pub caps: Option<Caps>,
    /// Why the processor was taken although a GPU would do, if so.
    pub fallback: Option<String>,
}

/// How to make an engine.
#[must_use]
pub struct EngineBuilder {
    source: Source,
    device: DeviceChoice,
    gpu: GpuOptions,
    config: RunnerConfig,
    tuning: Box<dyn Fn(&AdapterSummary) -> Tuning>,
    progress: Box<dyn FnMut(Progress)>,
}

impl EngineBuilder {
    /// Tokens of the sequence at most; by default the model's own context, at most 4096.
    pub fn context(mut self, n_ctx: u32) -> Self {
        self.config.n_ctx = n_ctx;
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

    /// Called while kernels are compiled and weights are loaded.
    pub fn on_progress(mut self, f: impl FnMut(Progress) + 'static) -> Self {
        self.progress = Box::new(f);
        self
    }

    /// Takes what was measured on a device.
    fn look_up(&mut self, target: &Target) {
        if let Target::Gpu(g) = target {
            self.config.tuning = (self.tuning)(g.summary());
        }
    }

    /// Opens the device and loads the model.
    ///
    /// # Errors
    /// [`Error`]: no such file or device, a file that is wrong, a model that does not fit.
    pub async fn build(mut self) -> Result<Engine, Error> {
        let model = self.source.open().await?;
        let (target, fallback) = open_target(&self.device, &mut self.gpu).await?;
        self.look_up(&target);
        let runner = Runner::load(&model, &target, &self.config, &mut self.progress).await?;
        let device = describe(&target, fallback);
        Ok(Engine { builder: self, model, target, device, runner })
    }
}

#[allow(clippy::arc_with_non_send_sync, reason = "on the web there are no threads")]
async fn open_target(choice: &DeviceChoice, gpu: &mut GpuOptions) -> Result<(Target, Option<String>), Error> {
    if *choice == DeviceChoice::Cpu {
        return Ok((Target::Cpu, None));
    }
    if let DeviceChoice::Gpu(Some(name)) = choice {
        gpu.adapter = Some(name.clone());
    }
    match Gpu::open(gpu).await {
        Ok(g) => Ok((Target::Gpu(Arc::new(g)), None)),
        Err(e @ RuntimeError::NoAdapter { .. }) if *choice == DeviceChoice::Auto => {
            Ok((Target::Cpu, Some(e.to_string())))
        }
        Err(e) => Err(e.into()),
    }
}

fn describe(target: &Target, fallback: Option<String>) -> DeviceInfo {
    match target {
        Target::Gpu(g) => {
            let s = g.summary();
            let driver = format!("{} {}", s.backend, s.driver);
            DeviceInfo { name: s.name.clone(), driver, caps: Some(g.caps().clone()), fallback }
        }
        Target::Cpu => {
            DeviceInfo { name: "processor".into(), driver: "references in Rust".into(), caps: None, fallback }
        }
    }
}

/// A model on a device, with one conversation.
pub struct Engine {
    builder: EngineBuilder,
    model: Model<AnySource>,
    target: Target,
    device: DeviceInfo,
    runner: Runner,
}

impl Engine {
    /// An engine for a model.
    pub fn builder(source: Source) -> EngineBuilder {
        EngineBuilder {
            source,
            device: DeviceChoice::default(),
            gpu: GpuOptions::default(),
            config: RunnerConfig::default(),
            tuning: Box::new(|_| Tuning::default()),
            progress: Box::new(|_| {}),
        }
    }

    /// Opens the device anew and loads the model again, after the device was lost. The conversation is kept: what was
    /// in the cache is run again.
    ///
    /// # Errors
    /// As [`EngineBuilder::build`].
    pub async fn rebuild(&mut self) -> Result<(), Error> {
        let (target, fallback) = open_target(&self.builder.device, &mut self.builder.gpu).await?;
        self.builder.look_up(&target);
        let history = self.runner.history().to_vec();
        self.runner =
            Runner::load(&self.model, &target, &self.builder.config, &mut self.builder.progress).await?;
        self.runner.feed(&history)?;
        self.device = describe(&target, fallback);
        self.target = target;
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

    /// The sequence, for evaluation by tokens.
    pub fn runner(&mut self) -> &mut Runner {
        &mut self.runner
    }

    /// Tokenizer and sequence at once.
    pub fn parts(&mut self) -> (&Tokenizer, &mut Runner) {
        (self.model.tokenizer(), &mut self.runner)
    }

    /// The driver's compiled pipelines, for a later [`EngineBuilder::pipeline_cache`]; `None` where there is no such
    /// cache.
    pub fn pipeline_cache(&self) -> Option<Vec<u8>> {
        self.gpu().and_then(|g| g.pipeline_cache())
    }

    /// Continues a text as it stands; special tokens in it count as such.
    ///
    /// # Errors
    /// [`Error::Model`] for a model without text, a text that fills the context, or a device that fails.
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
    /// [`Error::Model`] for unknown tokens, a prompt that fills the context, or a device that fails.
    pub fn generate_tokens(
        &mut self,
        prompt: &[u32],
        options: GenerateOptions,
    ) -> Result<Generation<'_>, Error> {
        Ok(Generation::start(&mut self.runner, self.model.tokenizer(), prompt, options)?)
    }

    /// The prompt of a conversation, by the model's template; by the one for tools if there are any.
    ///
    /// # Errors
    /// [`Error::NoTemplate`]; [`Error::Model`] if the template cannot be read, or refuses the messages.
    pub fn chat_prompt(&self, messages: &[Message], options: &TemplateOptions) -> Result<String, Error> {
        let template = self.template(!options.tools.is_empty())?.ok_or(Error::NoTemplate)?;
        let tokenizer = self.tokenizer();
        let text = |id: Option<u32>| id.and_then(|t| tokenizer.token_text(t)).unwrap_or("").to_owned();
        let mut options = options.clone();
        options.bos_token = text(tokenizer.bos());
        options.eos_token = text(tokenizer.eos());
        let rendered = template.render(messages, &options).map_err(chaski_models::ModelError::from)?;
        Ok(strip_added_special(&rendered, tokenizer).to_owned())
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
    let file = match source {
        Source::Path(p) => p.display().to_string(),
        Source::Bytes { name, .. } => name.clone(),
        Source::Default => "storyteller-Q4_K_M.gguf (embedded)".into(),
    };
    ModelInfo {
        description: model.describe(),
        file,
        n_byte: model.n_byte(),
        n_param: model.n_param(),
        n_ctx_train: model.config().n_ctx_train,
        n_vocab: model.config().n_vocab,
    }
}
