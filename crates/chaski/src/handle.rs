//! One model, many requests, callers on any thread.

use std::sync::Arc;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Mutex;

use chaski_models::serve::{self, Answer, Load, Refused, Request, ServeError};
use chaski_models::{GenerateOptions, ModelError, Pooling};
use chaski_text::{
    AddSpecial, AnswerParser, AnswerSyntax, CallChoice, ChatTemplate, Grammar, Message, ParseSpecial,
    TemplateOptions, Tokenizer,
};

use serde_json::Value;

use crate::chat::{self, Chat, ModelText};
use crate::error::Error;
use crate::executor::{Driver, ModelExecutor};
use crate::turns::{ChatPrompt, Room};

/// A model that serves many requests at once ([`crate::Engine::spawn`]). Clones share the model; its thread ends when
/// the last clone and the last answer are dropped.
///
/// Requests are queued, and answers are streams that any executor can poll. No call but [`Handle::join`] waits for the
/// device; those that ask for an answer render, tokenize and compile grammars on the caller's thread. Dropping an
/// answer cancels its request within a step, even in the middle of its prompt.
///
/// ```no_run
/// # async fn example() -> Result<(), chaski::Error> {
/// use chaski::{ChatEvent, Engine, Message, Source};
///
/// let handle = Engine::builder(Source::path("model.gguf")).sequences(8).build().await?.spawn()?;
/// let mut answer = handle.chat(&[Message::new("user", "Hello!")], &Default::default(), Default::default())?;
/// while let Some(event) = answer.next().await {
///     if let ChatEvent::Part(part) = event {
///         println!("{part:?}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) handle: serve::Handle,
    text: ModelText,
    /// The file's pooling of embeddings.
    pub(crate) pooling: Result<Pooling, Arc<ModelError>>,
    #[cfg(not(target_arch = "wasm32"))]
    thread: Arc<Mutex<Option<Thread>>>,
}

/// The thread of a service.
#[cfg(not(target_arch = "wasm32"))]
type Thread = std::thread::JoinHandle<Result<ModelExecutor, ServeError>>;

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.handle.fmt(f)
    }
}

impl Handle {
    pub(crate) fn new(
        executor: ModelExecutor,
        text: ModelText,
        max_waiting: usize,
    ) -> Result<(Handle, Driver), ServeError> {
        let pooling = Pooling::of(executor.model().metadata()).map_err(Arc::new);
        let (handle, driver) = serve::serve(executor, text.tokenizer.clone(), max_waiting)?;
        let handle = Handle {
            handle,
            text,
            pooling,
            #[cfg(not(target_arch = "wasm32"))]
            thread: Arc::default(),
        };
        Ok((handle, driver))
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn with_thread(self, thread: Thread) -> Handle {
        *self.thread.lock().unwrap_or_else(|e| e.into_inner()) = Some(thread);
        self
    }

    /// Waits until the service of [`Engine::spawn`](crate::Engine::spawn) has ended and freed the model and its device,
    /// which is after the other clones and all answers are dropped. A program that ends without it may do so while a
    /// driver is at work, which some answer with a crash. It blocks.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn join(self) {
        let thread = self.thread.lock().unwrap_or_else(|e| e.into_inner()).take();
        drop(self);
        if let Some(thread) = thread {
            // The error of a lost device went to all answers; a panic has been printed.
            drop(thread.join());
        }
    }

    /// Queues a request for tokens.
    ///
    /// # Errors
    /// As [`serve::Handle::generate`].
    pub fn generate_tokens(&self, request: Request) -> Result<Answer, ServeError> {
        self.handle.generate(request)
    }

    /// Queues the continuation of a text, verbatim; special tokens in it are parsed.
    ///
    /// # Errors
    /// [`Error::Serve`] as [`Self::generate_tokens`]; [`Error::Model`] for a model without a tokenizer.
    pub fn generate(&self, prompt: &str, options: GenerateOptions) -> Result<Answer, Error> {
        Ok(self.generate_tokens(Request::new(self.encode(prompt)?, options))?)
    }

