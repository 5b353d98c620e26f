//! Options shared by several commands.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use chaski::gguf::GgmlType;
use chaski::kernels::{ActivationPrecision, Caps, FeatureSet};
use chaski::text::{Mirostat, SamplerKind};
use chaski::{DeviceChoice, KvType, SamplerParams, Source};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ggml_format::{FILE_TYPES, FileType};
use serde_json::Value;

use crate::failure::Usage;
use crate::lora::LoraArgs;
use crate::model_names::{Role, Visit};
use crate::numbers::{finite, positive};
use crate::overrides::MetadataArgs;
use crate::swarm_options::SwarmArgs;

/// Output format of commands that describe something.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Text and tables
    Md,
    /// One JSON value
    Json,
}

/// The source of a model named on the command line; the built-in model by default.
pub(crate) fn source(model: Option<&Path>) -> Source {
    model.map_or(Source::Default, Source::path)
}

/// The model, as a positional argument or an option.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ModelArg {
    /// GGUF file, or a name such as hf:org/repo:Q4_K_M [default: the built-in model]
    #[arg(value_name = "MODEL")]
    first: Option<PathBuf>,
    /// The same, instead of MODEL
    #[arg(short, long, value_name = "FILE", conflicts_with = "first")]
    model: Option<PathBuf>,
}

impl ModelArg {
    /// Visits the name of the model.
    pub(crate) fn models(&mut self, visit: Visit<'_>) -> anyhow::Result<()> {
        self.first.iter_mut().chain(&mut self.model).try_for_each(|model| visit(model, Role::Main))
    }

    /// The file, if one was named.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.first.as_deref().or(self.model.as_deref())
    }

    pub(crate) fn source(&self) -> Source {
        source(self.path())
    }
}

/// A limit on the number of chunks to process, if any.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunks(pub(crate) Option<NonZeroUsize>);

impl FromStr for Chunks {
    type Err = String;

    fn from_str(text: &str) -> Result<Chunks, String> {
        match text.parse::<i64>().map_err(|e| e.to_string())? {
            0 => Err("0 chunks leave nothing to measure; below 0: all".into()),
            n => Ok(Chunks(usize::try_from(n).ok().and_then(NonZeroUsize::new))),
        }
    }
}

/// A precision of activations; `None` is `auto`. An alias, since clap takes an `Option` for an optional argument.
pub(crate) type Inputs = Option<ActivationPrecision>;

pub(crate) fn inputs() -> impl TypedValueParser<Value = Inputs> {
    let words = [
        ("auto", "i16 if the device has dot products of four bytes, else f32"),
        ("f32", "32 bits: exact"),
        ("i16", "16 bits with a scale per run: as exact as sums in f32"),
        ("i8", "8 bits with a scale per run: fastest, slightly less exact"),
    ];
    let words = words.map(|(name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(words)
        .map(|word| ActivationPrecision::ALL.into_iter().find(|p| p.word() == word))
}

/// A limit on the feature set.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Features {
    /// Features that every WebGPU device has
    Base,
    /// Also subgroup operations
    Sg,
    /// Also cooperative matrices
    Coop,
    /// Subgroup operations without waiting for other threads, as in a browser's software renderer
    Alone,
}

impl From<Features> for FeatureSet {
    fn from(f: Features) -> FeatureSet {
        match f {
            Features::Base => FeatureSet::Base,
            Features::Sg => FeatureSet::Sg,
            Features::Coop => FeatureSet::Coop,
            Features::Alone => FeatureSet::Alone,
        }
    }
}

/// The word for the largest feature set that a device has.
pub(crate) fn feature_word(caps: &Caps) -> &'static str {
    caps.most().word()
}

/// Parses a file type's name, case-insensitively, or its number.
pub(crate) fn file_type(text: &str) -> Result<FileType, String> {
    let by_number = || text.parse().ok().and_then(FileType::from_id);
    FileType::from_name(text).or_else(by_number).ok_or_else(|| {
        let known: Vec<String> = FILE_TYPES.iter().map(|t| t.name.to_lowercase()).collect();
        format!("unknown file type (known: {})", known.join(", "))
    })
}

/// Parses `auto`, `gpu`, `all`, `cpu`, or the name or index of a GPU.
pub(crate) fn device(text: &str) -> Result<DeviceChoice, String> {
    Ok(match text {
        "" => return Err("expected auto, gpu, all, cpu, or the name or index of a GPU".into()),
        "auto" => DeviceChoice::Auto,
        "gpu" => DeviceChoice::Gpu(None),
        "all" => DeviceChoice::AllGpus,
        // llama.cpp's word for no GPU.
        "cpu" | "none" => DeviceChoice::Cpu,
        name => DeviceChoice::Gpu(Some(name.to_owned())),
    })
}

