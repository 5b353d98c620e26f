//! A loaded model: how to reach it, and what dialects say about it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chaski::embedding::{EmbedRequest, Embedding, Pooling, Readings};
use chaski::errors::ModelError;
use chaski::gpu::{Gpu, Memory};
use chaski::options::Speculation;
use chaski::serve::{Load, PromptLogprobsRequest, RankRequest, ServeError, StepRecord};
use chaski::text::{AddSpecial, Constraint, Grammar, Logprobs, ParseSpecial, RenderSpecial, Tokenizer};
use chaski::{Engine, Handle, Ranker, SamplerParams};
use serde_json::Value;

use crate::about::About;
use crate::dialects::DialectOptions;
use crate::error::{ApiError, Kind, chain};
use crate::fields::Fields;
use crate::loras::Loras;
use crate::names::{is_called, stem};
use crate::pace::Pace;
use crate::places::Places;
use crate::queue::Queue;
use crate::salts::Salts;

/// Bytes that a model takes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// In all.
    pub(crate) n_byte: u64,
    /// Those on devices that tell how much memory they have.
    pub(crate) n_device: u64,
}

/// A model that answers.
pub(crate) struct Served {
    pub(crate) facts: Arc<Facts>,
    /// Bytes of memory that it takes.
    pub(crate) size: Size,
    /// The devices that it runs on, with the bytes that each has for models, where it tells them.
    pub(crate) devices: Vec<(String, u64)>,
    /// Bytes of memory by kind.
    pub(crate) memory: Vec<(&'static str, u64)>,
    /// Answers that wait.
    pub(crate) queue: Queue,
    pub(crate) pace: Pace,
    pub(crate) places: Arc<Places>,
    salts: Salts,
    handle: Handle,
    /// Its counts when they were last taken.
    taken: Mutex<Counts>,
}

/// Numbers that grow while a model is loaded.
#[derive(Copy, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) n_preempted: u64,
    pub(crate) n_recovered: u64,
    pub(crate) n_step: u64,
    /// Rows of answers in these steps.
    pub(crate) n_row: u64,
}

/// Facts about a model: everything that a request is read with.
pub(crate) struct Facts {
    /// Its name in the API.
    pub(crate) id: String,
    /// Further names.
    pub(crate) aliases: Vec<String>,
    /// Name of its file.
    pub(crate) file: String,
    /// Facts that its file tells.
    pub(crate) about: About,
    pub(crate) n_ctx: usize,
    /// Sequences at once.
    pub(crate) n_seq: u32,
    /// Seconds since 1970 at which it was loaded.
    pub(crate) created: u64,
    /// Sampling parameters that hold where a request says nothing.
    pub(crate) sampler: SamplerParams,
    /// Most tokens of an answer, if there is a limit.
    pub(crate) max_tokens: Option<usize>,
    /// When the context is full, drop its older half and go on.
    pub(crate) context_shift: bool,
    /// Variables of the template where a request says nothing.
    pub(crate) variables: Variables,
    /// Most tokens of reasoning of an answer where a request says nothing; 0: no reasoning.
    pub(crate) reasoning_budget: Option<usize>,
    /// Details of its dialects.
    pub(crate) dialects: DialectOptions,
    /// Its tokenizer, if it has one.
    tokenizer: Option<Arc<Tokenizer>>,
    /// Pooling of embeddings, if the options or the file have one.
    pub(crate) pooling: Option<Pooling>,
    /// True if it makes embeddings only.
    pub(crate) embeds: bool,
    /// Fill in with the text after the gap first.
    pub(crate) suffix_first: bool,
    /// Its way of ranking documents, if it has one.
    pub(crate) ranker: Option<Ranker>,
    /// Each key has cached prefixes of its own.
    pub(crate) cache_per_key: bool,
    /// Its LoRAs.
    pub(crate) loras: Arc<Loras>,
    /// Drafts of answers, if there are any.
    pub(crate) speculation: Option<Speculation>,
}

/// The model that a request names.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// This one, or none.
    Model,
    /// A LoRA of this one.
    Lora(usize),
    /// Another name, which means this one where any name does.
    Other,
}

/// Variables of a chat template.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// The switch for reasoning.
    pub enable_thinking: Option<bool>,
    /// All others.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// How a model is served.
