//! Memory use of the reader is bounded by the file, not by the sizes that the file claims.

#![allow(unsafe_code, reason = "a global allocator that counts is unsafe to write")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{Raw, rich};
use ggml_format::Gguf;

/// The system allocator, counting the bytes held by this thread.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(n: isize) {
    // A thread during teardown has no counters any more; nobody reads them then.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + n);
        PEAK.with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: All requests go to the system allocator unchanged; counting neither allocates nor touches memory
// that it hands out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Peak of the bytes held while `bytes` are read, excluding the bytes themselves.
fn peak_of_reading(bytes: Vec<u8>, file_len: u64) -> usize {
    let bytes = bytes.into();
    let before = HELD.get();
    PEAK.set(before);
    let result = Gguf::parse(bytes, file_len);
    let peak = PEAK.get() - before;
    drop(result);
    assert!(HELD.get() <= before, "reading leaks nothing");
    peak as usize
}

#[test]
fn large_claims_take_no_memory() {
    let claims = [
        Raw::header(3, i64::MAX, 0),
        Raw::header(3, 0, i64::MAX),
        Raw::header(3, i64::MAX / 24, i64::MAX / 14),
        Raw::header(3, 1 << 20, 1 << 20),
        Raw::header(3, 0, 1).u64(1 << 62),
        Raw::header(3, 0, 1).str("k").u32(9).u32(4).u64(1 << 61),
        Raw::header(3, 0, 1).str("k").u32(9).u32(8).u64(1 << 60),
        Raw::header(3, 1, 0).tensor("t", &[1 << 30, 1 << 30], 0, 0),
    ];
    for raw in claims {
        for file_len in [raw.bytes.len() as u64, 1 << 40, u64::MAX] {
            let peak = peak_of_reading(raw.bytes.clone(), file_len);
            assert!(peak < 4096, "{peak} bytes for a file of {} (claimed {file_len})", raw.bytes.len());
        }
    }
}

#[test]
fn memory_is_in_proportion_to_the_head() {
    let bytes = rich();
    let n = bytes.len();
    let peak = peak_of_reading(bytes, n as u64);
    assert!(peak < 8 * n, "{peak} bytes for a file of {n}");

    // The worst case: only the shortest keys, or only the shortest tensors.
    let keys =
        (0..50_000u32).fold(Raw::header(3, 0, 50_000), |raw, i| raw.str(&format!("{i:x}")).u32(0).u8(0));
    let tensors =
        (0..50_000u32).fold(Raw::header(3, 50_000, 0), |raw, i| raw.tensor(&format!("{i:x}"), &[0], 0, 0));
    for raw in [keys, tensors] {
        let n = raw.bytes.len();
        let peak = peak_of_reading(raw.bytes, n as u64 + 32);
        assert!(peak < 16 * n, "{peak} bytes for a file of {n}");
    }
}

#[test]
fn vocabulary_takes_no_memory_beyond_its_bytes() {
    let tokens = (0..100_000)
        .fold(Raw::header(3, 0, 1).str("tokens").u32(9).u32(8).u64(100_000), |raw, i| {
            raw.str(&format!("token {i}"))
        });
    let n = tokens.bytes.len() as u64;
    let peak = peak_of_reading(tokens.bytes, n);
    assert!(peak < 4096, "{peak}");
}