/// Parses a device, or several with `between` between their names, of which one may be the CPU; commas within
/// parentheses belong to a name.
fn devices_between(text: &str, between: char) -> Result<DeviceChoice, String> {
    let (mut names, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match names.last_mut() {
            Some(name) if c != between || depth > 0 => name.push(c),
            _ => names.push(String::new()),
        }
    }
    if let [one] = &names[..] {
        return device(one);
    }
    let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
    let is_one = |name: &&&str| **name == "cpu" || matches!(device(name), Ok(DeviceChoice::Gpu(Some(_))));
    match names.iter().find(|name| !is_one(name)) {
        Some(name) => {
            Err(format!("`{name}` is neither the name or index of a GPU nor cpu, of which a list consists"))
        }
        None if names.iter().filter(|name| **name == "cpu").count() > 1 => {
            Err("cpu is in the list twice".into())
        }
        None => Ok(DeviceChoice::Gpus(names.into_iter().map(str::to_owned).collect())),
    }
}

/// Parses a device, or a list such as `0,1` or `0,cpu`.
pub(crate) fn devices(text: &str) -> Result<DeviceChoice, String> {
    devices_between(text, ',')
}

/// The same for lists of devices to compare, each of which may be several: `0,0/1`.
pub(crate) fn devices_of_list(text: &str) -> Result<DeviceChoice, String> {
    devices_between(text, '/')
}

/// How a model is split over the GPUs, as in llama.cpp.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Split {
    /// One device: the first of several that --device names
    None,
    /// By layers: over all GPUs of this machine, if --device names none
    Layer,
}

impl Split {
    /// The choice of devices under this split. With fewer than two GPUs here, `layer` changes nothing.
    pub(crate) fn over(split: Option<Split>, choice: &DeviceChoice) -> DeviceChoice {
        match (split, choice) {
            (Some(Split::None), DeviceChoice::Gpus(names)) => match names.first() {
                Some(name) if name == "cpu" => DeviceChoice::Cpu,
                first => DeviceChoice::Gpu(first.cloned()),
            },
            (Some(Split::None), DeviceChoice::AllGpus) => DeviceChoice::Gpu(None),
            (Some(Split::Layer), DeviceChoice::Auto | DeviceChoice::Gpu(None)) if has_several() => {
                DeviceChoice::AllGpus
            }
            _ => choice.clone(),
        }
    }
}

/// True if this machine has more than one GPU.
fn has_several() -> bool {
    let hardware = |a: &&chaski::gpu::AdapterSummary| !a.caps.software;
    pollster::block_on(chaski::gpu::adapters()).iter().filter(hardware).count() > 1
}

/// Shares of several devices, such as `3,1` or `3/1`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shares(pub(crate) Vec<f32>);

/// As llama-bench prints them: `3.00/1.00`.
impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|share| format!("{share:.2}")).collect();
        f.pad(&words.join("/"))
    }
}

impl FromStr for Shares {
    type Err = String;

    fn from_str(text: &str) -> Result<Shares, String> {
        let share = |s: &str| match s.trim().parse::<f32>() {
            Ok(share) if share.is_finite() && share >= 0.0 => Ok(share),
            _ => Err(format!("`{s}` is not a share: expected numbers such as 3,1")),
        };
        Ok(Shares(text.split([',', '/']).map(share).collect::<Result<_, _>>()?))
    }
}

impl Shares {
    /// Checks that they fit a choice of devices.
    ///
    /// # Errors
    /// [`Usage`] for another number of GPUs.
    pub(crate) fn of(shares: Option<&Shares>, choice: &DeviceChoice) -> Result<Vec<f32>, Usage> {
        let n_gpu = match choice {
            DeviceChoice::Gpus(names) => names.len(),
            // Their number is known once they are open.
            DeviceChoice::AllGpus => return Ok(shares.map(|shares| shares.0.clone()).unwrap_or_default()),
            _ => 1,
        };
        match shares {
            Some(Shares(shares)) if shares.len() != n_gpu => Err(Usage(format!(
                "--tensor-split has {} shares, but --device names {n_gpu} device{}",
                shares.len(),
                if n_gpu == 1 { "" } else { "s" }
            ))),
            Some(Shares(shares)) if n_gpu > 1 => Ok(shares.clone()),
            _ => Ok(Vec::new()),
        }
    }
}