#[derive(Clone, Debug, Default)]
pub struct ModelOptions {
    /// Its name in the API; by default that of the file.
    pub id: Option<String>,
    /// Further names.
    pub aliases: Vec<String>,
    /// Sampling parameters of requests that say nothing; by default those of the file.
    pub sampler: Option<SamplerParams>,
    /// Most tokens of an answer.
    pub max_tokens: Option<usize>,
    /// When the context is full, drop its older half and go on, instead of ending the answer.
    pub context_shift: bool,
    /// Variables of the chat template where a request says nothing.
    pub variables: Variables,
    /// Most tokens of reasoning of an answer where a request says nothing; 0: no reasoning.
    pub reasoning_budget: Option<usize>,
    /// Details of its dialects.
    pub dialects: DialectOptions,
    /// Sequences that the engine was built for.
    pub n_seq: u32,
    /// It makes embeddings only.
    pub embeddings: bool,
    /// A prompt to fill in has the text after the gap before the one before it.
    pub suffix_first: bool,
    /// Pooling of embeddings; by default that of the file.
    pub pooling: Option<Pooling>,
    /// LoRAs have an effect only on requests that name one, or say scales; those of others are 0 until they are set.
    pub lora_init_without_apply: bool,
    /// Keep the cached prefixes of each key apart: no client learns from times what others asked.
    pub cache_per_key: bool,
    /// Draft answers while few run: with the engine's draft model ([`Engine::set_draft`]), or by lookup.
    pub speculation: Option<Speculation>,
}

/// Part of a device's memory for models.
const OF_MEMORY: f64 = 0.9;

/// The devices of a model, by name and place, with the bytes that each has for models. Those that do not tell their
/// memory are left out.
fn devices(engine: &Engine) -> Vec<(String, u64)> {
    let of = |gpu: &Arc<Gpu>| {
        let name = format!("{} {}", gpu.summary().name, gpu.summary().pci);
        Some((name, (gpu.memory()?.n_budget as f64 * OF_MEMORY) as u64))
    };
    engine.gpus().iter().filter_map(of).collect()
}

/// Bytes of a model: those on a CPU are on no device, nor are those of devices that do not tell their memory.
fn size(engine: &Engine, memory: &Memory) -> Size {
    let is_told = !engine.gpus().is_empty() && engine.gpus().iter().all(|gpu| gpu.memory().is_some());
    let on_device = memory.items.iter().filter(|item| is_told && item.what != Memory::ON_CPU);
    Size { n_byte: memory.n_byte(), n_device: on_device.map(|item| item.n_byte).sum() }
}

impl Served {
    /// Puts an engine to work on a thread of its own.
    ///
    /// # Errors
    /// If the system has no thread.
    pub(crate) fn new(engine: Engine, options: ModelOptions) -> Result<Served, chaski::Error> {
        let memory = engine.memory();
        let (size, devices) = (size(&engine, &memory), devices(&engine));
        let memory = memory.items.iter().map(|item| (item.what, item.n_byte)).collect();
        let (file, about) = (engine.info().file, About::of(engine.model())?);
        let mut sampler = SamplerParams::default();
        sampler.apply_metadata(engine.model().metadata());
        let is_encoder = engine.model().arch().is_encoder;
        let n_ctx = engine.loaded().n_ctx() as usize;
        let tokenizer = Some(engine.tokenizer().clone()).filter(|tokenizer| tokenizer.has_text());
        let ranker = Ranker::of(engine.model());
        let loras = Arc::new(Loras::new(engine.loras(), !options.lora_init_without_apply));
        let handle = engine.spawn()?;
        let places = Arc::new(Places::new(options.n_seq));
        let facts = Facts {
            id: options.id.unwrap_or_else(|| stem(&file).to_owned()),
            aliases: options.aliases,
            file,
            pooling: options.pooling.or(about.pooling),
            about,
            n_ctx,
            n_seq: options.n_seq,
            created: crate::clock::now(),
            sampler: options.sampler.unwrap_or(sampler),
            max_tokens: options.max_tokens,
            context_shift: options.context_shift,
            variables: options.variables,
            reasoning_budget: options.reasoning_budget,
            dialects: options.dialects,
            tokenizer,
            embeds: options.embeddings || is_encoder,
            suffix_first: options.suffix_first,
            ranker,
            cache_per_key: options.cache_per_key,
            loras,
            speculation: options.speculation,
        };
        let (queue, pace, salts) = (Queue::default(), Pace::default(), Salts::default());
        Ok(Served {
            facts: Arc::new(facts),
            size,
            devices,
            memory,
            queue,
            pace,
            places,
            salts,
            handle,
            taken: Mutex::default(),
        })
    }

    /// Ends its thread, and frees it; answers that run are waited for.
    pub(crate) fn end(self) {
        self.handle.join();
    }

    /// The model as one that answers.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] if it is to make embeddings only.
    pub(crate) fn handle(&self) -> Result<&Handle, ApiError> {
        self.facts.is_for_answers().map(|()| &self.handle)
    }