    /// The tokens of a text to continue; special tokens in it are parsed. A text that is certainly longer than the
    /// context is refused before it is tokenized ([`Tokenizer::within`]).
    ///
    /// # Errors
    /// [`ModelError::Tokenizer`] for such a text, or for a model without a tokenizer.
    pub fn encode(&self, prompt: &str) -> Result<Vec<u32>, ModelError> {
        Ok(self.text.tokenizer.within(self.n_ctx()).encode(prompt, AddSpecial::Yes, ParseSpecial::Yes)?)
    }

    /// Queues a conversation. If it leaves too little of the context for an answer, its oldest turns are dropped,
    /// unless [`GenerateOptions::drop_turns`] is false.
    ///
    /// # Errors
    /// As [`Self::fit_prompt`]; [`Error::Serve`] as [`Self::generate_tokens`].
    pub fn chat(
        &self,
        messages: &[Message],
        template: &TemplateOptions,
        options: GenerateOptions,
    ) -> Result<Chat, Error> {
        let prompt = self.fit_prompt(messages, template, &options)?;
        Ok(self.answer(&prompt, &template.tools, options)?.without(prompt.n_dropped))
    }

    /// Queues the prompt of a conversation ([`Self::chat_prompt`], [`Self::fit_prompt`]) with these tools.
    ///
    /// # Errors
    /// As [`Self::answer_to`].
    pub fn answer(
        &self,
        prompt: &ChatPrompt,
        tools: &[Value],
        options: GenerateOptions,
    ) -> Result<Chat, Error> {
        self.answer_to(Request::new(prompt.tokens.clone(), options), &prompt.text, tools, None)
    }

    /// Queues a request whose tokens are those of a conversation's prompt with this text, and these tools. A grammar is
    /// that of the text after the reasoning, if the prompt opens it; with `calls`, the answer consists of such calls,
    /// whose grammar may be the caller's own ([`Grammar::Own`]). Without either, calls of tools with `"strict": true`
    /// conform to their schemas ([`AnswerSyntax::strict_grammar`]), if the feature `constraint` is on. With
    /// [`GenerateOptions::reasoning`] of no token, reasoning that the prompt opens is closed there.
    ///
    /// # Errors
    /// As [`Self::generate`]; [`Error::Model`] if the template cannot be parsed; [`Error::Calls`] for calls that the
    /// model's notation cannot express.
    pub fn answer_to(
        &self,
        mut request: Request,
        text: &str,
        tools: &[Value],
        calls: Option<&CallChoice>,
    ) -> Result<Chat, Error> {
        let template = self.template(!tools.is_empty())?;
        let mut syntax = AnswerSyntax::of_template(template.map_or("", |t| t.source()));
        #[cfg(not(target_arch = "wasm32"))]
        let closed = self.without_reasoning(&mut request, syntax, text)?;
        #[cfg(not(target_arch = "wasm32"))]
        let text = closed.as_deref().unwrap_or(text);
        let mut of_calls = None;
        if let Some(calls) = calls {
            syntax = syntax.or_object();
            of_calls = Some(match request.options.grammar.take() {
                Some(own @ Grammar::Own(_)) => own,
                _ => self.forced(syntax, text, tools, calls)?,
            });
        } else if request.options.grammar.is_none() {
            of_calls = self.strict(syntax, text, tools)?;
        }
        let has_calls = of_calls.is_some();
        request.options.grammar = of_calls.or(request.options.grammar);
        let parser = AnswerParser::new(syntax, text, tools);
        let options = &mut request.options;
        #[cfg(not(target_arch = "wasm32"))]
        {
            options.reasoning = options.reasoning.take().map(|budget| budget.within(parser.clone()));
        }
        options.shown.extend(syntax.marker_tokens(&self.text.tokenizer));
        // Grammars of calls have the reasoning, too.
        if !has_calls && options.grammar_after.is_none() {
            options.grammar_after = parser.reasoning_end().map(String::from);
        }
        Ok(Chat::new(self.generate_tokens(request)?, parser))
    }