/// Layers on GPUs, as in llama.cpp: so many, or all.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct GpuLayers(pub(crate) Option<u32>);

impl FromStr for GpuLayers {
    type Err = String;

    fn from_str(text: &str) -> Result<GpuLayers, String> {
        match text.parse::<i64>() {
            _ if matches!(text, "all" | "auto") => Ok(GpuLayers(None)),
            Ok(n) if n < 0 => Ok(GpuLayers(None)),
            Ok(n) => Ok(GpuLayers(Some(u32::try_from(n).unwrap_or(u32::MAX)))),
            Err(_) => Err(format!("`{text}` is not a number of layers, nor all")),
        }
    }
}

/// Device options of a model.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Device options")]
pub(crate) struct EngineArgs {
    /// Context size in tokens; 0: the model's own, up to 4096
    #[arg(short = 'c', long, value_name = "N", default_value_t = 0)]
    pub(crate) ctx_size: u32,
    /// KV cache type, or K/V for keys and values: auto (f32 while the cache is small, else f16), f32, f16, bf16, q8_0,
    /// q4_0 ...
    #[arg(long, value_name = "TYPE", default_value = "auto")]
    pub(crate) kv: KvType,
    /// KV cache type of the keys, as in llama.cpp (-ctk)
    #[arg(long, hide = true, value_name = "TYPE", conflicts_with = "kv")]
    pub(crate) cache_type_k: Option<KvType>,
    /// KV cache type of the values (-ctv)
    #[arg(long, hide = true, value_name = "TYPE", conflicts_with = "kv")]
    pub(crate) cache_type_v: Option<KvType>,
    /// auto (the fastest GPU, else the CPU), gpu, cpu, or the name or index of a GPU; several, such as 0,1 or 0,cpu,
    /// or all share the layers
    #[arg(long, alias = "devices", value_parser = devices, default_value = "auto", value_name = "DEVICE")]
    pub(crate) device: DeviceChoice,
    /// How a model is split over several GPUs (also -sm) [default: layer if --device names several]
    #[arg(long, value_enum, alias = "split-mode", value_name = "HOW")]
    pub(crate) split: Option<Split>,
    /// With several devices: the share of the model on each, such as 3,1 (also -ts) [default: by free memory]
    #[arg(long, value_name = "N,N")]
    pub(crate) tensor_split: Option<Shares>,
    /// Layers on the GPU or GPUs, the last ones; the CPU runs the others (also -ngl) [default: all]
    #[arg(long, alias = "n-gpu-layers", value_name = "N", allow_negative_numbers = true)]
    pub(crate) gpu_layers: Option<GpuLayers>,
    /// Limit the GPU features in use to this set
    #[arg(long, value_enum, value_name = "SET")]
    pub(crate) features: Option<Features>,
    /// Sequences at once; benchmarks and servers have several
    #[arg(skip = 1u32)]
    pub(crate) sequences: u32,
    /// Capacities of a server
    #[arg(skip)]
    pub(crate) service: Option<Service>,
    /// Told the progress of loading
    #[arg(skip)]
    pub(crate) part: Option<Part>,
    /// Prompt tokens per chunk
    #[arg(long, alias = "ubatch-size", value_name = "N", default_value_t = 512)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) chunk: u32,
    #[command(flatten)]
    pub(crate) experts: ExpertArgs,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
    /// On the CPU, read the file into memory instead of mapping it; a GPU's files are always read
    #[arg(long)]
    pub(crate) no_mmap: bool,
    /// On the CPU, multiply from the file's own layout: slower answers, but the weights are only those that are mapped
    #[arg(long)]
    pub(crate) no_repack: bool,
    /// Check bounds in shaders (slower)
    #[arg(long)]
    pub(crate) checked: bool,
    /// Round activations to f16 in GEMM: faster, slightly less exact
    #[arg(long)]
    pub(crate) f16_tiles: bool,
    /// Activation precision of products with quantised weights: i8 is fastest and slightly less exact
    #[arg(long, value_parser = inputs(), default_value = "auto", value_name = "TYPE")]
    pub(crate) inputs: Inputs,
    /// Use the built-in thread counts and ignore results of `chaski tune`
    #[arg(long)]
    pub(crate) no_tuning: bool,
    /// Skip the self-test of a few kernels on a new device or driver
    #[arg(long)]
    pub(crate) no_self_test: bool,
    /// Print the kernel of each part of a token, and why it was chosen
    #[arg(long)]
    pub(crate) explain: bool,
    /// Do not read or write the cache of compiled kernels
    #[arg(long)]
    pub(crate) no_warm_cache: bool,
    #[command(flatten)]
    pub(crate) lora: LoraArgs,
    #[command(flatten)]
    pub(crate) metadata: MetadataArgs,
    #[command(flatten)]
    pub(crate) swarm: SwarmArgs,
}

