//! Parallel work, where threads are available.

/// Calls `f` for every item, on several threads; results are in item order.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn for_each<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
    use rayon::prelude::*;
    items.par_iter().map(f).collect()
}

/// Calls `f` for every item, sequentially: there are no threads.
#[cfg(target_arch = "wasm32")]
pub(crate) fn for_each<T, R>(items: &[T], f: impl Fn(&T) -> R) -> Vec<R> {
    items.iter().map(f).collect()
}
