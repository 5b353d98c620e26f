//! Loops of the caller alone.

use crate::error::RuntimeError;

/// The caller alone.
#[derive(Clone)]
pub(crate) struct Workers {}

impl Workers {
    #[allow(clippy::unnecessary_wraps, reason = "threads may be missing elsewhere")]
    pub(crate) fn new(_: u32) -> Result<Self, RuntimeError> {
        Ok(Workers {})
    }

    pub(crate) fn n(&self) -> usize {
        1
    }

    /// Fills chunks of `out`: `f(index of the chunk, chunk)`.
    pub(crate) fn fill_chunks(&self, out: &mut [f32], chunk: usize, f: impl Fn(usize, &mut [f32])) {
        out.chunks_mut(chunk).enumerate().for_each(|(i, c)| f(i, c));
    }

    /// `f(i)` for all `i` below `n`, in order.
    pub(crate) fn map<R>(&self, n: usize, f: impl Fn(usize) -> R) -> Vec<R> {
        (0..n).map(f).collect()
    }
}
