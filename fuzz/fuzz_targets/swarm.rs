//! Any events give actions of a hub or a worker; the body is in chaski-swarm's tests, which drive it, too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/swarm/tests/fuzz/bodies.rs"]
mod bodies;

fuzz_target!(|bytes: &[u8]| bodies::swarm(bytes));
