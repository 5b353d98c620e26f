//! `/props` and `/slots`.

use chaski::serve::Load;
use serde_json::{Value, json};

use crate::config::ServerConfig;
use crate::model::Facts;
use crate::sampling;

/// The properties of a model and its server.
pub(crate) fn props(facts: &Facts, config: &ServerConfig) -> Value {
    let mut params = sampling::told(&facts.sampler, facts);
    let limit = facts.max_tokens.map_or(json!(-1), |n| json!(n));
    params.insert("max_tokens".into(), limit.clone());
    params.insert("n_predict".into(), limit);
    params.insert("stream".into(), false.into());
    params.insert("lora".into(), facts.loras.in_force());
    let token = |id: Option<u32>| id.and_then(|id| facts.text_of(&[id]).ok()).unwrap_or_default();
    let ends = facts.with_tokenizer(|tokenizer| (tokenizer.bos(), tokenizer.eos())).unwrap_or_default();
    json!({
        "default_generation_settings": {"params": params, "n_ctx": facts.n_ctx},
        "total_slots": facts.n_seq,
        "model_alias": facts.id,
        "model_ftype": facts.about.ftype,
        "model_path": facts.file,
        "modalities": {"vision": false, "video": false, "audio": false},
        "endpoint_slots": config.slots,
        "endpoint_props": false,
        "endpoint_metrics": config.metrics,
        "chat_template": facts.about.template,
        "chat_template_caps": {
            "supports_tools": facts.about.has_tools,
            "supports_tool_calls": facts.about.has_tools,
        },
        "bos_token": token(ends.0),
        "eos_token": token(ends.1),
        "build_info": config.fingerprint,
        "is_sleeping": false,
    })
}

/// The properties of a model that is not loaded.
pub(crate) fn asleep(id: &str, config: &ServerConfig) -> Value {
    json!({
        "model_alias": id,
        "modalities": {"vision": false, "video": false, "audio": false},
        "endpoint_slots": config.slots,
        "endpoint_props": false,
        "endpoint_metrics": config.metrics,
        "build_info": config.fingerprint,
        "is_sleeping": true,
    })
}

/// The properties of a server of several models.
pub(crate) fn router(config: &ServerConfig) -> Value {
    json!({
        "role": "router",
        "max_instances": config.models_max.unwrap_or(0),
        "models_autoload": config.autoload,
        "model_alias": "llama-server",
        "model_path": "none",
        "default_generation_settings": {"params": {}, "n_ctx": 0},
        "build_info": config.fingerprint,
    })
}

/// A place for each sequence. Requests have no fixed places: as many count as taken as run.
pub(crate) fn slots(facts: &Facts, load: &Load) -> Value {
    let slot = |id: u32| {
        let is_processing = (id as usize) < load.n_running;
        json!({"id": id, "n_ctx": facts.n_ctx, "speculative": facts.speculation.is_some(), "is_processing": is_processing})
    };
    (0..facts.n_seq).map(slot).collect()
}
