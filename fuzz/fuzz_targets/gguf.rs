//! Any bytes are read as a GGUF file and as an importance matrix, or refused; never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/ggml-format/tests/common/visit.rs"]
mod visit;

fuzz_target!(|bytes: &[u8]| {
    // As a whole file, and as the beginning of a longer one.
    let _ = visit::visit(bytes, bytes.len() as u64);
    let _ = visit::visit(bytes, bytes.len() as u64 * 2);
});
