//! Tiny models whose weights derive from their tensors' names, compared with logits that another engine computed in
//! f32.

use chaski::KvType;
use chaski::embedding::Pooling;
use chaski::gguf::{GgmlType, GgufWriter, MemorySource, OwnedValue, SourceError};
use chaski::kernels::ActivationPrecision;
use chaski::kernels::{FeatureSet, KV_TYPES};
use chaski::steps::Runner;
use chaski_models::{Model, RunnerConfig, Target};
use serde_json::Value;

use crate::common::{
    Failures, Timed, block_on, fixture, full, gpu_sets, in_turns, left_for_full, nmse, one_in, read,
    read_json, say, shared_gpu,
};
use crate::families::covering;
use crate::sequences::interleaved;

pub(crate) const FIXTURES: &[&str] =
    &["llama-plain", "llama-gqa-rope_freqs", "llama-yarn", "llama-linear", "llama-scales", "llama-moe"];

/// The one that runs on a GPU by default anyway, in pieces of 48 and 7; its kernels of single tokens are those of all.
pub(crate) const DONE: &[&str] = &["llama-linear"];

/// GELU rounds its inputs to f16, so the last bit of a sum occasionally selects a neighbour: 4e-9 over a text, and 2e-8
/// for the logits of a single token. Without the rounding it is 1.6e-7.
pub(crate) const GELU: f64 = 3e-8;

/// The same where layer factors make GELU's inputs so small that f16 has few bits for them: f64 sums differ from the
/// golden logits by as much (2.7e-5). Without the rounding it is 1.4e-3.
pub(crate) const GELU_OF_LITTLE: f64 = 1e-4;

/// The same for a single token, which is 6e-4 in f64.
const GELU_OF_LITTLE_ALONE: f64 = 2e-3;

/// Fixtures of all other families, with the tolerance: reordered sums cost 5e-12.
pub(crate) const FAMILIES: &[(&str, f64)] = &[
    ("cohere2-dense", 1e-11),
    ("command-r-dense", 1e-11),
    ("deepseek2-moe", 1e-11),
    ("ernie4_5-moe", 1e-11),
    ("exaone4-dense", 1e-11),
    ("gemma-dense", GELU),
    ("gemma2-dense", GELU),
    ("gemma3-dense", GELU),
    ("gemma3-scaled", GELU),
    // The golden logits are our own, computed in f64 (fixtures/archs/gemma3n.py). The activation is so sparse that tiny
    // changes flip values.
    ("gemma3n-dense", 3e-6),
    ("gemma4-dense", GELU_OF_LITTLE),
    ("gemma4-moe", GELU_OF_LITTLE),
    ("glm4-dense", 1e-11),
    ("glm4moe-moe", 1e-11),
    ("gpt-oss-moe", 1e-11),
    ("gpt-oss-yarn", 1e-11),
    ("gpt2-dense", GELU),
    ("gptneox-dense", GELU),
    ("granite-dense", 1e-11),
    ("granite-multipliers", 1e-11),
    ("granitemoe-moe", 1e-11),
    ("hunyuan-dense-dense", 1e-11),
    ("internlm2-dense", 1e-11),
    ("mistral3-dense", 1e-11),
    ("mistral3-yarn-temperature", 1e-11),
    ("olmo2-dense", 1e-11),
    ("olmoe-moe", 1e-11),
    ("phi2-dense", GELU),
    ("phi3-dense", 1e-11),
    ("phi3-longrope", 1e-11),
    ("phimoe-moe", 1e-11),
    ("qwen2-dense", 1e-11),
    ("qwen2moe-moe", 1e-11),
    ("qwen3-dense", 1e-11),
    ("qwen3moe-moe", 1e-11),
    ("smollm3-dense", 1e-11),
    ("stablelm-dense", 1e-11),
    ("starcoder2-dense", GELU),
    ("qwen-dense", 1e-11),
    ("qwen2vl-dense", 1e-11),
    ("paddleocr-dense", 1e-11),
    ("qwen3vl-dense", 1e-11),
    ("qwen3vlmoe-moe", 1e-11),
    ("minicpm-dense", 1e-11),
    ("orion-dense", 1e-11),
    ("xverse-dense", 1e-11),
    ("baichuan-dense", 1e-11),
    ("baichuan-alibi", 1e-11),
    ("olmo-dense", 1e-11),
    ("falcon-dense", GELU),
    ("falcon-two-norms", GELU),
    ("starcoder-dense", GELU),
    ("codeshell-dense", GELU),
    ("exaone-dense", 1e-11),
    ("nemotron-dense", 1e-11),
    ("chatglm-dense", 1e-11),
    ("seed_oss-dense", 1e-11),
    ("arcee-dense", 1e-11),
    ("jais2-dense", 1e-11),
    ("pangu-embedded-dense", 1e-11),
    ("cogvlm-dense", 1e-11),
    ("maincoder-dense", 1e-11),
    ("openelm-dense", 1e-11),
    ("apertus-dense", 1e-11),
    ("minicpm3-dense", 1e-11),
    ("plm-dense", 1e-11),
    ("deepseek-moe", 1e-11),
    ("deepseek2-ocr-moe", 1e-11),
    ("dots1-moe", 1e-11),
    ("bailingmoe-moe", 1e-11),
    ("bailingmoe2-moe", 1e-11),
    ("ernie4_5-moe-moe", 1e-11),
    ("hunyuan-moe-moe", 1e-11),
    ("llama4-moe", 1e-11),
    ("minimax-m2-moe", 1e-11),
    ("mellum-moe", 1e-11),
    ("maple-moe", 1e-11),
    ("exaone-moe-moe", 1e-11),
    ("smallthinker-moe", 1e-11),
    ("afmoe-moe", 1e-11),
    ("dbrx-moe", 1e-11),
    ("hy_v3-moe", 1e-11),
    ("grok-both", GELU),
    ("grok-moe", GELU),
    ("arctic-moe", 1e-11),
    ("cohere2moe-moe", 1e-11),
    ("bloom-dense", GELU),
    ("mpt-dense", GELU),
    ("mpt-positions", GELU),
    ("jais-dense", 1e-11),
    ("refact-dense", 1e-11),
    ("bitnet-dense", 1e-11),
    ("plamo-dense", 1e-11),
    ("plamo3-dense", 1e-11),
    ("spark2_5-dense", GELU),
    ("laguna-moe", 1e-11),
    ("deci-dense", 1e-11),
    ("granite_swa-dense", 1e-11),
    ("mistral4-moe", 1e-11),
    ("mimo2-moe", 1e-11),
    ("step35-moe", 1e-11),
    ("hunyuan_vl-dense", 1e-11),
    ("deepseek32-moe", 1e-11),
    ("glm-dsa-moe", 1e-11),
    ("muse-glimmer-dense", 1e-11),
    ("talkie-dense", 1e-11),
];