/// Takes the part of a model that is loaded.
#[derive(Clone)]
pub(crate) struct Part(pub(crate) chaski_server::Part);

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Part")
    }
}

/// Capacities of a server's engine.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Service {
    /// Tokens of the KV cache; a context for each sequence if unset.
    pub(crate) kv_tokens: Option<u32>,
    /// Requests that may wait.
    pub(crate) max_waiting: usize,
}

/// Threads of the CPU backend.
#[derive(Copy, Clone, Debug, Default, clap::Args)]
pub(crate) struct ThreadArgs {
    /// Threads that compute on the CPU; 0 or below: one for each core [default: 0]
    #[arg(short = 't', long, value_name = "N", default_value = "0", hide_default_value = true)]
    #[arg(value_parser = threads, allow_negative_numbers = true)]
    pub(crate) threads: u32,
    /// Threads for prompts, if others (also -tb) [default: as --threads]
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    #[arg(value_parser = threads, allow_negative_numbers = true)]
    pub(crate) threads_batch: u32,
}

/// Parses a number of threads; 0 for one on each core.
pub(crate) fn threads(text: &str) -> Result<u32, String> {
    const MOST: i64 = 1024;
    match text.parse::<i64>().map_err(|e| e.to_string())? {
        n if n > MOST => Err(format!("at most {MOST}")),
        n => Ok(n.max(0) as u32),
    }
}

/// CPU offload of experts.
#[derive(Copy, Clone, Debug, Default, clap::Args)]
pub(crate) struct ExpertArgs {
    /// Keep the experts of the first N MoE layers in host memory and stream the ones in use from the file, for MoE
    /// models larger than GPU memory (also -ncmoe)
    #[arg(long, alias = "n-cpu-moe", value_name = "N", default_value_t = 0)]
    pub(crate) experts_on_cpu: u32,
    /// Experts per offloaded layer that fit on the GPU; 0: twice the experts per token, or a quarter of all if that is
    /// more
    #[arg(long, value_name = "N", default_value_t = 0, requires = "experts_on_cpu")]
    pub(crate) expert_slots: u32,
}

impl EngineArgs {
    /// The devices, as `--device` and `--split` have them.
    pub(crate) fn placed(&self) -> DeviceChoice {
        Split::over(self.split, &self.device)
    }

    /// Layers on GPUs, if not all.
    pub(crate) fn gpu_layers(&self) -> Option<u32> {
        self.gpu_layers.and_then(|layers| layers.0)
    }

    /// The KV cache type, from either form of the options.
    ///
    /// # Errors
    /// [`Usage`] if exactly one of keys and values is `auto`.
    pub(crate) fn kv(&self) -> Result<KvType, Usage> {
        match (self.cache_type_k, self.cache_type_v) {
            (None, None) => Ok(self.kv),
            (k, v) => kv_pair(k, v),
        }
    }
}

/// Types of keys and values: values default to the type of the keys, keys to f16 if only values are given.
///
/// # Errors
/// [`Usage`] if exactly one of them is `auto`.
pub(crate) fn kv_pair(k: Option<KvType>, v: Option<KvType>) -> Result<KvType, Usage> {
    const F16: KvType = KvType::Of { k: GgmlType::F16, v: GgmlType::F16 };
    let k = k.unwrap_or(if v == Some(KvType::Auto) { KvType::Auto } else { F16 });
    match (k, v.unwrap_or(k)) {
        (KvType::Auto, KvType::Auto) => Ok(KvType::Auto),
        (KvType::Of { k, .. }, KvType::Of { v, .. }) => Ok(KvType::Of { k, v }),
        _ => Err(Usage("-ctk and -ctv must both be auto or both name a type".into())),
    }
}

