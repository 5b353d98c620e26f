//! Queries before loading: of the device, and of a model from the header of its file.

use chaski::KvType;
use chaski::gpu::{AdapterSummary, GpuOptions, Memory, adapters_with};
use chaski::kernels::Caps;
use chaski::source::OpenModel;
use chaski::steps::RunnerConfig;
use chaski::tools::memory_need;
use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error::to_js;
use crate::file::{JsFile, source};
use crate::request::{parse, word};

/// Default chunk size of prompts.
pub(crate) const CHUNK: u32 = 512;

/// The adapter that an engine would use, as JSON; `null` if there is none. `subgroups`: the page will make
/// `requestDevice` request them.
#[wasm_bindgen]
pub async fn adapter(subgroups: bool) -> String {
    let Some(a) = best(subgroups).await else { return "null".into() };
    json!({
        "name": a.name,
        "driver": a.driver,
        "kind": a.kind,
        "features": a.features,
        "maxBufferBytes": a.max_buffer_bytes,
        "caps": caps_json(&a.caps),
    })
    .to_string()
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct InspectOptions {
    context_length: u32,
    /// Contexts; 0: one.
    sequences: u32,
    #[serde(deserialize_with = "word")]
    kv_type: KvType,
    subgroups: bool,
    /// The CPU, not a GPU.
    cpu: bool,
}

/// The model described by a file's header, and the device memory it needs, as JSON.
///
/// # Errors
/// Invalid files, unsupported models.
#[wasm_bindgen]
pub async fn inspect(files: Vec<JsFile>, options: String) -> Result<String, JsValue> {
    let options: InspectOptions = parse(&options)?;
    let model = source(files).open().await.map_err(to_js)?;
    let adapter = best(options.subgroups).await;
    let caps = adapter.as_ref().map_or_else(Caps::base, |a| a.caps.clone());
    let (n_ctx, n_seq, kv) = (options.context_length, options.sequences.max(1), options.kv_type);
    let config = RunnerConfig { n_ctx, n_seq, kv, chunk: CHUNK, ..RunnerConfig::default() };
    let need = need(&model, &config, (!options.cpu).then_some(&caps)).await?;
    Ok(json!({
        "description": model.describe(),
        "architecture": model.arch().name,
        "bytes": model.n_byte(),
        "parameters": model.n_param(),
        "trainedContext": model.config().n_ctx_train,
        "vocabulary": model.config().n_vocab,
        "chatTemplate": model.templates().get(false).is_ok_and(|t| t.is_some()),
        "memory": memory_json(&need),
        "webgpu": adapter.is_some(),
    })
    .to_string())
}

/// Memory needs of a model on a device with these capabilities, or on the CPU.
pub(crate) async fn need(
    model: &OpenModel,
    config: &RunnerConfig,
    caps: Option<&Caps>,
) -> Result<Memory, JsValue> {
    memory_need(model, config, caps).await.map_err(to_js)
}

async fn best(subgroups: bool) -> Option<AdapterSummary> {
    let options = GpuOptions { web_subgroups: subgroups, ..GpuOptions::default() };
    adapters_with(&options).await.into_iter().next()
}

/// Capabilities of the best adapter; without one, WebGPU's guarantees.
pub(crate) async fn caps(subgroups: bool) -> Caps {
    best(subgroups).await.map_or_else(Caps::base, |a| a.caps)
}

/// Memory by kind, in bytes.
pub(crate) fn memory_json(memory: &Memory) -> Value {
    let items: serde_json::Map<String, Value> =
        memory.items.iter().map(|i| (i.what.to_owned(), i.n_byte.into())).collect();
    json!({ "total": memory.n_byte(), "items": items })
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
