//! `/v1/models`.

use serde_json::{Value, json};

use crate::about::About;
use crate::models::{Listed, Offer};

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

/// All names, if there is more than one.
fn names(offer: &Offer) -> Vec<&String> {
    let id = Some(&offer.id).filter(|_| !offer.aliases.is_empty());
    id.into_iter().chain(&offer.aliases).collect()
}

/// All models.
pub(crate) fn list(models: &[Listed]) -> Value {
    json!({"object": "list", "data": models.iter().map(model).collect::<Vec<_>>()})
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
