//! GGUF files and ggml tensor formats: read, write, quantise, dequantise.
//!
//! A GGUF file holds a model: metadata (keys and values), a directory of tensors, and the tensors' bytes in
//! one of some thirty formats. This crate knows all of it and nothing of what a model is:
//!
//! - [`GgmlType`] and [`TYPES`]: the formats, with their block sizes and functions that convert them;
//! - [`product`]: rows of weights times columns, on a processor;
//! - [`quantize`] and [`dequantize`] for whole tensors; [`tensor_type`]: the mixes that make a `Q4_K_M` file;
//! - [`types`]: also the bytes of each format, as structs, by modules; [`blocks`]: what these share;
//! - [`Gguf`] reads the head of a file from its first bytes, wherever these come from;
//! - [`ModelFile`] reads a model from a [`ByteSource`], or several if it is split over files;
//! - [`Imatrix`]: how much the columns of a model's matrices count, which [`quantize`] takes;
//! - [`GgufWriter`] writes a file while its tensors stream through.
//!
//! Nothing here blocks, spawns or keeps a model's data; with the feature `mmap` off nothing touches a file
//! system. What a file says is checked when it is read: a damaged or hostile one gives an error which names
//! the byte, never a panic, and never an allocation out of proportion to the file.

pub mod blocks;
mod convert;
mod file_type;
mod gguf;
mod imatrix;
mod mix;
#[cfg(feature = "mmap")]
mod mmap;
mod model_file;
pub mod product;
mod source;
mod split;
pub mod types;

pub use blocks::codes::{Codes, CodesFn};
pub use convert::{ConvertError, dequantize, quantize, quantize_cells};
pub use file_type::{FILE_TYPES, FileType, FileTypeInfo};
pub use gguf::{
    ArrayBuf, ArrayIter, ArrayView, DEFAULT_ALIGNMENT, DataWriter, FromValue, Gguf, GgufError, GgufWriter,
    HeaderBytes, Metadata, OwnedValue, StrIter, TensorInfo, Value, ValueType, WriteError,
};
pub use imatrix::{Imatrix, ImatrixEntry, ImatrixError};
pub use mix::{MixCounters, MixError, ModelFacts, mix_order, needs_importance, tensor_type};
#[cfg(feature = "mmap")]
pub use mmap::MmapSource;
pub use model_file::{ModelFile, OpenError, read_header};
pub use source::{ByteSource, MemorySource, SourceError};
pub use split::SplitName;
pub use types::{DequantizeFn, GgmlType, InvalidBlockFn, QuantizeFn, TYPES, TypeInfo};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
