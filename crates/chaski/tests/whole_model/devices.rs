//! Devices that engines do not open themselves: shared ones, and the program's own.

use std::sync::Arc;

use chaski::gpu::{Gpu, GpuOptions, device_descriptor, wgpu};
use chaski::{Engine, Error};

use crate::common::{Timed, block_on, build, chain, default_engine, full, greedy, one_in, text};
use crate::golden_text::{ANSWER, PROMPT};

/// A device of the program's own: the recommended descriptor, changed by `adjust`.
fn own(adjust: impl Fn(&mut wgpu::DeviceDescriptor<'_>)) -> Gpu {
    own_with_handle(adjust).0
}

/// The same, with the program's handle.
fn own_with_handle(adjust: impl Fn(&mut wgpu::DeviceDescriptor<'_>)) -> (Gpu, wgpu::Device) {
    block_on(async {
        let instance = wgpu::Instance::default();
        let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await.expect("a GPU");
        let options = GpuOptions::default();
        let mut descriptor = device_descriptor(&adapter, &options);
        adjust(&mut descriptor);
        let (device, queue) = adapter.request_device(&descriptor).await.expect("a device");
        (Gpu::with_device(&adapter, device.clone(), queue, &options), device)
    })
}

#[test]
fn a_device_of_the_program_tells_the_golden_text() {
    let _t = Timed::new("devices, own");
    let whole = own(|_| {});
    let least = own(|d| {
        d.required_features = wgpu::Features::empty();
        d.required_limits = wgpu::Limits::default();
        d.experimental_features = wgpu::ExperimentalFeatures::disabled();
    });
    let (caps, limits) = (least.caps(), wgpu::Limits::default());
    assert!(
        caps.subgroup.is_none()
            && !caps.f16
            && caps.coop.is_none()
            && !caps.coherent
            && !least.has_timestamps()
    );
    assert_eq!(caps.max_binding_bytes, limits.max_storage_buffer_binding_size.min(limits.max_buffer_size));
    // By default the one with all features: software devices without subgroups take seven times as long.
    for gpu in one_in(2, [whole, least]) {
        let mut engine = build(default_engine().gpu(Arc::new(gpu)));
        let found = text(&mut engine, PROMPT, greedy(40)).expect("a text");
        assert!(found.len() > 80 && ANSWER.starts_with(&found), "{found}");
        // A second engine on the same device, interleaved with the first.
        let gpu = engine.gpu().expect("a device").clone();
        let mut other = build(default_engine().gpu(gpu));
        let first = text(&mut other, "Once upon a time", greedy(8)).expect("a text");
        engine.clear();
        assert!(ANSWER.starts_with(&text(&mut engine, PROMPT, greedy(8)).expect("a text")));
        other.clear();
        assert_eq!(text(&mut other, "Once upon a time", greedy(8)).expect("a text"), first);
    }
}

/// An engine on the program's own device, and the program's handle.
fn engine_on_own() -> (Engine, wgpu::Device) {
    let (gpu, device) = own_with_handle(|_| {});
    (build(default_engine().gpu(Arc::new(gpu))), device)
}

fn lost<T>(result: Result<T, impl Into<Error>>, case: &str) -> String {
    let e = result.err().unwrap_or_else(|| panic!("{case}: a lost device is an error")).into();
    assert!(e.is_device_lost(), "{case}: {}", chain(&e));
    chain(&e)
}

/// Every call on an engine whose device is lost. Owners of the device can rebuild with another.
fn stays_lost(engine: &mut Engine, is_shared: bool, case: &str) {
    for again in ["", ", again"] {
        let logits = block_on(async {
            engine.runner().prefill(&[1, 2, 3]).await?;
            engine.runner().logits().await
        });
        lost(logits, &format!("{case}, a prompt{again}"));
        lost(block_on(engine.runner().eval_all(&[1, 2, 3], 8)), &format!("{case}, logits{again}"));
        lost(block_on(engine.runner().eval_hidden(&[1, 2, 3])), &format!("{case}, hidden states{again}"));
    }
    let gpu = engine.gpu().expect("a device").clone();
    lost(gpu.check_alive(), case);
    lost(block_on(default_engine().gpu(gpu).build()), &format!("{case}, another engine on it"));
    if is_shared {
        lost(text(engine, PROMPT, greedy(4)), &format!("{case}, text"));
        lost(text(engine, PROMPT, greedy(4)), &format!("{case}, text again"));
        lost(block_on(engine.rebuild()), &format!("{case}, rebuilt"));
        lost(block_on(engine.rebuild()), &format!("{case}, rebuilt again"));
    } else {
        block_on(engine.rebuild()).expect("the adapter is still there");
        let found = text(engine, PROMPT, greedy(8)).expect("a text");
        assert!(!found.is_empty(), "{case}");
    }
}

/// A way to lose the device of an engine.
type Lose = Box<dyn Fn() + Send>;

/// An engine on its own device or the program's, and a way to lose it.
fn either(is_shared: bool) -> (Engine, Lose) {
    if is_shared {
        let (engine, device) = engine_on_own();
        return (engine, Box::new(move || device.destroy()));
    }
    let engine = build(default_engine());
    let gpu = engine.gpu().expect("a GPU").clone();
    (engine, Box::new(move || gpu.destroy()))
}

#[test]
fn a_device_that_is_lost_while_nothing_runs_is_an_error_of_all_that_follows() {
    let _t = Timed::new("devices, lost at rest");
    for is_shared in [true, false] {
        let (mut engine, lose) = either(is_shared);
        lose();
        stays_lost(&mut engine, is_shared, "before anything ran");

        let (mut engine, lose) = either(is_shared);
        text(&mut engine, PROMPT, greedy(4)).expect("a text");
        lose();
        lose();
        stays_lost(&mut engine, is_shared, "after an answer");
    }
}

#[test]
fn a_device_of_the_program_that_is_lost_in_mid_answer_is_an_error_of_the_next_token() {
    let _t = Timed::new("devices, lost in an answer");
    let (mut engine, device) = engine_on_own();
    let mut g = engine.generate(PROMPT, greedy(64)).expect("a generation");
    for _ in 0..3 {
        block_on(g.next()).expect("a piece").expect("64 tokens");
    }
    device.destroy();
    // Tokens from before the loss may still be delivered.
    let e = loop {
        match block_on(g.next()) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("an answer on a device that is lost must not end well"),
            Err(e) => break e,
        }
    };
    lost(Err::<(), _>(e), "in mid-answer");
    drop(g);
    stays_lost(&mut engine, true, "after half an answer");
}

#[test]
fn a_device_that_is_lost_at_any_time_in_a_prompt_is_an_error_and_no_panic() {
    let _t = Timed::new("devices, lost in a prompt");
    let prompt: Vec<u32> = (0..200).map(|i| 3 + i % 200).collect();
    for is_shared in [true, false] {
        // By default two on the one, and the third on the other.
        let delays: &[u64] = match (full(), is_shared) {
            (true, _) => &[0, 5, 40],
            (false, true) => &[0, 40],
            (false, false) => &[5],
        };
        for &delay in delays {
            let (mut engine, lose) = either(is_shared);
            let thief = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(delay));
                lose();
            });
            let ran = block_on(async {
                engine.runner().prefill(&prompt).await?;
                engine.runner().logits().await
            });
            // The prompt may have ended before the loss.
            if ran.is_err() {
                lost(ran, "in a prompt");
            }
            thief.join().expect("the device can be lost");
            stays_lost(&mut engine, is_shared, "after a prompt");
        }
    }
}

