//! The tensors that store a weight, as recipes: a function for each layout.

use super::part::Part;
use crate::recipe::{
    Codes, Index, MatrixScale, Microscaled, Nvfp4, Order, Packing, Quantized, Recipe, RecipeError, View, Zero,
};
use crate::safetensors::Dtype;
use crate::tensor_set::{Entry, TensorSet};

/// Tensors that do not store a weight in the layout of their scheme.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum LayoutError {
    #[error("tensor `{module}.weight`: expected {expected}, found {found}")]
    Shape { module: String, expected: String, found: String },
    #[error("tensor `{tensor}`: needed for the weight of its module, not found")]
    Missing { tensor: String },
    #[error("tensor `{module}.weight`: its parts do not fit each other")]
    Parts {
        module: String,
        #[source]
        source: RecipeError,
    },
}

/// Names behind the module's of the tensors of a weight in nvfp4, beside `weight_scale`.
#[derive(PartialEq, Debug)]
pub(super) struct Nvfp4Names {
    codes: &'static str,
    matrix: &'static str,
    /// True if values are divided by the number of the matrix.
    divides: bool,
}

pub(super) const NVFP4_COMPRESSED: Nvfp4Names =
    Nvfp4Names { codes: "weight_packed", matrix: "weight_global_scale", divides: true };
pub(super) const NVFP4_MODELOPT: Nvfp4Names =
    Nvfp4Names { codes: "weight", matrix: "weight_scale_2", divides: false };

/// Takes a tensor that a weight needs.
fn take(tensors: &mut TensorSet, module: &str, end: &str) -> Result<Entry, LayoutError> {
    let tensor = format!("{module}.{end}");
    tensors.take(&tensor).ok_or(LayoutError::Missing { tensor })
}

fn located(module: &str) -> impl FnOnce(RecipeError) -> LayoutError + use<> {
    let module = module.to_owned();
    |source| LayoutError::Parts { module, source }
}

fn layout<T>(module: &str, expected: &str, found: &[u64]) -> Result<T, LayoutError> {
    Err(LayoutError::Shape {
        module: module.to_owned(),
        expected: expected.to_owned(),
        found: format!("{found:?}"),
    })
}

/// Rows and columns of a matrix.
fn sizes(module: &str, entry: &Entry) -> Result<(u64, u64), LayoutError> {
    match entry.shape() {
        [n_row, n_col] => Ok((*n_row, *n_col)),
        other => layout(module, "a matrix", other),
    }
}

/// True for a module whose weight is 8-bit codes.
pub(super) fn is_coded(tensors: &TensorSet, module: &str) -> bool {
    let dtype = tensors.find(&format!("{module}.weight")).map(Entry::dtype);
    matches!(dtype, Some(Dtype::F8_E4M3 | Dtype::F8_E5M2 | Dtype::I8))
}

/// 8-bit codes: one scale, one per row, or one per block.
pub(super) fn float8(
    tensors: &mut TensorSet,
    module: &str,
    block: Option<(u64, u64)>,
) -> Result<Recipe, LayoutError> {
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
pub(super) fn packed(tensors: &mut TensorSet, module: &str, bits: u32) -> Result<Recipe, LayoutError> {
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
pub(super) fn gptq(
    tensors: &mut TensorSet,
    module: &str,
    bits: u32,
    plus: f32,
) -> Result<Recipe, LayoutError> {
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
pub(super) fn awq(tensors: &mut TensorSet, module: &str) -> Result<Recipe, LayoutError> {
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
pub(super) fn is_packed(tensors: &TensorSet, module: &str, names: &Nvfp4Names) -> bool {
    tensors.find(&format!("{module}.{}", names.codes)).is_some_and(|codes| codes.dtype() == Dtype::U8)
}

/// Bytes along rows, each with two codes.
pub(super) fn nvfp4(
    tensors: &mut TensorSet,
    module: &str,
    names: &Nvfp4Names,
) -> Result<Recipe, LayoutError> {
    let codes = take(tensors, module, names.codes)?;
    let scales = take(tensors, module, "weight_scale")?;
    let matrix = take(tensors, module, names.matrix)?;
    sizes(module, &codes)?;
    sizes(module, &scales)?;
    let matrix = MatrixScale { view: matrix.view(), divides: names.divides };
    Recipe::nvfp4(Nvfp4 { codes: codes.view(), scales: scales.view(), matrix }).map_err(located(module))
}

/// Experts of a layer, each with blocks of 16 bytes.
pub(super) fn mxfp4(tensors: &mut TensorSet, name: &str) -> Result<Part, LayoutError> {
    let take = |tensors: &mut TensorSet, end| {
        let tensor = format!("{name}_{end}");
        tensors.take(&tensor).ok_or(LayoutError::Missing { tensor })
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
    Ok(Part { shape, recipe })
}
