//! `/props` and `/slots`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::config::ServerConfig;
use crate::model::{Facts, Served};
use crate::places::Task;
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

/// The properties of a server of several models, which may take so many bytes.
pub(crate) fn router(config: &ServerConfig, n_byte: Option<u64>) -> Value {
    json!({
        "role": "router",
        "max_instances": config.models_max.unwrap_or(0),
        "max_memory": n_byte,
        "models_autoload": config.autoload,
        "model_alias": "llama-server",
        "model_path": "none",
        "default_generation_settings": {"params": {}, "n_ctx": 0},
        "build_info": config.fingerprint,
    })
}

/// A place for each sequence, and what runs there; prompts and parameters are for operators. Texts that are embedded or
/// scored count as well: they have no places of their own.
pub(crate) fn slots(served: &Served, is_admin: bool) -> Value {
    let facts = &served.facts;
    let tasks = served.places.tasks();
    let mut n_other = served.load().n_running.saturating_sub(tasks.iter().flatten().count());
    let slot = |(id, task): (usize, &Option<Arc<Task>>)| {
        let is_other = task.is_none() && n_other > 0;
        n_other -= usize::from(is_other);
        let mut slot = json!({
            "id": id,
            "n_ctx": facts.n_ctx,
            "speculative": facts.speculation.is_some(),
            "is_processing": task.is_some() || is_other,
        });
        if let Some(task) = task {
            slot["id_task"] = task.id.into();
        }
        if let Some(task) = task.as_ref().filter(|_| is_admin) {
            let n_token = task.n_token();
            let n_remain = task.max_tokens.map_or(json!(-1), |most| json!(most.saturating_sub(n_token)));
            slot["params"] = (*task.params).clone();
            slot["prompt"] = (*task.prompt).into();
            slot["next_token"] =
                json!([{"has_next_token": true, "n_remain": n_remain, "n_decoded": n_token}]);
        }
        slot
    };
    tasks.iter().enumerate().map(slot).collect()
}
