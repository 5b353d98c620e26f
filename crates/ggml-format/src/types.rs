//! The table of ggml tensor types: ids, names, block sizes and conversion functions.
//!
//! To add a type: a file in `blocks/`, and four lines here (the module, its path, the variant, the row).

use std::fmt;

use crate::blocks::codes::{Coded, Codes};
use crate::blocks::isa::{Compiled, compiled};
use crate::blocks::{Block, dequantize_blocks, invalid_block};

#[path = "blocks/float.rs"]
pub mod float;
#[path = "blocks/integer.rs"]
pub mod integer;
#[path = "blocks/iq1_m.rs"]
pub mod iq1_m;
#[path = "blocks/iq1_s.rs"]
pub mod iq1_s;
#[path = "blocks/iq2_s.rs"]
pub mod iq2_s;
#[path = "blocks/iq2_xs.rs"]
pub mod iq2_xs;
#[path = "blocks/iq2_xxs.rs"]
pub mod iq2_xxs;
#[path = "blocks/iq3_s.rs"]
pub mod iq3_s;
#[path = "blocks/iq3_xxs.rs"]
pub mod iq3_xxs;
#[path = "blocks/iq4_nl.rs"]
pub mod iq4_nl;
#[path = "blocks/iq4_xs.rs"]
pub mod iq4_xs;
#[path = "blocks/mxfp4.rs"]
pub mod mxfp4;
#[path = "blocks/nvfp4.rs"]
pub mod nvfp4;
#[path = "blocks/q1_0.rs"]
pub mod q1_0;
#[path = "blocks/q2_0.rs"]
pub mod q2_0;
#[path = "blocks/q2_k.rs"]
pub mod q2_k;
#[path = "blocks/q3_k.rs"]
pub mod q3_k;
#[path = "blocks/q4_0.rs"]
pub mod q4_0;
#[path = "blocks/q4_1.rs"]
pub mod q4_1;
#[path = "blocks/q4_k.rs"]
pub mod q4_k;
#[path = "blocks/q5_0.rs"]
pub mod q5_0;
#[path = "blocks/q5_1.rs"]
pub mod q5_1;
#[path = "blocks/q5_k.rs"]
pub mod q5_k;
#[path = "blocks/q6_k.rs"]
pub mod q6_k;
#[path = "blocks/q8_0.rs"]
pub mod q8_0;
#[path = "blocks/q8_1.rs"]
pub mod q8_1;
#[path = "blocks/q8_k.rs"]
pub mod q8_k;
#[path = "blocks/tq1_0.rs"]
pub mod tq1_0;
#[path = "blocks/tq2_0.rs"]
pub mod tq2_0;

/// A ggml tensor type: the encoding of a tensor's values as bytes.
///
/// Each variant is one row of [`TYPES`], which holds everything else there is to know about it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[allow(non_camel_case_types, reason = "these are ggml's own names for the formats")]
#[allow(missing_docs, reason = "a variant is documented by its row in TYPES and its file under blocks/")]
pub enum GgmlType {
    F32,
    F16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q8_1,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    Q8_K,
    IQ2_XXS,
    IQ2_XS,
    IQ3_XXS,
    IQ1_S,
    IQ4_NL,
    IQ3_S,
    IQ2_S,
    IQ4_XS,
    I8,
    I16,
    I32,
    I64,
    F64,
    IQ1_M,
    BF16,
    TQ1_0,
    TQ2_0,
    MXFP4,
    NVFP4,
    Q1_0,
    Q2_0,
}

/// Dequantises whole blocks; the two lengths must describe the same number of blocks.
pub type DequantizeFn = fn(&[u8], &mut [f32]);

/// Quantises one row: values, optional importance of each column, output blocks.
///
/// The row length is a multiple of the block length, and the output has exactly the bytes of the row.
pub type QuantizeFn = fn(&[f32], Option<&[f32]>, &mut [u8]);

/// Finds the index of the first block whose scales are not finite.
pub type InvalidBlockFn = fn(&[u8]) -> Option<usize>;

