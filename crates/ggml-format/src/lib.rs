//! GGUF files and ggml tensor formats: read, write, quantise, dequantise.
//!
//! A GGUF file holds a model: metadata (keys and values), a directory of tensors, and the tensor data in one
//! of some thirty formats. This crate handles all of that and knows nothing about model architectures:
//!
//! - [`GgmlType`] and [`TYPES`]: the formats, with their block sizes and conversion functions;
//! - [`product`]: matrix multiplication with quantised weights, on the CPU;
//! - [`quantize`] and [`dequantize`] for whole tensors; [`tensor_type`]: the type mix of a file such as
//!   `Q4_K_M`;
//! - [`types`] also has a module per format with its block layout as a struct; [`blocks`] is the code they
//!   share;
//! - [`Gguf`] reads the header of a file from its first bytes, from any source;
//! - [`ModelFile`] reads a model from one [`ByteSource`], or from several if it is split over files;
//! - [`Imatrix`]: importance matrices, the weight of each matrix column in [`quantize`];
//! - [`GgufWriter`] writes a file while its tensors stream through.
//!
//! Nothing here blocks, spawns threads or keeps tensor data; with the feature `mmap` off nothing touches a
//! file system. The contents of a file are checked when it is read: a damaged or hostile file gives an error
//! that names the byte, never a panic, and never an allocation out of proportion to the file.

pub mod blocks;
mod bounds;
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

pub use blocks::codes::Codes;
pub use blocks::isa::Isa;
pub use bounds::{MaybeSend, MaybeSync};
pub use convert::{ConvertError, dequantize, quantize, quantize_cells};
pub use file_type::{FILE_TYPES, FileType, FileTypeInfo};
pub use gguf::{
    ArrayBuf, ArrayIter, ArrayView, DEFAULT_ALIGNMENT, DataWriter, FromValue, Gguf, GgufError, GgufHead,
    GgufWriter, HeaderBytes, Metadata, OwnedValue, StrIter, TensorInfo, Value, ValueType, WriteError,
};
pub use imatrix::{Imatrix, ImatrixEntry, ImatrixError};
pub use mix::{MixCounters, MixError, ModelFacts, mix_order, needs_importance, tensor_type};
#[cfg(feature = "mmap")]
pub use mmap::map_file;
pub use model_file::{ModelFile, OpenError, read_header};
pub use source::{ByteSource, MemorySource, SourceError};
pub use split::SplitName;
pub use types::{DequantizeFn, GgmlType, InvalidBlockFn, QuantizeFn, TYPES, TypeInfo};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
