//! Access to the tensors of a model, independent of their source.

use std::future::Future;
use std::ops::Range;

use chaski_graph::Weight;
use ggml_format::{HeaderBytes, MaybeSend, MaybeSync};

use crate::error::RuntimeError;

/// Source of tensors: a file, a range of a web resource, a generator.
pub trait Tensors: MaybeSend + MaybeSync {
    /// Reads `buf.len()` bytes of a tensor at byte `offset`, in the file's format.
    fn read(
        &self,
        name: &str,
        offset: u64,
        buf: &mut [u8],
    ) -> impl Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>> + MaybeSend;

    /// A tensor in the file's format without a copy: the bytes of a file, in memory or mapped, and the tensor's place
    /// in them. `None`: it has to be read.
    fn mapped(&self, _name: &str) -> Option<(HeaderBytes, Range<usize>)> {
        None
    }

    /// True if several threads may read at once, in any order, and no read waits for another task: files and memory.
    fn in_parallel(&self) -> bool {
        false
    }
}

/// A source that the threads which load share; browsers have none.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) type Shared<T> = std::sync::Arc<T>;
#[cfg(target_arch = "wasm32")]
pub(crate) type Shared<T> = T;

#[cfg(not(target_arch = "wasm32"))]
impl<T: Tensors> Tensors for Shared<T> {
    async fn read(
        &self,
        name: &str,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        T::read(self, name, offset, buf).await
    }

    fn mapped(&self, name: &str) -> Option<(HeaderBytes, Range<usize>)> {
        T::mapped(self, name)
    }

    fn in_parallel(&self) -> bool {
        T::in_parallel(self)
    }
}

/// Rows of a matrix from `first`, which may be in separate places of the file.
pub(crate) async fn read_rows(
    w: &Weight,
    first: u32,
    mut out: &mut [u8],
    tensors: &impl Tensors,
) -> Result<(), RuntimeError> {
    let row_bytes = w.row_bytes() as usize;
    let n = out.len().checked_div(row_bytes).unwrap_or(0) as u32;
    for (offset, rows) in w.pieces(first, n) {
        let (piece, rest) = out.split_at_mut(rows as usize * row_bytes);
        let read = tensors.read(&w.name, offset, piece).await;
        read.map_err(|source| RuntimeError::Tensor { tensor: w.name.clone(), source })?;
        out = rest;
    }
    Ok(())
}
