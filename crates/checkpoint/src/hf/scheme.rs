//! Quantised checkpoints: `quantization_config` of config.json, and the tensors that store a weight.

use serde_json::Value;

use super::config::Config;
use super::part::Part;
use crate::recipe::{
    Codes, Index, MatrixScale, Microscaled, Nvfp4, Order, Packing, Quantized, Recipe, RecipeError, View, Zero,
};
use crate::safetensors::Dtype;
use crate::tensor_set::{Entry, TensorSet};

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
    #[error("tensor `{module}.weight`: expected {expected}, found {found}")]
    Layout { module: String, expected: String, found: String },
    #[error("tensor `{tensor}`: needed for the weight of its module, not found")]
    Missing { tensor: String },
    #[error("tensor `{module}.weight`: its parts do not fit each other")]
    Parts {
        module: String,
        #[source]
        source: RecipeError,
    },
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

/// Names behind the module's of the tensors of a weight in nvfp4, beside `weight_scale`.
#[derive(PartialEq, Debug)]
pub(super) struct Nvfp4Names {
    codes: &'static str,
    matrix: &'static str,
    /// True if values are divided by the number of the matrix.
    divides: bool,
}

const NVFP4_COMPRESSED: Nvfp4Names =
    Nvfp4Names { codes: "weight_packed", matrix: "weight_global_scale", divides: true };
