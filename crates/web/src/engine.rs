//! A loaded model, for the package's JavaScript.

use std::cell::RefCell;
use std::sync::Arc;

use chaski::embedding::{EmbedOptions, EmbedRequest, Pooling};
use chaski::errors::{ModelError, PoolingError};
use chaski::gpu::{Gpu, Stage};
use chaski::options::Speculation;
use chaski::serve::{RankRequest, Request as Ask};
use chaski::steps::RunnerConfig;
use chaski::text::{AddSpecial, AnswerSyntax, CallChoice, ParseSpecial, RenderSpecial};
use chaski::{DeviceChoice, Engine, Error, Grammar, Handle, Ranker, Source};
use js_sys::Function;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::answer::{Sink, answer_chat, continue_text};
use crate::error::{bad_request, to_js};
use crate::file::{JsFile, source};
use crate::inspect::{caps_json, memory_json};
use crate::request::{Chat, CreateOptions, Device, Request, Scale, parse, scales};
use crate::rule::{JsRule, grammar};

/// A loaded model. Requests are queued by `generate`, `embed` and `rank`, and served while `turn` is polled; while it
/// is, nothing else may use the engine.
#[wasm_bindgen]
pub struct WebEngine {
    engine: RefCell<Engine>,
    handle: Handle,
    /// LoRAs.
    n_lora: usize,
    /// Drafts, if there is a model for them.
    speculate: Option<Speculation>,
    /// How it scores documents, if it does.
    ranker: Option<Ranker>,
    /// The device, for tests, which lose it during an answer.
    gpu: RefCell<Option<Arc<Gpu>>>,
}

#[wasm_bindgen]
impl WebEngine {
    /// Loads a model. `options` are [`CreateOptions`] as JSON; `progress(stage, done, total)` is called with `compile`
    /// and kernels, or `upload` and bytes. `loras` are files with a scale each in the options, `draft` those of a model
    /// that drafts answers.
    ///
    /// # Errors
    /// Throws `{ code, message, hint, detail }`, like every function here.
    pub async fn create(
        files: Vec<JsFile>,
        options: String,
        progress: Function,
        loras: Vec<JsFile>,
        draft: Vec<JsFile>,
    ) -> Result<WebEngine, JsValue> {
        let options: CreateOptions = parse(&options)?;
        let source = source(files);
        let mut builder = Engine::builder(source.clone())
            .context(options.context_length)
            .sequences(options.sequences.max(1))
            .kv(options.kv_type)
            .inputs(options.inputs)
            .device(options.device.into())
            .web_subgroups(options.subgroups)
            .self_test(move |_| options.trusted)
            .on_progress(move |p| {
                let stage = match p.stage {
                    Stage::Compile => "compile",
                    Stage::Upload => "upload",
                };
                // Exceptions of a progress handler do not stop loading.
                let (done, total) = (p.done as f64, p.total as f64);
                let _ = progress.call3(&JsValue::NULL, &stage.into(), &done.into(), &total.into());
            });
        let n_lora = loras.len();
        for (file, scale) in loras.into_iter().zip(&options.loras) {
            builder = builder.lora(self::source(vec![file]), *scale);
        }
        if options.chunk > 0 {
            builder = builder.chunk(options.chunk);
        }
        if let Some(budget) = options.memory_budget {
            check_budget(&source, &options, budget).await?;
        }
        let mut engine = builder.build().await.map_err(to_js)?;
        let speculate = (!draft.is_empty()).then(Speculation::default);
        if speculate.is_some() {
            let n_seq = options.sequences.clamp(1, Speculation::MAX_RUNNING as u32);
            let builder =
                Engine::builder(self::source(draft)).context(engine.loaded().n_ctx()).kv(options.kv_type);
            let builder = builder.sequences(n_seq).device(DeviceChoice::Cpu);
            let builder = match engine.gpu() {
                Some(gpu) => builder.gpu(gpu.clone()),
                None => builder,
            };
            let draft = builder.build().await.map_err(to_js)?;
            engine.set_draft(Some(draft)).map_err(to_js)?;
        }
        let (handle, ranker) = (engine.handle().clone(), Ranker::of(engine.model()));
        let gpu = RefCell::new(engine.gpu().cloned());
        Ok(WebEngine { engine: RefCell::new(engine), handle, n_lora, speculate, ranker, gpu })
    }