    /// Queues texts for their embeddings.
    ///
    /// # Errors
    /// Those of [`Handle::embed`]; [`Kind::Unsupported`] if nothing says how to pool them.
    pub(crate) fn embed(&self, request: EmbedRequest) -> Result<Readings<Embedding>, ApiError> {
        self.begins();
        self.handle.embed(request).map_err(|error| match &error {
            ServeError::Model(cause) if matches!(**cause, ModelError::Pooling(_)) => {
                ApiError::new(Kind::Unsupported, format!("{error}, as `--pooling` of the server"))
            }
            _ => self.refusal(error),
        })
    }

    /// Queues prompts for the log probabilities of their tokens.
    ///
    /// # Errors
    /// Those of [`Handle::prompt_logprobs`].
    pub(crate) fn prompt_logprobs(
        &self,
        request: PromptLogprobsRequest,
    ) -> Result<Readings<Vec<Logprobs>>, ApiError> {
        self.begins();
        self.handle()?.prompt_logprobs(request).map_err(|error| self.refusal(error))
    }

    /// Queues prompts for their scores.
    ///
    /// # Errors
    /// Those of [`Handle::rank`].
    pub(crate) fn rank(&self, request: RankRequest) -> Result<Readings<f64>, ApiError> {
        self.begins();
        self.handle.rank(request).map_err(|error| self.refusal(error))
    }

    /// Drops all cached prefixes that no request uses.
    ///
    /// # Errors
    /// Those of a device that is lost.
    pub(crate) async fn flush_cache(&self) -> Result<(), ApiError> {
        Ok(self.handle.flush_cache().await.map(drop)?)
    }

    /// The number of the prefixes of a client's request with this `cache_salt`.
    pub(crate) fn salt(&self, client: u64, salt: Option<&str>) -> u32 {
        self.salts.number(self.facts.cache_per_key.then_some(client), salt)
    }

    /// True if requests are open, and nothing has come of them for longer than this.
    pub(crate) fn is_stalled(&self, limit: Duration) -> bool {
        let load = self.load();
        load.n_running + load.n_waiting > 0 && self.pace.silence() > limit
    }

    /// A sign of life where nothing runs: the time without one begins with work.
    pub(crate) fn begins(&self) {
        let load = self.load();
        if load.n_running + load.n_waiting == 0 {
            self.pace.sign();
        }
    }

    /// The error of a request that it does not take; of a full queue, with the time until there is room.
    pub(crate) fn refusal(&self, error: impl Into<ApiError>) -> ApiError {
        let error: ApiError = error.into();
        match error.kind {
            Kind::Full => error.retry(self.pace.retry_after(&self.queue, self.facts.n_seq)),
            _ => error,
        }
    }

    /// Lets so many requests wait.
    pub(crate) fn set_max_waiting(&self, max_waiting: usize) {
        self.handle.set_max_waiting(max_waiting);
    }

    /// Records of its steps since the last call.
    pub(crate) fn take_steps(&self) -> Vec<StepRecord> {
        self.handle.take_steps()
    }

    /// Its counts since the last call.
    pub(crate) fn take_counts(&self) -> Counts {
        let mut taken = self.taken.lock().unwrap_or_else(|e| e.into_inner());
        let Load { n_preempted, n_recovered, n_step, n_row, .. } = self.load();
        let before = std::mem::replace(&mut *taken, Counts { n_preempted, n_recovered, n_step, n_row });
        Counts {
            n_preempted: n_preempted - before.n_preempted,
            n_recovered: n_recovered - before.n_recovered,
            n_step: n_step - before.n_step,
            n_row: n_row - before.n_row,
        }
    }

    /// Its load.
    pub(crate) fn load(&self) -> Load {
        self.handle.load()
    }
}

impl Facts {
    /// That it answers.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] if it makes embeddings only.
    pub(crate) fn is_for_answers(&self) -> Result<(), ApiError> {
        let message = "this model only makes embeddings (it is an encoder, or the server has --embeddings)";
        if self.embeds { Err(ApiError::new(Kind::Unsupported, message)) } else { Ok(()) }
    }

    /// Calls `f` with the tokenizer.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] if the model has none.
    pub(crate) fn with_tokenizer<T>(&self, f: impl FnOnce(&Tokenizer) -> T) -> Result<T, ApiError> {
        let missing = || ApiError::new(Kind::Unsupported, "the model has no tokenizer");
        self.tokenizer.as_deref().map(f).ok_or_else(missing)
    }

    /// Checks that texts can be made to conform to a JSON schema; says why not otherwise.
    pub(crate) fn check_schema(&self, schema: &Value) -> Result<(), String> {
        let Some(tokenizer) = &self.tokenizer else { return Ok(()) };
        let compiled = Constraint::new(tokenizer, &Grammar::JsonSchema(schema.clone()));
        compiled.map(drop).map_err(|error| chain(&error))
    }

