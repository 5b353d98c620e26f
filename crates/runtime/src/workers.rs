//! Worker threads of the CPU executor.
//!
//! A token is hundreds of short parallel loops, so threads wait for the next one awake for a while before they sleep,
//! and loops hand out their parts by a counter. Engines with as many threads share them. A page has threads where it
//! starts them itself, and its module is built for memory that they share; otherwise the caller computes alone.

#[cfg(all(target_arch = "wasm32", not(target_feature = "atomics")))]
mod alone;
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
mod page;
#[cfg(any(not(target_arch = "wasm32"), target_feature = "atomics"))]
mod team;
#[cfg(any(not(target_arch = "wasm32"), target_feature = "atomics"))]
mod threads;

#[cfg(all(target_arch = "wasm32", not(target_feature = "atomics")))]
pub(crate) use alone::Workers;
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
pub use page::{failures, gather, work};
#[cfg(any(not(target_arch = "wasm32"), target_feature = "atomics"))]
pub(crate) use threads::Workers;