    /// Validates `options` of [`Self::create`] before anything is loaded.
    ///
    /// # Errors
    /// Unknown names and values.
    pub fn check(options: &str) -> Result<(), JsValue> {
        parse::<CreateOptions>(options).map(drop)
    }

    /// Summary of the file, the device and its memory, as JSON.
    pub fn describe(&self) -> String {
        let engine = self.engine.borrow();
        let (info, device) = (engine.info(), engine.device());
        let model = engine.model();
        let has_template = model.templates().get(false).is_ok_and(|t| t.is_some());
        let n_embd = model.config().n_embd;
        let model = json!({
            "file": info.file,
            "description": info.description,
            "architecture": model.arch().name,
            "bytes": info.n_byte,
            "parameters": info.n_param,
            "trainedContext": info.n_ctx_train,
            "vocabulary": info.n_vocab,
            "chatTemplate": has_template,
        });
        let memory = memory_json(&engine.memory());
        let tuned = engine.gpu().map(|g| caps_json(g.caps()));
        let runner = engine.loaded();
        let loading = runner.gpu().map(|g| g.load_times());
        let dispatches = runner.gpu().map(|g| g.dispatches_per_token().1);
        json!({
            "model": model,
            "contextLength": runner.n_ctx(),
            "embedding": n_embd,
            "memory": memory,
            "device": {
                "name": device.name,
                "driver": device.driver,
                "kind": if device.caps.is_some() { "gpu" } else { "cpu" },
                "fallback": device.fallback,
                "distrust": device.distrust,
                "caps": tuned,
            },
            "loading": loading.map(|t| json!({
                "compileMs": 1e3 * t.compile.as_secs_f64(),
                "uploadMs": 1e3 * t.upload.as_secs_f64(),
                "totalMs": 1e3 * t.total.as_secs_f64(),
            })),
            "dispatchesPerToken": dispatches,
        })
        .to_string()
    }

    /// Tokenizes a text; with `special`, names of special tokens are parsed.
    ///
    /// # Errors
    /// A model whose tokenizer cannot encode the text.
    pub fn tokenize(&self, text: &str, add_special: bool, special: bool) -> Result<Vec<u32>, JsValue> {
        let add = if add_special { AddSpecial::Yes } else { AddSpecial::No };
        let parse = if special { ParseSpecial::Yes } else { ParseSpecial::No };
        self.handle.tokenizer().encode(text, add, parse).map_err(|e| to_js(ModelError::from(e)))
    }

    /// The tokens of the model's vocabulary, for `Grammars` of the other module.
    pub fn vocabulary(&self) -> Vec<u8> {
        self.handle.tokenizer().vocabulary()
    }

    /// The text of tokens.
    pub fn detokenize(&self, tokens: &[u32], special: bool) -> String {
        let render = if special { RenderSpecial::Yes } else { RenderSpecial::No };
        self.handle.tokenizer().decode_lossy(tokens, render)
    }

    /// The prompt of a conversation ([`Chat`] as JSON).
    ///
    /// # Errors
    /// No template, or one that rejects the messages.
    pub fn apply_template(&self, chat: &str) -> Result<String, JsValue> {
        let chat: Chat = parse(chat)?;
        let prompt = self.handle.answer_prompt_within(&chat.messages()?, &chat.template(), usize::MAX);
        Ok(prompt.map_err(to_js)?.text)
    }

    /// Destroys the device, with the effect of a driver reset, for tests.
    pub fn lose(&self) {
        if let Some(gpu) = &*self.gpu.borrow() {
            gpu.destroy();
        }
    }