    /// The tokens of a text.
    ///
    /// # Errors
    /// Those of the tokenizer.
    pub(crate) fn tokens(&self, text: &str, special: bool, parse: bool) -> Result<Vec<u32>, ApiError> {
        self.tokens_within(text, special, parse, usize::MAX)
    }

    /// The same, but a text that certainly has more than `limit` tokens is refused before it is tokenized.
    ///
    /// # Errors
    /// Those of the tokenizer, and [`Kind::Context`].
    pub(crate) fn tokens_within(
        &self,
        text: &str,
        special: bool,
        parse: bool,
        limit: usize,
    ) -> Result<Vec<u32>, ApiError> {
        let add = if special { AddSpecial::Yes } else { AddSpecial::No };
        let parse = if parse { ParseSpecial::Yes } else { ParseSpecial::No };
        Ok(self.with_tokenizer(|tokenizer| tokenizer.within(limit).encode(text, add, parse))??)
    }

    /// The tokens of a query and a document.
    ///
    /// # Errors
    /// Those of the tokenizer, and [`Kind::Context`] for texts that are longer than the context for certain.
    pub(crate) fn tokens_of_pair(
        &self,
        ranker: &Ranker,
        query: &str,
        document: &str,
    ) -> Result<Vec<u32>, ApiError> {
        let n_ctx = self.n_ctx;
        Ok(self.with_tokenizer(|tokenizer| ranker.tokens(tokenizer.within(n_ctx), query, document))??)
    }

    /// The text of tokens, control tokens included.
    ///
    /// # Errors
    /// Ids outside the vocabulary.
    pub(crate) fn text_of(&self, tokens: &[u32]) -> Result<String, ApiError> {
        if let Some(id) = tokens.iter().find(|id| **id >= self.about.n_vocab) {
            let message = format!("token {id} is outside the vocabulary of {} tokens", self.about.n_vocab);
            return Err(ApiError::new(Kind::Invalid, message));
        }
        self.with_tokenizer(|tokenizer| tokenizer.decode_lossy(tokens, RenderSpecial::Yes))
    }

    /// The bytes of a token.
    pub(crate) fn bytes_of(&self, token: u32) -> Vec<u8> {
        let bytes =
            self.with_tokenizer(|tokenizer| tokenizer.token_bytes(token, RenderSpecial::Yes).into_owned());
        bytes.unwrap_or_default()
    }

    /// The meaning of the model's name in a request.
    pub(crate) fn called(&self, name: Option<&str>) -> Called {
        match name.filter(|name| !name.is_empty()) {
            None => Called::Model,
            Some(name) if is_called(&self.id, &self.aliases, name) => Called::Model,
            Some(name) => {
                self.loras.called(&self.id, &self.aliases, name).map_or(Called::Other, Called::Lora)
            }
        }
    }

    /// The LoRA scales of a request for this: those of its `lora`, else of the LoRA that it is for, else those in
    /// force. `None` for a model without LoRAs.
    ///
    /// # Errors
    /// A `lora` that is not as llama-server has it, or names a LoRA that does not exist.
    pub(crate) fn scales(&self, body: &Value, called: Called) -> Result<Option<Vec<f32>>, ApiError> {
        let named = match called {
            Called::Lora(index) => Some(index),
            Called::Model | Called::Other => None,
        };
        let scales = self.loras.scales(Fields::of(body, "")?.get("lora"), named)?;
        Ok(Some(scales).filter(|scales| !scales.is_empty()))
    }

    /// The same for what the body names.
    ///
    /// # Errors
    /// As [`Self::scales`].
    pub(crate) fn lora_scales(&self, body: &Value) -> Result<Option<Vec<f32>>, ApiError> {
        self.scales(body, self.called(body["model"].as_str()))
    }
}

#[cfg(test)]
impl Facts {
    /// A model without anything, for tests of what needs none.
    pub(crate) fn for_tests() -> Facts {
        Facts {
            id: "golden".into(),
            aliases: Vec::new(),
            file: "golden.gguf".into(),
            about: About {
                arch: "llama".into(),
                ftype: "F16".into(),
                n_ctx_train: 512,
                n_vocab: 2048,
                n_embd: 256,
                n_param: 6820096,
                n_byte: 27280384,
                ..About::default()
            },
            n_ctx: 512,
            n_seq: 4,
            created: 0,
            sampler: SamplerParams::default(),
            max_tokens: None,
            context_shift: false,
            variables: Variables::default(),
            reasoning_budget: None,
            dialects: DialectOptions::default(),
            tokenizer: None,
            pooling: None,
            embeds: false,
            suffix_first: false,
            ranker: None,
            cache_per_key: false,
            loras: Arc::default(),
            speculation: None,
        }
    }
}
