//! Types that a fork of llama.cpp wrote under ids that now mean other types.
//!
//! Before ggml accepted its formats, the PrismML fork used ids of its own: 40 was a q1_0 with blocks of 32
//! values, where ggml has nvfp4, and 42 a q2_0 with blocks of 128, where ggml has blocks of 64. Such files
//! are recognised by the distance between tensors. The fork's 41 became ggml's 41.

use super::align_up;
use super::error::GgufError;
use super::tensor::TensorInfo;

/// Type id, the fork's block length and bytes, and its name.
const FORK_TYPES: [(u32, u64, u64, &str); 2] = [
    (40, 32, 6, "q1_0 with blocks of 32 values and 6 bytes"),
    (42, 128, 34, "q2_0 with blocks of 128 values and 34 bytes"),
];

/// Fails if `tensor` takes exactly the bytes in its file that a fork's type with the same id would take.
pub(super) fn explain(tensor: &TensorInfo, at: u64, found: u64, alignment: u32) -> Result<(), GgufError> {
    for (id, block_len, block_bytes, fork) in FORK_TYPES {
        if tensor.ty.id() != id || !tensor.ne[0].is_multiple_of(block_len) || tensor.n_byte == 0 {
            continue;
        }
        let Some(n_byte) = (tensor.n_elem() / block_len).checked_mul(block_bytes) else { continue };
        if found == n_byte || Some(found) == align_up(n_byte, alignment) {
            return Err(GgufError::ForkType {
                tensor: tensor.name.clone(),
                offset: at,
                id,
                ty: tensor.ty,
                expected: tensor.n_byte,
                found,
                fork,
            });
        }
    }
    Ok(())
}
