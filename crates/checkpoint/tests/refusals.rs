//! Configurations and weights that would compute something else, or that are damaged: each is refused by name. Also
//! spellings of other versions of transformers, which must give the same file.

mod common;

use std::path::{Path, PathBuf};

use chaski_checkpoint::Folder;
use chaski_checkpoint::hf::{HfError, OpenOptions, Opened, open};
use ggml_format::{ByteSource, Gguf, MemorySource};
use serde_json::{Value, json};

/// A checkpoint with changes.
struct Edited {
    path: PathBuf,
    config: Value,
    header: Value,
    data: Vec<u8>,
}

impl Edited {
    fn new(path: &Path) -> Edited {
        let bytes = common::read(&path.join("model.safetensors"));
        let n = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header = serde_json::from_slice(&bytes[8..8 + n]).unwrap();
        let config = common::json(&path.join("config.json"));
        Edited { path: path.to_owned(), config, header, data: bytes[8 + n..].to_vec() }
    }

    fn open(&self) -> Result<Opened<MemorySource>, HfError> {
        let header = serde_json::to_vec(&self.header).unwrap();
        let weights = [&(header.len() as u64).to_le_bytes()[..], &header, &self.data].concat();
        let config = serde_json::to_vec(&self.config).unwrap();
        let tokenizer = ["tokenizer.json", "tokenizer.model", "tokenizer_config.json"];
        let tokenizer = tokenizer.into_iter().filter(|name| self.path.join(name).exists());
        let mut files: Vec<(String, Vec<u8>)> =
            tokenizer.map(|name| (name.to_owned(), common::read(&self.path.join(name)))).collect();
        files.push(("config.json".into(), config));
        files.push(("model.safetensors".into(), weights));
        let source = |(name, bytes): (String, Vec<u8>)| (name.clone(), MemorySource::new(name, bytes));
        pollster::block_on(open(Folder::new("model", files.into_iter().map(source)), &OpenOptions::default()))
    }

    /// The message and those of its causes.
    fn error(&self) -> String {
        let Err(e) = self.open() else { return "no error".into() };
        let mut out = e.to_string();
        let mut cause = std::error::Error::source(&e);
        while let Some(e) = cause {
            out = format!("{out}: {e}");
            cause = e.source();
        }
        out
    }
}

