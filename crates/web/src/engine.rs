//! A loaded model, for the package's JavaScript.

use std::sync::Arc;

use chaski::embedding::Pooling;
use chaski::errors::ModelError;
use chaski::gpu::{Gpu, Stage};
use chaski::serve::Request as Ask;
use chaski::steps::RunnerConfig;
use chaski::text::{AddSpecial, AnswerSyntax, CallChoice, ParseSpecial, RenderSpecial};
use chaski::{EmbedOptions, Engine, Error, Grammar, Source};
use js_sys::Function;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::answer::{Sink, answer_chat, continue_text};
use crate::error::{bad_request, to_js};
use crate::file::{JsFile, source};
use crate::inspect::{caps_json, memory_json};
use crate::request::{Chat, CreateOptions, Device, Request, parse};
use crate::rule::{JsRule, grammar};

/// A loaded model.
#[wasm_bindgen]
pub struct WebEngine {
    engine: Engine,
}

#[wasm_bindgen]
impl WebEngine {
    /// Loads a model. `options` are [`CreateOptions`] as JSON; `progress(stage, done, total)` is called with `compile`
    /// and kernels, or `upload` and bytes.
    ///
    /// # Errors
    /// Throws `{ code, message, hint, detail }`, like every function here.
    pub async fn create(
        files: Vec<JsFile>,
        options: String,
        progress: Function,
    ) -> Result<WebEngine, JsValue> {
        let options: CreateOptions = parse(&options)?;
        let source = source(files);
        let mut builder = Engine::builder(source.clone())
            .context(options.context_length)
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
        if options.chunk > 0 {
            builder = builder.chunk(options.chunk);
        }
        if let Some(budget) = options.memory_budget {
            check_budget(&source, &options, budget).await?;
        }
        let engine = builder.build().await.map_err(to_js)?;
        Ok(WebEngine { engine })
    }

    /// Validates `options` of [`Self::create`] before anything is loaded.
    ///
    /// # Errors
    /// Unknown names and values.
    pub fn check(options: &str) -> Result<(), JsValue> {
        parse::<CreateOptions>(options).map(drop)
    }

    /// Summary of the file, the device and its memory, as JSON.
    pub fn describe(&mut self) -> String {
        let (info, device) = (self.engine.info(), self.engine.device().clone());
        let model = self.engine.model();
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
        let memory = memory_json(&self.engine.memory());
        let tuned = self.engine.gpu().map(|g| caps_json(g.caps()));
        let runner = self.engine.loaded();
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
        self.engine.tokenizer().encode(text, add, parse).map_err(|e| to_js(ModelError::from(e)))
    }

    /// The tokens of the model's vocabulary, for `Grammars` of the other module.
    pub fn vocabulary(&self) -> Vec<u8> {
        self.engine.tokenizer().vocabulary()
    }

    /// The text of tokens.
    pub fn detokenize(&self, tokens: &[u32], special: bool) -> String {
        let render = if special { RenderSpecial::Yes } else { RenderSpecial::No };
        self.engine.tokenizer().decode_lossy(tokens, render)
    }

    /// The prompt of a conversation ([`Chat`] as JSON).
    ///
    /// # Errors
    /// No template, or one that rejects the messages.
    pub fn apply_template(&self, chat: &str) -> Result<String, JsValue> {
        let chat: Chat = parse(chat)?;
        Ok(self.engine.chat_prompt(&chat.messages()?, &chat.template()).map_err(to_js)?.text)
    }

