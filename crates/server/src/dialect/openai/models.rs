//! `/v1/models`.

use serde_json::{Value, json};

use crate::model::Facts;

/// A model.
pub(crate) fn model(facts: &Facts) -> Value {
    json!({
        "id": facts.id,
        "aliases": facts.aliases,
        "object": "model",
        "created": facts.created,
        "owned_by": "chaski",
        "max_model_len": facts.n_ctx,
        "meta": {
            "n_vocab": facts.about.n_vocab,
            "n_ctx": facts.n_ctx,
            "n_ctx_train": facts.about.n_ctx_train,
            "n_embd": facts.about.n_embd,
            "n_params": facts.about.n_param,
            "size": facts.about.n_byte,
            "ftype": facts.about.ftype,
        },
        "status": {"value": "loaded"},
        "capabilities": capabilities(facts),
    })
}

/// All models.
pub(crate) fn list<'a>(models: impl Iterator<Item = &'a Facts>) -> Value {
    json!({"object": "list", "data": models.map(model).collect::<Vec<_>>()})
}

/// The abilities of a model, in ollama's words.
pub(crate) fn capabilities(facts: &Facts) -> Vec<&'static str> {
    let all = [
        ("completion", !facts.embeds),
        ("embedding", facts.embeds),
        ("tools", facts.about.has_tools),
        ("thinking", facts.about.has_thinking),
    ];
    all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}
