//! Worker threads of the CPU executor.
//!
//! A token is hundreds of short parallel loops, so threads wait for the next one awake for a while before they sleep,
//! and loops hand out their parts by a counter. Engines with as many threads share them.

#[cfg(not(target_arch = "wasm32"))]
mod team;

use crate::error::RuntimeError;

/// Threads, or the caller alone.
#[derive(Clone)]
pub(crate) struct Workers {
    #[cfg(not(target_arch = "wasm32"))]
    team: std::sync::Arc<team::Team>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Workers {
    /// `n` threads; 0: one for each core.
    ///
    /// # Errors
    /// [`RuntimeError::Threads`] if the system cannot start them.
    pub(crate) fn new(n: u32) -> Result<Self, RuntimeError> {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let n = if n == 0 { cores() } else { n as usize };
        let team =
            team::Team::of(n).map_err(|e| RuntimeError::Threads { n: n as u32, reason: e.to_string() })?;
        Ok(Workers { team })
    }

    /// Their number.
    pub(crate) fn n(&self) -> usize {
        self.team.n()
    }

    /// Calls `f(i)` for all `i` below `n`, in any order, on all threads.
    fn each(&self, n: usize, f: &(dyn Fn(usize) + Sync)) {
        self.team.each(n, f);
    }
}

#[cfg(target_arch = "wasm32")]
impl Workers {
    #[allow(clippy::unnecessary_wraps, reason = "threads may be missing elsewhere")]
    pub(crate) fn new(_: u32) -> Result<Self, RuntimeError> {
        Ok(Workers {})
    }

    pub(crate) fn n(&self) -> usize {
        1
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Workers {
    /// Fills chunks of `out`: `f(index of the chunk, chunk)`.
    pub(crate) fn fill_chunks<T: Send>(
        &self,
        out: &mut [T],
        chunk: usize,
        f: impl Fn(usize, &mut [T]) + Sync,
    ) {
        use std::sync::Mutex;
        if out.len() <= chunk {
            if !out.is_empty() {
                f(0, out);
            }
            return;
        }
        let chunks: Vec<Mutex<&mut [T]>> = out.chunks_mut(chunk).map(Mutex::new).collect();
        // Each lock is taken once.
        self.each(chunks.len(), &|i| f(i, &mut chunks[i].lock().unwrap_or_else(|e| e.into_inner())));
    }

    /// `f(i)` for all `i` below `n`, in order.
    pub(crate) fn map<R: Send + Sync>(&self, n: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
        let made: Vec<std::sync::OnceLock<R>> = (0..n).map(|_| std::sync::OnceLock::new()).collect();
        self.each(n, &|i| {
            made[i].get_or_init(|| f(i));
        });
        made.into_iter().map(|cell| cell.into_inner().expect("every index was visited")).collect()
    }
}

#[cfg(target_arch = "wasm32")]
impl Workers {
    /// Fills chunks of `out`: `f(index of the chunk, chunk)`.
    pub(crate) fn fill_chunks(&self, out: &mut [f32], chunk: usize, f: impl Fn(usize, &mut [f32])) {
        out.chunks_mut(chunk).enumerate().for_each(|(i, c)| f(i, c));
    }

    /// `f(i)` for all `i` below `n`, in order.
    pub(crate) fn map<R>(&self, n: usize, f: impl Fn(usize) -> R) -> Vec<R> {
        (0..n).map(f).collect()
    }
}
