//! The engine: a model on a device.

use std::sync::Arc;

use chaski_models::serve::{self, Load, Request};
use chaski_models::{GenerateOptions, Model, Runner};
use chaski_runtime::gpu::{ExpertReads, Gpu, Memory};
use chaski_text::{AddSpecial, ChatTemplate, Message, ParseSpecial, TemplateOptions, Tokenizer};
use serde_json::Value;

use crate::chat::{Conversation, ModelText};
use crate::device::DeviceInfo;
use crate::error::Error;
use crate::executor::{Driver, ModelExecutor};
use crate::handle::Handle;
use crate::source::{AnySource, ModelInfo, Source};

/// An answer of an [`Engine`].
pub type Generation<'a> = serve::Generation<'a, ModelExecutor>;

/// A model on a device, for one caller at a time; or a service of many requests ([`Self::spawn`]).
///
/// Futures of an engine do their work where they are polled: natively they block that thread while the device works.
/// Dropping one leaves the engine as it was, but for the prefix of the prompt that has run by then.
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

    /// Opens the device anew and loads the model again, after the device was lost while nothing ran; answers do this by
    /// themselves. A lost device of [`EngineBuilder::gpu`](crate::EngineBuilder::gpu) is an error, since only its owner can open another.
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

    /// What the model file says of itself.
    pub fn info(&self) -> ModelInfo {
        let executor = self.driver.executor();
        info(executor.model(), &executor.loader().source)
    }

    /// The device.
    pub fn device(&self) -> &DeviceInfo {
        self.driver.executor().device()
    }

    /// The open device, for measurements; `None` on the CPU.
    pub fn gpu(&self) -> Option<&Arc<Gpu>> {
        self.driver.executor().gpu()
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.text.tokenizer
    }

    /// The chat template for a conversation with or without tools, if the model has one.
    ///
    /// # Errors
    /// [`Error::Model`] if it cannot be read.
    pub fn template(&self, has_tools: bool) -> Result<Option<&ChatTemplate>, Error> {
        Ok(self.text.templates.get(has_tools).map_err(chaski_models::ModelError::from)?)
    }

    /// Memory, by what it holds.
    pub fn memory(&self) -> Memory {
        self.loaded().memory()
    }

    /// What CPU-offloaded experts have cost so far; `None` if there are none ([`EngineBuilder::experts_on_cpu`](crate::EngineBuilder::experts_on_cpu)).
    pub fn expert_reads(&self) -> Option<ExpertReads> {
        self.loaded().gpu().and_then(|g| g.expert_reads())
    }

    /// The loaded model.
    pub fn loaded(&self) -> &Runner {
        self.driver.executor().runner()
    }

    /// The loaded model, to run tokens without the service. Prefixes in the KV cache are forgotten.
    pub fn runner(&mut self) -> &mut Runner {
        self.driver.take_over().runner_mut()
    }

    /// Tokenizer and [`Self::runner`] at once.
    pub fn parts(&mut self) -> (&Tokenizer, &mut Runner) {
        (&self.text.tokenizer, self.driver.take_over().runner_mut())
    }

    /// Prefixes in the KV cache are forgotten: the next prompt runs as a whole.
    pub fn clear(&mut self) {
        self.driver.take_over();
    }

    /// Requests, the use of the KV cache, and how often the device was lost and opened again.
    pub fn load(&self) -> Load {
        self.handle.load()
    }

    /// The last conversation as bytes, as much of it as a later prompt could begin with: tokens, keys, values and recurrent
    /// state, for [`Self::restore`] by an engine with the same model, LoRAs, kind of device and types of cache; in models with
    /// windows, with the same chunk and context, too.
    ///
    /// # Errors
    /// [`Error::Serve`] if the device fails.
    pub async fn save(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.driver.save().await?)
    }

    /// Puts a conversation of [`Self::save`] back into the KV cache: a prompt that begins with it does not run it again.
    ///
    /// # Errors
    /// [`Error::Serve`] with [`SessionError`](chaski_models::SessionError) for bytes that do not fit, which change nothing; device
    /// errors.
    pub async fn restore(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.driver.restore(bytes).await?)
    }

    /// Drafts the tokens of answers that speculate ([`GenerateOptions::speculate`]) with a smaller model from now on, or with
    /// none.
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

    /// The driver's compiled pipelines, for a later [`EngineBuilder::pipeline_cache`](crate::EngineBuilder::pipeline_cache); `None` where there is no such
    /// cache.
    pub fn pipeline_cache(&self) -> Option<Vec<u8>> {
        self.gpu().and_then(|g| g.pipeline_cache())
    }

    /// Continues a text as it stands; special tokens in it count as such.
    ///
    /// # Errors
    /// [`Error::Model`] for a model without text; [`Error::Serve`] for a text longer than the context.
    pub fn generate(&mut self, prompt: &str, options: GenerateOptions) -> Result<Generation<'_>, Error> {
        let tokens = self.text.tokenizer.encode(prompt, AddSpecial::Yes, ParseSpecial::Yes);
        self.generate_tokens(&tokens.map_err(chaski_models::ModelError::from)?, options)
    }

    /// Continues a sequence of tokens; the prefix that is in the KV cache already is not run again.
    ///
    /// # Errors
    /// [`Error::Serve`] for unknown tokens, a prompt longer than the context, or a grammar that cannot be used.
    pub fn generate_tokens(
        &mut self,
        prompt: &[u32],
        options: GenerateOptions,
    ) -> Result<Generation<'_>, Error> {
        let answer = self.handle.generate_tokens(Request::new(prompt.to_vec(), options))?;
        Ok(Generation::new(&mut self.driver, answer))
    }

    /// The prompt of a conversation, by the model's template; by the one for tools if there are any.
    ///
    /// # Errors
    /// [`Error::NoTemplate`]; [`Error::Model`] if the template cannot be read, or refuses the messages.
    pub fn chat_prompt(&self, messages: &[Message], options: &TemplateOptions) -> Result<String, Error> {
        self.handle.chat_prompt(messages, options)
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
    ) -> Result<Conversation<'_>, Error> {
        let prompt = self.chat_prompt(messages, template)?;
        self.answer(&prompt, &template.tools, options)
    }

    /// Answers the prompt of a conversation ([`Self::chat_prompt`]) that has these tools.
    ///
    /// # Errors
    /// As [`Self::generate`].
    pub fn answer(
        &mut self,
        prompt: &str,
        tools: &[Value],
        options: GenerateOptions,
    ) -> Result<Conversation<'_>, Error> {
        let chat = self.handle.answer(prompt, tools, options)?;
        Ok(Conversation::new(&mut self.driver, chat))
    }

    /// Becomes a service of many requests at once, as many as there are [`EngineBuilder::sequences`](crate::EngineBuilder::sequences), and others after them, on
    /// a thread of its own.
    ///
    /// # Errors
    /// [`Error::Thread`] if the system has no thread to give.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn spawn(self) -> Result<Handle, Error> {
        let (handle, driver) = self.serve();
        driver.spawn().map_err(Error::Thread)?;
        Ok(handle)
    }

    /// As [`Self::spawn`], for callers who run the future themselves: [`Driver::run`] serves while it is polled. Natively it
    /// blocks its thread while the device works; in a browser it gives way to other tasks.
    pub fn serve(self) -> (Handle, Driver) {
        (self.handle, self.driver)
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
