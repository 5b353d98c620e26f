//! The golden folders of MLC's converter, whole: they come without configuration and tokenizer. The tests of whole
//! models include this file, too.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// The files of a folder of MLC, with those of the tokenizer and the configuration of its checkpoint.
pub(crate) fn files(weights: &Path, name: &str) -> BTreeMap<String, Vec<u8>> {
    let (checkpoint, quantization) = name.rsplit_once('-').unwrap();
    let checkpoint = weights.join("checkpoints").join(checkpoint);
    let mut files = BTreeMap::new();
    for (folder, is_wanted) in [(&checkpoint, "token"), (&weights.join("mlc").join(name), "")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.contains(is_wanted) {
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let config = std::fs::read(checkpoint.join("config.json")).unwrap();
    let config = serde_json::from_slice(&config).unwrap();
    let config = chat_config(&config, quantization);
    files.insert("mlc-chat-config.json".into(), config.to_string().into_bytes());
    files
}

/// The configuration that MLC's `gen_config` writes for a checkpoint.
fn chat_config(config: &Value, quantization: &str) -> Value {
    let model_type = config["model_type"].as_str().unwrap();
    let mut model =
        json!({"context_window_size": config["max_position_embeddings"], "prefill_chunk_size": 512});
    for key in [
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "rms_norm_eps",
        "vocab_size",
        "tie_word_embeddings",
        "head_dim",
        "hidden_act",
        "hidden_activation",
    ] {
        if !config[key].is_null() {
            model[key] = config[key].clone();
        }
    }
    let base = if model_type.starts_with("qwen") { "rope_theta" } else { "position_embedding_base" };
    model[base] = config["rope_parameters"]["rope_theta"].clone();
    if model_type == "phi3" {
        model["original_max_position_embeddings"] = config["original_max_position_embeddings"].clone();
    }
    json!({
        "version": "0.1.0", "model_type": model_type, "quantization": quantization, "model_config": model,
        "vocab_size": config["vocab_size"], "context_window_size": 512, "sliding_window_size": -1,
        "tensor_parallel_shards": 1, "bos_token_id": config["bos_token_id"], "eos_token_id": config["eos_token_id"],
        "tokenizer_files": ["tokenizer.json", "tokenizer_config.json"],
        "conv_template": {
            "name": "test", "system_template": "{system_message}", "system_message": "", "roles": {"user": "U", "assistant": "A"},
            "seps": ["\n"], "role_content_sep": ": ", "role_empty_sep": ":", "stop_str": ["nothing"], "stop_token_ids": [7]
        }
    })
}
