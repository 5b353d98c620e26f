//! What a token costs the processor in requests for memory, once everything is in place.
//!
//! A binary of its own: its allocator counts.
#![allow(unsafe_code, reason = "a global allocator that counts is unsafe to write")]
#![allow(clippy::print_stderr, reason = "a test reports what it found")]
#![cfg(feature = "default-model")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::Ordering;

use chaski::{Choose, DeviceChoice, Engine, Source};
use pollster::block_on;

/// The system's allocator, counting the requests of this thread.
struct Counting;

thread_local! {
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is being torn down has no counter any more; nobody reads it then.
    let _ = REQUESTS.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: All requests go to the system's allocator unchanged; counting neither allocates nor touches memory
// that it hands out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the one that `System` asks for.
        unsafe { System.dealloc(p, layout) }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the one that `System` asks for.
        unsafe { System.realloc(p, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests for each dispatch of a token at most. All are wgpu's, for commands and their resources; it may only go down.
const PER_DISPATCH: f64 = 1.25;

/// Requests for each group of tokens at most, beside those of its dispatches: encoder, pass, submission, readback.
const PER_GROUP: f64 = 110.0;

/// Requests of so many groups of so many tokens, each, and dispatches of a group.
fn requests(engine: &mut Engine, n: u32, pos: &mut u32) -> (f64, f64) {
    const GROUPS: u32 = 4;
    let gpu = engine.gpu().expect("a GPU").clone();
    let dispatches = || gpu.counters().dispatches.load(Ordering::Relaxed);
    let model = engine.runner().gpu_mut().expect("a model on a GPU");
    let (before, sent) = (REQUESTS.get(), dispatches());
    for _ in 0..GROUPS {
        let ticket = block_on(model.decode(n, *pos, Choose::Greedy)).expect("tokens are sent");
        assert_eq!(block_on(model.tokens(ticket)).expect("tokens come back").len(), n as usize);
        *pos += n;
    }
    let each = |n: u64| n as f64 / f64::from(GROUPS);
    (each(REQUESTS.get() - before), each(dispatches() - sent))
}

#[test]
fn requests_for_memory_do_not_grow() {
    let builder = Engine::builder(Source::Default).device(DeviceChoice::Gpu(None)).context(512);
    let mut engine = block_on(builder.build()).expect("an engine");
    block_on(engine.runner().prefill(&[1])).expect("a first token");
    let model = engine.runner().gpu_mut().expect("a model on a GPU");
    let ticket = model.choose(Choose::Greedy).expect("a choice");
    block_on(model.tokens(ticket)).expect("a token");
    let mut pos = 1;
    // Pools of the driver's objects fill.
    requests(&mut engine, 16, &mut pos);
    let objects = engine.gpu().expect("a GPU").counters().objects();
    let (one, one_sent) = requests(&mut engine, 1, &mut pos);
    let (many, many_sent) = requests(&mut engine, 16, &mut pos);
    let per_dispatch = (many - one) / (many_sent - one_sent);
    let per_group = one - per_dispatch * one_sent;
    eprintln!("{per_dispatch:.2} requests a dispatch, {per_group:.0} a group, {:.0} a token", many / 16.0);
    assert!(many_sent > 15.0 * one_sent, "{many_sent} and {one_sent} dispatches");
    assert!(per_dispatch <= PER_DISPATCH, "{per_dispatch} requests a dispatch, {PER_DISPATCH} are allowed");
    assert!(per_group <= PER_GROUP, "{per_group} requests a group, {PER_GROUP} are allowed");
    assert_eq!(engine.gpu().expect("a GPU").counters().objects(), objects, "buffers, groups, pipelines");
}
