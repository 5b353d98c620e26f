//! The bytes of a tensor on the CPU.

use std::ops::{Deref, Range};

use ggml_format::HeaderBytes;

use crate::error::RuntimeError;
use crate::graph::{ExpertPiece, Weight};
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
        Bytes::mapped_at(&w.name, offset, n_byte, tensors)
    }

    /// Bytes of a tensor from an offset.
    fn mapped_at(name: &str, offset: u64, n_byte: usize, tensors: &impl Tensors) -> Option<Self> {
        let (file, range) = tensors.mapped(name)?;
        let start = range.start.checked_add(usize::try_from(offset).ok()?)?;
        let end = start.checked_add(n_byte).filter(|end| *end <= range.end)?;
        Some(Bytes::Mapped(file, start..end))
    }

    /// Places of a tensor, one after the other; mapped if `map` is set and there is one that can be.
    ///
    /// # Errors
    /// [`RuntimeError::Tensor`].
    pub(super) async fn load_pieces(
        pieces: &[ExpertPiece],
        map: bool,
        tensors: &impl Tensors,
    ) -> Result<Self, RuntimeError> {
        if let ([p], true) = (pieces, map)
            && let Some(mapped) = Bytes::mapped_at(&p.tensor, p.offset, p.n_byte as usize, tensors)
        {
            return Ok(mapped);
        }
        let mut bytes = vec![0; pieces.iter().map(|p| p.n_byte as usize).sum()];
        let mut rest = &mut bytes[..];
        for p in pieces {
            let (own, after) = rest.split_at_mut(p.n_byte as usize);
            let read = tensors.read(&p.tensor, p.offset, own).await;
            read.map_err(|source| RuntimeError::Tensor { tensor: p.tensor.clone(), source })?;
            rest = after;
        }
        Ok(Bytes::Read(bytes))
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

#[cfg(test)]
mod tests {
    use ggml_format::GgmlType;

    use super::*;

    /// A file of one tensor, after eight other bytes.
    struct File(HeaderBytes);

    impl Tensors for File {
        async fn read(
            &self,
            _: &str,
            offset: u64,
            buf: &mut [u8],
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            buf.copy_from_slice(&self.0[8 + offset as usize..][..buf.len()]);
            Ok(())
        }

        fn mapped(&self, _: &str) -> Option<(HeaderBytes, Range<usize>)> {
            Some((self.0.clone(), 8..self.0.len()))
        }
    }

    fn load(w: &Weight, map: bool, file: &File) -> Bytes {
        pollster::block_on(Bytes::load(w, map, file)).expect("the tensor is there")
    }

    #[test]
    fn mapped_bytes_are_those_that_are_read() {
        let file = File(HeaderBytes::from((0..=255u8).collect::<Vec<_>>()));
        let whole = Weight::new("w".into(), GgmlType::F32, 10, 2);
        let part = Weight { row0: 3, n_row: 4, ..whole.clone() };
        let alternate = Weight { row0: 1, n_row: 6, run: 2, stride: 3, ..whole.clone() };
        for (w, in_one_piece) in [(whole, true), (part, true), (alternate, false)] {
            let (read, mapped) = (load(&w, false, &file), load(&w, true, &file));
            assert!(matches!(read, Bytes::Read(_)));
            assert_eq!(matches!(mapped, Bytes::Mapped(..)), in_one_piece);
            assert_eq!((&*read, read.len() as u64), (&*mapped, w.n_byte()));
        }
    }

    #[test]
    fn a_tensor_beyond_its_file_is_not_mapped() {
        let file = File(HeaderBytes::from(vec![0; 8 + 20 * 4 - 1]));
        assert!(Bytes::mapped(&Weight::new("w".into(), GgmlType::F32, 10, 2), &file).is_none());
    }
}