/// A checkpoint, keys of config.json (null removes one), and a part of the error.
const CONFIGS: &[(&str, &str, &str)] = &[
    ("llama-gqa", r#"{"architectures": ["OtherForCausalLM"]}"#, "class \"OtherForCausalLM\" is not known"),
    ("llama-gqa", r#"{"hidden_act": "gelu"}"#, "activation Some(\"gelu\")"),
    ("llama-gqa", r#"{"sliding_window": 64}"#, "sliding_window Some(64)"),
    ("llama-gqa", r#"{"num_attention_heads": 0}"#, "key `num_attention_heads`: expected a positive number"),
    (
        "llama-gqa",
        r#"{"num_hidden_layers": 3}"#,
        "`model.layers.2.input_layernorm.weight`: needed by LlamaForCausalLM",
    ),
    ("llama-gqa", r#"{"num_hidden_layers": 1}"#, "`model.layers.1.input_layernorm.weight` and 8 more"),
    ("llama-gqa", r#"{"num_hidden_layers": 4000000000}"#, "expected at most 4096"),
    ("llama-gqa", r#"{"num_attention_heads": "four"}"#, "expected a whole number, found \"four\""),
    // A value of another kind is not as none.
    (
        "llama-gqa",
        r#"{"tie_word_embeddings": "false"}"#,
        "key `tie_word_embeddings`: expected true or false, found \"false\"",
    ),
    ("llama-gqa", r#"{"tie_word_embeddings": 1}"#, "expected true or false, found 1"),
    (
        "llama-gqa",
        r#"{"use_sliding_window": 0}"#,
        "key `use_sliding_window`: expected true or false, found 0",
    ),
    ("llama-gqa", r#"{"hidden_act": ["silu"]}"#, "key `hidden_act`: expected a text, found [\"silu\"]"),
    ("llama-gqa", r#"{"rope_scaling": "yarn"}"#, "key `rope_scaling`: expected an object, found \"yarn\""),
    ("llama-gqa", r#"{"rope_scaling": {"type": 3}}"#, "key `rope_scaling.type`: expected a text, found 3"),
    ("llama-gqa", r#"{"text_config": []}"#, "key `text_config`: expected an object, found []"),
    ("qwen3moe", r#"{"norm_topk_prob": "yes"}"#, "key `norm_topk_prob`: expected true or false"),
    ("qwen3moe", r#"{"mlp_only_layers": 1}"#, "key `mlp_only_layers`: expected a list, found 1"),
    ("llama-rope3-tied", r#"{"head_dim": 4000000000}"#, "key `head_dim`: expected at most 65536"),
    (
        "llama-gqa",
        r#"{"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}"#,
        "RoPE scaling of type \"dynamic\"",
    ),
    ("llama-gqa", r#"{"quantization_config": {"quant_method": "bitsandbytes"}}"#, "quantise it with --type"),
    (
        "llama-gqa",
        r#"{"quantization_config": {"quant_method": "awq", "bits": 3, "version": "gemm"}}"#,
        "awq: expected 4 bits, found Some(3)",
    ),
    (
        "llama-gqa",
        r#"{"quantization_config": {"quant_method": "awq", "bits": 4, "version": "gemv"}}"#,
        "awq of version \"gemv\": codes have another order",
    ),
    (
        "llama-gqa",
        r#"{"quantization_config": {"quant_method": "awq", "bits": 4, "version": "gemv_fast"}}"#,
        "awq of version \"gemv_fast\": codes have another order",
    ),
    (
        "llama-gqa",
        r#"{"quantization_config": {"quant_method": "awq", "bits": 4, "version": "marlin"}}"#,
        "awq of version \"marlin\": codes have another order",
    ),
    (
        "llama-gqa",
        r#"{"quantization_config": {"quant_method": "awq", "bits": 4, "format": "llm-awq"}}"#,
        "awq of version \"llm-awq\": codes have another order",
    ),
    (
        "llama-gptq",
        r#"{"quantization_config": {"quant_method": "gptq", "bits": 3}}"#,
        "expected 2, 4 or 8 bits",
    ),
    (
        "llama-fp8",
        r#"{"quantization_config": {"quant_method": "fp8", "weight_block_size": [32, 16]}}"#,
        "scales for 64 x 32 codes",
    ),
    ("llama-fp8", r#"{"quantization_config": null}"#, "and 13 more: LlamaForCausalLM has no such tensor"),
    ("qwen3moe", r#"{"mlp_only_layers": [1]}"#, "layers without experts"),
    ("qwen3moe", r#"{"norm_topk_prob": false}"#, "norm_topk_prob false"),
    ("qwen3moe", r#"{"num_local_experts": 5}"#, "`model.layers.0.mlp.experts.4.gate_proj.weight`: needed"),
    ("qwen3moe", r#"{"num_local_experts": 3}"#, "`model.layers.0.mlp.experts.3.down_proj.weight` and 5 more"),
    (
        "qwen3next",
        r#"{"layer_types": ["full_attention", "linear_attention", "linear_attention", "full_attention"]}"#,
        "attention in other layers",
    ),
    ("gemma", r#"{"rope_parameters": {"rope_theta": 5000.0}}"#, "RoPE with base Some(5000.0)"),
    (
        "gemma2",
        r#"{"query_pre_attn_scalar": 24}"#,
        "query_pre_attn_scalar Some(24.0) where heads have 16 channels",
    ),
    ("gemma3", r#"{"query_pre_attn_scalar": 24}"#, "query_pre_attn_scalar"),
    ("gemma3", r#"{"use_bidirectional_attention": true}"#, "use_bidirectional_attention"),
    (
        "cohere2",
        r#"{"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"]}"#,
        "every 4th",
    ),
    ("smollm3", r#"{"no_rope_layers": [1, 0, 1, 0]}"#, "layers without RoPE"),
    ("deepseek3", r#"{"scoring_func": "relu"}"#, "scoring_func \"relu\""),
    ("deepseek3", r#"{"moe_layer_freq": 2}"#, "moe_layer_freq 2"),
    ("deepseek2", r#"{"n_group": 2}"#, "with groups"),
    ("deepseek3", r#"{"first_k_dense_replace": 2}"#, "`model.layers.1.mlp.gate_proj.weight`: needed"),
    ("gpt-oss", r#"{"swiglu_limit": 5.0}"#, "swiglu_limit Some(5.0)"),
    ("granite", r#"{"head_dim": 16}"#, "head_dim 16 where heads have 8 channels"),
    ("granitehybrid", r#"{"position_embedding_type": "rope"}"#, "position_embedding_type \"rope\""),
    (
        "deepseek3",
        r#"{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0}}"#,
        "YaRN with mscale",
    ),
    ("granitehybrid", r#"{"num_local_experts": 4}"#, "num_local_experts 4"),
    ("granitehybrid", r#"{"layer_types": ["mamba", "rwkv"]}"#, "layer_types of layer 1"),
    ("granitehybrid", r#"{"layer_types": ["mamba"]}"#, "key `layer_types`: expected 2 names"),
    ("mamba2", r#"{"time_step_limit": [0.0, 0.5]}"#, "time_step_limit [0.0,0.5]"),
    ("mamba2", r#"{"time_step_limit": [0.001, null]}"#, "time_step_limit [0.001,null]"),
    ("falcon-h1", r#"{"time_step_limit": [0.001, {"__float__": "Infinity"}]}"#, "time_step_limit [0.001,"),
    ("mamba2", r#"{"time_step_limit": [0.0]}"#, "key `time_step_limit`: expected two numbers"),
    ("mamba2", r#"{"time_step_limit": "none"}"#, "key `time_step_limit`: expected two numbers"),
    ("mamba2", r#"{"time_step_limit": [0.0, "x"]}"#, "key `time_step_limit`: expected a number"),
    (
        "qwen35",
        r#"{"linear_key_head_dim": 4000000000}"#,
        "key `linear_key_head_dim`: expected less than 32768",
    ),
    (
        "cohere2",
        r#"{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0}}"#,
        "RoPE scaling of type Some(\"yarn\")",
    ),
    (
        "phi3",
        r#"{"rope_parameters": {"rope_type": "longrope", "attention_factor": 1.5}, "original_max_position_embeddings": 64}"#,
        "longrope with an attention factor of Some(1.5)",
    ),
    (
        "llama-gqa",
        r#"{"rope_parameters": {"rope_type": "longrope"}}"#,
        "\"longrope\" in other classes than Phi 3",
    ),
    ("falcon-h1", r#"{"ssm_multipliers": [1.0]}"#, "key `ssm_multipliers`: expected 5 numbers"),
    (
        "phi3",
        r#"{"rope_scaling": {"rope_type": "longrope", "short_factor": [1.0]}, "rope_parameters": null}"#,
        "rope_scaling.long_factor",
    ),
];

/// Changes keys of an object; null removes one.
fn change(config: &mut Value, changes: &str) {
    let changes: Value = serde_json::from_str(changes).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        let config = config.as_object_mut().unwrap();
        if value.is_null() {
            config.shift_remove(key);
        } else {
            config.insert(key.clone(), value.clone());
        }
    }
}

#[test]
fn configurations_that_gguf_cannot_say_are_refused() {
    let checkpoints = common::weights("checkpoints");
    let mut wrong = Vec::new();
    for (name, changes, expected) in CONFIGS {
        let mut edited = Edited::new(&checkpoints.join(name));
        change(&mut edited.config, changes);
        let error = edited.error();
        if !error.contains(expected) {
            wrong.push(format!("{name} {changes}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tensors_that_are_missing_or_superfluous_are_named() {
    let checkpoints = common::weights("checkpoints");
    let rename = |name: &str, from: &str, to: &str| {
        let mut edited = Edited::new(&checkpoints.join(name));
        let header = edited.header.as_object_mut().unwrap();
        let entry = header.shift_remove(from).unwrap();
        header.insert(to.to_owned(), entry);
        edited.error()
    };
    let norm = "model.layers.1.input_layernorm.weight";
    assert!(
        rename("llama-gqa", norm, "x.weight").contains("`model.layers.1.input_layernorm.weight`: needed")
    );
    let bias =
        rename("qwen2-bias", "model.layers.0.self_attn.q_proj.bias", "model.layers.0.self_attn.r_proj.bias");
    assert!(
        bias.contains("`model.layers.0.self_attn.r_proj.bias`: Qwen2ForCausalLM has no such tensor"),
        "{bias}"
    );
    let scale = "model.layers.0.mlp.down_proj.weight_scale_inv";
    assert!(rename("llama-fp8", scale, "x").contains("`model.layers.0.mlp.down_proj.weight_scale`: needed"));
    assert_eq!(
        rename("llama-gqa", norm, "language_model.model.norm.weight"),
        "tensor `model.norm.weight`: expected once in the text model, found twice"
    );
    // Constants, drafts and pictures are no part of the text model.
    for name in [
        "model.layers.0.self_attn.rotary_emb.inv_freq",
        "model.layers.0.attention.bias",
        "mtp.fc.weight",
        "vision_tower.x.weight",
    ] {
        let mut edited = Edited::new(&checkpoints.join("llama-gqa"));
        let (start, n) = (edited.data.len(), 4);
        edited.header[name] = json!({"dtype": "F32", "shape": [1], "data_offsets": [start, start + n]});
        edited.data.extend([0; 4]);
        assert_eq!(edited.error(), "no error", "{name}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let checkpoints = common::weights("checkpoints");
    let reshape = |name: &str, tensor: &str, shape: &[u64]| {
        let mut edited = Edited::new(&checkpoints.join(name));
        edited.header[tensor]["shape"] = json!(shape);
        edited.error()
    };
    let q = "model.layers.0.self_attn.q_proj.weight";
    assert!(
        reshape("llama-gqa", q, &[2, 1024])
            .contains("expected the shape of 4 heads of even size, found [2, 1024]")
    );
    assert!(reshape("mamba2", "backbone.layers.0.mixer.conv1d.weight", &[96, 4]).contains("of 3 dimensions"));
    assert!(
        reshape("deepseek3", "model.layers.0.self_attn.kv_b_proj.weight", &[64, 64]).contains("at least")
    );
    let experts = "model.layers.0.mlp.experts.gate_up_proj";
    for shape in [&[4096][..], &[256, 16], &[4, 64, 16], &[4, 64, 1, 4, 4]] {
        let error = reshape("gpt-oss-mxfp4", &format!("{experts}_blocks"), shape);
        assert!(error.contains("expected blocks of 16 bytes"), "{shape:?}: {error}");
    }
    let error = reshape("gpt-oss-mxfp4", &format!("{experts}_scales"), &[256]);
    assert!(error.contains("expected blocks of 16 bytes"), "{error}");
    let error = reshape("gpt-oss-mxfp4", &format!("{experts}_scales"), &[64, 4, 1]);
    assert!(error.contains("expected a scale for each block"), "{error}");
}

/// All bytes of a folder as a file.
fn bytes(edited: &Edited) -> Vec<u8> {
    let source = edited.open().unwrap_or_else(|_| panic!("{}", edited.error())).source;
    let mut bytes = vec![0; source.len() as usize];
    pollster::block_on(source.read_at(0, &mut bytes)).unwrap();
    bytes
}

/// Multipliers of a module's input belong to its matrix alone, those of its result to its bias, too.
#[test]
fn biases_of_falcon_h1_have_the_multipliers_of_results_only() {
    let checkpoints = common::weights("checkpoints");
    let mut edited = Edited::new(&checkpoints.join("falcon-h1"));
    change(&mut edited.config, r#"{"attention_in_multiplier": 4.0, "key_multiplier": 0.5}"#);
    for (name, value) in [("q_proj", 3.0f32), ("k_proj", 3.0)] {
        let n =
            edited.header[format!("model.layers.0.self_attn.{name}.weight")]["shape"][0].as_u64().unwrap();
        let start = edited.data.len();
        (0..n).for_each(|_| edited.data.extend(value.to_le_bytes()));
        edited.header[format!("model.layers.0.self_attn.{name}.bias")] =
            json!({"dtype": "F32", "shape": [n], "data_offsets": [start, edited.data.len()]});
    }
    let file = bytes(&edited);
    let gguf = Gguf::parse(file.clone().into(), file.len() as u64).unwrap();
    for (name, expected) in [("attn_q", 3.0f32), ("attn_k", 1.5)] {
        let bias = gguf.tensor(&format!("blk.0.{name}.bias")).unwrap();
        let data = &file[bias.offset as usize..][..bias.n_byte as usize];
        assert!(data.len() > 4 && data.chunks(4).all(|b| b == expected.to_le_bytes()), "{name}");
    }
}

#[test]
fn spellings_of_other_versions_give_the_same_file() {
    let checkpoints = common::weights("checkpoints");
    let cases = [
        (
            "llama-gqa",
            r#"{"rope_parameters": null, "rope_theta": 10000.0, "torch_dtype": "bfloat16", "dtype": null}"#,
        ),
        (
            "llama-rope3-tied",
            r#"{"rope_parameters": null, "rope_theta": 5e5, "rope_scaling": {"type": "llama3", "factor": 8.0,
            "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}"#,
        ),
        (
            "gemma3",
            r#"{"rope_parameters": null, "rope_theta": 1e6, "rope_local_base_freq": 10000.0, "layer_types": null}"#,
        ),
        ("granitehybrid", r#"{"layer_types": ["linear_attention", "full_attention"]}"#),
        ("qwen35", r#"{"layer_types": null, "full_attention_interval": 4}"#),
        ("deepseek3", r#"{"scoring_func": null, "topk_method": "noaux_tc"}"#),
        ("glm4", r#"{"rope_parameters": null, "rope_theta": 10000.0}"#),
    ];
    for (name, changes) in cases {
        let mut edited = Edited::new(&checkpoints.join(name));
        let expected = bytes(&edited);
        change(&mut edited.config, changes);
        assert!(bytes(&edited) == expected, "{name} {changes}");
    }
    // Groups in order need no list.
    let mut edited = Edited::new(&checkpoints.join("llama-gptq"));
    let down = "model.layers.0.self_attn.o_proj.g_idx";
    let expected = bytes(&edited);
    let entry = edited.header.as_object_mut().unwrap().shift_remove(down).unwrap();
    edited.header["model.layers.0.self_attn.rotary_emb.inv_freq"] = entry;
    assert!(bytes(&edited) == expected);
    // A text model within another one.
    let mut edited = Edited::new(&checkpoints.join("gemma3"));
    let expected = bytes(&edited);
    edited.config =
        json!({"architectures": ["Gemma3ForConditionalGeneration"], "text_config": edited.config});
    let header = edited.header.as_object().unwrap();
    edited.header =
        header.iter().map(|(name, entry)| (format!("language_model.{name}"), entry.clone())).collect();
    edited.header.as_object_mut().unwrap().shift_remove("language_model.__metadata__");
    assert!(bytes(&edited) == expected);
}

#[test]
fn shards_are_read_by_their_index() {
    let checkpoints = common::weights("checkpoints");
    let edited = Edited::new(&checkpoints.join("llama-gqa"));
    let expected = bytes(&edited);
    let tensors: Vec<(&String, &Value)> =
        edited.header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__").collect();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut map = serde_json::Map::new();
    for (i, part) in tensors.chunks(8).enumerate() {
        let file = format!("model-{i}.safetensors");
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, entry) in part {
            let offsets = &entry["data_offsets"];
            let range = offsets[0].as_u64().unwrap() as usize..offsets[1].as_u64().unwrap() as usize;
            let start = data.len();
            data.extend(&edited.data[range]);
            let mut entry = (*entry).clone();
            entry["data_offsets"] = json!([start, data.len()]);
            header.insert((*name).clone(), entry);
            map.insert((*name).clone(), file.clone().into());
        }
        let header = serde_json::to_vec(&header).unwrap();
        files.push((file, [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat()));
    }
    let n_file = files.len();
    files.push((
        "model.safetensors.index.json".into(),
        serde_json::to_vec(&json!({"weight_map": map})).unwrap(),
    ));
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        files.push((name.into(), common::read(&edited.path.join(name))));
    }
    let open_files = |files: &[(String, Vec<u8>)]| {
        let source = |(name, bytes): &(String, Vec<u8>)| {
            (name.clone(), MemorySource::new(name.clone(), bytes.clone()))
        };
        pollster::block_on(open(Folder::new("model", files.iter().map(source)), &OpenOptions::default()))
    };
    let source = open_files(&files).unwrap().source;
    let mut found = vec![0; source.len() as usize];
    pollster::block_on(source.read_at(0, &mut found)).unwrap();
    assert!(n_file == 3 && found == expected);
    files.remove(1);
    let error = open_files(&files).unwrap_err().to_string();
    assert_eq!(error, "`model`: expected a file `model-1.safetensors`, found none");
}
