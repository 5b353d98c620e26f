//! A server for a group of cases, and a client.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use chaski::embedding::Pooling;
use chaski::gguf::OwnedValue;
use chaski::gpu::Gpu;
use chaski::kernels::ActivationPrecision;
use chaski::{DeviceChoice, Engine, KvType, SamplerParams, Source};
use chaski_server::{Key, Listen, LoadError, Loader, ModelOptions, Offer, Server, ServerConfig};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::cases::{Case, data};

/// How a server is set up.
pub(crate) struct Setup {
    /// A file of the golden data; the built-in model if unset.
    model: Option<&'static str>,
    /// Source of a chat template in place of the model's.
    template: Option<String>,
    /// Other values of the model's metadata.
    pub(crate) metadata: Vec<(String, OwnedValue)>,
    /// Files of LoRAs in memory, by name, and their scales.
    pub(crate) loras: Vec<(String, &'static [u8], f32)>,
    /// The built-in model drafts for itself.
    pub(crate) drafts: bool,
    /// Runs on a GPU, which is kept here; on the CPU if unset.
    pub(crate) gpu: Option<Arc<OnceLock<Arc<Gpu>>>>,
    /// A model is there without a request for it.
    pub(crate) has_model: bool,
    /// As the recorded texts need it; otherwise as programs have it, which is several times as fast.
    exact: bool,
    pub(crate) n_ctx: u32,
    n_seq: u32,
    pub(crate) max_waiting: usize,
    pub(crate) config: ServerConfig,
    pub(crate) options: ModelOptions,
}

/// The built-in model under a name; one called `broken` cannot be loaded.
pub(crate) fn offer(id: &str) -> Offer {
    let is_broken = id == "broken";
    let loader: Loader = Arc::new(move |_| {
        if is_broken {
            return Err(LoadError::Other("its file is broken".into()));
        }
        let mut setup = Setup::built_in(2);
        setup.options.pooling = Some(Pooling::Mean);
        Ok((setup.engine(), setup.options))
    });
    Offer::new(id, Source::Default, loader)
}

/// A running server; it ends with this.
pub(crate) struct Running {
    pub(crate) url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// A response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
    /// Events with their names.
    pub(crate) events: Vec<(String, Value)>,
}

impl Setup {
    /// The built-in model, for this many sequences.
    pub(crate) fn built_in(n_seq: u32) -> Setup {
        let mut setup = Setup::of("");
        (setup.model, setup.n_seq, setup.options.n_seq) = (None, n_seq, n_seq);
        setup.exact = false;
        setup
    }

