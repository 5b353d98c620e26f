//! A tensor as the directory of a file describes it.

use crate::types::GgmlType;

/// Location and type of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorInfo {
    /// The tensor's name, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// Sizes in ggml's order, fastest varying first; 1 beyond `n_dims`.
    pub ne: [u64; 4],
    /// Number of dimensions in the file, 0 to 4.
    pub n_dims: u32,
    /// The format of the data.
    pub ty: GgmlType,
    /// Offset of the data, in bytes from the start of the tensor's file.
    pub offset: u64,
    /// Length of the data in bytes, without padding.
    pub n_byte: u64,
    /// Index of the file of a split set that holds the data, from 0.
    pub shard: u16,
}

impl TensorInfo {
    /// The sizes outermost first, the reverse of ggml's order.
    pub fn shape(&self) -> Vec<u64> {
        self.ne[..self.n_dims as usize].iter().rev().copied().collect()
    }

    /// Number of values.
    pub fn n_elem(&self) -> u64 {
        self.ne.iter().product()
    }

    /// Number of rows, each of `ne[0]` values.
    pub fn n_row(&self) -> u64 {
        self.ne[1..].iter().product()
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        self.ty.row_bytes(self.ne[0]).expect("checked when the directory was read")
    }
}
