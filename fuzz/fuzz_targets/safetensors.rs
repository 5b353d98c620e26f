//! Any bytes give a result or an error; the body is in chaski-checkpoint's tests, which drive it, too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "each target uses one of the bodies")]
#[path = "../../crates/checkpoint/tests/fuzz/bodies.rs"]
mod bodies;

fuzz_target!(|bytes: &[u8]| bodies::safetensors(bytes));
