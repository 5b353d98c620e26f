//! Options shared by several commands.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use chaski::gguf::GgmlType;
use chaski::kernels::{ActivationPrecision, Caps, FeatureSet};
use chaski::{DeviceChoice, KvType, Source};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ggml_format::{FILE_TYPES, FileType};

use crate::failure::Usage;
use crate::lora::LoraArgs;
use crate::model_names::{Role, Visit};
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
    /// On the CPU, do not repack weights: slower answers, but weights stay in the mapped file
    #[arg(long)]
    pub(crate) no_repack: bool,
    /// Check bounds in shaders (slower)
    #[arg(long)]
    pub(crate) checked: bool,
    /// Round activations to f16 in GEMM: faster, slightly less exact
    #[arg(long)]
    pub(crate) f16_tiles: bool,
    /// On GPUs, the same answers to the bit, whatever runs beside them: slower prompts and single answers
    #[arg(long, conflicts_with = "swarm_fast")]
    pub(crate) deterministic: bool,
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
    /// Bytes of the KV cache, instead.
    pub(crate) kv_memory: Option<u64>,
    /// Most tokens of a step.
    pub(crate) step_tokens: Option<u32>,
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
}
