//! Values of a tensor, and the bytes of its buffer in GGUF and device layout.

use ggml_format::GgmlType;

use crate::tensor::Tensor;

/// Splits blocks into planes; other bytes are unchanged.
pub(crate) fn to_device(t: &Tensor, bytes: &[u8]) -> Vec<u8> {
    t.layout().map_or_else(|| bytes.to_vec(), |(f, l)| l.pack_all(f, t.n_alloc, bytes))
}

/// The inverse of [`to_device`].
pub(crate) fn from_device(t: &Tensor, bytes: &[u8]) -> Vec<u8> {
    t.layout().map_or_else(|| bytes.to_vec(), |(f, l)| l.unpack(f, 1, t.n_alloc, bytes))
}

/// All values of a buffer.
pub(crate) fn decode(ty: GgmlType, bytes: &[u8]) -> Vec<f64> {
    let info = ty.info();
    match ty {
        GgmlType::I32 => words(bytes).map(|w| f64::from(i32::from_le_bytes(w))).collect(),
        GgmlType::I64 => words(bytes).map(|w| i64::from_le_bytes(w) as f64).collect(),
        _ => {
            let mut out = vec![0.0; bytes.len() / info.block_bytes * info.block_len];
            if let Some(dequantize) = info.dequantize {
                dequantize(bytes, &mut out);
            }
            out.into_iter().map(f64::from).collect()
        }
    }
}

pub(crate) fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.chunks_exact(N).map(|w| w.try_into().expect("a chunk of N bytes"))
}
