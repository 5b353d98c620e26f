//! `/api/tags`, `/api/ps` and `/api/show`.

use chaski::gguf::FILE_TYPES;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::dialect::openai::models::capabilities;
use crate::model::Facts;
use crate::sampling;

/// The version whose API this is; editors ask for a recent one.
pub(crate) fn version() -> Value {
    json!({"version": "0.40.0"})
}

/// The models of the server.
pub(crate) fn tags<'a>(models: impl Iterator<Item = &'a Facts>) -> Value {
    json!({"models": models.map(tag).collect::<Vec<_>>()})
}

/// The models that are loaded, which all are.
pub(crate) fn ps<'a>(models: impl Iterator<Item = &'a Facts>) -> Value {
    let loaded = |facts: &'a Facts| {
        let mut model = tag(facts);
        if let Some(model) = model.as_object_mut() {
            model.shift_remove("modified_at");
        }
        // The most nanoseconds of an i64, with which ollama means that a model stays.
        let stays = Utc::now() + TimeDelta::nanoseconds(i64::MAX);
        model["expires_at"] = stays.to_rfc3339_opts(SecondsFormat::Nanos, true).into();
        model["size_vram"] = facts.about.n_byte.into();
        model["context_length"] = facts.n_ctx.into();
        model
    };
    json!({"models": models.map(loaded).collect::<Vec<_>>()})
}

/// Everything about a model.
pub(crate) fn show(facts: &Facts) -> Value {
    let arch = &facts.about.arch;
    json!({
        "modelfile": format!("# chaski\nFROM {}\n", facts.file),
        "parameters": parameters(facts),
        "template": facts.about.template.as_deref().unwrap_or(""),
        "details": details(facts),
        "model_info": {
            "general.architecture": arch,
            "general.parameter_count": facts.about.n_param,
            format!("{arch}.context_length"): facts.about.n_ctx_train,
            format!("{arch}.embedding_length"): facts.about.n_embd,
            format!("{arch}.vocab_size"): facts.about.n_vocab,
        },
        "capabilities": capabilities(facts),
        "modified_at": time(facts.created),
    })
}

fn tag(facts: &Facts) -> Value {
    let name = name(&facts.id);
    json!({
        "name": name,
        "model": name,
        "modified_at": time(facts.created),
        "size": facts.about.n_byte,
        "digest": digest(facts),
        "details": details(facts),
    })
}

fn details(facts: &Facts) -> Value {
    let file_type = FILE_TYPES.iter().find(|file_type| file_type.title == facts.about.ftype);
    json!({
        "parent_model": "",
        "format": "gguf",
        "family": facts.about.arch,
        "families": [facts.about.arch],
        "parameter_size": size(facts.about.n_param),
        "quantization_level": file_type.map_or("unknown", |file_type| file_type.name),
        "context_length": facts.about.n_ctx_train,
        "embedding_length": facts.about.n_embd,
    })
}

/// A name with a tag.
fn name(id: &str) -> String {
    if id.contains(':') { id.into() } else { format!("{id}:latest") }
}

/// Tells models apart; it is not the hash of the file, which would have to be read for it.
fn digest(facts: &Facts) -> String {
    let text = format!("{}\n{}\n{}", facts.file, facts.about.n_byte, facts.about.n_param);
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn time(seconds: u64) -> String {
    let time = DateTime::from_timestamp(i64::try_from(seconds).unwrap_or(0), 0).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Nanos, true)
}

/// A number of parameters with a unit.
fn size(n: u64) -> String {
    let n = n as f64;
    match n {
        _ if n >= 1e9 => format!("{:.1}B", n / 1e9),
        _ if n >= 1e6 => format!("{:.1}M", n / 1e6),
        _ => format!("{:.1}K", n / 1e3),
    }
}

/// Parameters that hold where a request says nothing, one a line.
fn parameters(facts: &Facts) -> String {
    let told = sampling::told(&facts.sampler);
    let line = |name: &&str| {
        // The numbers are of 32 bits; so many digits are theirs.
        let value = told.get(*name)?.as_f64()? as f32;
        Some(format!("{name:<30} {value}"))
    };
    let names = ["temperature", "top_k", "top_p", "min_p", "repeat_penalty"];
    names.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}
