//! Any bytes give a result or an error; the body is in chaski-hub's tests, which drive it, too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/hub/tests/fuzz/bodies.rs"]
mod bodies;

fuzz_target!(|bytes: &[u8]| bodies::hub(bytes));