    /// Serves one step of what was queued; false if there is nothing to do.
    ///
    /// # Errors
    /// Device errors, which all that was queued gets, too.
    #[allow(clippy::await_holding_refcell_ref, reason = "nothing else uses the engine meanwhile")]
    pub async fn turn(&self) -> Result<bool, JsValue> {
        let mut engine = self.engine.borrow_mut();
        let more = engine.turn().await;
        self.gpu.replace(engine.gpu().cloned());
        more.map_err(to_js)
    }

    /// Answers a [`Request`] (JSON), while [`Self::turn`] is polled. `event(text)` receives each event as JSON and
    /// returns true to stop; the result describes the end of the answer, as JSON. A `rule` gives the masks of its
    /// tokens.
    ///
    /// Events: `prompt` (`done` of `total` tokens are submitted), `text`, `reasoning`, `content`, `call`, `arguments`,
    /// `call_end`. After device loss the device is opened again and the answer continues; `losses` counts this.
    ///
    /// # Errors
    /// Invalid requests; device errors.
    pub async fn generate(
        &self,
        request: String,
        event: Function,
        rule: Option<JsRule>,
    ) -> Result<String, JsValue> {
        let request: Request = parse(&request)?;
        let losses = self.handle.load().n_recovered;
        let (sink, mut options) = (Sink::new(event), request.options());
        options.speculate = self.speculate;
        options.lora = scales(request.lora.as_deref(), self.n_lora)?;
        let mut rule = rule;
        if request.chat.is_none() {
            options.grammar = rule.take().map(|rule| grammar(rule, "", ""));
        }
        let (end, n_prompt) = match (&request.chat, &request.prompt, &request.tokens) {
            (None, text, tokens) if text.is_some() != tokens.is_some() => {
                let text = text.as_ref().map(|text| self.handle.encode(text)).transpose().map_err(to_js)?;
                let tokens = text.or_else(|| tokens.clone()).unwrap_or_default();
                let n_prompt = tokens.len();
                let answer = self.handle.generate_tokens(Ask::new(tokens, options)).map_err(to_js)?;
                (continue_text(answer, sink).await?, n_prompt)
            }
            (Some(chat), None, None) => {
                let (messages, template) = (chat.messages()?, chat.template());
                let prompt = self.handle.fit_prompt(&messages, &template, &options).map_err(to_js)?;
                let n_prompt = prompt.tokens.len();
                let calls = request.calls.then(CallChoice::default);
                options.grammar =
                    self.grammar(rule, request.strict, &prompt.text, chat.tools()).map_err(to_js)?;
                let ask = Ask::new(prompt.tokens, options);
                let answer = self.handle.answer_to(ask, &prompt.text, chat.tools(), calls.as_ref());
                (answer_chat(answer.map_err(to_js)?, prompt.n_dropped, sink).await?, n_prompt)
            }
            _ => return Err(bad_request("expected one of chat, prompt and tokens")),
        };
        Ok(end.to_json(n_prompt, self.handle.load().n_recovered - losses))
    }

    /// The conversation as bytes, for [`Self::restore`].
    ///
    /// # Errors
    /// Device errors.
    #[allow(clippy::await_holding_refcell_ref, reason = "nothing else uses the engine meanwhile")]
    pub async fn save(&self) -> Result<Vec<u8>, JsValue> {
        self.engine.borrow_mut().save().await.map_err(to_js)
    }

    /// Restores a conversation of [`Self::save`].
    ///
    /// # Errors
    /// Bytes that are no session of this model; device errors.
    #[allow(clippy::await_holding_refcell_ref, reason = "nothing else uses the engine meanwhile")]
    pub async fn restore(&self, bytes: Vec<u8>) -> Result<(), JsValue> {
        self.engine.borrow_mut().restore(&bytes).await.map_err(to_js)
    }