/// Sampling options; unset ones follow the model's recommendation, else the defaults named here.
#[derive(Clone, Debug, Default, clap::Args, serde::Serialize)]
#[command(next_help_heading = "Sampling options")]
pub(crate) struct SamplingArgs {
    /// Temperature; 0 is greedy [default: 0.8]
    #[arg(long, value_name = "T", value_parser = finite, allow_negative_numbers = true)]
    pub(crate) temp: Option<f32>,
    /// Dynamic temperature range; 0: off [default: 0]
    #[arg(long, value_name = "X", value_parser = finite)]
    dynatemp_range: Option<f32>,
    /// Dynamic temperature exponent [default: 1]
    #[arg(long, value_name = "X", value_parser = finite)]
    dynatemp_exp: Option<f32>,
    /// Top-k sampling; 0: off [default: 40]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    top_k: Option<i32>,
    /// Top-p sampling; 1: off [default: 0.95]
    #[arg(long, value_name = "P", value_parser = finite)]
    top_p: Option<f32>,
    /// Min-p sampling; 0: off [default: 0.05]
    #[arg(long, value_name = "P", value_parser = finite)]
    min_p: Option<f32>,
    /// Locally typical sampling; 1: off [default: 1]
    #[arg(long, alias = "typical", value_name = "P", value_parser = finite)]
    typical_p: Option<f32>,
    /// Top-n-sigma sampling: keep logits within N standard deviations of the maximum; below 0: off [default: -1]
    #[arg(long, alias = "top-nsigma", value_name = "N", value_parser = finite, allow_negative_numbers = true)]
    top_n_sigma: Option<f32>,
    /// Repetition penalty, a factor; 1: off [default: 1]
    #[arg(long, value_name = "F", value_parser = positive)]
    repeat_penalty: Option<f32>,
    /// Number of last tokens to penalise [default: 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    repeat_last_n: Option<i32>,
    /// Presence penalty; 0: off [default: 0]
    #[arg(long, value_name = "X", value_parser = finite, allow_negative_numbers = true)]
    presence_penalty: Option<f32>,
    /// Frequency penalty; 0: off [default: 0]
    #[arg(long, value_name = "X", value_parser = finite, allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,
    /// DRY penalty multiplier; 0: off [default: 0]
    #[arg(long, value_name = "X", value_parser = finite)]
    dry_multiplier: Option<f32>,
    /// DRY penalty base [default: 1.75]
    #[arg(long, value_name = "X", value_parser = finite)]
    dry_base: Option<f32>,
    /// DRY: longest repetition without a penalty [default: 2]
    #[arg(long, value_name = "N")]
    dry_allowed_length: Option<i32>,
    /// DRY sequence breaker, replacing the default ones; may be repeated; none: no breakers
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    dry_sequence_breaker: Vec<String>,
    /// DRY: number of last tokens to scan; -1: all [default: 64]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    dry_penalty_last_n: Option<i32>,
    /// XTC probability; 0: off [default: 0]
    #[arg(long, value_name = "P", value_parser = finite)]
    xtc_probability: Option<f32>,
    /// XTC threshold; above 0.5: off [default: 0.1]
    #[arg(long, value_name = "P", value_parser = finite)]
    xtc_threshold: Option<f32>,
    /// Adaptive-p target probability, if the sampler is in --samplers; below 0: off [default: -1]
    #[arg(long, value_name = "P", value_parser = finite, allow_negative_numbers = true)]
    adaptive_target: Option<f32>,
    /// Adaptive-p decay, 0 to 0.99 [default: 0.9]
    #[arg(long, value_name = "X", value_parser = finite)]
    adaptive_decay: Option<f32>,
    /// Mirostat version 1 or 2, replacing the other samplers; 0: off [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..=2))]
    mirostat: Option<i64>,
    /// Mirostat target entropy, tau [default: 5]
    #[arg(long, alias = "mirostat-ent", value_name = "X", value_parser = finite)]
    mirostat_tau: Option<f32>,
    /// Mirostat learning rate, eta [default: 0.1]
    #[arg(long, alias = "mirostat-lr", value_name = "X", value_parser = finite)]
    mirostat_eta: Option<f32>,
    /// Samplers in order, such as `top_k;top_p;temperature`
    #[arg(long, value_name = "NAMES", value_parser = sequence)]
    samplers: Option<Sequence>,
    /// Samplers as one letter each, such as `kpt`
    #[arg(long, alias = "sampler-seq", value_name = "LETTERS", value_parser = letters, conflicts_with = "samplers")]
    sampling_seq: Option<Sequence>,
    /// Random seed; the same seed gives the same text [default: random]
    #[arg(short, long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    seed: Option<Seed>,
    /// Logit bias of a token, such as `15043+1` or `15043-1.5`; `-inf` bans it; may be repeated
    #[arg(short = 'l', long, value_name = "TOKEN+BIAS", value_parser = logit_bias)]
    #[serde(serialize_with = "biases")]
    logit_bias: Vec<(u32, f32)>,
    /// Ignore the end-of-sequence token and keep generating
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    ignore_eos: Option<bool>,
}

