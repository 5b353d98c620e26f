//! The formats of weights, by their names in `mlc-chat-config.json`.

use super::MlcError;
use crate::recipe::{Codes, Index, Order, Packing, Quantized, Recipe, RecipeError, Strides, View, Zero};
use crate::tensor_set::Entry;

/// A format of weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// Its name.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// True if values of a folder were compared with the converter's.
    pub(super) is_proven: bool,
}

/// Storage of the weight of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `.weight`, as it is.
    Plain,
    /// `.q_weight` and `.q_scale`: (code - (2^(bits - 1) - 1)) * scale, for groups of so many neighbours of a row,
    /// whose codes fill four words.
    Groups { bits: u32, group: u64, is_transposed: bool },
    /// `.q_weight` of 8-bit floats, `.q_scale` for all of them.
    Float8,
    /// `.weight` of 8-bit floats, `.weight_scale_inv` for blocks of 128 x 128.
    Blocks8,
}

/// Words of a group.
const WORDS: u64 = 4;
/// Rows and columns of a block of 8-bit floats.
const BLOCK8: u64 = 128;

const fn groups(name: &'static str, bits: u32, group: u64, is_transposed: bool) -> Format {
    Format { name, kind: Kind::Groups { bits, group, is_transposed }, is_proven: true }
}

const fn other(name: &'static str, kind: Kind) -> Format {
    Format { name, kind, is_proven: true }
}

const fn unproven(format: Format) -> Format {
    Format { is_proven: false, ..format }
}

/// All formats that are read.
const FORMATS: &[Format] = &[
    groups("q4f16_1", 4, 32, false),
    groups("q4f16_0", 4, 32, true),
    groups("q4f32_1", 4, 32, false),
    // Embeddings and head are not quantised, which their names tell.
    groups("q4f16_2", 4, 32, false),
    groups("q3f16_1", 3, 40, false),
    unproven(groups("q3f16_0", 3, 40, true)),
    unproven(groups("q4bf16_0", 4, 32, true)),
    unproven(groups("q4bf16_1", 4, 32, false)),
    other("q0f16", Kind::Plain),
    other("q0bf16", Kind::Plain),
    other("q0f32", Kind::Plain),
    unproven(other("e4m3_e4m3_f16", Kind::Float8)),
    unproven(other("e5m2_e5m2_f16", Kind::Float8)),
    unproven(other("fp8_e4m3fn_bf16_block_scale", Kind::Blocks8)),
];

/// Ends of names of formats whose layout belongs to kernels of one vendor.
const FOREIGN: &[&str] = &["_ft", "_autoawq"];

impl Format {
    /// The format with this name.
    pub(super) fn named(name: &str) -> Result<Format, MlcError> {
        FORMATS.iter().find(|format| format.name == name).copied().ok_or_else(|| {
            let is_foreign = FOREIGN.iter().any(|end| name.ends_with(end));
            let advice = match is_foreign {
                true => "its layout is that of CUDA kernels; take the model in q4f16_1",
                false => "the format is not known; take the model in q4f16_1",
            };
            let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            MlcError::Quantization { found: name.to_owned(), advice, known: known.join(", ") }
        })
    }

    /// True for formats that no ggml type holds without rounding.
    pub(super) fn is_converted(self) -> bool {
        !matches!(self.kind, Kind::Plain | Kind::Groups { bits: 4, .. })
    }
}

impl Kind {
    /// The rows of groups of codes; those of experts below each other. `n_col` is the number of values of a row.
    pub(super) fn groups(
        self,
        codes: &Entry,
        scales: &Entry,
        n_col: u64,
        is_table: bool,
    ) -> Result<Recipe, RecipeError> {
        let Kind::Groups { bits, group, is_transposed } = self else {
            return float8(codes, scales, Index::One, Index::One);
        };
        let n_group = n_col.div_ceil(group);
        let n_code = n_group.saturating_mul(group);
        let zero = Zero::Number(((1 << (bits - 1)) - 1) as f32);
        let (words, scale) = (codes.view(), scales.view());
        let (values, scales) = if is_transposed && !is_table {
            let codes = Codes {
                n_row: n_code,
                n_col: words.n_col,
                packing: Packing::DownColumn { bits },
                view: words,
            };
            let quantized = Quantized {
                codes,
                scale: scale.clone(),
                row: Index::Groups(group),
                col: Index::Groups(1),
                zero,
            };
            (Recipe::quantized(quantized)?.transpose(n_code)?, Recipe::plain(scale)?.transpose(n_group)?)
        } else {
            let packing = Packing::AlongRow { bits, order: Order::Plain };
            let codes = Codes { n_row: words.n_row, n_col: n_code, packing, view: words };
            let quantized = Quantized {
                codes,
                scale: scale.clone(),
                row: Index::Groups(1),
                col: Index::Groups(group),
                zero,
            };
            (Recipe::quantized(quantized)?, Recipe::plain(scale)?)
        };
        match bits == 4 && n_code == n_col {
            true => values.as_q4_0(scales),
            false if n_code == n_col => Ok(values),
            // The last group is filled up.
            false => values.cols(Strides::slice(0, n_col)),
        }
    }

    /// The shape of the codes of one matrix: rows and words, or words and columns.
    pub(super) fn code_shape(self, n_row: u64, n_col: u64, is_table: bool) -> [u64; 2] {
        match self {
            Kind::Groups { group, is_transposed, .. } => {
                let n_word = n_col.div_ceil(group).saturating_mul(WORDS);
                if is_transposed && !is_table { [n_word, n_row] } else { [n_row, n_word] }
            }
            Kind::Plain | Kind::Float8 | Kind::Blocks8 => [n_row, n_col],
        }
    }

    /// The number of rows of a matrix with codes of this shape.
    pub(super) fn n_row(self, shape: &[u64], is_table: bool) -> Option<u64> {
        let is_transposed = matches!(self, Kind::Groups { is_transposed: true, .. }) && !is_table;
        let from_end = if is_transposed { 1 } else { 2 };
        shape.len().checked_sub(from_end).map(|i| shape[i])
    }
}

/// 8-bit floats in blocks of 128 x 128.
pub(super) fn blocks8(codes: &Entry, scales: &Entry) -> Result<Recipe, RecipeError> {
    float8(codes, scales, Index::Groups(BLOCK8), Index::Groups(BLOCK8))
}

fn float8(codes: &Entry, scales: &Entry, row: Index, col: Index) -> Result<Recipe, RecipeError> {
    let view = codes.view();
    let scale = match scales.tensor.shape.len() {
        0 | 1 => View { n_row: 1, n_col: scales.view().n_elem(), ..scales.view() },
        _ => scales.view(),
    };
    let codes = Codes { n_row: view.n_row, n_col: view.n_col, packing: Packing::Elements, view };
    Recipe::quantized(Quantized { codes, scale, row, col, zero: Zero::Number(0.0) })
}