    /// Closes the reasoning that a prompt opens, if the request leaves no token for it; returns the text of that
    /// prompt.
    #[cfg(not(target_arch = "wasm32"))]
    fn without_reasoning(
        &self,
        request: &mut Request,
        syntax: &'static AnswerSyntax,
        text: &str,
    ) -> Result<Option<String>, Error> {
        let is_none = request.options.reasoning.as_ref().is_some_and(|budget| budget.n_max() == 0);
        let end = AnswerParser::new(syntax, text, &[]).reasoning_end().filter(|_| is_none);
        let Some(end) = end else { return Ok(None) };
        let tokens = self.text.tokenizer.encode(end, AddSpecial::No, ParseSpecial::Yes);
        request.prompt.extend(tokens.map_err(ModelError::from)?);
        Ok(Some(format!("{text}{end}")))
    }

    #[cfg(feature = "constraint")]
    fn forced(
        &self,
        syntax: &AnswerSyntax,
        text: &str,
        tools: &[Value],
        calls: &CallChoice,
    ) -> Result<Grammar, Error> {
        let calls = CallChoice { prompt: text.to_owned(), ..calls.clone() };
        Ok(syntax.call_grammar(&self.text.tokenizer, tools, &calls)?)
    }

    #[cfg(feature = "constraint")]
    fn strict(&self, syntax: &AnswerSyntax, text: &str, tools: &[Value]) -> Result<Option<Grammar>, Error> {
        Ok(syntax.strict_grammar(&self.text.tokenizer, tools, text)?)
    }

    #[cfg(not(feature = "constraint"))]
    fn strict(&self, _: &AnswerSyntax, _: &str, _: &[Value]) -> Result<Option<Grammar>, Error> {
        Ok(None)
    }

    /// Without constraints, a grammar would only take room in the module of a browser.
    #[cfg(not(feature = "constraint"))]
    fn forced(&self, _: &AnswerSyntax, _: &str, _: &[Value], _: &CallChoice) -> Result<Grammar, Error> {
        Err(ModelError::from(chaski_text::ConstraintError::FeatureDisabled).into())
    }

    /// The prompt of a conversation, from the model's template; from the tool template if there are tools.
    ///
    /// Its control tokens are those of the template: in messages and tools, the text of one is text, unless
    /// [`TemplateOptions::parse_special`] is set.
    ///
    /// # Errors
    /// [`Error::NoTemplate`]; [`Error::Model`] if the template cannot be parsed, or rejects the messages.
    pub fn chat_prompt(&self, messages: &[Message], options: &TemplateOptions) -> Result<ChatPrompt, Error> {
        self.chat_prompt_within(messages, options, usize::MAX)
    }

    /// The same, but a text that certainly has more than `limit` tokens is refused before it is tokenized
    /// ([`Tokenizer::within`]).
    ///
    /// # Errors
    /// As [`Self::chat_prompt`]; [`Error::Model`] with the code `context_overflow`.
    pub fn chat_prompt_within(
        &self,
        messages: &[Message],
        options: &TemplateOptions,
        limit: usize,
    ) -> Result<ChatPrompt, Error> {
        chat::prompt(&self.text, messages, options, limit, ChatTemplate::render_traced)
    }

    /// The prompt of a conversation whose last message, the assistant's, is continued.
    ///
    /// # Errors
    /// As [`Self::chat_prompt_within`], and if the last message is another's.
    pub fn open_prompt_within(
        &self,
        messages: &[Message],
        options: &TemplateOptions,
        limit: usize,
    ) -> Result<ChatPrompt, Error> {
        chat::prompt(&self.text, messages, options, limit, ChatTemplate::render_open)
    }

