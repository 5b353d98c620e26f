//! Tensors computed from others at load.
//!
//! Older files of models with latent attention have one matrix for the keys and values of all heads, `attn_kv_b`. The
//! graph needs the keys' part transposed, as newer files have it (`attn_k_b`).

use ggml_format::{ByteSource, GgmlType, ModelFile, TensorInfo};

use crate::error::ModelError;

/// Transposed parts of a matrix: the first `n_row` of every `stride` rows of `n_col` values.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Transposed {
    /// Number of parts.
    pub n_matrix: u32,
    /// Rows per part, in the file.
    pub n_row: u32,
    /// Values per row.
    pub n_col: u32,
    /// Row stride between parts.
    pub stride: u32,
}

impl Transposed {
    /// Type of the result: blocks cannot be transposed.
    pub fn ty(from: GgmlType) -> GgmlType {
        if from.block_len() == 1 { from } else { GgmlType::F16 }
    }

    /// Bytes of the result, `[n_matrix, n_col, n_row]`, from `offset`.
    ///
    /// # Errors
    /// [`ModelError::Source`] if the file cannot be read, [`ModelError::Unsupported`] for a type that cannot be
    /// dequantised.
    pub async fn read<S: ByteSource>(
        &self,
        file: &ModelFile<S>,
        from: &TensorInfo,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), ModelError> {
        let ty = Self::ty(from.ty);
        let [n_row, n_col] = [self.n_row, self.n_col].map(|n| n as usize);
        let n_byte = n_row * n_col * ty.block_bytes();
        let row_bytes = n_col / from.ty.block_len() * from.ty.block_bytes();
        let (mut bytes, mut values) = (vec![0; n_row * row_bytes], vec![0.0; n_row * n_col]);
        let (mut turned, mut made) = (vec![0.0; n_row * n_col], vec![0; n_byte]);
        let cannot = |e: &dyn std::fmt::Display| ModelError::Unsupported {
            what: format!("the tensor `{}` turned around: {e}", from.name),
        };
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let (part, skip) = (at / n_byte as u64, (at % n_byte as u64) as usize);
            file.read_tensor(from, part * u64::from(self.stride) * row_bytes as u64, &mut bytes).await?;
            ggml_format::dequantize(from.ty, &bytes, &mut values).map_err(|e| cannot(&e))?;
            for (r, row) in values.chunks_exact(n_col).enumerate() {
                row.iter().enumerate().for_each(|(c, v)| turned[c * n_row + r] = *v);
            }
            ggml_format::quantize(ty, &turned, n_row, None, &mut made).map_err(|e| cannot(&e))?;
            let n = (n_byte - skip).min(buf.len() - done);
            buf[done..done + n].copy_from_slice(&made[skip..skip + n]);
            done += n;
        }
        Ok(())
    }
}
