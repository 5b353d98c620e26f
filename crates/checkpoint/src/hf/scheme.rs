//! Quantised checkpoints: `quantization_config` of config.json says how weights are stored.

use serde_json::Value;

use super::config::Config;
use super::layouts::{self, LayoutError, NVFP4_COMPRESSED, NVFP4_MODELOPT, Nvfp4Names};
use super::part::Part;
use crate::tensor_set::TensorSet;

/// A quantisation that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SchemeError {
    #[error("config.json: quantisation of {method:?} cannot be read (known: {}); {advice}", known())]
    Method { method: String, advice: &'static str },
    #[error("config.json: quantization_config: {what}")]
    Config { what: String },
    #[error("{file}: expected JSON")]
    Json {
        file: &'static str,
        #[source]
        source: serde_json::Error,
    },
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// Reads the scheme of a method from `quantization_config`.
type Read = fn(&Value) -> Result<Scheme, SchemeError>;

/// Methods that can be read, by `quant_method`.
const METHODS: &[(&str, Read)] = &[
    ("fp8", |q| Ok(Scheme::Float8 { block: block(q.get("weight_block_size"))? })),
    ("compressed-tensors", |q| compressed(q, text(q, "format"))),
    ("gptq", |q| {
        let plus = if text(q, "checkpoint_format") == "gptq_v2" { 0.0 } else { 1.0 };
        Ok(Scheme::Gptq { bits: word_bits(number(q, "bits"))?, plus })
    }),
    ("awq", awq_gemm),
    ("modelopt", modelopt),
    ("mxfp4", |_| Ok(Scheme::Mxfp4)),
];

/// Methods that usually quantise while a checkpoint is loaded, so that the original exists.
const FOREIGN: &[&str] = &["bitsandbytes", "hqq"];

/// Names of all methods that can be read.
fn known() -> String {
    METHODS.iter().map(|row| row.0).collect::<Vec<_>>().join(", ")
}

fn text<'q>(q: &'q Value, name: &str) -> &'q str {
    q.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(q: &Value, name: &str) -> Option<u64> {
    q.get(name).and_then(Value::as_u64)
}

/// How weights are stored.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Scheme {
    /// As they are.
    Plain,
    /// Floats of 8 bits with scales, for blocks of these rows and columns if there are several.
    Float8 { block: Option<(u64, u64)> },
    /// Integers of so many bits in words, with scales and perhaps zero points.
    Packed { bits: u32 },
    /// Words down the columns, with groups by number.
    Gptq { bits: u32, plus: f32 },
    /// Words along the output, in an order of its own.
    Awq,
    /// Experts of gpt-oss, which its rules know.
    Mxfp4,
    /// 4-bit floats with scales of 8 bits, and a number for each matrix.
    Nvfp4(&'static Nvfp4Names),
}

impl Scheme {
    /// Reads the scheme of a configuration, if that has one.
    pub(super) fn of(config: &Config) -> Result<Option<Scheme>, SchemeError> {
        let Some(q) = config.get(&["quantization_config", "compression_config"]) else { return Ok(None) };
        let method = text(q, "quant_method");
        match METHODS.iter().find(|row| row.0 == method) {
            Some((_, read)) => read(q).map(Some),
            None => {
                let advice = match FOREIGN.contains(&method) {
                    true => "take the checkpoint that was quantised, and quantise it with --type",
                    false => "take a checkpoint in bf16, or a GGUF file",
                };
                Err(SchemeError::Method { method: method.to_owned(), advice })
            }
        }
    }

    /// Reads the scheme of a file of ModelOpt, which may be about the cache alone.
    pub(super) fn of_modelopt(json: &Value) -> Result<Scheme, SchemeError> {
        let q = json.get("quantization").unwrap_or(&Value::Null);
        if q.get("quant_algo").is_none_or(Value::is_null) { Ok(Scheme::Plain) } else { modelopt(q) }
    }

    /// The weight of a module, if it is stored by the scheme.
    pub(super) fn part(&self, tensors: &mut TensorSet, module: &str) -> Result<Option<Part>, SchemeError> {
        let has = |end: &str| tensors.find(&format!("{module}.{end}")).is_some();
        let recipe = match *self {
            Scheme::Float8 { block } if layouts::is_coded(tensors, module) => {
                layouts::float8(tensors, module, block)?
            }
            Scheme::Packed { bits } if has("weight_packed") => layouts::packed(tensors, module, bits)?,
            Scheme::Gptq { bits, plus } if has("qweight") => layouts::gptq(tensors, module, bits, plus)?,
            Scheme::Awq if has("qweight") => layouts::awq(tensors, module)?,
            Scheme::Nvfp4(names) if layouts::is_packed(tensors, module, names) => {
                layouts::nvfp4(tensors, module, names)?
            }
            _ => return Ok(None),
        };
        Ok(Some(Part { shape: vec![recipe.n_row(), recipe.n_col()], recipe }))
    }

