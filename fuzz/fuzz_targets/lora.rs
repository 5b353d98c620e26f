//! Any bytes give a result or an error; the body is in chaski-models's tests, which drive it, too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/models/tests/fuzz/lora.rs"]
mod lora;

fuzz_target!(|bytes: &[u8]| lora::lora(bytes));
