//! `y[c] = row ids[c]`, through the format's reference dequantiser.

use ggml_format::GgmlType;

/// Dequantises one row of GGUF blocks.
///
/// # Panics
/// If the type has no dequantiser or the bytes are no whole row of `n_col` values.
pub fn row(ty: GgmlType, table: &[u8], n_col: usize, index: usize) -> Vec<f32> {
    let row_bytes = n_col / ty.block_len() * ty.block_bytes();
    let mut out = vec![0.0; n_col];
    let dequantize = ty.info().dequantize.expect("a weight format");
    dequantize(&table[index * row_bytes..][..row_bytes], &mut out);
    out
}