    /// Experts of a layer that mxfp4 stores: `[n_expert, rows, columns]`.
    pub(super) fn experts(&self, tensors: &mut TensorSet, name: &str) -> Result<Option<Part>, SchemeError> {
        if *self != Scheme::Mxfp4 || tensors.find(&format!("{name}_blocks")).is_none() {
            return Ok(None);
        }
        Ok(Some(layouts::mxfp4(tensors, name)?))
    }
}

/// Ends of names of tensors beside weights that say how activations were scaled, which are not quantised here.
pub(super) const ACTIVATION_SCALES: &[&str] =
    &[".input_scale", ".output_scale", ".k_scale", ".v_scale", ".input_global_scale", ".activation_scale"];

fn refuse<T>(what: String) -> Result<T, SchemeError> {
    Err(SchemeError::Config { what })
}

fn block(value: Option<&Value>) -> Result<Option<(u64, u64)>, SchemeError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            match value.as_array().map(|list| list.iter().map(Value::as_u64).collect::<Vec<_>>()).as_deref() {
                Some([Some(rows @ 1..), Some(cols @ 1..)]) => Ok(Some((*rows, *cols))),
                _ => refuse(format!("weight_block_size: expected two numbers, found {value}")),
            }
        }
    }
}

fn word_bits(found: Option<u64>) -> Result<u32, SchemeError> {
    match found {
        Some(bits @ (2 | 4 | 8)) => Ok(bits as u32),
        // Codes of 3 bits cross words.
        _ => refuse(format!("expected 2, 4 or 8 bits, found {found:?}")),
    }
}

/// The scheme of AWQ. Its zero points are tensors, also where `zero_point` is false.
fn awq_gemm(q: &Value) -> Result<Scheme, SchemeError> {
    let layouts = ["version", "format"].map(|name| text(q, name).to_ascii_lowercase());
    if let Some(other) = layouts.iter().find(|name| !matches!(name.as_str(), "" | "gemm")) {
        return refuse(format!(
            "awq of version {other:?}: codes have another order, expected version \"gemm\""
        ));
    }
    if text(q, "backend") == "llm-awq" {
        return refuse(
            "awq of backend \"llm-awq\": codes have another order, expected version \"gemm\"".into(),
        );
    }
    match number(q, "bits") {
        Some(4) => Ok(Scheme::Awq),
        found => refuse(format!("awq: expected 4 bits, found {found:?}")),
    }
}

/// The scheme of NVIDIA ModelOpt. Others of its algorithms change the inputs of modules, too.
fn modelopt(q: &Value) -> Result<Scheme, SchemeError> {
    match (text(q, "quant_algo"), number(q, "group_size")) {
        ("NVFP4" | "W4A16_NVFP4", None | Some(16)) => Ok(Scheme::Nvfp4(&NVFP4_MODELOPT)),
        ("FP8", _) => Ok(Scheme::Float8 { block: None }),
        (algo, group) => refuse(format!(
            "quant_algo {algo:?} with group_size {group:?}: expected NVFP4 or W4A16_NVFP4 of groups of 16, or FP8"
        )),
    }
}

/// The scheme of compressed-tensors: that of its groups, which must be the same.
fn compressed(q: &Value, format: &str) -> Result<Scheme, SchemeError> {
    let groups: Vec<&Value> =
        q.get("config_groups").and_then(Value::as_object).into_iter().flat_map(|map| map.values()).collect();
    let schemes: Vec<Scheme> =
        groups.iter().map(|group| compressed_group(group, format)).collect::<Result<_, _>>()?;
    match schemes.split_first() {
        Some((first, rest)) if rest.iter().all(|other| other == first) => Ok(first.clone()),
        _ => refuse(format!("expected config_groups of one scheme, found {}", groups.len())),
    }
}

fn compressed_group(group: &Value, format: &str) -> Result<Scheme, SchemeError> {
    let weights = group.get("weights").unwrap_or(&Value::Null);
    let format = group.get("format").and_then(Value::as_str).unwrap_or(format);
    let bits = number(weights, "num_bits");
    let is_symmetric = weights.get("symmetric") != Some(&Value::Bool(false));
    if weights.get("actorder").is_some_and(|v| v.as_str() == Some("group")) {
        return refuse("actorder \"group\": expected groups in the order of columns".into());
    }
    match format {
        "pack-quantized" => Ok(Scheme::Packed { bits: word_bits(bits)? }),
        "float-quantized" | "naive-quantized" | "int-quantized" if bits == Some(8) => {
            Ok(Scheme::Float8 { block: block(weights.get("block_structure"))? })
        }
        "nvfp4-pack-quantized"
            if (bits, number(weights, "group_size")) == (Some(4), Some(16)) && is_symmetric =>
        {
            Ok(Scheme::Nvfp4(&NVFP4_COMPRESSED))
        }
        other => refuse(format!(
            "format {other:?} of {bits:?} bits: expected pack-quantized, float-quantized, naive-quantized or symmetric nvfp4-pack-quantized of groups of 16"
        )),
    }
}
