//! Opens a folder as a virtual GGUF file.

use std::collections::HashMap;

use ggml_format::{ByteSource, FileType, MixError, ModelFacts, OwnedValue};

use super::class::HfArch;
use super::config::{Config, ConfigError};
use super::keys::has_untruncated_ramp;
use super::plan::{self, PlanError};
use super::scheme::{Scheme, SchemeError};
use super::source::WeightSource;
use super::table::{HF_ARCHS, class};
use super::tensors::{self, TensorsError};
use super::weights::Weights;
use crate::folder::{Folder, FolderError};
use crate::python_json;
use crate::safetensors::Dtype;
use crate::tokenizer::{TokenizerFileError, TokenizerFiles, TokenizerKeys, TokenizerOptions};
use crate::types::Types;
use crate::virtual_gguf::{VirtualError, VirtualGguf, VirtualSource};

/// The configuration of a checkpoint.
const CONFIG: &str = "config.json";

/// The quantisation of checkpoints of NVIDIA ModelOpt whose configuration does not have it.
pub(crate) const HF_QUANT_CONFIG: &str = "hf_quant_config.json";

/// The tensor whose rows are tokens.
const EMBEDDINGS: &str = "token_embd.weight";

/// A difference that is small and that every reader of GGUF has.
const RAMP: &str =
    "RoPE: `truncate` is false, which GGUF cannot say; frequencies of a few pairs differ slightly";

