//! Checkpoints that are no GGUF files, read as if they were.
//!
//! A folder of Hugging Face (config.json, safetensors, tokenizer) or of MLC becomes a virtual GGUF: metadata in memory,
//! and tensors that are made from ranges of the folder's files whenever they are read. Nothing is written, and memory
//! does not depend on the size of the model.
//!
//! - [`open`] opens a folder, of [`hf`] or [`mlc`], by tables of classes and families;
//! - [`TokenizerKeys`]: tokenizers and chat templates as GGUF's keys;
//! - [`hf`]: folders of Hugging Face, with the table of classes of transformers;
//! - [`safetensors`]: headers and indexes of safetensors files, strictly;
//! - [`Recipe`]: how rows of a tensor are made of ranges of files: renamed, permuted, transposed, stacked, dequantised;
//! - [`VirtualGguf`] collects keys and tensors, [`VirtualSource`] is the file: a [`ggml_format::ByteSource`].

#![forbid(unsafe_code)]

mod folder;
pub mod hf;
pub mod mlc;
mod open;
mod python_json;
mod recipe;
pub mod safetensors;
mod tensor_set;
mod tokenizer;
mod types;
mod virtual_gguf;

pub use folder::{Folder, FolderError, MAX_SMALL_FILE};
pub use open::{CheckpointError, open, wants, weight_files};
pub use recipe::{
    Codes, Index, MAX_ROW, MatrixScale, Microscaled, Nvfp4, Order, Packing, Quantized, Recipe, RecipeError,
    Strides, View, Zero,
};
pub use safetensors::Dtype;
pub use tokenizer::{PreTokenizer, TokenizerFileError, TokenizerFiles, TokenizerKeys, TokenizerOptions};
pub use types::Types;
pub use virtual_gguf::{VirtualError, VirtualGguf, VirtualSource, VirtualTensor};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
