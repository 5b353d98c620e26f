//! A module of a made checkpoint whose weight is stored in some layout.

#![allow(dead_code, reason = "each test file uses a part of this module")]

use chaski_checkpoint::Types;
use chaski_checkpoint::hf::{OpenOptions, Opened, open};
use ggml_format::{ByteSource, FileType, GgmlType, Gguf, MemorySource};
use serde_json::Value;

use crate::common::{self, Tensor};

/// The module: a matrix of 32 rows and 64 columns in `mistral.json`.
pub(crate) const MODULE: &str = "model.layers.0.mlp.down_proj";
/// Its name in GGUF.
pub(crate) const WEIGHT: &str = "blk.0.ffn_down.weight";

/// A tensor of a module: its name behind the module's, type, shape, bytes.
pub(crate) type Stored = (&'static str, &'static str, Vec<usize>, Vec<u8>);

/// A layout: its configuration, its tensors behind the module's name, and the values.
pub(crate) struct Layout {
    pub(crate) name: String,
    pub(crate) config: Value,
    pub(crate) tensors: Vec<Stored>,
    pub(crate) values: Vec<f32>,
}

/// Files of a checkpoint of `fixtures/classes` in which these modules are stored so.
pub(crate) fn folder(class: &str, config: &Value, modules: &[(&str, &[Stored])]) -> common::Files {
    let (mut whole, mut tensors) = common::class(&common::classes().join(class));
    whole["quantization_config"] = config.clone();
    for (module, stored) in modules {
        let n = tensors.len();
        tensors.retain(|t| t.0 != format!("{module}.weight"));
        assert_eq!(tensors.len(), n - 1, "{module}");
        tensors.extend(stored.iter().map(|(end, dtype, shape, bytes)| -> Tensor {
            let shape = shape.iter().map(|&n| n as u64).collect();
            (format!("{module}.{end}"), dtype, shape, bytes.clone())
        }));
    }
    common::made(&whole, common::safetensors(&tensors))
}

/// Opens a folder.
pub(crate) fn opened(folder: common::Files, types: Types) -> Result<Opened<MemorySource>, String> {
    let options = OpenOptions { types, ..OpenOptions::default() };
    pollster::block_on(open(folder, &options)).map_err(|e| common::chain(&e))
}

/// A tensor of an opened checkpoint: its type and its bytes.
pub(crate) fn tensor(opened: &Opened<MemorySource>, name: &str) -> Result<(GgmlType, Vec<u8>), String> {
    let source = &opened.source;
    let gguf = Gguf::parse(source.head().to_vec().into(), source.len()).map_err(|e| common::chain(&e))?;
    let tensor = gguf.tensor(name).ok_or("no such tensor")?;
    let mut bytes = vec![0; tensor.n_byte as usize];
    pollster::block_on(source.read_at(tensor.offset, &mut bytes)).map_err(|e| common::chain(&e))?;
    Ok((tensor.ty, bytes))
}

/// Little-endian bytes as floats.
pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
}

/// Opens a checkpoint whose module is in this layout.
pub(crate) fn opened_module(layout: &Layout, types: Types) -> Result<Opened<MemorySource>, String> {
    opened(folder("mistral.json", &layout.config, &[(MODULE, &layout.tensors)]), types)
}

/// The matrix of a checkpoint in this layout, in f32.
pub(crate) fn read(layout: &Layout) -> Result<Vec<f32>, String> {
    tensor(&opened_module(layout, Types::Mix(FileType::F32))?, WEIGHT).map(|(_, bytes)| floats(&bytes))
}

/// A value of E4M3 by its definition.
pub(crate) fn e4m3(code: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(code >> 3 & 15), f32::from(code & 7) / 8.0);
    let size = if exponent == 0 { mantissa / 64.0 } else { (1.0 + mantissa) * 2f32.powi(exponent - 7) };
    if code > 127 { -size } else { size }
}
