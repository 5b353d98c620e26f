//! A loaded model, for the package's JavaScript.

use std::sync::Arc;

use chaski::kernels::Caps;
use chaski::{
    AddSpecial, AnswerEvent, AnswerParser, AnswerSyntax, DeviceChoice, Engine, Error, Finish, ModelError,
    ParseSpecial, Piece, Reader, RenderSpecial, Source, Stage, Tokenizer, memory_need,
};
use js_sys::Function;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::{bad_request, to_js};
use crate::file::{JsFile, JsReader};
use crate::inspect::memory_json;
use crate::request::{Chat, CreateOptions, Request, parse};

/// Files of JavaScript as a source.
pub(crate) fn source(files: Vec<JsFile>) -> Source {
    Source::Readers(files.into_iter().map(|f| Arc::new(JsReader::new(f)) as Arc<dyn Reader>).collect())
}

/// A loaded model.
#[wasm_bindgen]
pub struct WebEngine {
    engine: Engine,
}

#[wasm_bindgen]
impl WebEngine {
    /// Loads a model. `options` are [`CreateOptions`] as JSON; `progress(stage, done, total)` is called meanwhile, with
    /// `compile` and kernels or `upload` and bytes.
    ///
    /// # Errors
    /// Throws `{ code, message, hint, detail }`, as everything here does.
    pub async fn create(
        files: Vec<JsFile>,
        options: String,
        progress: Function,
    ) -> Result<WebEngine, JsValue> {
        let options: CreateOptions = parse(&options)?;
        let source = source(files);
        let mut builder = Engine::builder(source.clone())
            .context(options.context_length)
            .device(DeviceChoice::Gpu(None))
            .web_subgroups(options.subgroups)
            .self_test(move |_| options.trusted)
            .on_progress(move |p| {
                let stage = match p.stage {
                    Stage::Compile => "compile",
                    Stage::Upload => "upload",
                };
                // What a progress handler throws does not stop loading.
                let (done, total) = (p.done as f64, p.total as f64);
                let _ = progress.call3(&JsValue::NULL, &stage.into(), &done.into(), &total.into());
            });
        if let Some(kv) = &options.kv_type {
            builder = builder.kv(kv.parse().map_err(|e| to_js(Error::Model(ModelError::KvType(e))))?);
        }
        if options.chunk > 0 {
            builder = builder.chunk(options.chunk);
        }
        if let Some(budget) = options.memory_budget {
            check_budget(&source, &options, budget).await?;
        }
        let engine = builder.build().await.map_err(to_js)?;
        Ok(WebEngine { engine })
    }