#[test]
fn a_device_that_is_lost_at_any_time_while_loading_is_an_error_and_no_panic() {
    let _t = Timed::new("devices, lost while loading");
    // Progress reports at which the device is lost; the last is after loading.
    let mut n_lost = 0;
    for at in [0, 1, 2, 5, 1 << 20] {
        let (gpu, device) = own_with_handle(|_| {});
        let mut n = 0;
        let destroyed = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let flag = destroyed.clone();
        let watched = default_engine().gpu(Arc::new(gpu)).on_progress(move |_| {
            if n == at {
                device.destroy();
                flag.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            n += 1;
        });
        let built = block_on(watched.build());
        match destroyed.load(std::sync::atomic::Ordering::Relaxed) {
            true => {
                n_lost += 1;
                lost(built, &format!("after report {at}"));
            }
            false => drop(built.expect("an engine")),
        }
    }
    assert!(n_lost >= 3, "the device was lost in {n_lost} of the loads");
    // And before loading begins.
    let (gpu, device) = own_with_handle(|_| {});
    device.destroy();
    lost(block_on(default_engine().gpu(Arc::new(gpu)).build()), "before loading");
}

#[test]
fn owners_hear_of_a_loss_and_of_their_own_errors() {
    let (gpu, device) = own_with_handle(|_| {});
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (of_loss, of_error) = (heard.clone(), heard.clone());
    gpu.on_lost(move |_| of_loss.lock().expect("a list").push("lost"));
    gpu.on_uncaptured_error(move |_| of_error.lock().expect("a list").push("error"));
    // An empty buffer is somebody's error, but not the engine's.
    let _ = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 4,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
    assert!(matches!(gpu.check(), Err(chaski::errors::RuntimeError::Refused { .. })), "{:?}", gpu.check());
    device.destroy();
    lost(gpu.check_alive(), "destroyed by its owner");
    let late = heard.clone();
    gpu.on_lost(move |_| late.lock().expect("a list").push("lost before"));
    assert_eq!(*heard.lock().expect("a list"), ["error", "lost", "lost before"]);
}
