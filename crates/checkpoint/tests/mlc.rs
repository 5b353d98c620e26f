//! Folders of MLC's converter, compared with the checkpoints that they were made of.

mod common;
#[path = "common/mlc_folder.rs"]
mod mlc_folder;

use std::collections::BTreeMap;
use std::path::Path;

use chaski_checkpoint::hf::{self, OpenOptions, Opened};
use chaski_checkpoint::mlc::{self, MlcError};
use chaski_checkpoint::{Folder, Types};
use common::{json, read, say, weights};
use ggml_format::{ByteSource, FileType, GgmlType, Gguf, MemorySource, dequantize};
use mlc_folder::files;
use serde_json::{Value, json};

fn folder(files: &BTreeMap<String, Vec<u8>>) -> Folder<MemorySource> {
    let sources =
        files.iter().map(|(name, bytes)| (name.clone(), MemorySource::new(name.clone(), bytes.clone())));
    Folder::new("folder", sources)
}

fn open(files: &BTreeMap<String, Vec<u8>>) -> Result<Opened<MemorySource>, MlcError> {
    pollster::block_on(mlc::open(folder(files), &OpenOptions::default()))
}

/// The header of an opened folder, and its tensors as f32.
fn contents(opened: &Opened<MemorySource>) -> (Gguf, BTreeMap<String, (GgmlType, Vec<f32>)>) {
    let mut bytes = vec![0; opened.source.len() as usize];
    pollster::block_on(opened.source.read_at(0, &mut bytes)).unwrap();
    let gguf = Gguf::parse(bytes.clone().into(), bytes.len() as u64).unwrap();
    let tensors = gguf.tensors().iter().map(|tensor| {
        let data = &bytes[tensor.offset as usize..][..tensor.n_byte as usize];
        let mut values = vec![0.0; tensor.ne.iter().product::<u64>() as usize];
        dequantize(tensor.ty, data, &mut values).unwrap();
        (tensor.name.to_owned(), (tensor.ty, values))
    });
    let tensors = tensors.collect();
    (gguf, tensors)
}

/// |a - b| / |b|, of the vectors.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |x: f64| x * x;
    let difference: f64 = a.iter().zip(b).map(|(a, b)| square(f64::from(*a) - f64::from(*b))).sum();
    (difference / b.iter().map(|b| square((*b).into())).sum::<f64>()).sqrt()
}

/// Names of all folders of the golden data.
fn names(weights: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(weights.join("mlc")).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn folders_are_their_checkpoints_but_for_rounding() {
    let weights = weights("");
    let names = names(&weights);
    assert_eq!(names.len(), 8);
    for name in names {
        let (checkpoint, quantization) = name.rsplit_once('-').unwrap();
        let opened = open(&files(&weights, &name)).unwrap_or_else(|e| panic!("{name}: {}", chain(&e)));
        let is_exact = quantization.starts_with("q4");
        assert_eq!(opened.notes.len(), 1 + usize::from(!is_exact), "{name}: {:?}", opened.notes);
        let options = OpenOptions { types: Types::Mix(FileType::F32), ..OpenOptions::default() };
        let original = common::folder(&weights.join("checkpoints").join(checkpoint));
        let original = pollster::block_on(hf::open(original, &options)).unwrap();
        let ((gguf, tensors), (expected_gguf, expected)) = (contents(&opened), contents(&original));
        assert!(tensors.keys().eq(expected.keys()), "{name}: {:?}", tensors.keys());
        let mut largest = 0.0_f64;
        for (tensor, (ty, values)) in &tensors {
            let (_, expected) = &expected[tensor];
            let is_matrix = gguf.tensor(tensor).unwrap().shape().len() > 1;
            assert_eq!(*ty == GgmlType::Q4_0, is_matrix && is_exact, "{name}: {tensor}");
            let distance = distance(values, expected);
            let most = match (is_matrix, is_exact) {
                // Norms of Gemma are added to in bf16.
                (false, _) => 3e-3,
                (true, true) => 0.12,
                (true, false) => 0.25,
            };
            assert!(distance < most, "{name}: {tensor} differs by {distance}");
            largest = largest.max(distance);
        }
        let is_model = |key: &str| !key.starts_with("general.") && !key.starts_with("tokenizer.ch");
        for (key, value) in expected_gguf.metadata().iter().filter(|(key, _)| is_model(key)) {
            assert_eq!(gguf.get(key), Some(value), "{name}: {key}");
        }
        say(&format!("{name}: {} tensors, the largest difference {largest:.3}", tensors.len()));
    }
}

/// Checkpoints whose folders in bf16 are made here, with the `model_type` of MLC.
const FAMILIES: &[(&str, &str)] = &[
    ("llama-gqa", "llama"),
    ("olmo2", "olmo2"),
    ("qwen2-bias", "qwen2"),
    ("qwen3", "qwen3"),
    ("qwen3moe", "qwen3_moe"),
    ("gemma", "gemma"),
    ("gemma2", "gemma2"),
    ("gemma3", "gemma3"),
    ("phi3", "phi3"),
];

/// A tensor's shape, and its elements as f32.
type Plain = (Vec<u64>, Vec<f32>);

/// The tensors of a checkpoint in bf16.
fn checkpoint_tensors(folder: &Path) -> BTreeMap<String, Plain> {
    let source = MemorySource::new("model.safetensors", read(&folder.join("model.safetensors")));
    let header = pollster::block_on(chaski_checkpoint::safetensors::read_header(&source)).unwrap();
    let value = |b: &[u8]| f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16);
    let tensors = header.tensors.into_iter().map(|tensor| {
        let mut bytes = vec![0; tensor.n_byte as usize];
        pollster::block_on(source.read_at(tensor.offset, &mut bytes)).unwrap();
        (tensor.name, (tensor.shape, bytes.chunks(2).map(value).collect()))
    });
    tensors.collect()
}

