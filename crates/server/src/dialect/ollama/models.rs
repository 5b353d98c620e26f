//! `/api/tags`, `/api/ps` and `/api/show`.

use chaski::gguf::FILE_TYPES;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::about::About;
use crate::dialect::openai::models::capabilities;
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::hex;
use crate::model::Facts;
use crate::models::Listed;
use crate::sampling;

/// The version whose API this is; editors ask for a recent one.
pub(crate) fn version() -> Value {
    json!({"version": "0.40.0"})
}

/// The name of the model that a body of `/api/show` asks for.
pub(crate) fn shown(body: &Value) -> Result<&str, ApiError> {
    let fields = Fields::of(body, "")?;
    let name = fields.text("model")?.or(fields.text("name")?);
    fields.need("model", name)
}

/// The models of the server. Files that are no models are left out.
pub(crate) fn tags(models: &[Listed]) -> Value {
    let tags = models.iter().filter_map(|listed| Some(tag(listed, listed.about().ok()?)));
    json!({"models": tags.collect::<Vec<_>>()})
}

/// The models that are loaded.
pub(crate) fn ps(models: &[Listed]) -> Value {
    let loaded = |listed: &Listed| {
        let facts = listed.facts.as_ref()?;
        let mut model = tag(listed, &facts.about);
        if let Some(model) = model.as_object_mut() {
            model.shift_remove("modified_at");
        }
        // The most nanoseconds of an i64, with which ollama means that a model stays.
        let always = TimeDelta::nanoseconds(i64::MAX);
        let stays = listed.stays.map_or(always, |time| TimeDelta::from_std(time).unwrap_or(always));
        model["expires_at"] = (Utc::now() + stays).to_rfc3339_opts(SecondsFormat::Nanos, true).into();
        model["size_vram"] = listed.n_byte.into();
        model["context_length"] = facts.n_ctx.into();
        Some(model)
    };
    json!({"models": models.iter().filter_map(loaded).collect::<Vec<_>>()})
}

/// Everything about a model.
///
/// # Errors
/// [`Kind::Unsupported`] for a file that is no model.
pub(crate) fn show(listed: &Listed) -> Result<Value, ApiError> {
    let about = listed.about().map_err(|error| ApiError::new(Kind::Unsupported, error))?;
    let arch = &about.arch;
    let parameters = listed.facts.as_ref().map_or(String::new(), |facts| parameters(facts));
    Ok(json!({
        "modelfile": format!("# chaski\nFROM {}\n", listed.offer.file()),
        "parameters": parameters,
        "template": about.template.as_deref().unwrap_or(""),
        "details": details(about),
        "model_info": {
            "general.architecture": arch,
            "general.parameter_count": about.n_param,
            format!("{arch}.context_length"): about.n_ctx_train,
            format!("{arch}.embedding_length"): about.n_embd,
            format!("{arch}.vocab_size"): about.n_vocab,
        },
        "capabilities": capabilities(listed, about),
        "modified_at": time(listed.offer.created),
    }))
}

fn tag(listed: &Listed, about: &About) -> Value {
    let name = name(&listed.offer.id);
    json!({
        "name": name,
        "model": name,
        "modified_at": time(listed.offer.created),
        "size": about.n_byte,
        "digest": digest(&listed.offer.file(), about),
        "details": details(about),
    })
}

fn details(about: &About) -> Value {
    let file_type = FILE_TYPES.iter().find(|file_type| file_type.title == about.ftype);
    json!({
        "parent_model": "",
        "format": "gguf",
        "family": about.arch,
        "families": [about.arch],
        "parameter_size": size(about.n_param),
        "quantization_level": file_type.map_or("unknown", |file_type| file_type.name),
        "context_length": about.n_ctx_train,
        "embedding_length": about.n_embd,
    })
}

/// A name with a tag.
fn name(id: &str) -> String {
    if id.contains(':') { id.into() } else { format!("{id}:latest") }
}

/// Tells models apart; it is not the hash of the file, which would have to be read for it.
fn digest(file: &str, about: &About) -> String {
    let text = format!("{file}\n{}\n{}", about.n_byte, about.n_param);
    hex::text(&Sha256::digest(text.as_bytes()))
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
    let told = sampling::told(&facts.sampler, facts);
    let line = |name: &&str| {
        // The numbers are of 32 bits; so many digits are theirs.
        let value = told.get(*name)?.as_f64()? as f32;
        Some(format!("{name:<30} {value}"))
    };
    let names = ["temperature", "top_k", "top_p", "min_p", "repeat_penalty"];
    names.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}
