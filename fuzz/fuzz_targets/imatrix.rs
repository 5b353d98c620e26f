//! Any bytes give a result or an error; the body is in ggml-format's tests, which drive it, too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/ggml-format/tests/common/visit.rs"]
mod visit;

fuzz_target!(|bytes: &[u8]| visit::imatrix(bytes));