    /// What the file says of itself, the device and its memory, as JSON.
    pub fn describe(&mut self) -> String {
        let (info, device) = (self.engine.info(), self.engine.device().clone());
        let model = self.engine.model();
        let has_template = model.templates().get(false).is_ok_and(|t| t.is_some());
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
        let runner = self.engine.runner();
        let loading = runner.gpu().map(|g| g.load_times());
        let dispatches = runner.gpu().map(|g| g.dispatches_per_token().1);
        json!({
            "model": model,
            "contextLength": runner.n_ctx(),
            "memory": memory,
            "device": {
                "name": device.name,
                "driver": device.driver,
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

    /// The tokens of a text; `special` reads the names of special tokens as such.
    ///
    /// # Errors
    /// A model whose tokenizer cannot spell the text.
    pub fn tokenize(&self, text: &str, add_special: bool, special: bool) -> Result<Vec<u32>, JsValue> {
        let add = if add_special { AddSpecial::Yes } else { AddSpecial::No };
        let parse = if special { ParseSpecial::Yes } else { ParseSpecial::No };
        self.engine.tokenizer().encode(text, add, parse).map_err(|e| to_js(ModelError::from(e)))
    }

    /// The text of tokens.
    pub fn detokenize(&self, tokens: &[u32], special: bool) -> String {
        let render = if special { RenderSpecial::Yes } else { RenderSpecial::No };
        self.engine.tokenizer().decode_lossy(tokens, render)
    }

    /// The prompt of a conversation ([`Chat`] as JSON).
    ///
    /// # Errors
    /// No template, or one that refuses the messages.
    pub fn apply_template(&self, chat: &str) -> Result<String, JsValue> {
        let chat: Chat = parse(chat)?;
        self.engine.chat_prompt(&chat.messages()?, &chat.template()).map_err(to_js)
    }

    /// Opens the device anew and loads the model again, after the device was lost; the conversation is kept.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn rebuild(&mut self) -> Result<(), JsValue> {
        self.engine.rebuild().await.map_err(to_js)
    }

    /// Gives the device up, as a driver reset would; for tests.
    pub fn lose_device(&self) {
        if let Some(gpu) = self.engine.gpu() {
            gpu.destroy();
        }
    }

    /// Answers a [`Request`] (JSON). `event(text)` gets each event as JSON and returns true to stop; the result says how
    /// the answer ended, as JSON.
    ///
    /// Events: `prompt` (`done` of `total` tokens are under way), `text`, `reasoning`, `content`, `call`, `arguments`,
    /// `call_end`.
    ///
    /// # Errors
    /// Bad requests; a device that fails. After `device_lost`, [`Self::rebuild`] makes the engine usable again.
    pub async fn generate(&mut self, request: String, event: Function) -> Result<String, JsValue> {
        let request: Request = parse(&request)?;
        let (prompt, parts) = self.prompt(&request)?;
        let shown = parts.as_ref().map(|p| p.shown.clone()).unwrap_or_default();
        let options = request.options(shown);
        let mut sink = Sink { event, parser: parts.map(|p| p.parser), stopped: false };
        let mut generation = self.engine.generate_tokens(&prompt, options).map_err(to_js)?;
        loop {
            let more = generation.prompt().await.map_err(|e| to_js(Error::from(e)))?;
            let (done, total) = generation.progress();
            sink.send(&json!({ "type": "prompt", "done": done, "total": total }))?;
            if !more || sink.stopped {
                break;
            }
        }
        while !sink.stopped {
            let Some(piece) = generation.next().await.map_err(|e| to_js(Error::from(e)))? else { break };
            sink.piece(generation.tokenizer(), &piece)?;
        }
        let finish = match generation.finish() {
            None => "aborted",
            Some(Finish::Stop | Finish::StopText) => "stop",
            Some(Finish::Length) => "length",
            Some(Finish::Context) => "context",
        };
        sink.end()?;
        let stats = generation.stats();
        Ok(json!({
            "finish": finish,
            "promptTokens": prompt.len(),
            "cachedTokens": stats.n_cached,
            "tokens": stats.n_token,
            "firstMs": 1e3 * stats.first.as_secs_f64(),
            "restMs": 1e3 * stats.rest.as_secs_f64(),
            "promptPerSecond": stats.prompt_rate(),
            "tokensPerSecond": stats.token_rate(),
            "submissions": stats.n_group,
            "onProcessor": generation.on_processor(),
        })
        .to_string())
    }
}

/// How an answer's parts are told apart.
struct Parts {
    parser: AnswerParser,
    /// Special tokens that must be shown for it.
    shown: Vec<u32>,
}

impl WebEngine {
    /// The tokens of a request, and for a conversation how its answer is read.
    fn prompt(&self, request: &Request) -> Result<(Vec<u32>, Option<Parts>), JsValue> {
        match (&request.chat, &request.prompt, &request.tokens) {
            (None, None, Some(tokens)) => Ok((tokens.clone(), None)),
            (None, Some(text), None) => Ok((self.tokenize(text, true, true)?, None)),
            (Some(chat), None, None) => {
                let text = self.engine.chat_prompt(&chat.messages()?, &chat.template()).map_err(to_js)?;
                let template = self.engine.template(!chat.tools().is_empty()).map_err(to_js)?;
                let syntax = AnswerSyntax::of_template(template.map_or("", |t| t.source()));
                let parts = Parts {
                    parser: AnswerParser::new(syntax, &text, chat.tools()),
                    shown: syntax.marker_tokens(self.engine.tokenizer()),
                };
                Ok((self.tokenize(&text, true, true)?, Some(parts)))
            }
            _ => Err(bad_request("expected one of chat, prompt and tokens")),
        }
    }
}

/// Where the events of an answer go.
struct Sink {
    event: Function,
    parser: Option<AnswerParser>,
    stopped: bool,
}

impl Sink {
    fn send(&mut self, event: &Value) -> Result<(), JsValue> {
        let stop = self.event.call1(&JsValue::NULL, &event.to_string().into())?;
        self.stopped |= stop.is_truthy();
        Ok(())
    }

    fn piece(&mut self, tokenizer: &Tokenizer, piece: &Piece) -> Result<(), JsValue> {
        let logprobs = logprobs_of(tokenizer, piece);
        let Some(parser) = &mut self.parser else {
            return self.send(&json!({ "type": "text", "text": piece.text, "logprobs": logprobs }));
        };
        let events = parser.push(&piece.text);
        if let Some(logprobs) = logprobs {
            self.send(&json!({ "type": "logprobs", "logprobs": logprobs }))?;
        } else if events.is_empty() {
            // So that it can be stopped while marks are incomplete.
            self.send(&json!({ "type": "content", "text": "" }))?;
        }
        self.parts(events)
    }

    fn parts(&mut self, events: Vec<AnswerEvent>) -> Result<(), JsValue> {
        for event in events {
            self.send(&match event {
                AnswerEvent::Reasoning(text) => json!({ "type": "reasoning", "text": text }),
                AnswerEvent::Content(text) => json!({ "type": "content", "text": text }),
                AnswerEvent::CallBegin { name } => json!({ "type": "call", "name": name }),
                AnswerEvent::Arguments(text) => json!({ "type": "arguments", "text": text }),
                AnswerEvent::CallEnd { is_valid, written } => {
                    json!({ "type": "call_end", "valid": is_valid, "written": written })
                }
            })?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), JsValue> {
        let events = self.parser.as_mut().map(AnswerParser::finish).unwrap_or_default();
        self.parts(events)
    }
}

/// The logarithms of probabilities that came with a piece.
fn logprobs_of(tokenizer: &Tokenizer, piece: &Piece) -> Option<Value> {
    let (token, logprobs) = (piece.token?, piece.logprobs.as_ref()?);
    let entry = |token: u32, logprob: f32| {
        let bytes = tokenizer.token_bytes(token, RenderSpecial::Yes);
        // JSON has no infinity; a probability of 0 is null.
        json!({ "token": String::from_utf8_lossy(&bytes), "id": token, "logprob": logprob, "bytes": &bytes[..] })
    };
    let top: Vec<Value> = logprobs.top.iter().map(|&(token, logprob)| entry(token, logprob)).collect();
    let mut object = entry(token, logprobs.logprob);
    object["top_logprobs"] = top.into();
    Some(object)
}

pub(crate) fn caps_json(caps: &Caps) -> Value {
    json!({
        "subgroups": caps.subgroup.map(|(min, max)| [min, max]),
        "f16": caps.f16,
        "intDot": caps.int_dot,
        "maxBindingBytes": caps.max_binding_bytes,
        "maxThreads": caps.max_threads,
        "maxWorkgroupBytes": caps.max_workgroup_bytes,
        "software": caps.software,
        "alone": caps.alone,
    })
}

/// Refuses a model that would take more device memory than it may.
async fn check_budget(source: &Source, options: &CreateOptions, budget: f64) -> Result<(), JsValue> {
    let model = source.open().await.map_err(to_js)?;
    let caps = crate::inspect::caps(options.subgroups).await;
    let kv = options.kv_type.as_deref().map(str::parse).transpose();
    let kv = kv.map_err(|e| to_js(Error::Model(ModelError::KvType(e))))?.unwrap_or_default();
    let chunk = if options.chunk > 0 { options.chunk } else { crate::inspect::CHUNK };
    let need = memory_need(&model, options.context_length, kv, chunk, &caps).await.map_err(to_js)?;
    if need.n_byte() as f64 > budget {
        return Err(crate::error::over_budget(need.n_byte(), budget));
    }
    Ok(())
}