const NVFP4_MODELOPT: Nvfp4Names = Nvfp4Names { codes: "weight", matrix: "weight_scale_2", divides: false };

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
            Scheme::Float8 { block } if is_coded(tensors, module) => float8(tensors, module, block)?,
            Scheme::Packed { bits } if has("weight_packed") => packed(tensors, module, bits)?,
            Scheme::Gptq { bits, plus } if has("qweight") => gptq(tensors, module, bits, plus)?,
            Scheme::Awq if has("qweight") => awq(tensors, module)?,
            Scheme::Nvfp4(names) if is_packed(tensors, module, names) => nvfp4(tensors, module, names)?,
            _ => return Ok(None),
        };
        Ok(Some(Part { shape: vec![recipe.n_row(), recipe.n_col()], recipe }))
    }

    /// Experts of a layer that mxfp4 stores: `[n_expert, rows, columns]`.
    pub(super) fn experts(&self, tensors: &mut TensorSet, name: &str) -> Result<Option<Part>, SchemeError> {
        if *self != Scheme::Mxfp4 || tensors.find(&format!("{name}_blocks")).is_none() {
            return Ok(None);
        }
        let take = |tensors: &mut TensorSet, end| {
            let tensor = format!("{name}_{end}");
            tensors.take(&tensor).ok_or(SchemeError::Missing { tensor })
        };
        let (blocks, scales) = (take(tensors, "blocks")?, take(tensors, "scales")?);
        let (&[n_expert, n_row, n_block, 16], &[n_expert_scale, n_row_scale, n_scale]) =
            (blocks.shape(), scales.shape())
        else {
            return layout(name, "blocks of 16 bytes, each with a scale", blocks.shape());
        };
        if (n_expert_scale, n_row_scale, n_scale) != (n_expert, n_row, n_block) {
            return layout(name, "a scale for each block of 16 bytes", scales.shape());
        }
        let shape = vec![n_expert, n_row, n_block.saturating_mul(32)];
        let n_all = n_expert.saturating_mul(n_row);
        let codes = View { n_row: n_all, n_col: n_block.saturating_mul(16), ..blocks.view() };
        let scales = View { n_row: n_all, n_col: n_block, ..scales.view() };
        let microscaled = Microscaled { codes, scales };
        let recipe = Recipe::microscaled(microscaled).map_err(located(name))?;
        Ok(Some(Part { shape, recipe }))
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

/// Takes a tensor that a weight needs.
fn take(tensors: &mut TensorSet, module: &str, end: &str) -> Result<Entry, SchemeError> {
    let tensor = format!("{module}.{end}");
    tensors.take(&tensor).ok_or(SchemeError::Missing { tensor })
}

fn located(module: &str) -> impl FnOnce(RecipeError) -> SchemeError + use<> {
    let module = module.to_owned();
    |source| SchemeError::Parts { module, source }
}

fn layout<T>(module: &str, expected: &str, found: &[u64]) -> Result<T, SchemeError> {
    Err(SchemeError::Layout {
        module: module.to_owned(),
        expected: expected.to_owned(),
        found: format!("{found:?}"),
    })
}

/// Rows and columns of a matrix.
fn sizes(module: &str, entry: &Entry) -> Result<(u64, u64), SchemeError> {
    match entry.shape() {
        [n_row, n_col] => Ok((*n_row, *n_col)),
        other => layout(module, "a matrix", other),
    }
}

/// True for a module whose weight is 8-bit codes.
fn is_coded(tensors: &TensorSet, module: &str) -> bool {
    let dtype = tensors.find(&format!("{module}.weight")).map(Entry::dtype);
    matches!(dtype, Some(Dtype::F8_E4M3 | Dtype::F8_E5M2 | Dtype::I8))
}

/// 8-bit codes: one scale, one per row, or one per block.
fn float8(tensors: &mut TensorSet, module: &str, block: Option<(u64, u64)>) -> Result<Recipe, SchemeError> {
    let codes = take(tensors, module, "weight")?;
    let (n_row, n_col) = sizes(module, &codes)?;
    let inverse = format!("{module}.weight_scale_inv");
    let scale = match tensors.take(&inverse) {
        Some(scale) => scale,
        None => take(tensors, module, "weight_scale")?,
    };
    let mut view = scale.view();
    let (row, col) = match (scale.shape(), block) {
        ([] | [1] | [1, 1], _) => (Index::One, Index::One),
        (shape, _) if shape == [n_row, 1] => (Index::Groups(1), Index::One),
        (shape, _) if shape == [n_row] => {
            (view.n_row, view.n_col) = (n_row, 1);
            (Index::Groups(1), Index::One)
        }
        (_, Some((rows, cols))) => (Index::Groups(rows), Index::Groups(cols)),
        (shape, None) => return layout(module, "one scale, or one per row", shape),
    };
    let codes = Codes { view: codes.view(), packing: Packing::Elements, n_row, n_col };
    Recipe::quantized(Quantized { codes, scale: view, row, col, zero: Zero::Number(0.0) })
        .map_err(located(module))
}

/// Words along rows; the zero points are words down columns.
fn packed(tensors: &mut TensorSet, module: &str, bits: u32) -> Result<Recipe, SchemeError> {
    let words = take(tensors, module, "weight_packed")?;
    let scale = take(tensors, module, "weight_scale")?;
    let zero = tensors.take(&format!("{module}.weight_zero_point"));
    // Two numbers, which the other shapes tell, too.
    tensors.take(&format!("{module}.weight_shape"));
    let (n_row, n_word) = sizes(module, &words)?;
    let (n_scale_row, n_group) = sizes(module, &scale)?;
    let n_col = n_word.saturating_mul(u64::from(32 / bits));
    if n_group == 0 || !n_col.is_multiple_of(n_group) {
        return layout(module, &format!("a scale per group of {n_col} columns"), scale.shape());
    }
    let group = n_col / n_group;
    let middle = (1u32 << (bits - 1)) as f32;
    let is_symmetric = zero.is_none();
    let zero = match zero {
        None => Zero::Number(middle),
        Some(zero) => {
            let packing = Packing::DownColumn { bits };
            Zero::Codes {
                codes: Codes { view: zero.view(), packing, n_row: n_scale_row, n_col: n_group },
                plus: 0.0,
            }
        }
    };
    let packing = Packing::AlongRow { bits, order: Order::Plain };
    let codes = Codes { view: words.view(), packing, n_row, n_col };
    let quantized =
        Quantized { codes, scale: scale.view(), row: Index::Groups(1), col: Index::Groups(group), zero };
    let values = Recipe::quantized(quantized).map_err(located(module))?;
    if bits != 4 || !is_symmetric || !group.is_multiple_of(32) {
        return Ok(values);
    }
    // The same numbers as q4_0: each scale for its blocks of 32.
    let scales = Recipe::plain(scale.view())
        .and_then(|scales| scales.cols(crate::Strides::new(0, &[(n_group, 1), (group / 32, 0)])));
    scales.and_then(|scales| values.as_q4_0(scales)).map_err(located(module))
}

/// Words down columns; the group of each row by number.
fn gptq(tensors: &mut TensorSet, module: &str, bits: u32, plus: f32) -> Result<Recipe, SchemeError> {
    let words = take(tensors, module, "qweight")?;
    let zeros = take(tensors, module, "qzeros")?;
    let scale = take(tensors, module, "scales")?;
    let groups = tensors.take(&format!("{module}.g_idx"));
    let (n_word, n_out) = sizes(module, &words)?;
    let (n_group, _) = sizes(module, &scale)?;
    let n_in = n_word.saturating_mul(u64::from(32 / bits));
    let row = match groups {
        Some(groups) => Index::Table(groups.view()),
        // In order, where the checkpoint does not say.
        None if n_group > 0 && n_in.is_multiple_of(n_group) => Index::Groups(n_in / n_group),
        None => return layout(module, &format!("scales of groups of {n_in} rows"), scale.shape()),
    };
    let codes =
        Codes { view: words.view(), packing: Packing::DownColumn { bits }, n_row: n_in, n_col: n_out };
    let packing = Packing::AlongRow { bits, order: Order::Plain };
    let zeros = Codes { view: zeros.view(), packing, n_row: n_group, n_col: n_out };
    let quantized = Quantized {
        codes,
        scale: scale.view(),
        row,
        col: Index::Groups(1),
        zero: Zero::Codes { codes: zeros, plus },
    };
    Recipe::quantized(quantized).and_then(|r| r.transpose(n_in)).map_err(located(module))
}

/// Words along the output, groups in order.
fn awq(tensors: &mut TensorSet, module: &str) -> Result<Recipe, SchemeError> {
    let words = take(tensors, module, "qweight")?;
    let zeros = take(tensors, module, "qzeros")?;
    let scale = take(tensors, module, "scales")?;
    let (n_in, n_word) = sizes(module, &words)?;
    let (n_group, n_out) = sizes(module, &scale)?;
    if n_group == 0 || !n_in.is_multiple_of(n_group) || n_word.checked_mul(8) != Some(n_out) {
        return layout(module, &format!("scales of {n_in} x {n_word} words of 8 codes"), scale.shape());
    }
    let packing = Packing::AlongRow { bits: 4, order: Order::Awq };
    let quantized = Quantized {
        codes: Codes { view: words.view(), packing, n_row: n_in, n_col: n_out },
        scale: scale.view(),
        row: Index::Groups(n_in / n_group),
        col: Index::Groups(1),
        zero: Zero::Codes {
            codes: Codes { view: zeros.view(), packing, n_row: n_group, n_col: n_out },
            plus: 0.0,
        },
    };
    Recipe::quantized(quantized).and_then(|r| r.transpose(n_in)).map_err(located(module))
}

/// True for a module whose weight is 4-bit codes.
fn is_packed(tensors: &TensorSet, module: &str, names: &Nvfp4Names) -> bool {
    tensors.find(&format!("{module}.{}", names.codes)).is_some_and(|codes| codes.dtype() == Dtype::U8)
}

/// Bytes along rows, each with two codes.
fn nvfp4(tensors: &mut TensorSet, module: &str, names: &Nvfp4Names) -> Result<Recipe, SchemeError> {
    let codes = take(tensors, module, names.codes)?;
    let scales = take(tensors, module, "weight_scale")?;
    let matrix = take(tensors, module, names.matrix)?;
    sizes(module, &codes)?;
    sizes(module, &scales)?;
    let matrix = MatrixScale { view: matrix.view(), divides: names.divides };
    Recipe::nvfp4(Nvfp4 { codes: codes.view(), scales: scales.view(), matrix }).map_err(located(module))
}
