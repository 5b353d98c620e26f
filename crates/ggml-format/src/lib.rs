//! GGUF files and ggml tensor formats: read, write, quantise, dequantise.

pub mod blocks;
mod types;

pub use types::{DequantizeFn, GgmlType, InvalidBlockFn, QuantizeFn, TYPES, TypeInfo};
