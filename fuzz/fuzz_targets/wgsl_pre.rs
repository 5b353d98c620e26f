//! Any bytes give a result or an error; the body is in wgsl-pre's tests, which drive it, too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/wgsl-pre/tests/fuzz/body.rs"]
mod body;

fuzz_target!(|bytes: &[u8]| body::texts(bytes));
