//! Every case of every operation, on a device: with bounds checks and without, in every feature set it has.
#![allow(clippy::print_stdout, reason = "a test reports what it covered")]

use chaski_kernels::{DispatchError, FeatureSet, OPS};
use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::{Gpu, GpuOptions, run_case};
use chaski_runtime::plan::PlanError;

#[test]
fn every_operation_matches_its_reference() {
    let mut failures = Vec::new();
    let mut n = 0;
    // One operation alone while working on it, and of that the cases with this word in their labels.
    let only = std::env::var("CHASKI_OP").ok();
    let word = std::env::var("CHASKI_CASE").unwrap_or_default();
    for (set, checked) in [
        (FeatureSet::Coop, false),
        (FeatureSet::Sg, false),
        (FeatureSet::Base, false),
        (FeatureSet::Coop, true),
        (FeatureSet::Sg, true),
        (FeatureSet::Base, true),
    ] {
        let options =
            GpuOptions { set: Some(set), no_f16: set == FeatureSet::Base, checked, ..GpuOptions::default() };
        let gpu = pollster::block_on(Gpu::open(&options)).expect("a GPU or a software Vulkan driver");
        println!("{}: {:?}, checks {checked}", gpu.summary().name, gpu.caps());
        let coop = set == FeatureSet::Coop;
        if coop && !gpu.caps().coop {
            println!("LEFT OUT: cooperative matrices, which this adapter lacks");
            continue;
        }
        // Some operations are cooperative matrices; the others do not change with them.
        let wanted = |name: &str| only.as_ref().is_none_or(|o| o == name);
        for op in OPS.iter().filter(|op| wanted(op.name) && coop == op.name.ends_with("_coop")) {
            let mut worst = 0.0f64;
            for case in (op.cases)().into_iter().filter(|c| c.label.contains(&word)) {
                n += 1;
                match pollster::block_on(run_case(&gpu, &case)) {
                    Ok(r) => {
                        worst = worst.max(r.nmse);
                        if coop && !r.kernel.starts_with(op.name) {
                            failures.push(format!("{}: {} ran instead of it", op.name, r.kernel));
                        }
                        if let Some(what) = r.failure {
                            failures.push(format!("{} [{}] {}: {what}", r.kernel, set.word(), case.label));
                        }
                    }
                    Err(RuntimeError::Plan(PlanError::Dispatch(e @ DispatchError::Lacks { .. }))) => {
                        n -= 1;
                        println!("LEFT OUT: {}: {e}", case.label);
                    }
                    Err(e) => failures.push(format!("{} [{}] {}: {e:?}", op.name, set.word(), case.label)),
                }
            }
            println!("  {:16} worst error {worst:.2e}", op.name);
        }
    }
    println!("{n} cases");
    assert!(n > 0, "no case has this name");
    assert!(failures.is_empty(), "{} of {n} cases fail:\n{}", failures.len(), failures.join("\n"));
}
