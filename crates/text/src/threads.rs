//! Work on several threads, where there are any.

/// Calls `f` for every item, on several threads; results are in the order of the items.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn for_each<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
    use rayon::prelude::*;
    items.par_iter().map(f).collect()
}

/// Calls `f` for every item, one after the other: there are no threads.
#[cfg(target_arch = "wasm32")]
pub(crate) fn for_each<T, R>(items: &[T], f: impl Fn(&T) -> R) -> Vec<R> {
    items.iter().map(f).collect()
}
