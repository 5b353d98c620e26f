//! CPU allocations per token in steady state.
//!
//! A separate binary, because of its counting allocator.
#![allow(unsafe_code, reason = "a global allocator that counts is unsafe to write")]
#![allow(clippy::print_stderr, reason = "a test reports what it found")]
#![cfg(feature = "default-model")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chaski::steps::{Executor as _, Input, Row, Step, Want};
use chaski::{DeviceChoice, Engine, Source};
use pollster::block_on;

/// The system's allocator, counting the requests of this thread.
struct Counting;

thread_local! {
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // The thread-local counter is gone while a thread is torn down.
    let _ = REQUESTS.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: All requests go to the system's allocator unchanged; counting neither allocates nor touches memory
// that it hands out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the contract that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract that `System` requires.
        unsafe { System.dealloc(p, layout) }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the contract that `System` requires.
        unsafe { System.realloc(p, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Maximum allocations per dispatch of a token. All are wgpu's, for commands and their resources; lower it with an
/// improvement, never raise it.
const PER_DISPATCH: f64 = 1.25;

/// Maximum allocations per step in addition to its dispatches: encoder, pass, submission, readback.
const PER_STEP: f64 = 110.0;

/// A step of `repeat` tokens that the device chooses in each of `n_seq` sequences, at position `pos`.
fn step(n_seq: u32, repeat: u32, pos: u32) -> Step {
    let row = |seq| Row { seq, pos, components: None, input: Input::Chosen, want: Want::Choose };
    Step { rows: (0..n_seq).map(row).collect(), repeat, n_planned: n_seq, ..Step::default() }
}

/// An engine whose sequences have one chosen token.
fn begun(n_seq: u32) -> Engine {
    let builder = Engine::builder(Source::Default).device(DeviceChoice::Gpu(None)).context(512);
    let mut engine = block_on(builder.sequences(n_seq).build()).expect("an engine");
    let row = |seq| Row { seq, pos: 0, components: None, input: Input::Token(1 + seq), want: Want::Choose };
    let first = Step { rows: (0..n_seq).map(row).collect(), repeat: 1, n_planned: n_seq, ..Step::default() };
    let runner = engine.runner();
    runner.submit(&first).expect("a first token");
    block_on(runner.read()).expect("a token of each");
    engine
}

/// Allocations of `n` steps, and dispatches per step.
fn requests(engine: &mut Engine, n: u32, pos: &mut u32) -> (f64, f64) {
    const STEPS: u32 = 4;
    let gpu = engine.gpu().expect("a GPU").clone();
    let dispatches = || gpu.counters().dispatches.load(Ordering::Relaxed);
    let runner = engine.runner();
    let (before, sent) = (REQUESTS.get(), dispatches());
    for _ in 0..STEPS {
        runner.submit(&step(1, n, *pos)).expect("tokens are sent");
        assert_eq!(block_on(runner.read()).expect("tokens come back").chosen.len(), n as usize);
        *pos += n;
    }
    let each = |n: u64| n as f64 / f64::from(STEPS);
    (each(REQUESTS.get() - before), each(dispatches() - sent))
}

#[test]
fn requests_for_memory_do_not_grow() {
    let mut engine = begun(1);
    let mut pos = 1;
    // Warm up the driver's object pools.
    requests(&mut engine, 16, &mut pos);
    let objects = engine.gpu().expect("a GPU").counters().objects();
    let (one, one_sent) = requests(&mut engine, 1, &mut pos);
    let (many, many_sent) = requests(&mut engine, 16, &mut pos);
    let per_dispatch = (many - one) / (many_sent - one_sent);
    let per_step = one - per_dispatch * one_sent;
    eprintln!("{per_dispatch:.2} requests a dispatch, {per_step:.0} a step, {:.0} a token", many / 16.0);
    assert!(many_sent > 15.0 * one_sent, "{many_sent} and {one_sent} dispatches");
    assert!(per_dispatch <= PER_DISPATCH, "{per_dispatch} requests a dispatch, {PER_DISPATCH} are allowed");
    assert!(per_step <= PER_STEP, "{per_step} requests a step, {PER_STEP} are allowed");
    assert_eq!(engine.gpu().expect("a GPU").counters().objects(), objects, "buffers, groups, pipelines");
}

/// 64 concurrent sequences: only the chosen tokens are read back, no resource is created, and a step needs no more
/// allocations than a step of one row, and a millisecond of CPU time.
#[test]
fn a_step_of_many_sequences_is_cheap() {
    const N: u32 = 64;
    /// 0.7 ms on an H200 with an 8B model (docs/performance-log.md), which has four times as many layers.
    const MOST: Duration = Duration::from_millis(5);
    let mut engine = begun(N);
    let gpu = engine.gpu().expect("a GPU").clone();
    let n_vocab = u64::from(engine.loaded().n_vocab());
    let runner = engine.runner();
    let mut submit = |pos| {
        let (start, before) = (Instant::now(), REQUESTS.get());
        runner.submit(&step(N, 1, pos)).expect("a step");
        let took = (start.elapsed(), REQUESTS.get() - before);
        assert_eq!(block_on(runner.read()).expect("its tokens").chosen.len(), N as usize);
        took
    };
    submit(1);
    let counters = gpu.counters();
    let count = || {
        let counts = [&counters.read_bytes, &counters.dispatches, &counters.submits];
        counts.map(|n| n.load(Ordering::Relaxed))
    };
    let (objects, before) = (counters.objects(), count());
    let (least, n_request) = (2..8).map(&mut submit).min().expect("six steps");
    let [n_byte, n_dispatch, n_submit] = [0, 1, 2].map(|i| (count()[i] - before[i]) / 6);
    eprintln!(
        "{least:?} and {n_request} requests to submit {n_dispatch} dispatches of {N} rows, {n_byte} bytes read back"
    );
    // The ring of each sequence: 128 ids.
    assert!(n_byte <= u64::from(N) * 128 * 4, "{n_byte} bytes of a step");
    assert!(n_byte < u64::from(N) * n_vocab, "{n_byte} bytes of a step: a row of logits has {}", 4 * n_vocab);
    assert_eq!(counters.objects(), objects, "buffers, groups, pipelines");
    // Slow devices split a step into several submissions.
    let most = PER_DISPATCH * n_dispatch as f64 + PER_STEP * n_submit.max(1) as f64;
    assert!(n_request as f64 <= most, "{n_request} requests of a step, {most} are allowed");
    // A software device executes the work during submission.
    assert!(gpu.caps().software || least <= MOST, "{least:?} to submit a step");
}
