//! Statistics of a generation, as text and as JSON.

use std::time::Duration;

use chaski::gpu::Memory;
use chaski::{Engine, Finish, Stats};
use serde_json::{Value, json};

use crate::ui::{LoadTimes, Ui, bytes};

/// The stop reason, as one word.
pub(crate) fn finish_word(finish: Option<Finish>) -> &'static str {
    match finish {
        Some(Finish::Stop) => "stop",
        Some(Finish::StopText) => "stop_text",
        Some(Finish::Length) => "length",
        Some(Finish::Context) => "context",
        None => "interrupted",
    }
}

fn ms(d: Duration) -> f64 {
    (d.as_secs_f64() * 1e6).round() / 1e3
}

fn rate(r: f64) -> f64 {
    (r * 1e3).round() / 1e3
}

/// Prints the statistics on stderr.
pub(crate) fn print(ui: &Ui, engine: &Engine, times: &LoadTimes, stats: &Stats) {
    let line = |name: &str, text: String| ui.detail(&format!("{name:<12}{text}"));
    let (total, compile, upload) = (ms(times.total), ms(times.compile), ms(times.upload));
    line("load", format!("{total:.1} ms (kernels after {compile:.1} ms, weights after {upload:.1} ms)"));
    let (n, cached) = (stats.n_prompt, stats.n_cached);
    line("prompt", format!("{n} tokens ({cached} more cached), {:.2} tokens/s", stats.prompt_rate()));
    line("first token", format!("{:.1} ms", ms(stats.ttft)));
    line("answer", format!("{} tokens, {:.2} tokens/s", stats.n_token, stats.token_rate()));
    if stats.n_drafted > 0 {
        line("drafts", format!("{} of {} accepted", stats.n_accepted, stats.n_drafted));
    }
    if let Some(r) = engine.expert_reads() {
        let (wanted, read, n_byte) = (r.wanted, r.read, bytes(r.n_byte));
        line("experts", format!("{read} of {wanted} requested were read from the file, {n_byte} so far"));
    }
    if let Some(gpu) = engine.loaded().gpu() {
        let (per_layer, all) = gpu.dispatches_per_token();
        line("dispatches", format!("{all} per token, {per_layer:.1} per layer"));
    }
    let memory = engine.memory();
    line("memory", bytes(memory.n_byte()));
    let by_device = engine.memory_by_device();
    for (i, (device, memory)) in by_device.iter().enumerate() {
        if by_device.len() > 1 {
            line("", format!("device {i}, {device}: {}", bytes(memory.n_byte())));
        }
        for item in &memory.items {
            ui.detail(&format!("            {:>12}  {}", bytes(item.n_byte), item.what));
        }
    }
}

/// Bytes by category.
pub(crate) fn memory_json(memory: &Memory) -> Value {
    let items: serde_json::Map<String, Value> =
        memory.items.iter().map(|i| (i.what.replace([' ', ','], "_"), i.n_byte.into())).collect();
    json!({ "total": memory.n_byte(), "items": items })
}

/// The same for an engine, with the part of each device if there are several.
pub(crate) fn engine_memory_json(engine: &Engine) -> Value {
    let mut all = memory_json(&engine.memory());
    let by_device = engine.memory_by_device();
    if by_device.len() > 1 {
        let of = |(device, memory): &(String, Memory)| {
            let mut one = memory_json(memory);
            one["device"] = device.as_str().into();
            one
        };
        all["devices"] = by_device.iter().map(of).collect();
    }
    all
}

/// The statistics of an answer.
pub(crate) fn json(engine: &Engine, times: &LoadTimes, stats: &Stats) -> Value {
    let dispatches = engine.loaded().gpu().map(|g| g.dispatches_per_token());
    let experts = engine.expert_reads();
    json!({
        "load_ms": ms(times.total),
        "compile_ms": ms(times.compile),
        "upload_ms": ms(times.upload),
        "prompt_tokens": stats.n_prompt,
        "cached_tokens": stats.n_cached,
        "answer_tokens": stats.n_token,
        "drafted_tokens": stats.n_drafted,
        "accepted_tokens": stats.n_accepted,
        "dropped_tokens": stats.n_dropped,
        "ttft_ms": ms(stats.ttft),
        "prompt_tokens_per_second": rate(stats.prompt_rate()),
        "answer_tokens_per_second": rate(stats.token_rate()),
        "dispatches_per_token": dispatches.map(|(_, all)| all),
        "dispatches_per_layer": dispatches.map(|(per_layer, _)| per_layer),
        "experts": experts.map(|r| json!({ "wanted": r.wanted, "read": r.read, "read_bytes": r.n_byte })),
        "memory": engine_memory_json(engine),
    })
}