/// One row of [`TYPES`].
#[derive(Copy, Clone, Debug)]
pub struct TypeInfo {
    /// The type of this row.
    pub ty: GgmlType,
    /// The id of the type in a file.
    pub id: u32,
    /// ggml's name of the type, such as `q4_K`.
    pub name: &'static str,
    /// Values in a block; 1 for plain numbers.
    pub block_len: usize,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// The reference dequantiser.
    pub dequantize: Option<DequantizeFn>,
    /// The quantiser; none for integers and f64. On wasm32 most need the cargo feature `quantizers`.
    pub quantize: Option<QuantizeFn>,
    /// Looks for infinities and NaN among the scales (for plain floats: among the values).
    pub invalid_block: InvalidBlockFn,
    /// Unpacks integer codes and scales, for formats whose values are products of the two.
    pub codes: Option<Codes>,
    /// [`Self::dequantize`] for other instruction sets.
    pub(crate) compiled: Compiled<DequantizeFor>,
}

/// [`DequantizeFn`] with instructions that the CPU may lack.
pub(crate) type DequantizeFor = unsafe fn(&[u8], &mut [f32]);

/// All types, in the order of [`GgmlType`]'s variants, which is also the order of the ids.
pub static TYPES: &[TypeInfo] = &[
    row::<float::ValueF32>(GgmlType::F32, 0, "f32", Some(float::quantize_f32)),
    TypeInfo {
        #[cfg(target_arch = "x86_64")]
        compiled: float::F16_COMPILED,
        ..row::<float::ValueF16>(GgmlType::F16, 1, "f16", Some(float::quantize_f16))
    },
    coded::<q4_0::BlockQ4_0>(GgmlType::Q4_0, 2, "q4_0", Some(q4_0::quantize)),
    coded::<q4_1::BlockQ4_1>(GgmlType::Q4_1, 3, "q4_1", Some(q4_1::quantize)),
    coded::<q5_0::BlockQ5_0>(GgmlType::Q5_0, 6, "q5_0", Some(q5_0::quantize)),
    coded::<q5_1::BlockQ5_1>(GgmlType::Q5_1, 7, "q5_1", Some(q5_1::quantize)),
    coded::<q8_0::BlockQ8_0>(GgmlType::Q8_0, 8, "q8_0", Some(q8_0::quantize)),
    row::<q8_1::BlockQ8_1>(GgmlType::Q8_1, 9, "q8_1", searched(q8_1::quantize)),
    coded::<q2_k::BlockQ2K>(GgmlType::Q2_K, 10, "q2_K", searched(q2_k::quantize)),
    coded::<q3_k::BlockQ3K>(GgmlType::Q3_K, 11, "q3_K", searched(q3_k::quantize)),
    coded::<q4_k::BlockQ4K>(GgmlType::Q4_K, 12, "q4_K", Some(q4_k::quantize)),
    coded::<q5_k::BlockQ5K>(GgmlType::Q5_K, 13, "q5_K", searched(q5_k::quantize)),
    coded::<q6_k::BlockQ6K>(GgmlType::Q6_K, 14, "q6_K", searched(q6_k::quantize)),
    row::<q8_k::BlockQ8K>(GgmlType::Q8_K, 15, "q8_K", searched(q8_k::quantize)),
    row::<iq2_xxs::BlockIq2Xxs>(GgmlType::IQ2_XXS, 16, "iq2_xxs", searched(iq2_xxs::quantize)),
    row::<iq2_xs::BlockIq2Xs>(GgmlType::IQ2_XS, 17, "iq2_xs", searched(iq2_xs::quantize)),
    row::<iq3_xxs::BlockIq3Xxs>(GgmlType::IQ3_XXS, 18, "iq3_xxs", searched(iq3_xxs::quantize)),
    row::<iq1_s::BlockIq1S>(GgmlType::IQ1_S, 19, "iq1_s", searched(iq1_s::quantize)),
    coded::<iq4_nl::BlockIq4Nl>(GgmlType::IQ4_NL, 20, "iq4_nl", Some(iq4_nl::quantize)),
    row::<iq3_s::BlockIq3S>(GgmlType::IQ3_S, 21, "iq3_s", searched(iq3_s::quantize)),
    row::<iq2_s::BlockIq2S>(GgmlType::IQ2_S, 22, "iq2_s", searched(iq2_s::quantize)),
    coded::<iq4_xs::BlockIq4Xs>(GgmlType::IQ4_XS, 23, "iq4_xs", searched(iq4_xs::quantize)),
    row::<integer::ValueI8>(GgmlType::I8, 24, "i8", None),
    row::<integer::ValueI16>(GgmlType::I16, 25, "i16", None),
    row::<integer::ValueI32>(GgmlType::I32, 26, "i32", None),
    row::<integer::ValueI64>(GgmlType::I64, 27, "i64", None),
    row::<float::ValueF64>(GgmlType::F64, 28, "f64", None),
    row::<iq1_m::BlockIq1M>(GgmlType::IQ1_M, 29, "iq1_m", searched(iq1_m::quantize)),
    row::<float::ValueBf16>(GgmlType::BF16, 30, "bf16", Some(float::quantize_bf16)),
    coded::<tq1_0::BlockTq1_0>(GgmlType::TQ1_0, 34, "tq1_0", searched(tq1_0::quantize)),
    coded::<tq2_0::BlockTq2_0>(GgmlType::TQ2_0, 35, "tq2_0", searched(tq2_0::quantize)),
    coded::<mxfp4::BlockMxfp4>(GgmlType::MXFP4, 39, "mxfp4", searched(mxfp4::quantize)),
    coded::<nvfp4::BlockNvfp4>(GgmlType::NVFP4, 40, "nvfp4", searched(nvfp4::quantize)),
    coded::<q1_0::BlockQ1_0>(GgmlType::Q1_0, 41, "q1_0", searched(q1_0::quantize)),
    coded::<q2_0::BlockQ2_0>(GgmlType::Q2_0, 42, "q2_0", searched(q2_0::quantize)),
];