/// Biases as they are written on the command line.
fn biases<S: serde::Serializer>(list: &[(u32, f32)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(list.iter().map(|(token, bias)| format!("{token}{bias:+}")))
}

/// A seed; negative numbers mean a random one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Seed(Option<u32>);

fn seed(text: &str) -> Result<Seed, String> {
    match text.parse::<i64>() {
        Ok(n) if n < 0 => Ok(Seed(None)),
        Ok(n) => u32::try_from(n).map(|n| Seed(Some(n))).map_err(|_| format!("at most {}", u32::MAX)),
        Err(e) => Err(e.to_string()),
    }
}

/// A list of samplers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence(Vec<SamplerKind>);

impl serde::Serialize for Sequence {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let names: Vec<&str> = self.0.iter().map(|kind| kind.name()).collect();
        to.serialize_str(&names.join(";"))
    }
}

fn sequence(text: &str) -> Result<Sequence, String> {
    match SamplerKind::parse_sequence(text) {
        (kinds, unknown) if unknown.is_empty() => Ok(Sequence(kinds)),
        (_, unknown) => Err(format!("unknown sampler: {}", unknown.join(", "))),
    }
}

fn letters(text: &str) -> Result<Sequence, String> {
    let kind = |letter: char| {
        SamplerKind::from_letter(letter).ok_or_else(|| {
            let known: Vec<String> =
                SamplerKind::all().map(|kind| format!("{} {}", kind.letter(), kind.name())).collect();
            format!("no sampler has the letter `{letter}` (known: {})", known.join(", "))
        })
    };
    text.chars().map(kind).collect::<Result<_, _>>().map(Sequence)
}

/// Parses `TOKEN+BIAS` or `TOKEN-BIAS`.
fn logit_bias(text: &str) -> Result<(u32, f32), String> {
    let expected = || "expected a token id, + or -, and a number: 15043+1".to_owned();
    let sign = text.find(['+', '-']).ok_or_else(expected)?;
    let id = text[..sign].parse().map_err(|_| expected())?;
    match text[sign..].parse::<f32>() {
        Ok(bias) if bias < f32::INFINITY => Ok((id, bias)),
        Ok(_) => Err("expected a finite bias or -inf".into()),
        Err(_) => Err(expected()),
    }
}