    /// The prompt of a conversation for its answer: without the beginning of one
    /// ([`TemplateOptions::add_generation_prompt`]), a last message of the assistant is continued.
    ///
    /// # Errors
    /// As [`Self::chat_prompt_within`]; [`Error::Model`] if the template changes the text to continue.
    pub fn answer_prompt_within(
        &self,
        messages: &[Message],
        options: &TemplateOptions,
        limit: usize,
    ) -> Result<ChatPrompt, Error> {
        let is_answer = messages.last().is_some_and(|last| last.role == "assistant");
        match is_answer && !options.add_generation_prompt {
            true => self.open_prompt_within(messages, options, limit),
            false => self.chat_prompt_within(messages, options, limit),
        }
    }

    /// The prompt of a conversation for its answer ([`Self::answer_prompt_within`]), without the oldest turns if it
    /// leaves too little of the context for an answer, and [`GenerateOptions::drop_turns`] is set. Leading system
    /// messages and the last turn are never dropped.
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
        let limit = self.handle.n_ctx();
        let prompt = |messages: &[Message]| self.answer_prompt_within(messages, template, limit);
        if options.drop_turns {
            return Room::new(limit, options).fit(messages, prompt);
        }
        let prompt = prompt(messages)?;
        let found = prompt.tokens.len();
        if found > limit {
            return Err(ServeError::from(Refused::Context { found, limit }).into());
        }
        Ok(prompt)
    }

    /// Context size in tokens.
    pub fn n_ctx(&self) -> usize {
        self.handle.n_ctx()
    }

    /// Lets so many requests wait from now on; those that wait already stay.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn set_max_waiting(&self, n: usize) {
        self.handle.set_max_waiting(n);
    }

    /// Records of the steps since the last call: [`serve::Handle::take_steps`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn take_steps(&self) -> Vec<serve::StepRecord> {
        self.handle.take_steps()
    }

    /// Drops all cached prefixes that no request uses; returns the number of their pages:
    /// [`serve::Handle::flush_cache`].
    ///
    /// # Errors
    /// As [`serve::Handle::flush_cache`].
    #[cfg(not(target_arch = "wasm32"))]
    pub async fn flush_cache(&self) -> Result<usize, ServeError> {
        self.handle.flush_cache().await
    }

    /// The state of the last request of a slot, which [`Self::restore_slot`] brings back: [`serve::Handle::save_slot`].
    ///
    /// # Errors
    /// As [`serve::Handle::save_slot`].
    #[cfg(not(target_arch = "wasm32"))]
    pub async fn save_slot(&self, slot: u32) -> Result<serve::SlotState, ServeError> {
        self.handle.save_slot(slot).await
    }

    /// Restores the state of a slot to the cache of prefixes: [`serve::Handle::restore_slot`].
    ///
    /// # Errors
    /// As [`serve::Handle::restore_slot`].
    #[cfg(not(target_arch = "wasm32"))]
    pub async fn restore_slot(
        &self,
        slot: u32,
        lora: Option<Vec<f32>>,
        bytes: Vec<u8>,
    ) -> Result<usize, ServeError> {
        self.handle.restore_slot(slot, lora, bytes).await
    }

    /// Drops the last request of a slot from the cache: [`serve::Handle::erase_slot`].
    ///
    /// # Errors
    /// As [`serve::Handle::erase_slot`].
    #[cfg(not(target_arch = "wasm32"))]
    pub async fn erase_slot(&self, slot: u32) -> Result<usize, ServeError> {
        self.handle.erase_slot(slot).await
    }

    /// Bytes of the longest state of a slot.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn max_slot_bytes(&self) -> u64 {
        self.handle.max_slot_bytes()
    }

    /// The template of conversations, with or without tools; `None` if the model has none.
    ///
    /// # Errors
    /// [`Error::Model`] if it cannot be parsed.
    pub fn template(&self, has_tools: bool) -> Result<Option<&ChatTemplate>, Error> {
        Ok(self.text.templates.get(has_tools).map_err(ModelError::from)?)
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.text.tokenizer
    }

    /// Waiting and running requests, and KV cache usage.
    pub fn load(&self) -> Load {
        self.handle.load()
    }
}