/// A folder that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum HfError {
    #[error("config.json: class {found:?} is not known (known: {})", known())]
    Class { found: String },
    #[error(
        "config.json: the rules of class {class} were never compared with the original, so its results may be wrong; `chaski convert --allow-unproven` makes a GGUF file of it"
    )]
    Unproven { class: &'static str },
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    #[error(transparent)]
    Tensors(#[from] TensorsError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("in the tokenizer")]
    Tokenizer(#[from] TokenizerFileError),
    #[error(transparent)]
    Types(#[from] MixError),
    #[error(transparent)]
    Virtual(#[from] VirtualError),
}

/// Names of all classes that are opened.
fn known() -> String {
    let names: Vec<&str> =
        HF_ARCHS.iter().copied().flatten().filter(|a| a.is_proven()).map(|a| a.class).collect();
    names.join(", ")
}

/// The caller's part in opening a folder.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Types of the tensors.
    pub types: Types,
    /// A value for `tokenizer.ggml.pre`, instead of the rule that the files describe.
    pub pre: Option<String>,
    /// Open classes, and formats of MLC, that were never compared with the original.
    pub allow_unproven: bool,
}

/// An opened folder.
#[derive(Debug)]
pub struct Opened<S> {
    /// The file.
    pub source: VirtualSource<S>,
    /// The class of the model.
    pub class: &'static str,
    /// Facts that a user should know, as sentences without a full stop.
    pub notes: Vec<String>,
}

/// Opens a folder: reads config.json, the tokenizer, and the headers of the weights.
///
/// # Errors
/// For classes without rules, configurations that GGUF cannot describe, and tensors that are missing or that no rule
/// takes.
pub async fn open<S: ByteSource>(folder: Folder<S>, options: &OpenOptions) -> Result<Opened<S>, HfError> {
    let json = python_json::parse(&folder.read(CONFIG).await?).map_err(ConfigError::Json)?;
    let (arch, config) = prepare(Config::of(json.clone())?, options)?;
    let scheme = scheme(&folder, &config).await?;
    let mut weights = Weights::new(tensors::read(&folder).await?, scheme);
    let mut gguf = model(arch, &config, &mut weights, folder.name())?;
    let tokenizer = TokenizerOptions { n_vocab: n_vocab(&gguf), pre: options.pre.as_deref() };
    let tokenizer = TokenizerKeys::read(&TokenizerFiles::of(&folder, json).await?, tokenizer)?;
    gguf.keys.extend(tokenizer.entries);
    set_types(&mut gguf, arch, &config, options, weights.dtype())?;
    let name = folder.name().to_owned();
    let source = gguf.finish(name, folder.into_sources())?;
    let mut notes = tokenizer.notes;
    if has_untruncated_ramp(&config) {
        notes.push(RAMP.into());
    }
    Ok(Opened { source, class: arch.class, notes })
}

/// How weights are stored, by the configuration or a file beside it.
async fn scheme<S: ByteSource>(folder: &Folder<S>, config: &Config) -> Result<Scheme, HfError> {
    if let Some(scheme) = Scheme::of(config)? {
        return Ok(scheme);
    }
    let Some(json) = folder.try_read(HF_QUANT_CONFIG).await? else { return Ok(Scheme::Plain) };
    let json = serde_json::from_slice(&json)
        .map_err(|source| SchemeError::Json { file: HF_QUANT_CONFIG, source })?;
    Ok(Scheme::of_modelopt(&json)?)
}

/// The class of a configuration, and the configuration with the defaults of the class.
///
/// # Errors
/// For classes without rules, and configurations that GGUF cannot describe.
pub(crate) fn prepare(
    mut config: Config,
    options: &OpenOptions,
) -> Result<(&'static HfArch, Config), HfError> {
    let arch = arch_of(&config, options)?;
    config.add_defaults(arch.defaults)?;
    (arch.check)(&config)?;
    Ok((arch, config))
}

/// Keys of the model and its tensors.
///
/// # Errors
/// [`HfError::Plan`], [`HfError::Config`]
pub(crate) fn model(
    arch: &'static HfArch,
    config: &Config,
    weights: &mut dyn WeightSource,
    folder: &str,
) -> Result<VirtualGguf, HfError> {
    Ok(VirtualGguf { keys: keys(arch, config, folder)?, tensors: plan::tensors(arch, config, weights)? })
}

/// Number of tokens: rows of the embeddings.
pub(crate) fn n_vocab(gguf: &VirtualGguf) -> Option<u64> {
    gguf.tensors.iter().find(|t| t.name == EMBEDDINGS).and_then(|t| t.ne.get(1)).copied()
}

/// Chooses the types of the tensors; `dtype` is that of numbers that are not quantised.
///
/// # Errors
/// [`HfError::Types`], [`HfError::Virtual`]
pub(crate) fn set_types(
    gguf: &mut VirtualGguf,
    arch: &HfArch,
    config: &Config,
    options: &OpenOptions,
    dtype: Option<Dtype>,
) -> Result<(), HfError> {
    let facts = facts(arch, config, gguf)?;
    let file_type = options.types.apply(gguf, dtype, facts)?;
    gguf.add_factors()?;
    set_file_type(gguf, file_type);
    Ok(())
}

/// The row of the first class that has one.
fn arch_of(config: &Config, options: &OpenOptions) -> Result<&'static HfArch, HfError> {
    let classes = config.classes();
    let found = classes.iter().find_map(|name| class(name));
    let arch = found.ok_or_else(|| HfError::Class { found: classes.join(", ") })?;
    if !arch.is_proven() && !options.allow_unproven {
        return Err(HfError::Unproven { class: arch.class });
    }
    Ok(arch)
}

/// The keys of the file.
fn keys(arch: &HfArch, config: &Config, folder: &str) -> Result<Vec<(String, OwnedValue)>, HfError> {
    let name = folder.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or(folder);
    let mut keys: Vec<(String, OwnedValue)> =
        vec![("general.architecture".into(), arch.arch.into()), ("general.name".into(), name.into())];
    let mut places: HashMap<&str, usize> = HashMap::new();
    for key in arch.keys.iter().copied().flatten() {
        let Some(value) = (key.value)(config)? else { continue };
        match places.get(key.name) {
            Some(&i) => keys[i].1 = value,
            None => {
                places.insert(key.name, keys.len());
                keys.push((format!("{}.{}", arch.arch, key.name), value));
            }
        }
    }
    Ok(keys)
}

/// The model's part in the choice of types.
fn facts(arch: &HfArch, c: &Config, gguf: &VirtualGguf) -> Result<ModelFacts, HfError> {
    let is_value = |name: &str| {
        ["attn_v.weight", "attn_qkv.weight", "attn_kv_b.weight"].iter().any(|end| name.ends_with(end))
    };
    let n_layer = c.n_layer()?;
    let (n_head, n_head_kv) = match c.n_head() {
        Ok(n) => (n, c.n_head_kv()?),
        // Models without attention.
        Err(_) => (1, 1),
    };
    Ok(ModelFacts {
        n_layer,
        n_attn_v: gguf.tensors.iter().filter(|t| is_value(&t.name)).count() as u32,
        gqa: n_head.checked_div(n_head_kv).unwrap_or(0),
        n_expert: c.n_expert()?.unwrap_or(0),
        has_output: gguf.tensors.iter().any(|t| t.name == "output.weight"),
        is_70b: arch.arch == "llama" && n_layer == 80 && n_head != n_head_kv,
        is_falcon: false,
        has_importance: false,
    })
}

fn set_file_type(gguf: &mut VirtualGguf, file_type: FileType) {
    gguf.set("general.file_type", file_type.id());
    gguf.set("general.quantization_version", 2u32);
}
