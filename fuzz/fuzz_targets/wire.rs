//! Any messages give frames or errors; the body is in chaski-wire's tests, which drive it, too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/wire/tests/fuzz/bodies.rs"]
mod bodies;

fuzz_target!(|bytes: &[u8]| bodies::wire(bytes));