/// A fixture: recipe of the model, tokens, and expected logits.
pub(crate) struct Fixture {
    name: &'static str,
    spec: Value,
    /// Tokens to run.
    pub(crate) tokens: Vec<u32>,
    /// `[n_token, n_vocab]`
    logits: Vec<f32>,
    /// Logits per token.
    pub(crate) n_vocab: usize,
}

/// A change to a fixture's file.
pub(crate) type Edit<'a> = &'a (dyn Fn(&mut Vec<(String, OwnedValue)>, &mut Vec<(String, Vec<u64>)>) + Sync);

impl Fixture {
    pub(crate) fn load(name: &'static str) -> Fixture {
        let spec = read_json(&fixture(&format!("archs/{name}.json")));
        let tokens = spec["tokens"].as_array().expect("tokens").iter().map(|t| number(t) as u32).collect();
        let bytes = read(&fixture(&format!("archs/{name}.logits.f32")));
        let logits = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let n_vocab = number(&spec["n_vocab"]) as usize;
        Fixture { name, spec, tokens, logits, n_vocab }
    }

    /// A fixture of an encoder, with the vectors of its tokens and those of its poolings as logits.
    pub(crate) fn encoder(name: &'static str) -> Fixture {
        let spec = read_json(&fixture(&format!("encoders/{name}.json")));
        let tokens = spec["tokens"].as_array().expect("tokens").iter().map(|t| number(t) as u32).collect();
        let bytes = read(&fixture(&format!("encoders/{name}.f32")));
        let logits = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let n_vocab = number(&spec["n_vocab"]) as usize;
        Fixture { name, spec, tokens, logits, n_vocab }
    }

    /// The poolings of an encoder, in the order of their vectors after those of the tokens.
    pub(crate) fn poolings(&self) -> Vec<Pooling> {
        let all = self.spec["poolings"].as_array().expect("poolings").iter();
        all.map(|p| p.as_str().expect("a name").parse().expect("a pooling")).collect()
    }

    /// All golden values.
    pub(crate) fn values(&self) -> &[f32] {
        &self.logits
    }

