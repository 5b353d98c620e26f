//! Benchmarks every case of every operation on the fastest device: verified first, then timed, relative to the device's
//! peaks.
//!
//! `cargo bench -p chaski-runtime --bench ops -- --quick mul_mat_vec` runs those whose name contains a word. Test cases
//! are small: most measure the cost of a dispatch rather than the speed of a kernel; `chaski bench --profile` has real
//! sizes.
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

use chaski_kernels::{DispatchError, OPS};
use chaski_runtime::gpu::{Gpu, GpuOptions, ReadyCase};
use criterion::{Criterion, Throughput};
use pollster::block_on;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let gpu = block_on(Gpu::open(&GpuOptions::default())).expect("a GPU or a software Vulkan driver");
    let peaks = block_on(gpu.measure(Duration::from_secs(1))).expect("a device that can be measured");
    println!("{}: {peaks:?}", gpu.summary().name);
    for op in OPS {
        let mut group = criterion.benchmark_group(op.name);
        let mut names = HashMap::new();
        for case in (op.cases)() {
            // Some cases differ only in their contents.
            let nth = names.entry(case.label.clone()).and_modify(|n| *n += 1).or_insert(1);
            let name = if *nth == 1 { case.label.clone() } else { format!("{} #{nth}", case.label) };
            match (case.steps)(gpu.caps()) {
                Err(e @ DispatchError::Lacks { .. }) => {
                    println!("{}/{}: left out, {e}", op.name, case.label);
                    continue;
                }
                // Empty dispatches; the tests cover these.
                Ok(steps) if steps.iter().all(|s| s.dispatch.grid.contains(&0)) => continue,
                Ok(_) => {}
                Err(e) => panic!("{} {}: {e}", op.name, case.label),
            }
            group.throughput(Throughput::Bytes(case.n_byte));
            // Created on demand, once: criterion calls back for warm-up and each measurement.
            let mut ready: Option<ReadyCase<'_>> = None;
            let best = Cell::new(f64::INFINITY);
            group.bench_function(name, |b| {
                let ready = ready.get_or_insert_with(|| {
                    let ready = block_on(ReadyCase::new(&gpu, &case)).expect("a case that can run");
                    let report = block_on(ready.check()).expect("a case that runs");
                    assert!(report.failure.is_none(), "{} {}: {:?}", op.name, case.label, report.failure);
                    ready
                });
                b.iter_custom(|n| {
                    let time = block_on(ready.time(n)).expect("a device that stays");
                    best.set(best.get().min(time.as_secs_f64() / n as f64));
                    time
                });
            });
            let Some(ready) = ready else { continue };
            let percent = |rate: f64, peak: Option<f64>| {
                peak.map_or("not measured".to_owned(), |p| format!("{:.1} %", 100.0 * rate / p))
            };
            let bytes = case.n_byte as f64 / best.get();
            let mut line =
                format!("{:>10.2} GB/s ({} of reading)", bytes / 1e9, percent(bytes, Some(peaks.read)));
            if case.n_flop > 0 {
                let (rate, unit) = (case.n_flop as f64 / best.get(), ready.kernel().unit());
                let of = percent(rate, peaks.rate(unit));
                line += &format!(", {:.3} GFLOP/s ({of} of {})", rate / 1e9, unit.word());
            }
            println!("{line}  {}", ready.kernel().name);
        }
        group.finish();
    }
    criterion.final_summary();
}
