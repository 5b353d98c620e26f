//! The engine: a model on a device.

use std::sync::Arc;

use chaski_models::serve::{self, Load, Request};
use chaski_models::{GenerateOptions, Model, Runner};
use chaski_runtime::gpu::{ExpertReads, Gpu, GpuModel, Memory, MemoryItem};
use chaski_text::{CallChoice, ChatTemplate, Message, TemplateOptions, Tokenizer};
use serde_json::Value;

use crate::chat::{Conversation, ModelText};
use crate::device::DeviceInfo;
use crate::error::Error;
use crate::executor::{Driver, ModelExecutor};
use crate::handle::Handle;
use crate::source::{AnySource, ModelInfo, Source};
use crate::turns::ChatPrompt;

/// An answer of an [`Engine`].
pub type Generation<'a> = serve::Generation<'a, ModelExecutor>;

/// A model on a device, for one caller at a time; or a service for many requests ([`Self::spawn`]).
///
/// Futures of an engine work while they are polled: natively they block the thread while the device works. Dropping one
/// leaves the engine unchanged, except that the prefix of the prompt that has run stays in the KV cache.
pub struct Engine {
    handle: Handle,
    driver: Driver,
    text: ModelText,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("device", self.device()).finish_non_exhaustive()
    }
}

impl Engine {
    pub(crate) fn new(executor: ModelExecutor, max_waiting: usize) -> Result<Engine, Error> {
        let (tokenizer, templates) = executor.model().shared_text();
        let text = ModelText { tokenizer, templates };
        let (handle, driver) = Handle::new(executor, text.clone(), max_waiting)?;
        Ok(Engine { handle, driver, text })
    }

