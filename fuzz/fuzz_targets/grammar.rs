//! Any bytes give a result or an error; the body is in chaski-text's tests, which drive it, too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "each target uses one of the bodies")]
#[path = "../../crates/text/tests/fuzz/bodies.rs"]
mod bodies;
mod hook;

fuzz_target!(init: hook::install(), |bytes: &[u8]| bodies::grammar(bytes));
