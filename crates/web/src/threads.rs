//! Threads of the CPU: workers that the package starts, with this module and its memory.

use chaski::page_threads;
use wasm_bindgen::prelude::wasm_bindgen;

/// Models that are loaded from now on compute on `n` threads, of which the caller is one; the others call [`work`].
#[wasm_bindgen]
pub fn gather(n: usize) {
    page_threads::gather(n);
}

/// Computes with the others until the worker ends.
#[wasm_bindgen]
pub fn work() {
    page_threads::work();
}

/// Address of the word to which a worker adds one if [`work`] throws.
#[wasm_bindgen]
pub fn failures() -> usize {
    page_threads::failures().addr()
}