impl SamplingArgs {
    /// Sets an option, by ollama's name, that the command line leaves to the model; false for another name or value.
    pub(crate) fn fill(&mut self, name: &str, value: &Value) -> bool {
        fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
            let is_value = value.is_some();
            if field.is_none() {
                *field = value;
            }
            is_value
        }
        let float = || value.as_f64().map(|x| x as f32).filter(|x| x.is_finite());
        let whole = || value.as_i64().and_then(|n| i32::try_from(n).ok());
        match name {
            "temperature" => set(&mut self.temp, float()),
            "top_k" => set(&mut self.top_k, whole()),
            "top_p" => set(&mut self.top_p, float()),
            "min_p" => set(&mut self.min_p, float()),
            "typical_p" => set(&mut self.typical_p, float()),
            "repeat_penalty" => set(&mut self.repeat_penalty, float().filter(|x| *x > 0.0)),
            "repeat_last_n" => set(&mut self.repeat_last_n, whole()),
            "presence_penalty" => set(&mut self.presence_penalty, float()),
            "frequency_penalty" => set(&mut self.frequency_penalty, float()),
            "mirostat" => set(&mut self.mirostat, whole().filter(|n| (0..=2).contains(n)).map(i64::from)),
            "mirostat_tau" => set(&mut self.mirostat_tau, float()),
            "mirostat_eta" => set(&mut self.mirostat_eta, float()),
            "seed" => {
                set(&mut self.seed, value.as_u64().and_then(|n| u32::try_from(n).ok()).map(|n| Seed(Some(n))))
            }
            _ => false,
        }
    }

    /// Clears what a new value of this option would contradict.
    pub(crate) fn make_room_for(&mut self, option: &str) {
        if ["samplers", "sampling-seq", "sampler-seq"].contains(&option) {
            (self.samplers, self.sampling_seq) = (None, None);
        }
    }

    /// Writes the given options over `p`, which holds the defaults and the model's recommendation.
    pub(crate) fn apply(&self, p: &mut SamplerParams) {
        fn set<T: Clone>(field: &mut T, value: &Option<T>) {
            if let Some(v) = value {
                *field = v.clone();
            }
        }
        set(&mut p.temp, &self.temp);
        set(&mut p.dynatemp_range, &self.dynatemp_range);
        set(&mut p.dynatemp_exponent, &self.dynatemp_exp);
        set(&mut p.top_k, &self.top_k);
        set(&mut p.top_p, &self.top_p);
        set(&mut p.min_p, &self.min_p);
        set(&mut p.typical_p, &self.typical_p);
        set(&mut p.top_n_sigma, &self.top_n_sigma);
        set(&mut p.penalty_repeat, &self.repeat_penalty);
        set(&mut p.penalty_last_n, &self.repeat_last_n);
        set(&mut p.penalty_present, &self.presence_penalty);
        set(&mut p.penalty_freq, &self.frequency_penalty);
        set(&mut p.dry_multiplier, &self.dry_multiplier);
        set(&mut p.dry_base, &self.dry_base);
        set(&mut p.dry_allowed_length, &self.dry_allowed_length);
        if !self.dry_sequence_breaker.is_empty() {
            let is_text = |text: &&String| *text != "none";
            p.dry_sequence_breakers = self.dry_sequence_breaker.iter().filter(is_text).cloned().collect();
        }
        set(&mut p.dry_penalty_last_n, &self.dry_penalty_last_n);
        set(&mut p.xtc_probability, &self.xtc_probability);
        set(&mut p.xtc_threshold, &self.xtc_threshold);
        set(&mut p.adaptive_target, &self.adaptive_target);
        set(&mut p.adaptive_decay, &self.adaptive_decay);
        set(&mut p.mirostat, &self.mirostat.map(Mirostat::from_version));
        set(&mut p.mirostat_tau, &self.mirostat_tau);
        set(&mut p.mirostat_eta, &self.mirostat_eta);
        let samplers = self.samplers.as_ref().or(self.sampling_seq.as_ref());
        set(&mut p.samplers, &samplers.map(|s| s.0.clone()));
        set(&mut p.seed, &self.seed.map(|s| s.0));
        p.logit_bias.extend_from_slice(&self.logit_bias);
        set(&mut p.ignore_eos, &self.ignore_eos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_no_chunks_is_refused() {
        assert_eq!("-1".parse(), Ok(Chunks(None)));
        assert_eq!("3".parse(), Ok(Chunks(NonZeroUsize::new(3))));
        assert!("0".parse::<Chunks>().is_err() && "x".parse::<Chunks>().is_err());
    }

    #[test]
    fn numbers_of_threads_below_one_mean_all() {
        assert_eq!((threads("3"), threads("0"), threads("-1")), (Ok(3), Ok(0), Ok(0)));
        assert!(threads("1025").is_err() && threads("x").is_err());
    }

    #[test]
    fn devices_are_words_or_names() {
        assert_eq!(device("cpu"), Ok(DeviceChoice::Cpu));
        assert_eq!(device("gpu"), Ok(DeviceChoice::Gpu(None)));
        assert_eq!(device("RTX"), Ok(DeviceChoice::Gpu(Some("RTX".into()))));
        assert!(device("").is_err());
        let gpus = |names: &[&str]| Ok(DeviceChoice::Gpus(names.iter().map(ToString::to_string).collect()));
        assert_eq!(devices("0, RTX"), gpus(&["0", "RTX"]));
        assert_eq!(devices("cpu"), Ok(DeviceChoice::Cpu));
        let whole = "llvmpipe (LLVM 19, 256 bits)";
        assert_eq!(devices(whole), Ok(DeviceChoice::Gpu(Some(whole.into()))));
        assert_eq!(devices(&format!("{whole},1")), gpus(&[whole, "1"]));
        assert_eq!(devices_of_list("0/1"), gpus(&["0", "1"]));
        assert_eq!(devices("0, cpu"), gpus(&["0", "cpu"]));
        assert_eq!(devices("cpu,0,cpu"), Err("cpu is in the list twice".into()));
        let e = devices("0,auto").unwrap_err();
        assert_eq!(e, "`auto` is neither the name or index of a GPU nor cpu, of which a list consists");
        assert!(devices("0,").is_err());
        assert_eq!(devices("all"), Ok(DeviceChoice::AllGpus));
        assert!(devices("0,all").is_err());
    }

    #[test]
    fn a_split_of_none_takes_the_first_device() {
        let of = |split, text: &str| Split::over(Some(split), &devices(text).unwrap());
        assert_eq!(of(Split::None, "1,0"), DeviceChoice::Gpu(Some("1".into())));
        assert_eq!(of(Split::None, "cpu,0"), DeviceChoice::Cpu);
        assert_eq!(of(Split::None, "all"), DeviceChoice::Gpu(None));
        assert_eq!(of(Split::None, "auto"), DeviceChoice::Auto);
        assert_eq!(of(Split::Layer, "1,0"), devices("1,0").unwrap());
        assert_eq!(of(Split::Layer, "cpu"), DeviceChoice::Cpu);
    }

    #[test]
    fn layers_on_gpus_are_a_number_or_all() {
        let layers = |text: &str| text.parse::<GpuLayers>().map(|layers| layers.0);
        assert_eq!([layers("0"), layers("33")], [Ok(Some(0)), Ok(Some(33))]);
        assert_eq!([layers("all"), layers("auto"), layers("-1")], [Ok(None), Ok(None), Ok(None)]);
        assert_eq!(layers("many"), Err("`many` is not a number of layers, nor all".into()));
    }

    #[test]
    fn shares_are_as_many_as_devices() {
        let shares: Shares = "3,1".parse().unwrap();
        assert_eq!(Ok(&shares), "3/1".parse().as_ref());
        let (two, one) = (devices("0,1").unwrap(), DeviceChoice::Auto);
        assert_eq!(Shares::of(Some(&shares), &two).unwrap(), [3.0, 1.0]);
        assert!(Shares::of(None, &two).unwrap().is_empty());
        let e = Shares::of(Some(&shares), &one).unwrap_err().0;
        assert_eq!(e, "--tensor-split has 2 shares, but --device names 1 device");
        assert_eq!(Shares::of(Some(&shares), &DeviceChoice::AllGpus).unwrap(), [3.0, 1.0]);
        for wrong in ["", "1,x", "1,-1", "1,inf"] {
            assert!(wrong.parse::<Shares>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn types_of_keys_and_values_have_defaults() {
        let of = |k, v| KvType::Of { k, v };
        let (f16, q8) = (GgmlType::F16, GgmlType::Q8_0);
        assert_eq!(kv_pair(None, Some(of(q8, q8))).unwrap(), of(f16, q8));
        assert_eq!(kv_pair(Some(of(q8, q8)), None).unwrap(), of(q8, q8));
        assert_eq!(kv_pair(Some(of(q8, q8)), Some(of(f16, f16))).unwrap(), of(q8, f16));
        assert_eq!(kv_pair(None, Some(KvType::Auto)).unwrap(), KvType::Auto);
        assert!(kv_pair(Some(of(q8, q8)), Some(KvType::Auto)).is_err());
    }

    #[test]
    fn every_option_of_sampling_reaches_its_field() {
        use clap::Parser as _;
        #[derive(clap::Parser)]
        #[command(no_binary_name = true)]
        struct Line {
            #[command(flatten)]
            sampling: SamplingArgs,
        }
        let line = "--dynatemp-range 0.5 --dynatemp-exp 2 --dry-sequence-breaker a --dry-sequence-breaker b \
                    --adaptive-target 0.3 --adaptive-decay 0.7";
        let args = Line::try_parse_from(line.split_whitespace()).unwrap().sampling;
        let mut p = SamplerParams::default();
        args.apply(&mut p);
        assert_eq!((p.dynatemp_range, p.dynatemp_exponent), (0.5, 2.0));
        assert_eq!(p.dry_sequence_breakers, ["a", "b"]);
        assert_eq!((p.adaptive_target, p.adaptive_decay), (0.3, 0.7));
        let by_letters = Line::try_parse_from(["--sampling-seq", "kpt"]).unwrap().sampling;
        by_letters.apply(&mut p);
        assert_eq!(p.samplers, [SamplerKind::TopK, SamplerKind::TopP, SamplerKind::Temperature]);
        let error = letters("kq").unwrap_err();
        assert!(
            error.starts_with("no sampler has the letter `q` (known: ") && error.contains("k top_k"),
            "{error}"
        );
        let none = Line::try_parse_from(["--dry-sequence-breaker", "none"]).unwrap().sampling;
        none.apply(&mut p);
        assert!(p.dry_sequence_breakers.is_empty());
    }

    #[test]
    fn biases_have_a_token_and_a_sign() {
        assert_eq!(logit_bias("15043+1"), Ok((15043, 1.0)));
        assert_eq!(logit_bias("7-0.5"), Ok((7, -0.5)));
        assert_eq!(logit_bias("7-inf"), Ok((7, f32::NEG_INFINITY)));
        for wrong in ["7", "x+1", "7+", "7+inf", "7+nan", "-1"] {
            assert!(logit_bias(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seeds_below_zero_are_drawn() {
        assert_eq!(seed("-1"), Ok(Seed(None)));
        assert_eq!(seed("7"), Ok(Seed(Some(7))));
        assert!(seed("4294967296").is_err());
    }
}
