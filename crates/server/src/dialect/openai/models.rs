//! `/v1/models`.

use serde_json::{Value, json};

use crate::about::About;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::models::{Listed, Offer, model_id};

/// The name of the model that a body is about.
pub(crate) fn named(body: &Value) -> Result<&str, ApiError> {
    let fields = Fields::of(body, "")?;
    fields.need("model", fields.text("model")?)
}

/// A model.
pub(crate) fn model(listed: &Listed) -> Value {
    let offer = &listed.offer;
    let mut model = json!({
        "id": offer.id,
        "aliases": names(offer),
        "tags": offer.tags,
        "object": "model",
        "created": offer.created,
        "owned_by": "chaski",
        "path": offer.file(),
        "status": listed.status,
    });
    match listed.about() {
        Err(error) => model["status"]["error"] = error.into(),
        Ok(about) => {
            let n_ctx = listed.facts.as_ref().map(|facts| facts.n_ctx);
            model["max_model_len"] = json!(n_ctx);
            model["meta"] = json!({
                "n_vocab": about.n_vocab,
                "n_ctx": n_ctx,
                "n_ctx_train": about.n_ctx_train,
                "n_embd": about.n_embd,
                "n_params": about.n_param,
                "size": about.n_byte,
                "ftype": about.ftype,
            });
            model["capabilities"] = json!(capabilities(listed, about));
        }
    }
    model
}

/// A LoRA of a model, which is a model for requests, with the facts of its base.
fn lora(listed: &Listed, file: &str) -> Value {
    let base = &listed.offer.id;
    let mut lora = model(listed);
    lora["id"] = format!("{base}:{}", model_id(file)).into();
    lora["aliases"] = json!([]);
    lora["tags"] = json!([]);
    lora["path"] = file.into();
    lora["parent"] = base.as_str().into();
    lora
}

/// The model with this name, or the LoRA.
pub(crate) fn find(models: &[Listed], name: &str) -> Option<Value> {
    let called = models.iter().find(|listed| listed.offer.is_called(name)).map(model);
    called.or_else(|| {
        models.iter().find_map(|m| m.offer.lora_called(name).map(|at| lora(m, &m.offer.loras[at])))
    })
}

/// All names, if there is more than one.
fn names(offer: &Offer) -> Vec<&String> {
    let id = Some(&offer.id).filter(|_| !offer.aliases.is_empty());
    id.into_iter().chain(&offer.aliases).collect()
}

/// All models.
pub(crate) fn list(models: &[Listed]) -> Value {
    let own = models.iter().map(model);
    let loras = models.iter().flat_map(|m| {
        // Of several with one name, the first can be named.
        let is_first = |(at, file): &(usize, &String)| m.offer.lora_called(&model_id(file)) == Some(*at);
        m.offer.loras.iter().enumerate().filter(is_first).map(move |(_, file)| lora(m, file))
    });
    json!({"object": "list", "data": own.chain(loras).collect::<Vec<_>>()})
}

/// The abilities of a model, in ollama's words.
pub(crate) fn capabilities(listed: &Listed, about: &About) -> Vec<&'static str> {
    let all = [
        ("completion", !listed.embeds()),
        ("embedding", listed.pools()),
        ("insert", about.has_fim),
        ("tools", about.has_tools),
        ("thinking", about.has_thinking),
    ];
    all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}