    /// The prefix of its keys.
    pub(crate) fn architecture(&self) -> &str {
        self.spec["kv"]["general.architecture"]["value"].as_str().expect("a text")
    }

    /// The golden logits of tokens from `from` to before `to`.
    pub(crate) fn logits_of(&self, from: usize, to: usize) -> &[f32] {
        &self.logits[from * self.n_vocab..to * self.n_vocab]
    }

    /// Values of a tensor, derived from its name.
    pub(crate) fn weights_of(&self, name: &str, n: u64) -> Vec<f32> {
        weights(name, n, number(&self.spec["seed"]))
    }

    /// The GGUF file, with matrices in f16 if `half`, which represents all values exactly.
    pub(crate) fn gguf(&self, half: bool, edit: Edit<'_>) -> Vec<u8> {
        self.gguf_of(half, edit, &|_| None)
    }

    /// The same with tensors whose values are given.
    pub(crate) fn gguf_of(
        &self,
        half: bool,
        edit: Edit<'_>,
        own: &dyn Fn(&str) -> Option<Vec<f32>>,
    ) -> Vec<u8> {
        // Norm weights stay in f32, as in real files.
        let is_half = |name: &str, ne: &[u64]| half && ne.len() > 1 && !is_norm(name);
        let ty = |name: &str, ne: &[u64]| if is_half(name, ne) { GgmlType::F16 } else { GgmlType::F32 };
        self.file(&ty, edit, own)
    }

    /// The GGUF file with a type for each tensor, by its name and shape.
    pub(crate) fn gguf_in(&self, ty: &dyn Fn(&str, &[u64]) -> GgmlType, edit: Edit<'_>) -> Vec<u8> {
        self.file(ty, edit, &|_| None)
    }

    fn file(
        &self,
        ty: &dyn Fn(&str, &[u64]) -> GgmlType,
        edit: Edit<'_>,
        own: &dyn Fn(&str) -> Option<Vec<f32>>,
    ) -> Vec<u8> {
        let seed = number(&self.spec["seed"]);
        let metadata = self.spec["kv"].as_object().expect("kv").iter();
        let mut metadata: Vec<_> = metadata.map(|(k, v)| (k.clone(), value(v))).collect();
        let tensors = self.spec["tensors"].as_array().expect("tensors").iter();
        let shape = |t: &Value| t["shape"].as_array().expect("shape").iter().map(number).collect();
        let mut tensors: Vec<(String, Vec<u64>)> =
            tensors.map(|t| (t["name"].as_str().expect("name").to_owned(), shape(t))).collect();
        edit(&mut metadata, &mut tensors);
        let mut writer = GgufWriter::new();
        for (key, value) in metadata {
            writer.set(&key, value).expect("metadata of a fixture");
        }
        for (name, ne) in &tensors {
            writer.tensor(name, ne, ty(name, ne)).expect("a tensor of a fixture");
        }
        let mut data = writer.begin(Vec::new()).expect("a head in memory");
        for (name, ne) in &tensors {
            let values = own(name).unwrap_or_else(|| weights(name, ne.iter().product(), seed));
            let ty = ty(name, ne);
            let mut bytes = vec![0; values.len() / ty.block_len() * ty.block_bytes()];
            chaski::gguf::quantize(ty, &values, ne[0] as usize, None, &mut bytes)
                .expect("values of a fixture");
            data.write(name, &bytes).expect("data in memory");
        }
        data.finish().expect("all data were written")
    }
}

/// A model file in memory.
pub(crate) fn open(bytes: Vec<u8>) -> Result<Model<MemorySource>, chaski::errors::ModelError> {
    let source = MemorySource::new("fixture.gguf", bytes);
    block_on(Model::open(source, |name: &str| {
        Err(SourceError::Other { name: name.to_owned(), source: "a fixture has one file".into() })
    }))
}

fn number(v: &Value) -> u64 {
    v.as_u64().unwrap_or_else(|| panic!("a whole number, not {v}"))
}

