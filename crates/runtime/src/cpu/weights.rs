//! The bytes of a tensor on the CPU.

use std::ops::{Deref, Range};

use ggml_format::HeaderBytes;

use crate::error::RuntimeError;
use crate::graph::Weight;
use crate::tensors::{Tensors, read_rows};

/// A tensor in the file's format.
pub(super) enum Bytes {
    /// Read into memory.
    Read(Vec<u8>),
    /// Part of a file in memory or mapped into it, which other processes share.
    Mapped(HeaderBytes, Range<usize>),
}

impl Bytes {
    /// Maps a tensor if `map` is set and its rows are in one piece of a file that can be mapped; otherwise reads it.
    ///
    /// # Errors
    /// [`RuntimeError::Tensor`].
    pub(super) async fn load(w: &Weight, map: bool, tensors: &impl Tensors) -> Result<Self, RuntimeError> {
        if let Some(mapped) = Bytes::mapped(w, tensors).filter(|_| map) {
            return Ok(mapped);
        }
        let mut bytes = vec![0; w.n_byte() as usize];
        read_rows(w, 0, &mut bytes, tensors).await?;
        Ok(Bytes::Read(bytes))
    }

    fn mapped(w: &Weight, tensors: &impl Tensors) -> Option<Self> {
        let n_byte = usize::try_from(w.n_byte()).ok()?;
        let rows = w.n_byte().checked_div(w.row_bytes())?;
        let mut pieces = w.pieces(0, u32::try_from(rows).ok()?);
        let ((offset, _), None) = (pieces.next()?, pieces.next()) else { return None };
        let (file, range) = tensors.mapped(&w.name)?;
        let start = range.start.checked_add(usize::try_from(offset).ok()?)?;
        let end = start.checked_add(n_byte).filter(|end| *end <= range.end)?;
        Some(Bytes::Mapped(file, start..end))
    }

    /// The bytes, to change them; a mapped tensor is copied first.
    pub(super) fn make_mut(&mut self) -> &mut [u8] {
        if let Bytes::Mapped(file, range) = self {
            *self = Bytes::Read(file[range.clone()].to_vec());
        }
        match self {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(..) => unreachable!("it was copied"),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(file, range) => &file[range.clone()],
        }
    }
}