    /// Opens the device and loads the model again after device loss; the conversation is kept.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn rebuild(&mut self) -> Result<(), JsValue> {
        self.engine.rebuild().await.map_err(to_js)
    }

    /// A handle that can destroy the device during an answer, for tests.
    pub fn device(&self) -> WebDevice {
        WebDevice { gpu: self.engine.gpu().cloned() }
    }

    /// Answers a [`Request`] (JSON). `event(text)` receives each event as JSON and returns true to stop; the result
    /// describes the end of the answer, as JSON. A `rule` gives the masks of its tokens.
    ///
    /// Events: `prompt` (`done` of `total` tokens are submitted), `text`, `reasoning`, `content`, `call`, `arguments`,
    /// `call_end`. After device loss the device is opened again and the answer continues; `losses` counts this.
    ///
    /// # Errors
    /// Invalid requests; device errors.
    pub async fn generate(
        &mut self,
        request: String,
        event: Function,
        rule: Option<JsRule>,
    ) -> Result<String, JsValue> {
        let request: Request = parse(&request)?;
        let losses = self.engine.load().n_recovered;
        let (sink, mut options) = (Sink::new(event), request.options());
        let mut rule = rule;
        if request.chat.is_none() {
            options.grammar = rule.take().map(|rule| grammar(rule, "", ""));
        }
        let (end, n_prompt) = match (&request.chat, &request.prompt, &request.tokens) {
            (None, None, Some(tokens)) => {
                let generation = self.engine.generate_tokens(tokens, options).map_err(to_js)?;
                (continue_text(generation, sink).await?, tokens.len())
            }
            (None, Some(text), None) => {
                let tokens = self.engine.encode(text).map_err(to_js)?;
                let generation = self.engine.generate_tokens(&tokens, options).map_err(to_js)?;
                (continue_text(generation, sink).await?, tokens.len())
            }
            (Some(chat), None, None) => {
                let (messages, template) = (chat.messages()?, chat.template());
                let prompt = self.engine.fit_prompt(&messages, &template, &options).map_err(to_js)?;
                let n_prompt = prompt.tokens.len();
                let calls = request.calls.then(CallChoice::default);
                options.grammar =
                    self.grammar(rule, request.strict, &prompt.text, chat.tools()).map_err(to_js)?;
                let ask = Ask::new(prompt.tokens, options);
                let answer = self.engine.answer_to(ask, &prompt.text, chat.tools(), calls.as_ref());
                (answer_chat(answer.map_err(to_js)?, prompt.n_dropped, sink).await?, n_prompt)
            }
            _ => return Err(bad_request("expected one of chat, prompt and tokens")),
        };
        Ok(end.to_json(n_prompt, self.engine.load().n_recovered - losses))
    }

    /// The conversation as bytes, for [`Self::restore`].
    ///
    /// # Errors
    /// Device errors.
    pub async fn save(&mut self) -> Result<Vec<u8>, JsValue> {
        self.engine.save().await.map_err(to_js)
    }

    /// Restores a conversation of [`Self::save`].
    ///
    /// # Errors
    /// Bytes that are no session of this model; device errors.
    pub async fn restore(&mut self, bytes: Vec<u8>) -> Result<(), JsValue> {
        self.engine.restore(&bytes).await.map_err(to_js)
    }

    /// The embeddings of a text, concatenated, of `describe().embedding` values each: one, or with pooling `none` one
    /// per token. The first value is the number of the text's tokens.
    ///
    /// # Errors
    /// Neither the model nor `pooling` specifies the pooling; a text without tokens or longer than the context; device
    /// errors.
    pub async fn embed(&mut self, text: String, pooling: Option<String>) -> Result<Vec<f32>, JsValue> {
        let pooling = pooling.map(|p| p.parse::<Pooling>()).transpose();
        let pooling = pooling.map_err(|e| to_js(Error::Model(ModelError::Pooling(e))))?;
        let options = EmbedOptions { pooling, ..EmbedOptions::default() };
        let found = self.engine.embed(&[text], &options).await.map_err(to_js)?;
        let counts = found.iter().map(|e| e.n_token as f32);
        Ok(counts.chain(found.iter().flat_map(|e| e.vectors.iter().flatten().copied())).collect())
    }
}

impl WebEngine {
    /// The grammar of an answer with these tools; none where strict calls are asked for, but the model's notation has
    /// none.
    fn grammar(
        &self,
        rule: Option<JsRule>,
        is_strict: bool,
        prompt: &str,
        tools: &[Value],
    ) -> Result<Option<Grammar>, ModelError> {
        let Some(rule) = rule else { return Ok(None) };
        let template = self.engine.model().templates().get(!tools.is_empty())?;
        let template = template.map_or("", |t| t.source());
        let is_free = is_strict && !AnswerSyntax::of_template(template).has_calls();
        Ok((!is_free).then(|| grammar(rule, template, prompt)))
    }
}

/// A device that can be destroyed.
#[wasm_bindgen]
pub struct WebDevice {
    gpu: Option<Arc<Gpu>>,
}

#[wasm_bindgen]
impl WebDevice {
    /// Destroys the device, with the effect of a driver reset.
    pub fn lose(&self) {
        if let Some(gpu) = &self.gpu {
            gpu.destroy();
        }
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
    let (n_ctx, kv) = (options.context_length, options.kv_type);
    let config = RunnerConfig { n_ctx, kv, chunk, ..RunnerConfig::default() };
    let need = crate::inspect::need(&model, &config, caps.as_ref()).await?;
    if need.n_byte() as f64 > budget {
        return Err(crate::error::over_budget(need.n_byte(), budget));
    }
    Ok(())
}