/// A metadata value in the type that the fixture names.
pub(crate) fn value(entry: &Value) -> OwnedValue {
    let (ty, v) = (entry["type"].as_str().expect("type"), &entry["value"]);
    // JSON has no infinity, which is a text.
    let infinite = |v: &Value| v.as_str().and_then(|text| text.parse::<f64>().ok());
    let float = |v: &Value| v.as_f64().or_else(|| infinite(v)).expect("a number") as f32;
    let int = |v: &Value| i32::try_from(v.as_i64().expect("a number")).expect("32 bits");
    let str = |v: &Value| v.as_str().expect("a text").to_owned();
    let list = || v.as_array().expect("an array").iter();
    match ty {
        "uint32" => u32::try_from(number(v)).expect("32 bits").into(),
        "int32" => int(v).into(),
        "float32" => float(v).into(),
        "bool" => v.as_bool().expect("a truth value").into(),
        "string" => str(v).into(),
        "array:string" => list().map(str).collect::<Vec<_>>().into(),
        "array:uint32" => list().map(|v| number(v) as u32).collect::<Vec<_>>().into(),
        "array:int32" => list().map(int).collect::<Vec<_>>().into(),
        "array:bool" => list().map(|v| v.as_bool().expect("a truth value")).collect::<Vec<_>>().into(),
        "array:float32" => list().map(float).collect::<Vec<_>>().into(),
        other => panic!("fixtures have no values of type {other} so far"),
    }
}

/// FNV-1a, 64 bits.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3))
}

