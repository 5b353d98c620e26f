//! Loops on a team of threads.

use std::sync::{Arc, Mutex, OnceLock};

use super::team::Team;
use crate::error::RuntimeError;

/// Threads that share the parts of loops.
#[derive(Clone)]
pub(crate) struct Workers {
    team: Arc<Team>,
}

impl Workers {
    /// `n` threads; 0: one for each core.
    ///
    /// # Errors
    /// [`RuntimeError::Threads`] if the system cannot start them.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn new(n: u32) -> Result<Self, RuntimeError> {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let n = if n == 0 { cores() } else { n as usize };
        let team = Team::of(n).map_err(|e| RuntimeError::Threads { n: n as u32, reason: e.to_string() })?;
        Ok(Workers { team })
    }

    /// The threads that the page has started, however many.
    #[cfg(target_arch = "wasm32")]
    #[allow(clippy::unnecessary_wraps, reason = "threads may be missing elsewhere")]
    pub(crate) fn new(_: u32) -> Result<Self, RuntimeError> {
        Ok(Workers { team: super::page::team() })
    }

    /// Their number.
    pub(crate) fn n(&self) -> usize {
        self.team.n()
    }

    /// Fills chunks of `out`: `f(index of the chunk, chunk)`.
    pub(crate) fn fill_chunks<T: Send>(
        &self,
        out: &mut [T],
        chunk: usize,
        f: impl Fn(usize, &mut [T]) + Sync,
    ) {
        if out.len() <= chunk {
            if !out.is_empty() {
                f(0, out);
            }
            return;
        }
        let chunks: Vec<Mutex<&mut [T]>> = out.chunks_mut(chunk).map(Mutex::new).collect();
        // Each lock is taken once.
        self.team.each(chunks.len(), &|i| f(i, &mut chunks[i].lock().unwrap_or_else(|e| e.into_inner())));
    }

    /// `f(i)` for all `i` below `n`, in order.
    pub(crate) fn map<R: Send + Sync>(&self, n: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
        let made: Vec<OnceLock<R>> = (0..n).map(|_| OnceLock::new()).collect();
        self.team.each(n, &|i| {
            made[i].get_or_init(|| f(i));
        });
        made.into_iter().map(|cell| cell.into_inner().expect("every index was visited")).collect()
    }
}
