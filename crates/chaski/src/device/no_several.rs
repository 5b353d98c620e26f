//! Several devices in a browser, where there is one, and every page would download the code.

use std::sync::Arc;

use chaski_models::Target;
use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::{Gpu, GpuOptions};
use chaski_runtime::plan::PlanError;

use super::{DeviceChoice, Opened, Wanted, describe, open_tested};
use crate::error::Error;

fn refused<T>() -> Result<T, Error> {
    Err(RuntimeError::Plan(PlanError::OneDevice).into())
}

/// GPUs alone: browsers do without layers on the CPU.
pub(super) fn after_cpu(gpus: Opened) -> Opened {
    gpus
}

/// Uses an already open device that passes a test.
pub(super) async fn share<F: Future<Output = Result<(), RuntimeError>>>(
    gpus: &[Arc<Gpu>],
    _: Wanted,
    test: impl Fn(Arc<Gpu>) -> F,
) -> Result<Opened, Error> {
    let [gpu] = gpus else { return refused() };
    test(gpu.clone()).await?;
    Ok(Opened::of(Target::Gpu(gpu.clone()), describe(gpu, None)))
}

/// Opens the device of a choice that passes a test, or has fewer features.
pub(super) async fn open<F: Future<Output = Result<(), RuntimeError>>>(
    choice: &DeviceChoice,
    options: &mut GpuOptions,
    _: Wanted,
    test: impl Fn(Arc<Gpu>) -> F,
) -> Result<Opened, Error> {
    let one = match choice {
        DeviceChoice::Gpus(_) => return refused(),
        DeviceChoice::AllGpus => &DeviceChoice::Gpu(None),
        one => one,
    };
    open_tested(one, options, test).await
}