/// Multiples of 2^-10 in [-1, 1), from the tensor's name, the seed and the index, each after `rule`. A plain loop:
/// tests are compiled without optimization, and iterators in iterators took a fifth of their time.
fn units(name: &str, n: u64, seed: u64, rule: fn(f32) -> f32) -> Vec<f32> {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut at = hash(name) ^ seed.wrapping_mul(STEP);
    let mut values = vec![0.0; usize::try_from(n).expect("values fit in memory")];
    for value in &mut values {
        let z = (at ^ (at >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        *value = rule(((z ^ (z >> 31)) >> 53) as f32 / 1024.0 - 1.0);
        at = at.wrapping_add(STEP);
    }
    values
}

/// `norm.weight`, `norm_1.weight` and the like, or `norm` at the end.
fn is_norm(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.ends_with("norm")
        || name.strip_suffix(".weight").and_then(|stem| stem.rsplit_once("norm")).is_some_and(|(_, rest)| {
            rest.is_empty() || rest.len() > 1 && rest.starts_with('_') && rest.chars().all(word)
        })
}

/// Values of a tensor, by rules that depend on its name.
pub(crate) fn weights(name: &str, n: u64, seed: u64) -> Vec<f32> {
    let rule: fn(f32) -> f32 = if is_norm(name) {
        |u| 1.0 + 0.25 * u
    } else if name.contains("ssm_a") {
        |u| -(0.0625 + u.abs())
    } else if name.starts_with("rope_f") || name.contains(".rope_f") {
        |u| 1.0 + u.abs()
    } else if name.contains("conv") {
        |u| 0.5 * u
    } else if name.contains("sinks") || name.ends_with("ssm_dt.bias") || name.ends_with("ssm_d") {
        |u| u
    } else {
        |u| 0.125 * u
    };
    units(name, n, seed, rule)
}

#[test]
fn weights_of_fixtures_begin_as_their_description_says() {
    assert_eq!(hash("token_embd.weight"), 0x2d85_b88e_70e6_7727);
    let first = units("token_embd.weight", 3, 1, |u| u);
    assert_eq!(first, [-835.0 / 1024.0, 401.0 / 1024.0, -922.0 / 1024.0]);
    assert_eq!(weights("blk.0.attn_norm.weight", 2, 1), [3697.0 / 4096.0, 3329.0 / 4096.0]);
    assert_eq!(weights("blk.0.attn_q.weight", 2, 1), [-795.0 / 8192.0, 611.0 / 8192.0]);
}

/// A configuration for running the fixtures.
#[derive(Copy, Clone)]
struct Mode {
    /// Feature set and bounds checks; `None` is the CPU.
    gpu: Option<(FeatureSet, bool)>,
    /// Type of the KV cache.
    kv: KvType,
    /// Prefill may round activations to f16.
    f16_tiles: bool,
    /// Matrices are stored in f16.
    half: bool,
    /// Tokens per call.
    chunks: &'static [usize],
    /// Chunk size of the plan.
    chunk: u32,
    /// Number of sequences; with two, they are also batched, and one is rewound.
    n_seq: u32,
    /// Precision of activations.
    inputs: Option<ActivationPrecision>,
    /// Tolerance.
    limit: f64,
    /// Tolerance for MoE; `None` skips MoE.
    moe: Option<f64>,
}

impl Mode {
    fn limit(&self, name: &str) -> Option<f64> {
        if name.ends_with("-moe") { self.moe } else { Some(self.limit) }
    }
}

/// All at once, in pieces of 7, and token by token.
const PIECES: &[usize] = &[48, 7, 1];

/// Reordered sums cost 1e-13. Attention has little weight in random models: omitting the scaling of RoPE costs only
/// 6e-9, so the tolerance is far tighter than engines usually agree.
const F32: Mode = Mode {
    gpu: None,
    kv: KvType::F32,
    f16_tiles: false,
    half: false,
    chunks: PIECES,
    n_seq: 1,
    chunk: 64,
    inputs: None,
    limit: 1e-11,
    moe: Some(1e-11),
};
/// The CPU with the plain references.
const REFERENCES: Mode = Mode { inputs: Some(ActivationPrecision::F32), ..F32 };
/// Rounding keys and values to f16 costs up to 2^-11 of each. MoE amplifies that 2,500 times, on the CPU and on GPUs
/// alike, as it does the other engine's own roundings in f32.
const F16_KV: Mode = Mode { kv: KvType::F16, limit: 1e-9, moe: Some(1e-6), ..F32 };
/// Error with other cache types for keys and values: about three times the measured one.
const OTHER_KV: &[(GgmlType, f64)] = &[
    (GgmlType::BF16, 2e-8),
    (GgmlType::Q8_0, 2e-7),
    (GgmlType::Q5_1, 2e-5),
    (GgmlType::Q5_0, 2e-5),
    (GgmlType::Q4_1, 7e-5),
    (GgmlType::Q4_0, 7e-5),
    (GgmlType::IQ4_NL, 7e-5),
];
/// MoE likewise amplifies the rounding of activations, which have their full weight in products.
const F16_TILES: Mode = Mode { f16_tiles: true, chunks: &[48, 7], limit: 1e-5, moe: Some(1e-4), ..F32 };
/// f16 holds these weights exactly.
const F16_WEIGHTS: Mode = Mode { half: true, chunks: &[48, 1], ..F32 };
/// A few columns at once use the kernels of one column.
const FEW: Mode = Mode { chunk: 7, chunks: &[7], ..F32 };
const SG: Option<(FeatureSet, bool)> = Some((FeatureSet::Sg, false));
const SG_CHECKED: Option<(FeatureSet, bool)> = Some((FeatureSet::Sg, true));
const BASE: Option<(FeatureSet, bool)> = Some((FeatureSet::Base, false));
const BASE_CHECKED: Option<(FeatureSet, bool)> = Some((FeatureSet::Base, true));

fn describe(m: &Mode) -> String {
    let device = match m.gpu {
        None => "CPU".to_owned(),
        Some((set, checked)) => format!("GPU {}{}", set.word(), if checked { " checked" } else { "" }),
    };
    let kv = m.kv;
    let tiles = if m.f16_tiles { ", tiles f16" } else { "" };
    let weights = if m.half { ", weights f16" } else { "" };
    let inputs = if m.inputs == Some(ActivationPrecision::F32) { ", references" } else { "" };
    format!("{device}, KV {kv}{tiles}{weights}{inputs}")
}

/// Runs every fixture of the first family in the modes.
fn check(modes: &[Mode]) {
    let of = |m: &Mode| FIXTURES.iter().filter_map(|name| Some((*name, m.limit(name)?))).collect();
    check_some(modes, of);
}

/// Runs the fixtures of the first family, each in every mode if tests run in full, otherwise the last fixture of those
/// whose turn a mode is. Drivers that compile for the CPU spend most of the time on the kernels of a mode.
fn check_in_turns(modes: &[Mode]) {
    for (nth, mode) in modes.iter().enumerate() {
        let is_last = |i: usize| i + modes.len() >= FIXTURES.len();
        let is_turn = |i: usize| full() || i % modes.len() == nth && is_last(i);
        let of = |m: &Mode| {
            let turn = FIXTURES.iter().enumerate().filter(|(i, _)| is_turn(*i));
            turn.filter_map(|(_, name)| Some((*name, m.limit(name)?))).collect()
        };
        // Pieces alternate, too: large and small pieces in one mode, single tokens in the next.
        let pieces =
            if full() || mode.chunks.len() < 3 { mode.chunks } else { [&[48, 7][..], &[1]][nth % 2] };
        check_some(&[Mode { chunks: pieces, ..*mode }], of);
    }
}

/// True if a fixture should run: `CHASKI_FIXTURE=qwen3,glm4` selects fixtures by prefix.
pub(crate) fn wanted(name: &str) -> bool {
    let only = std::env::var("CHASKI_FIXTURE").ok();
    let left_out = only.is_some_and(|o| !o.split(',').any(|o| name.starts_with(o)));
    if left_out {
        say(format!("SKIPPED: {name}, by CHASKI_FIXTURE"));
    }
    !left_out
}

/// Runs the fixtures that `of` returns, each with its tolerance, in the modes.
fn check_some(modes: &[Mode], of: impl Fn(&Mode) -> Vec<(&'static str, f64)>) {
    let mut failures = Failures::default();
    for mode in modes {
        for (name, limit) in of(mode) {
            if !wanted(name) {
                continue;
            }
            let f = Fixture::load(name);
            let model = match open(f.gguf(mode.half, &|_, _| {})) {
                Ok(model) => model,
                Err(e) => panic!("{name}: {}", crate::common::chain(&e)),
            };
            let target = mode.gpu.map_or(Target::Cpu, |(set, checked)| Target::Gpu(shared_gpu(set, checked)));
            let config = RunnerConfig {
                n_ctx: 64,
                kv: mode.kv,
                chunk: mode.chunk,
                n_seq: mode.n_seq,
                f16_tiles: mode.f16_tiles,
                inputs: mode.inputs,
                ..RunnerConfig::default()
            };
            let mut runner = match block_on(Runner::load(&model, &target, &config, |_| {})) {
                Ok(runner) => runner,
                Err(e) => panic!("{name}, {}: {}", describe(mode), crate::common::chain(&e)),
            };
            let mut errors = Vec::new();
            for &chunk in mode.chunks {
                runner.truncate(0);
                let all = block_on(runner.eval_all(&f.tokens, chunk)).expect("48 tokens run");
                let all = nmse(&all, &f.logits);
                // As in decode: only the last token's logits.
                runner.truncate(0);
                for part in f.tokens.chunks(chunk) {
                    block_on(runner.prefill(part)).expect("48 tokens run");
                }
                let last = block_on(runner.logits()).expect("logits of the last token");
                let last = nmse(&last, &f.logits[f.logits.len() - f.n_vocab..]);
                let alone = if limit == GELU_OF_LITTLE { GELU_OF_LITTLE_ALONE } else { limit };
                for (what, e, limit) in [("all", all, limit), ("last", last, alone)] {
                    failures.check(e <= limit, || {
                        format!("{name}, {}, chunk {chunk}, {what}: {e:.2e} > {:.0e}", describe(mode), limit)
                    });
                }
                errors.push(format!("{all:.1e} in pieces of {chunk}"));
            }
            if mode.n_seq == 2 {
                let e = interleaved(&mut runner, &f);
                failures.check(e <= limit, || {
                    format!("{name}, {}, two sequences: {e:.2e} > {limit:.0e}", describe(mode))
                });
                errors.push(format!("{e:.1e} of two sequences"));
            }
            say(format!("{:24} {:28} NMSE {}", f.name, describe(mode), errors.join(", ")));
        }
    }
    failures.conclude();
}

#[test]
fn logits_of_all_families_on_the_cpu_match_the_golden_ones() {
    let _t = Timed::new("archs, all families, CPU");
    let modes = [REFERENCES, F32].map(|m| Mode { chunks: &[48], ..m });
    check_some(&modes, |_| FAMILIES.to_vec());
}

/// Chunked prompts with subgroups, token by token without, and two sequences. By default a set of families that covers
/// every operation, with subgroups and one sequence; two are batched in `sequences`, `steps` and `recurrent`.
#[test]
fn logits_of_all_families_on_the_gpu_match_the_golden_ones() {
    let _t = Timed::new("archs, all families, GPU");
    let some = Mode { gpu: SG, chunks: &[7], ..F32 };
    let each = Mode { gpu: BASE, chunks: &[1], n_seq: 2, ..F32 };
    // By default both with subgroups: compiling takes the time.
    let both = Mode { gpu: SG, chunks: &[7, 1], ..F32 };
    for mode in if full() { vec![some, each] } else { vec![both] } {
        let subgroup = (mode.gpu == SG).then_some((8, 8));
        let chosen = if full() { FAMILIES.to_vec() } else { covering(FAMILIES, DONE, subgroup, 8) };
        say(format!("{}: {} of {} families", describe(&mode), chosen.len(), FAMILIES.len()));
        check_some(&[mode], |_| chosen.clone());
    }
}

/// Norms of heads with a quantised cache, and keys and values that are written separately. After norms, attention has
/// its full weight, so q8_0 costs 1.3e-4 on every device.
#[test]
fn logits_of_families_with_norms_of_heads_match_in_a_cache_of_blocks() {
    let _t = Timed::new("archs, norms of heads and blocks");
    let kv = KvType::both(GgmlType::Q8_0);
    let modes = [None, SG].map(|gpu| Mode { gpu, kv, chunks: &[7, 1], ..F32 });
    let names = ["qwen3-dense", "hunyuan-dense-dense", "olmo2-dense"].map(|n| (n, 3e-4));
    // By default the first on a GPU.
    let n = |mode: &Mode| if full() || mode.gpu.is_none() { names.len() } else { 1 };
    check_some(&modes, |mode| names[..n(mode)].to_vec());
}

#[test]
fn logits_on_the_cpu_match_the_golden_ones() {
    let _t = Timed::new("archs, CPU");
    check(&[REFERENCES, F32, F16_KV, F16_WEIGHTS]);
}

#[test]
fn logits_on_the_gpu_with_subgroups_match_the_golden_ones() {
    let _t = Timed::new("archs, sg");
    let on = |m: Mode| Mode { gpu: SG, ..m };
    let mut modes = vec![on(F16_KV), on(F16_TILES), on(F16_WEIGHTS)];
    if full() {
        // By default without subgroups alone, or in other tests.
        modes.extend([on(F32), on(FEW), Mode { gpu: SG_CHECKED, ..F32 }]);
    }
    check_in_turns(&modes);
}

#[test]
fn logits_on_the_gpu_without_features_match_the_golden_ones() {
    let _t = Timed::new("archs, base");
    let on = |m: Mode| Mode { gpu: BASE, ..m };
    let mut modes = vec![on(FEW), Mode { gpu: BASE_CHECKED, ..F32 }];
    if full() {
        // By default with subgroups alone.
        modes.extend([on(F32), on(F16_WEIGHTS), on(F16_KV)]);
    }
    check_in_turns(&modes);
}

/// The fixture has two experts, both used by every token; here are more, of which a token uses some. The reference is
/// the CPU, which matches the golden logits of two.
#[test]
fn moe_with_more_experts_matches_the_cpu() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("archs, more experts");
    let mut failures = Failures::default();
    let f = Fixture::load("llama-moe");
    // By default one of five, of which three are used, with subgroups.
    let cases = [(5u32, 3u32), (8, 2), (40, 1)];
    for (nth, (n_expert, n_used)) in one_in(cases.len(), cases).enumerate() {
        let edit = |metadata: &mut Vec<(String, OwnedValue)>, tensors: &mut Vec<(String, Vec<u64>)>| {
            for (key, value) in metadata.iter_mut() {
                match key.as_str() {
                    "llama.expert_count" => *value = n_expert.into(),
                    "llama.expert_used_count" => *value = n_used.into(),
                    _ => {}
                }
            }
            for (name, ne) in tensors.iter_mut() {
                if name.contains("_exps") || name.contains("ffn_gate_inp") {
                    *ne.last_mut().expect("a shape") = n_expert.into();
                }
            }
        };
        let model = open(f.gguf(true, &edit)).expect("a fixture is a model");
        let load = |target, chunk| {
            let inputs = if matches!(target, Target::Cpu) { Some(ActivationPrecision::F32) } else { None };
            let config =
                RunnerConfig { n_ctx: 64, kv: KvType::F32, chunk, inputs, ..RunnerConfig::default() };
            block_on(Runner::load(&model, &target, &config, |_| {})).expect("a fixture loads")
        };
        let expected = block_on(load(Target::Cpu, 64).eval_all(&f.tokens, 48)).expect("48 tokens run");
        for set in in_turns(nth, &[FeatureSet::Sg, FeatureSet::Base]) {
            let mut runner = load(Target::Gpu(shared_gpu(set, false)), 64);
            for chunk in in_turns(nth, &[[48, 1], [7, 1], [1, 48]]).concat() {
                runner.truncate(0);
                let found = block_on(runner.eval_all(&f.tokens, chunk)).expect("48 tokens run");
                let e = nmse(&found, &expected);
                say(format!(
                    "{n_used} of {n_expert} experts, {}, pieces of {chunk}: NMSE {e:.1e}",
                    set.word()
                ));
                failures.check(e <= 1e-10, || {
                    format!("{n_used} of {n_expert} experts, {}, pieces of {chunk}: {e:.2e}", set.word())
                });
            }
        }
    }
    failures.conclude();
}

/// Every cache type, and two different ones, in prefill and decode. Random MoE models amplify each error 2,500 times,
/// so they are skipped.
#[test]
fn logits_with_any_type_of_cache_match_the_golden_ones() {
    let _t = Timed::new("archs, types of the cache");
    assert_eq!(OTHER_KV.len() + 2, KV_TYPES.len(), "a type without a limit");
    let mut modes = Vec::new();
    for (nth, (ty, limit)) in OTHER_KV.iter().enumerate() {
        let mode = Mode { kv: KvType::both(*ty), limit: *limit, moe: None, chunks: &[48, 1], ..F32 };
        modes.push(mode);
        // By default only the two different ones below.
        let on_gpu = in_turns(nth, &[SG, BASE]).into_iter().filter(|_| full());
        for gpu in on_gpu {
            let models = in_turns(nth, &FIXTURES[..5]).into_iter().map(|name| (name, *limit));
            check_some(&[Mode { gpu, ..mode }], |_| models.clone().collect());
        }
    }
    let kv = KvType::Of { k: GgmlType::Q8_0, v: GgmlType::Q4_0 };
    let mode = Mode { kv, limit: 7e-5, moe: None, chunks: &[48, 7], ..F32 };
    modes.push(mode);
    check_some(&[Mode { gpu: SG_CHECKED, ..mode }], |_| vec![(FIXTURES[0], mode.limit)]);
    // By default one model for each type.
    for (nth, mode) in modes.iter().enumerate() {
        let models = in_turns(nth, &FIXTURES[..5]).into_iter().map(|name| (name, mode.limit));
        check_some(&[*mode], |_| models.clone().collect());
    }
}

/// Single tokens use other kernels than batches, and long sequences others than short ones.
#[test]
fn logits_of_a_long_sequence_do_not_depend_on_the_pieces() {
    let _t = Timed::new("archs, a long sequence");
    let model = block_on(chaski::Source::Default.open()).expect("the embedded model");
    let n_vocab = model.config().n_vocab as usize;
    let tokens: Vec<u32> = (0..300u32).map(|i| (i * i * 31 + 7 * i) % n_vocab as u32).collect();
    let mut failures = Failures::default();
    let load_with = |target, inputs| {
        let config =
            RunnerConfig { n_ctx: 512, kv: KvType::F32, chunk: 256, inputs, ..RunnerConfig::default() };
        block_on(Runner::load(&model, &target, &config, |_| {})).expect("a runner")
    };
    let load = |target| load_with(target, None);
    let all = |runner: &mut Runner, chunk| block_on(runner.eval_all(&tokens, chunk)).expect("300 tokens run");
    let expected = all(&mut load_with(Target::Cpu, Some(ActivationPrecision::F32)), 300);
    let e = nmse(&all(&mut load(Target::Cpu), 32), &expected);
    say(format!("300 tokens of the embedded model, CPU, pieces of 32: NMSE {e:.1e}"));
    failures.check(e <= 1e-7, || format!("CPU: {e:.2e} > 1e-7"));
    for &set in gpu_sets() {
        let mut runner = load(Target::Gpu(shared_gpu(set, false)));
        let found = all(&mut runner, 64);
        // The CPU sums in f64, which differs from f32 by 1e-11 here. Products with one column add 1024 to every quant
        // to avoid conversions and subtract it again, which costs ten bits of a block's sums.
        const MANY: f64 = 1e-10;
        const ONE: f64 = 1e-7;
        let mut compare = |what: &str, found: &[f32], expected: &[f32], limit: f64| {
            let e = nmse(found, expected);
            say(format!("300 tokens of the embedded model, {}, {what}: NMSE {e:.1e}", set.word()));
            failures.check(e <= limit, || format!("{}, {what}: {e:.2e} > {limit:.0e}", set.word()));
        };
        compare("pieces of 64", &found, &expected, MANY);
        // Around 128 and 256 tokens too; from the end, because only the end can be truncated.
        for (from, to) in one_in(2, [(290, 300), (252, 262), (124, 134), (1, 8)]) {
            runner.truncate(from);
            let one = block_on(runner.eval_all(&tokens[from..to], 1)).expect("tokens run");
            let case = format!("{from} to {to} one by one");
            compare(&case, &one, &expected[from * n_vocab..to * n_vocab], ONE);
        }
        // All at once, with the last token's logits only.
        runner.truncate(0);
        block_on(runner.prefill(&tokens)).expect("300 tokens run");
        let last = block_on(runner.logits()).expect("logits");
        compare("the last of two chunks", &last, &expected[299 * n_vocab..], MANY);
    }
    failures.conclude();
}