/// A quantiser that browsers do not need: they run models, and only KV caches and device tests quantise
/// there.
const fn searched(quantize: QuantizeFn) -> Option<QuantizeFn> {
    if cfg!(any(not(target_arch = "wasm32"), feature = "quantizers")) { Some(quantize) } else { None }
}

const fn row<B: Block>(ty: GgmlType, id: u32, name: &'static str, quantize: Option<QuantizeFn>) -> TypeInfo {
    TypeInfo {
        ty,
        id,
        name,
        block_len: B::N_ELEM,
        block_bytes: size_of::<B>(),
        dequantize: Some(dequantize_blocks::<B>),
        quantize,
        invalid_block: invalid_block::<B>,
        codes: None,
        compiled: compiled!(DequantizeFor, dequantize_blocks::<B>, (bytes: &[u8], y: &mut [f32]), B: Block),
    }
}

const fn coded<B: Coded>(
    ty: GgmlType,
    id: u32,
    name: &'static str,
    quantize: Option<QuantizeFn>,
) -> TypeInfo {
    TypeInfo { codes: Some(Codes::of::<B>()), ..row::<B>(ty, id, name, quantize) }
}

impl GgmlType {
    /// The type with this id in a file; `None` for removed and unknown ids.
    pub fn from_id(id: u32) -> Option<GgmlType> {
        TYPES.iter().find(|t| t.id == id).map(|t| t.ty)
    }

    /// The type with this name, case-insensitive.
    pub fn from_name(name: &str) -> Option<GgmlType> {
        TYPES.iter().find(|t| t.name.eq_ignore_ascii_case(name)).map(|t| t.ty)
    }

    /// The type's row of [`TYPES`].
    pub fn info(self) -> &'static TypeInfo {
        &TYPES[self as usize]
    }

    /// The id of the type in a file.
    pub fn id(self) -> u32 {
        self.info().id
    }

    /// ggml's name of the type, such as `q4_K`.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Values in a block; 1 for plain numbers.
    pub fn block_len(self) -> usize {
        self.info().block_len
    }

    /// Bytes of a block.
    pub fn block_bytes(self) -> usize {
        self.info().block_bytes
    }

    /// Bytes of `n_elem` values; `None` if they are not a whole number of blocks, or too many for a `u64`.
    pub fn row_bytes(self, n_elem: u64) -> Option<u64> {
        let block_len = self.block_len() as u64;
        if !n_elem.is_multiple_of(block_len) {
            return None;
        }
        (n_elem / block_len).checked_mul(self.block_bytes() as u64)
    }

    /// Average bits per value, scales included.
    pub fn bits_per_weight(self) -> f64 {
        self.block_bytes() as f64 * 8.0 / self.block_len() as f64
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