/// Matrices below each other.
fn below(parts: Vec<Plain>) -> Plain {
    let mut shape = parts[0].0.clone();
    shape[0] = parts.iter().map(|part| part.0[0]).sum();
    (shape, parts.into_iter().flat_map(|part| part.1).collect())
}

/// The tensors as MLC's loaders fuse and name them.
fn fused(mut tensors: BTreeMap<String, Plain>, model_type: &str) -> BTreeMap<String, Plain> {
    let mut out = BTreeMap::new();
    let names: Vec<String> = tensors.keys().cloned().collect();
    let mut fuse =
        |tensors: &mut BTreeMap<String, Plain>, prefix: &str, from: &[&str], to: &str, end: &str| {
            let parts: Vec<Plain> =
                from.iter().filter_map(|name| tensors.remove(&format!("{prefix}{name}.{end}"))).collect();
            if parts.len() == from.len() {
                out.insert(format!("{prefix}{to}.{end}"), below(parts));
            }
        };
    let qkv = if model_type.starts_with("qwen") { "self_attn.c_attn" } else { "self_attn.qkv_proj" };
    for name in names.iter().filter(|name| name.ends_with("input_layernorm.weight") || model_type == "olmo2")
    {
        let Some((start, rest)) = name.split_once("layers.") else { continue };
        let prefix = format!("{start}layers.{}.", rest.split('.').next().unwrap());
        for end in ["weight", "bias"] {
            if model_type != "gemma3" {
                let parts = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"];
                fuse(&mut tensors, &prefix, &parts, qkv, end);
            }
            fuse(&mut tensors, &prefix, &["mlp.gate_proj", "mlp.up_proj"], "mlp.gate_up_proj", end);
        }
        let experts: Vec<String> = (0..4).map(|e| format!("mlp.experts.{e}")).collect();
        let both: Vec<String> =
            experts.iter().flat_map(|e| [format!("{e}.gate_proj"), format!("{e}.up_proj")]).collect();
        let down: Vec<String> = experts.iter().map(|e| format!("{e}.down_proj")).collect();
        let texts = |list: &[String]| {
            list.iter().map(|text| -> &'static str { text.clone().leak() }).collect::<Vec<_>>()
        };
        fuse(&mut tensors, &prefix, &texts(&both), "mlp.moe_gate_up_proj", "weight");
        fuse(&mut tensors, &prefix, &texts(&down), "mlp.moe_down_proj", "weight");
    }
    out.extend(tensors);
    let renamed = out.into_iter().map(|(name, (mut shape, mut values))| {
        let mut name = match model_type {
            "phi3" => name
                .replace("model.layers.", "transformer.h.")
                .replace("model.embed_tokens", "transformer.embd")
                .replace("model.norm", "transformer.norm")
                .replace("self_attn.o_proj", "mixer.out_proj")
                .replace("self_attn.qkv_proj", "mixer.qkv_proj")
                .replace("input_layernorm", "ln"),
            _ => name,
        };
        if model_type == "gemma3" {
            name = format!("language_model.{name}");
        }
        if model_type.starts_with("gemma") && name.ends_with("norm.weight") {
            values.iter_mut().for_each(|value| *value += 1.0);
        }
        if name.contains(".moe_") {
            shape = vec![4, shape[0] / 4, shape[1]];
        }
        (name, (shape, values))
    });
    renamed.collect()
}

#[test]
fn plain_folders_of_all_families_are_their_checkpoints() {
    let weights = weights("");
    for (checkpoint, model_type) in FAMILIES {
        let folder = weights.join("checkpoints").join(checkpoint);
        let mut model = json(&folder.join("config.json"));
        let rope = model["rope_parameters"].clone();
        for key in ["architectures", "rope_parameters", "max_position_embeddings", "dtype"] {
            model.as_object_mut().unwrap().remove(key);
        }
        let theta = [&rope["rope_theta"], &rope["full_attention"]["rope_theta"]];
        model["position_embedding_base"] = theta.into_iter().find(|v| !v.is_null()).unwrap().clone();
        if *model_type == "gemma3" {
            model["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"].clone();
        }
        model["context_window_size"] = 512.into();
        let config = json!({"model_type": model_type, "quantization": "q0f32", "model_config": model});
        let (mut shard, mut records) = (Vec::new(), Vec::new());
        for (name, (shape, values)) in fused(checkpoint_tensors(&folder), model_type) {
            let (offset, n_byte) = (shard.len(), values.len() * 4);
            shard.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            records.push(json!({"name": name, "shape": shape, "dtype": "float32", "format": "raw", "nbytes": n_byte, "byteOffset": offset}));
        }
        let index = json!({"records": [{"dataPath": "params_shard_0.bin", "format": "raw-shard", "nbytes": shard.len(), "records": records}]});
        let mut files = BTreeMap::from([
            ("mlc-chat-config.json".to_owned(), config.to_string().into_bytes()),
            ("ndarray-cache.json".to_owned(), index.to_string().into_bytes()),
            ("params_shard_0.bin".to_owned(), shard),
        ]);
        for name in ["tokenizer.json", "tokenizer.model", "tokenizer_config.json", "added_tokens.json"] {
            if let Ok(bytes) = std::fs::read(folder.join(name)) {
                files.insert(name.to_owned(), bytes);
            }
        }
        let options =
            OpenOptions { types: Types::Mix(FileType::F32), allow_unproven: true, ..OpenOptions::default() };
        let opened = pollster::block_on(mlc::open(self::folder(&files), &options));
        let opened = opened.unwrap_or_else(|e| panic!("{checkpoint}: {}", chain(&e)));
        let original = pollster::block_on(hf::open(common::folder(&folder), &options)).unwrap();
        let ((gguf, found), (expected_gguf, expected)) = (contents(&opened), contents(&original));
        assert!(found.keys().eq(expected.keys()), "{checkpoint}: {:?}", found.keys());
        for (tensor, (_, values)) in &found {
            let distance = distance(values, &expected[tensor].1);
            assert!(distance < 1e-7, "{checkpoint}: {tensor} differs by {distance}");
        }
        let is_model = |key: &str| !key.starts_with("general.") && !key.starts_with("tokenizer.c");
        for (key, value) in expected_gguf.metadata().iter().filter(|(key, _)| is_model(key)) {
            assert_eq!(gguf.get(key), Some(value), "{checkpoint}: {key}");
        }
    }
}

#[test]
fn hashes_are_compared_on_request() {
    let weights = weights("");
    let mut files = files(&weights, "qwen3-q4f16_1");
    pollster::block_on(mlc::verify(&folder(&files))).unwrap();
    files.get_mut("params_shard_0.bin").unwrap()[77] ^= 1;
    let error = pollster::block_on(mlc::verify(&folder(&files))).unwrap_err();
    assert!(error.to_string().starts_with("`params_shard_0.bin`: expected the MD5 hash 53b6b606"), "{error}");
    assert!(open(&files).is_ok(), "sizes alone are compared when a folder is opened");
}

#[test]
fn the_template_of_the_configuration_is_used_where_there_is_no_other() {
    let weights = weights("");
    let opened = open(&files(&weights, "llama-gqa-q4f16_1")).unwrap();
    let (gguf, _) = contents(&opened);
    let template = gguf.metadata().str("tokenizer.chat_template").unwrap();
    assert!(template.contains("'U: '"), "{template}");
    assert_eq!(gguf.metadata().vec::<u32>("tokenizer.chaski.eog_token_ids").unwrap(), [7]);
    assert!(opened.notes[0].contains("[\"nothing\"]"), "{:?}", opened.notes);
    let (gguf, _) = contents(&open(&files(&weights, "qwen3-q4f16_1")).unwrap());
    assert!(gguf.metadata().str("tokenizer.chat_template").unwrap().contains("<|im_start|>"));
}

#[test]
fn damage_is_told() {
    let weights = weights("");
    let good = files(&weights, "llama-gqa-q4f16_1");
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut files = good.clone();
        let mut index: Value = serde_json::from_slice(&files["tensor-cache.json"]).unwrap();
        change(&mut index);
        files.insert("tensor-cache.json".into(), index.to_string().into_bytes());
        chain(&open(&files).unwrap_err())
    };
    let record = |index: &'static str, value: Value| {
        move |cache: &mut Value| cache["records"][0]["records"][0][index] = value.clone()
    };
    let cases: Vec<(String, &str)> = vec![
        (
            changed(&record("dtype", "float3".into())),
            "tensor `lm_head.q_weight`: expected a known type of elements",
        ),
        (changed(&record("format", "zip".into())), "expected the format raw or f32-to-bf16"),
        (changed(&record("shape", json!([320, 5]))), "expected 5120 bytes"),
        (changed(&record("shape", json!([u64::MAX, 5]))), "expected 5120 bytes"),
        (changed(&record("shape", json!([640, 2]))), "expected codes of the shape [640, 4], found [640, 2]"),
        (changed(&record("shape", json!([1, 1, 1, 1, 1, 1, 1, 1, 1]))), "at most 8 dimensions"),
        (changed(&record("byteOffset", u64::MAX.into())), "expected a range of a file of 25664 bytes"),
        (changed(&record("name", "other".into())), "tensor `lm_head.weight`"),
        (changed(&record("name", "model.norm.weight".into())), "\"model.norm.weight\" twice"),
        (
            changed(&|cache| cache["records"][0]["nbytes"] = 5.into()),
            "`params_shard_0.bin`: expected 5 bytes, found 25664",
        ),
        (
            changed(&|cache| cache["records"][0]["dataPath"] = "other.bin".into()),
            "expected a file `other.bin`, found none",
        ),
        (
            changed(&|cache| {
                let empty =
                    json!({"dataPath": "empty.bin", "format": "raw-shard", "nbytes": 0, "records": []});
                cache["records"].as_array_mut().unwrap().push(empty);
            }),
            "expected a file `empty.bin`, found none",
        ),
        (changed(&|cache| cache["records"][0]["dataPath"] = "../x".into()), "plain file names"),
        (changed(&|cache| cache["records"][0]["format"] = "zip".into()), "files of the format raw-shard"),
        (changed(&|cache| *cache = json!([])), "expected JSON of the converter"),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

#[test]
fn words_become_q4_0_bit_by_bit() {
    let golden = weights("mlc/q4f16_1-blocks.json");
    let golden = json(&golden);
    let numbers = |value: &Value| -> Vec<u64> {
        value
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|row| row.as_array().unwrap())
            .map(|n| n.as_u64().unwrap())
            .collect()
    };
    let mut file: Vec<u8> =
        numbers(&golden["q_weight"]).iter().flat_map(|n| (*n as u32).to_le_bytes()).collect();
    let n_word = file.len() as u64;
    file.extend(numbers(&golden["q_scale_f16_bits"]).iter().flat_map(|n| (*n as u16).to_le_bytes()));
    let found = q4_0(file, n_word, 8, 64);
    let expected: Vec<u8> = golden["q4_0_rows_hex"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| {
            row.as_str()
                .unwrap()
                .as_bytes()
                .chunks(2)
                .map(|hex| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap())
        })
        .collect();
    assert_eq!(found, expected);
}