    /// The same with this many tokens of a step, if not as many as suit the device.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn with_step_tokens(mut self, n: Option<usize>) -> Engine {
        self.driver.set_step_tokens(n);
        self
    }

    /// Opens the device and loads the model again, after device loss while nothing ran; answers recover by themselves.
    /// A lost device of [`EngineBuilder::gpu`](crate::EngineBuilder::gpu) is an error, since only its owner can open
    /// another.
    ///
    /// # Errors
    /// As [`EngineBuilder::build`](crate::EngineBuilder::build).
    pub async fn rebuild(&mut self) -> Result<(), Error> {
        self.driver.take_over().reload().await
    }

    /// The model file.
    pub fn model(&self) -> &Model<AnySource> {
        self.driver.executor().model()
    }

    /// Summary of the model file.
    pub fn info(&self) -> ModelInfo {
        let executor = self.driver.executor();
        info(executor.model(), &executor.loader().source)
    }

    /// The device.
    pub fn device(&self) -> &DeviceInfo {
        self.driver.executor().device()
    }

    /// The open device, for measurements; of several the last, which samples; `None` on the CPU.
    pub fn gpu(&self) -> Option<&Arc<Gpu>> {
        self.driver.executor().gpu()
    }

    /// All open devices, in layer order; none on the CPU.
    pub fn gpus(&self) -> &[Arc<Gpu>] {
        self.driver.executor().gpus()
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.text.tokenizer
    }

    /// The chat template for conversations with or without tools, if the model has one.
    ///
    /// # Errors
    /// [`Error::Model`] if it cannot be parsed.
    pub fn template(&self, has_tools: bool) -> Result<Option<&ChatTemplate>, Error> {
        Ok(self.text.templates.get(has_tools).map_err(chaski_models::ModelError::from)?)
    }

    /// Memory by purpose.
    pub fn memory(&self) -> Memory {
        let mut memory = self.loaded().memory();
        memory.items.extend(self.draft_memory());
        memory
    }

    /// The same for each device of a model over several, in layer order, with its name: the CPU first, if it has
    /// layers. A draft model is on the last.
    pub fn memory_by_device(&self) -> Vec<(String, Memory)> {
        let is_split = |model: &&GpuModel| model.n_device() > 1 || model.memory_on_cpu().is_some();
        let Some(model) = self.loaded().gpu().filter(is_split) else {
            return vec![(self.device().name.clone(), self.memory())];
        };
        let of_cpu = model.memory_on_cpu().map(|memory| ("CPU".to_owned(), memory));
        let of = |(i, gpu): (usize, &Arc<Gpu>)| (gpu.summary().name.clone(), model.memory_of(i));
        let of_gpus = self.gpus().iter().enumerate().map(of);
        let mut all: Vec<(String, Memory)> = of_cpu.into_iter().chain(of_gpus).collect();
        if let Some((_, last)) = all.last_mut() {
            last.items.extend(self.draft_memory());
        }
        all
    }

    fn draft_memory(&self) -> Option<MemoryItem> {
        self.driver.draft_memory().map(|draft| {
            let n_buffer = draft.items.iter().map(|item| item.n_buffer).sum();
            MemoryItem { what: "draft model", n_buffer, n_byte: draft.n_byte() }
        })
    }

    /// Cost of CPU-offloaded experts so far; `None` if there are none
    /// ([`EngineBuilder::experts_on_cpu`](crate::EngineBuilder::experts_on_cpu)).
    pub fn expert_reads(&self) -> Option<ExpertReads> {
        self.loaded().gpu().and_then(|g| g.expert_reads())
    }

    /// The loaded model.
    pub fn loaded(&self) -> &Runner {
        self.driver.executor().runner()
    }

    /// The loaded model, for running tokens directly. Clears prefixes in the KV cache.
    pub fn runner(&mut self) -> &mut Runner {
        self.driver.take_over().runner_mut()
    }

    /// Tokenizer and [`Self::runner`].
    pub fn parts(&mut self) -> (&Tokenizer, &mut Runner) {
        (&self.text.tokenizer, self.driver.take_over().runner_mut())
    }

    /// A handle whose requests are served while [`Self::turn`] is polled: several at once on an engine with several
    /// [`sequences`](crate::EngineBuilder::sequences).
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Serves one step of the requests of [`Self::handle`]; `false` if there are none.
    ///
    /// # Errors
    /// Device errors, if the device is lost for good; all answers get the same error.
    pub async fn turn(&mut self) -> Result<bool, Error> {
        Ok(self.driver.turn().await?)
    }

    /// The service that it owns.
    pub(crate) fn service(&mut self) -> (&Handle, &mut Driver) {
        (&self.handle, &mut self.driver)
    }

    /// Clears prefixes in the KV cache: the next prompt runs completely.
    pub fn clear(&mut self) {
        self.driver.take_over();
    }

    /// Requests, KV cache usage, and the number of device losses.
    pub fn load(&self) -> Load {
        self.handle.load()
    }

    /// The last conversation as bytes, as far as a later prompt could reuse it: tokens, keys, values and recurrent
    /// state. [`Self::restore`] needs an engine with the same model, LoRAs, kind of device and cache types; for models
    /// with sliding windows, also the same chunk and context.
    ///
    /// # Errors
    /// [`Error::Serve`] if the device fails.
    pub async fn save(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.driver.save().await?)
    }

    /// Restores a conversation of [`Self::save`] to the KV cache: a prompt that begins with it does not run it again.
    ///
    /// # Errors
    /// [`Error::Serve`] with [`SessionError`](chaski_models::SessionError) for bytes that do not match, which change
    /// nothing; device errors.
    pub async fn restore(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.driver.restore(bytes).await?)
    }

    /// Sets or removes the draft model for speculative answers ([`GenerateOptions::speculate`]). For a service it
    /// should have [`Speculation::MAX_RUNNING`](crate::options::Speculation::MAX_RUNNING) sequences, or as many as the
    /// service if these are fewer: with fewer, requests that draft at once drop each other's tokens.
    ///
    /// # Errors
    /// [`Error::Model`] if the vocabularies differ in size.
    pub fn set_draft(&mut self, draft: Option<Engine>) -> Result<(), Error> {
        let draft = draft.map(|mut engine| {
            engine.clear();
            engine.driver.into_executor().into_runner()
        });
        Ok(self.driver.set_draft(draft)?)
    }

    /// The driver's compiled pipelines, for a later
    /// [`EngineBuilder::pipeline_cache`](crate::EngineBuilder::pipeline_cache); `None` where the backend has no such
    /// cache.
    pub fn pipeline_cache(&self) -> Option<Vec<u8>> {
        self.gpu().and_then(|g| g.pipeline_cache())
    }

    /// The tokens of a text to continue; special tokens in it are parsed. A text that is certainly longer than the
    /// context is refused before it is tokenized ([`Tokenizer::within`]).
    ///
    /// # Errors
    /// [`Error::Model`] for such a text, or for a model without a tokenizer.
    pub fn encode(&self, prompt: &str) -> Result<Vec<u32>, Error> {
        Ok(self.handle.encode(prompt)?)
    }

    /// Continues a text verbatim; special tokens in it are parsed.
    ///
    /// # Errors
    /// As [`Self::encode`]; [`Error::Serve`] for a text longer than the context.
    pub fn generate(&mut self, prompt: &str, options: GenerateOptions) -> Result<Generation<'_>, Error> {
        let tokens = self.encode(prompt)?;
        self.generate_tokens(&tokens, options)
    }

    /// Continues a sequence of tokens; a prefix in the KV cache is not run again.
    ///
    /// # Errors
    /// [`Error::Serve`] for unknown tokens, a prompt longer than the context, or an unusable grammar.
    pub fn generate_tokens(
        &mut self,
        prompt: &[u32],
        options: GenerateOptions,
    ) -> Result<Generation<'_>, Error> {
        self.generate_request(Request::new(prompt.to_vec(), options))
    }

    /// Answers a request, whose prompt may have embeddings in place of tokens ([`Request::embeddings`]).
    ///
    /// # Errors
    /// As [`Self::generate_tokens`]; for embeddings outside the prompt, or that the model does not take
    /// ([`EngineBuilder::input_rows`](crate::EngineBuilder::input_rows)).
    pub fn generate_request(&mut self, request: Request) -> Result<Generation<'_>, Error> {
        let answer = self.handle.generate_tokens(request)?;
        Ok(Generation::new(&mut self.driver, answer))
    }

    /// The prompt of a conversation, from the model's template; from the tool template if there are tools.
    ///
    /// Its control tokens are those of the template: in messages and tools, the text of one is text, unless
    /// [`TemplateOptions::parse_special`] is set.
    ///
    /// # Errors
    /// [`Error::NoTemplate`]; [`Error::Model`] if the template cannot be parsed, or rejects the messages.
    pub fn chat_prompt(&self, messages: &[Message], options: &TemplateOptions) -> Result<ChatPrompt, Error> {
        self.handle.chat_prompt(messages, options)
    }

    /// The prompt of a conversation, without the oldest turns if it leaves too little of the context for an answer, and
    /// [`GenerateOptions::drop_turns`] is set. Leading system messages and the last turn are never dropped.
    ///
    /// # Errors
    /// As [`Self::chat_prompt`]; an error with the code `context_overflow` if it is longer than the context, or the
    /// last turn alone is.
    pub fn fit_prompt(
        &self,
        messages: &[Message],
        template: &TemplateOptions,
        options: &GenerateOptions,
    ) -> Result<ChatPrompt, Error> {
        self.handle.fit_prompt(messages, template, options)
    }

    /// Answers a conversation. If it leaves too little of the context for an answer, its oldest turns are dropped,
    /// unless [`GenerateOptions::drop_turns`] is false; [`ChatEvent::Dropped`](crate::ChatEvent::Dropped) says so.
    ///
    /// # Errors
    /// As [`Self::fit_prompt`] and [`Self::generate`].
    pub fn chat(
        &mut self,
        messages: &[Message],
        template: &TemplateOptions,
        options: GenerateOptions,
    ) -> Result<Conversation<'_>, Error> {
        let chat = self.handle.chat(messages, template, options)?;
        Ok(Conversation::new(&mut self.driver, chat))
    }

    /// Answers the prompt of a conversation ([`Self::chat_prompt`], [`Self::fit_prompt`]) with these tools.
    ///
    /// # Errors
    /// As [`Self::generate`].
    pub fn answer(
        &mut self,
        prompt: &ChatPrompt,
        tools: &[Value],
        options: GenerateOptions,
    ) -> Result<Conversation<'_>, Error> {
        let chat = self.handle.answer(prompt, tools, options)?;
        Ok(Conversation::new(&mut self.driver, chat))
    }

    /// Answers a request whose tokens are those of a conversation's prompt with this text, as [`Handle::answer_to`]
    /// does.
    ///
    /// # Errors
    /// As [`Handle::answer_to`].
    pub fn answer_to(
        &mut self,
        request: Request,
        text: &str,
        tools: &[Value],
        calls: Option<&CallChoice>,
    ) -> Result<Conversation<'_>, Error> {
        let chat = self.handle.answer_to(request, text, tools, calls)?;
        Ok(Conversation::new(&mut self.driver, chat))
    }

    /// Turns the engine into a service on its own thread that runs up to
    /// [`EngineBuilder::sequences`](crate::EngineBuilder::sequences) requests at once and queues others.
    ///
    /// # Errors
    /// [`Error::Thread`] if no thread can be created.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn spawn(self) -> Result<Handle, Error> {
        let (handle, driver) = self.serve();
        let thread = driver.spawn().map_err(Error::Thread)?;
        Ok(handle.with_thread(thread))
    }

    /// Like [`Self::spawn`], for callers who run the future themselves: [`Driver::run`] serves while it is polled.
    /// Natively it blocks its thread while the device works; in a browser it yields to other tasks.
    pub fn serve(self) -> (Handle, Driver) {
        (self.handle, self.driver)
    }
}

/// Summary of a model file.
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