    /// The embeddings of a text, concatenated, of `describe().embedding` values each: one, or with pooling `none` one
    /// per token; while [`Self::turn`] is polled. The first value is the number of the text's tokens.
    ///
    /// # Errors
    /// Neither the model nor `pooling` specifies the pooling; a text without tokens or longer than the context; device
    /// errors.
    pub async fn embed(
        &self,
        text: String,
        pooling: Option<String>,
        lora: Option<String>,
    ) -> Result<Vec<f32>, JsValue> {
        let pooling = pooling.map(|p| p.parse::<Pooling>()).transpose();
        let pooling = pooling.map_err(|e| to_js(Error::Model(ModelError::Pooling(e))))?;
        let options = EmbedOptions { pooling, ..EmbedOptions::default() };
        let tokens = vec![self.handle.encode(&text).map_err(to_js)?];
        let request = EmbedRequest { lora: self.scales(lora)?, ..EmbedRequest::new(tokens, options) };
        let readings = self.handle.embed(request).map_err(to_js)?;
        let found = readings.await.map_err(to_js)?;
        let counts = found.iter().map(|e| e.n_token as f32);
        Ok(counts.chain(found.iter().flat_map(|e| e.vectors.iter().flatten().copied())).collect())
    }

    /// Scores of documents for a query, in order, after the number of tokens of all; while [`Self::turn`] is polled.
    /// The higher a score, the better its document fits.
    ///
    /// # Errors
    /// A model that was not made for it; a document that the context has no room for; device errors.
    pub async fn rank(
        &self,
        query: String,
        documents: Vec<String>,
        lora: Option<String>,
    ) -> Result<Vec<f64>, JsValue> {
        let ranker = self.ranker.as_ref();
        let ranker = ranker.ok_or_else(|| to_js(ModelError::from(PoolingError::NoScores)))?;
        let within = self.handle.tokenizer().within(self.handle.n_ctx());
        let prompts = documents.iter().map(|document| ranker.tokens(within, &query, document));
        let prompts = prompts.collect::<Result<Vec<_>, _>>().map_err(|e| to_js(ModelError::from(e)))?;
        let n_token: usize = prompts.iter().map(Vec::len).sum();
        let request = RankRequest { lora: self.scales(lora)?, ..RankRequest::new(prompts, ranker.by()) };
        let readings = self.handle.rank(request).map_err(to_js)?;
        let scores = readings.await.map_err(to_js)?;
        Ok([n_token as f64].into_iter().chain(scores).collect())
    }
}

impl WebEngine {
    /// The scales of a list in JSON.
    fn scales(&self, list: Option<String>) -> Result<Option<Vec<f32>>, JsValue> {
        let list = list.map(|list| parse::<Vec<Scale>>(&list)).transpose()?;
        scales(list.as_deref(), self.n_lora)
    }

    /// The grammar of an answer with these tools; none where strict calls are asked for, but the model's notation has
    /// none.
    fn grammar(
        &self,
        rule: Option<JsRule>,
        is_strict: bool,
        prompt: &str,
        tools: &[Value],
    ) -> Result<Option<Grammar>, Error> {
        let Some(rule) = rule else { return Ok(None) };
        let template = self.handle.template(!tools.is_empty())?;
        let template = template.map_or("", |t| t.source());
        let is_free = is_strict && !AnswerSyntax::of_template(template).has_calls();
        Ok((!is_free).then(|| grammar(rule, template, prompt)))
    }
}

/// Rejects a model that would exceed the memory budget.
async fn check_budget(source: &Source, options: &CreateOptions, budget: f64) -> Result<(), JsValue> {
    let model = source.open().await.map_err(to_js)?;
    let caps = match options.device {
        Device::Cpu => None,
        _ => Some(crate::inspect::caps(options.subgroups).await),
    };
    let chunk = if options.chunk > 0 { options.chunk } else { crate::inspect::CHUNK };
    let (n_ctx, kv, n_seq) = (options.context_length, options.kv_type, options.sequences.max(1));
    let config = RunnerConfig { n_ctx, n_seq, kv, chunk, ..RunnerConfig::default() };
    let need = crate::inspect::need(&model, &config, caps.as_ref()).await?;
    if need.n_byte() as f64 > budget {
        return Err(crate::error::over_budget(need.n_byte(), budget));
    }
    Ok(())
}