/// The blocks of words and scales in f16, of a matrix of `n_row` x `n_col`, through the parts that folders are made of.
fn q4_0(file: Vec<u8>, n_byte_words: u64, n_row: u64, n_col: u64) -> Vec<u8> {
    use chaski_checkpoint::*;
    let view = |offset, dtype, n_col| View { file: 0, offset, dtype, n_row, n_col };
    let codes = Codes {
        view: view(0, Dtype::U32, n_col / 8),
        packing: Packing::AlongRow { bits: 4, order: Order::Plain },
        n_row,
        n_col,
    };
    let scale = view(n_byte_words, Dtype::F16, n_col / 32);
    let quantized = Quantized {
        codes,
        scale: scale.clone(),
        row: Index::Groups(1),
        col: Index::Groups(32),
        zero: Zero::Number(7.0),
    };
    let recipe = Recipe::quantized(quantized).unwrap().as_q4_0(Recipe::plain(scale).unwrap()).unwrap();
    let mut gguf = VirtualGguf::default();
    gguf.tensors.push(VirtualTensor::new("t", &[n_row], recipe).unwrap());
    let source = gguf.finish("blocks", vec![MemorySource::new("file", file)]).unwrap();
    let n = (n_row * n_col / 32 * 18) as usize;
    let mut blocks = vec![0; n];
    let start = source.head().len() as u64;
    pollster::block_on(source.read_at(start, &mut blocks)).unwrap();
    blocks
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        out += &format!(": {cause}");
        source = cause.source();
    }
    out
}
