//! Devices that engines do not open themselves: shared ones, and those of the program.

use std::sync::Arc;

use chaski::{Gpu, GpuOptions, device_descriptor, wgpu};

use crate::common::{Timed, block_on, build, default_engine, greedy, text};
use crate::golden_text::{ANSWER, PROMPT};

/// A device of the program's own, with what `adjust` leaves of what is good for kernels.
fn own(adjust: impl Fn(&mut wgpu::DeviceDescriptor<'_>)) -> Gpu {
    block_on(async {
        let instance = wgpu::Instance::default();
        let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await.expect("a GPU");
        let options = GpuOptions::default();
        let mut descriptor = device_descriptor(&adapter, &options);
        adjust(&mut descriptor);
        let (device, queue) = adapter.request_device(&descriptor).await.expect("a device");
        Gpu::with_device(&adapter, device, queue, &options)
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
    assert!(caps.subgroup.is_none() && !caps.f16 && !caps.coop && !caps.coherent && !least.has_timestamps());
    assert_eq!(caps.max_binding_bytes, limits.max_storage_buffer_binding_size.min(limits.max_buffer_size));
    for gpu in [whole, least] {
        let mut engine = build(default_engine().gpu(Arc::new(gpu)));
        let found = text(&mut engine, PROMPT, greedy(40)).expect("a text");
        assert!(found.len() > 80 && ANSWER.starts_with(&found), "{found}");
        // A second engine on the same device, in turns with the first.
        let gpu = engine.gpu().expect("a device").clone();
        let mut other = build(default_engine().gpu(gpu));
        let first = text(&mut other, "Once upon a time", greedy(8)).expect("a text");
        engine.clear();
        assert!(ANSWER.starts_with(&text(&mut engine, PROMPT, greedy(8)).expect("a text")));
        other.clear();
        assert_eq!(text(&mut other, "Once upon a time", greedy(8)).expect("a text"), first);
    }
}

#[test]
fn a_lost_device_of_the_program_is_the_programs_to_open_again() {
    let _t = Timed::new("devices, lost");
    let mut engine = build(default_engine().gpu(Arc::new(own(|_| {}))));
    engine.gpu().expect("a device").destroy();
    let e = block_on(engine.rebuild()).expect_err("nobody but the program can open it");
    assert!(e.to_string().contains("lost"), "{e}");
    let e = block_on(default_engine().gpu(engine.gpu().expect("a device").clone()).build());
    assert!(e.is_err_and(|e| e.to_string().contains("lost")));
}
