//! Measurements of a device finish in time, with consistent results.
#![allow(clippy::print_stderr, reason = "a test reports what it found")]

use std::time::{Duration, Instant};

use chaski_kernels::{FeatureSet, OPS, Unit};
use chaski_runtime::gpu::{Gpu, GpuOptions, run_case};

fn open(set: FeatureSet) -> Gpu {
    let options = GpuOptions { set: Some(set), no_f16: set == FeatureSet::Base, ..GpuOptions::default() };
    pollster::block_on(Gpu::open(&options)).expect("a GPU or a software Vulkan driver")
}

#[test]
fn measuring_covers_what_the_device_has() {
    for set in [FeatureSet::Coop, FeatureSet::Base] {
        let gpu = open(set);
        let measured = || {
            let start = Instant::now();
            let peaks = pollster::block_on(gpu.measure(Duration::from_secs(1))).expect("peaks");
            let took = start.elapsed();
            eprintln!("{}, {}: {took:?}: {peaks:?}", gpu.summary().name, set.word());
            (peaks, took)
        };
        // A dispatch takes less than a round trip; other work on the processor, which runs a software
        // driver's dispatches, may hide this in one measurement, but not in all of five.
        let (peaks, took) = (0..5)
            .map(|_| measured())
            .find(|(peaks, _)| peaks.dependent_dispatch < peaks.round_trip)
            .expect("a dependent dispatch that takes less than a round trip");
        // Compiling and filling buffers come on top.
        assert!(took < Duration::from_secs(20), "{took:?}");
        assert!(peaks.read > 1e8 && peaks.copy > 1e8, "{peaks:?}");
        let times =
            [peaks.dependent_dispatch, peaks.independent_dispatch, peaks.host_dispatch, peaks.round_trip];
        assert!(times.iter().all(|t| *t > 0.0 && *t < 0.1), "{peaks:?}");
        let has = |unit| peaks.rate(unit).is_some_and(|r| r > 1e8);
        assert!(has(Unit::F32) && has(Unit::Int8), "{peaks:?}");
        assert_eq!(has(Unit::F16), gpu.caps().f16, "{peaks:?}");
        assert_eq!(has(Unit::Coop), gpu.caps().coop.is_some(), "{peaks:?}");
    }
}

#[test]
fn what_a_device_lacks_is_an_error_that_says_so() {
    let gpu = open(FeatureSet::Base);
    let op = OPS.iter().find(|op| op.name == "measure_coop").expect("the operation");
    let e =
        pollster::block_on(run_case(&gpu, &(op.cases)()[0])).expect_err("no cooperative matrices in base");
    let cause = std::error::Error::source(&e).expect("a cause").to_string();
    assert_eq!(cause, "measure_coop requires cooperative matrices, which the device does not support");
}
