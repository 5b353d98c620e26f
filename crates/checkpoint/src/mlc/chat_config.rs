//! `mlc-chat-config.json`: the model, the format of its weights, and its conversations.

use serde_json::{Map, Value, json};

use super::MlcError;
use super::format::Format;
use super::names::{FAMILIES, Family};

/// The name of the file.
pub(super) const FILE: &str = "mlc-chat-config.json";

/// The content of the file.
#[derive(Debug)]
pub(super) struct ChatConfig {
    pub(super) family: &'static Family,
    pub(super) format: Format,
    /// The configuration as transformers has it.
    pub(super) config: Value,
    /// The template of conversations: an object, or the name of one that MLC had built in.
    pub(super) conversation: Value,
}

/// Names of the converter for what transformers calls otherwise. The latter's count if both are there.
const NAMES: [(&str, &str); 3] = [
    ("position_embedding_base", "rope_theta"),
    ("context_window_size", "max_position_embeddings"),
    ("sliding_window_size", "sliding_window"),
];

impl ChatConfig {
    /// Parses the file.
    ///
    /// # Errors
    /// For models and formats that are not known, and models that are split for several devices.
    pub(super) fn parse(json: &[u8]) -> Result<ChatConfig, MlcError> {
        let all = crate::python_json::parse(json).map_err(|source| MlcError::Json { file: FILE, source })?;
        let text = |key: &str| all.get(key).and_then(Value::as_str).unwrap_or_default();
        let wrong =
            |expected: &str, found: String| MlcError::Value { file: FILE, expected: expected.into(), found };
        let model_type = text("model_type");
        let family = Family::named(model_type).ok_or_else(|| {
            let known: Vec<&str> = FAMILIES.iter().flat_map(|family| family.types).copied().collect();
            wrong(&format!("a model_type that is known ({})", known.join(", ")), format!("{model_type:?}"))
        })?;
        let format = Format::named(text("quantization"))?;
        let Some(model) = all.get("model_config").and_then(Value::as_object) else {
            return Err(wrong("an object model_config", "none".into()));
        };
        let n_shard = |map: Option<&Value>| map.and_then(Value::as_u64).unwrap_or(1);
        let found =
            n_shard(all.get("tensor_parallel_shards")).max(n_shard(model.get("tensor_parallel_shards")));
        if found > 1 {
            return Err(MlcError::Shards { found });
        }
        let mut config = renamed(model);
        if let Some(inner) = model.get("text_config").and_then(Value::as_object) {
            config.insert("text_config".into(), renamed(inner).into());
        }
        config.insert("architectures".into(), json!([family.class]));
        // Without a key there is no window, whereas Mistral has one in transformers.
        if family.class == "MistralForCausalLM" {
            config.entry("sliding_window").or_insert(Value::Null);
        }
        for key in ["vocab_size", "bos_token_id", "eos_token_id", "pad_token_id"] {
            if let (Some(value), false) = (all.get(key), config.contains_key(key)) {
                config.insert(key.into(), value.clone());
            }
        }
        let conversation = all.get("conv_template").cloned().unwrap_or_default();
        Ok(ChatConfig { family, format, config: config.into(), conversation })
    }
}

/// A configuration with the names of transformers. Sizes that are not positive mean that there is none.
fn renamed(map: &Map<String, Value>) -> Map<String, Value> {
    let mut config = map.clone();
    for (from, to) in NAMES {
        let value = config.remove(from);
        if let (Some(value), None) = (value, config.get(to).filter(|value| !value.is_null())) {
            config.insert(to.into(), value);
        }
    }
    let is_off = |value: &Value| value.as_f64().is_some_and(|size| size <= 0.0);
    for key in ["sliding_window", "head_dim", "original_max_position_embeddings"] {
        if config.get(key).is_some_and(is_off) {
            config.remove(key);
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: Value) -> Result<ChatConfig, MlcError> {
        ChatConfig::parse(value.to_string().as_bytes())
    }

    #[test]
    fn names_become_those_of_transformers() {
        let parsed = parse(json!({
            "model_type": "gemma3", "quantization": "q4f16_1", "vocab_size": 7, "eos_token_id": [1, 2],
            "model_config": {
                "context_window_size": 5, "sliding_window_size": -1,
                "text_config": {"position_embedding_base": 10, "rope_theta": 20, "head_dim": 0}
            }
        }));
        let parsed = parsed.unwrap();
        let expected = json!({
            "max_position_embeddings": 5, "text_config": {"rope_theta": 20}, "architectures": ["Gemma3ForCausalLM"],
            "vocab_size": 7, "eos_token_id": [1, 2]
        });
        assert_eq!(parsed.config, expected);
        assert_eq!((parsed.family.class, parsed.format.name), ("Gemma3ForCausalLM", "q4f16_1"));
    }

    #[test]
    fn models_that_cannot_be_read_are_refused() {
        let model = |model_type: &str, quantization: &str, shards: u64| {
            let config = json!({"tensor_parallel_shards": shards});
            parse(json!({"model_type": model_type, "quantization": quantization, "model_config": config}))
        };
        assert!(model("llama", "q4f16_1", 1).is_ok());
        let cases = [
            (model("llama", "q4f16_ft", 1), "quantization `q4f16_ft`: its layout is that of CUDA kernels"),
            (model("llama", "q9", 1), "quantization `q9`: the format is not known"),
            (model("llama", "q4f16_1", 2), "tensor_parallel_shards is 2"),
            (model("rwkv", "q4f16_1", 1), "found \"rwkv\""),
            (parse(json!({"model_type": "llama", "quantization": "q0f16"})), "an object model_config"),
            (ChatConfig::parse(b"{"), "expected JSON"),
        ];
        for (found, expected) in cases {
            let error = found.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