    /// Models of the built-in file that are loaded when requests ask for them; one at a time.
    pub(crate) fn offering(ids: &[&'static str]) -> Setup {
        let mut setup = Setup::built_in(2);
        let ids = ids.to_vec();
        setup.has_model = false;
        setup.config.models_max = Some(1);
        setup.config.offers = Some(Arc::new(move || ids.iter().map(|id| offer(id)).collect()));
        setup
    }

    /// A small encoder with a head.
    pub(crate) fn reranker() -> Setup {
        let mut setup = Setup::built_in(1);
        setup.model = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/encoders/reranker.gguf"));
        setup.n_ctx = 64;
        setup
    }

    /// Another chat template.
    pub(crate) fn chat_template(&mut self, source: &str) {
        self.template = Some(source.into());
    }

    /// The server of a group of recorded cases.
    pub(crate) fn of(group: &str) -> Setup {
        let mut config = ServerConfig::default();
        config.listen = vec![Listen::Tcp(([127, 0, 0, 1], 0).into())];
        config.drain_delay = Duration::ZERO;
        let mut setup = Setup {
            model: Some("models/storyteller/storyteller-f16.gguf"),
            template: None,
            metadata: Vec::new(),
            loras: Vec::new(),
            drafts: false,
            gpu: None,
            has_model: true,
            exact: true,
            n_ctx: 512,
            n_seq: 4,
            max_waiting: 16,
            config,
            options: ModelOptions {
                id: Some("golden".into()),
                sampler: Some(SamplerParams::default()),
                ..ModelOptions::default()
            },
        };
        match group {
            "emb" => {
                setup.options.embeddings = true;
                setup.options.pooling = Some(chaski::embedding::Pooling::Mean);
            }
            "auth" => {
                let key = |text| Key::new(text, text);
                setup.config.keys = vec![key("key-one"), key("key-two")];
                (setup.config.metrics, setup.config.slots) = (false, false);
            }
            "tools" => {
                setup.model = Some("models/stories260K/stories260K-f32.gguf");
                let path = data().join("templates/Qwen-Qwen2.5-7B-Instruct.jinja");
                setup.template = Some(std::fs::read_to_string(path).expect("the template can be read"));
                setup.n_ctx = 2048;
            }
            "shift" | "small" => {
                (setup.n_ctx, setup.n_seq) = (256, 1);
                setup.options.context_shift = group == "shift";
            }
            _ => {}
        }
        setup.options.n_seq = setup.n_seq;
        setup
    }

    fn engine(&self) -> Engine {
        let source = self.model.map_or(Source::Default, |file| Source::path(data().join(file)));
        let mut builder = Engine::builder(source)
            .max_waiting(self.max_waiting)
            .context(self.n_ctx)
            .sequences(self.n_seq)
            .device(if self.gpu.is_some() { DeviceChoice::Gpu(None) } else { DeviceChoice::Cpu });
        if self.exact {
            builder = builder.kv(KvType::F32).inputs(ActivationPrecision::F32);
        }
        for (name, bytes, scale) in &self.loras {
            builder = builder.lora(Source::Bytes { name: name.clone(), bytes }, *scale);
        }
        for (key, value) in &self.metadata {
            builder = builder.metadata(key.as_str(), value.clone());
        }
        if let Some(template) = &self.template {
            builder = builder.metadata("tokenizer.chat_template", template.as_str());
        }
        let mut engine = pollster::block_on(builder.build()).expect("the model can be loaded");
        if let (Some(kept), Some(gpu)) = (&self.gpu, engine.gpu()) {
            kept.get_or_init(|| gpu.clone());
        }
        if self.drafts {
            let draft = Engine::builder(Source::Default).sequences(self.n_seq.min(4)).context(self.n_ctx);
            let draft = pollster::block_on(draft.device(DeviceChoice::Cpu).build());
            engine.set_draft(Some(draft.expect("the model can be loaded"))).expect("the same vocabulary");
        }
        engine
    }

    pub(crate) fn start(self) -> Running {
        let (stop, stopped) = oneshot::channel();
        let (sender, url) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            let runtime = runtime.expect("the system has threads");
            runtime.block_on(async {
                let engine = self.has_model.then(|| self.engine());
                let server = Server::bind(self.config).await.expect("a port is free");
                if let Some(engine) = engine {
                    server.add(engine, self.options).expect("the system has threads");
                }
                sender.send(server.urls().remove(0)).expect("the test waits");
                // A test that failed says no more.
                server.run(async { drop(stopped.await) }).await;
            });
        });
        let url = url.recv().expect("the server starts");
        Running { url, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the server panicked");
        }
    }
}

/// The events of a stream.
fn events(text: &str) -> Vec<(String, Value)> {
    let blocks = text.split("\n\n").filter(|block| !block.trim().is_empty());
    blocks
        .filter_map(|block| {
            let field = |name: &str| {
                block
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(|rest| rest.trim_start().to_owned())
            };
            let data = field("data:")?;
            let value = serde_json::from_str(&data).ok()?;
            Some((field("event:").unwrap_or_default(), value))
        })
        .collect()
}

impl Running {
    /// Sends the request of a case.
    pub(crate) fn ask(&self, case: &Case) -> Answer {
        self.send(&case.request)
    }

    /// Sends a body.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(&json!({"method": "POST", "path": path, "body": body}))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(&json!({"method": "GET", "path": path}))
    }

    /// The address without its scheme.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// True if it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(thread::JoinHandle::is_finished)
    }

    /// Tells it to end, without waiting.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Sends a request with a method, a path, headers and a body.
    pub(crate) fn send(&self, request: &Value) -> Answer {
        let field = |name: &str| request[name].as_str().unwrap_or_default();
        let url = format!("{}{}", self.url, field("path"));
        let mut builder = ureq::http::Request::builder().method(field("method")).uri(&url);
        for (name, value) in request["headers"].as_object().into_iter().flatten() {
            builder = builder.header(name, value.as_str().unwrap_or_default());
        }
        let body = match (&request["body"], request["raw_body"].as_str()) {
            (_, Some(raw)) => raw.to_owned(),
            (Value::Null, None) => String::new(),
            (body, None) => body.to_string(),
        };
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .build()
            .into();
        let asked = builder.body(body).expect("the request is well formed");
        let mut response = agent.run(asked).unwrap_or_else(|e| panic!("{}: {e}", field("path")));
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = response.body_mut().read_to_string().unwrap_or_else(|e| panic!("{}: {e}", field("path")));
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status, headers, body, events: events(&text), text }
    }
}
