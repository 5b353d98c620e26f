//! Memory requirements of a model, before loading.

use chaski_models::RunnerConfig;
use chaski_runtime::gpu::{DeviceMemory, Memory};
use chaski_runtime::kernels::Caps;

use crate::error::Error;
use crate::source::OpenModel;

/// The same on each of several GPUs with these capabilities, in layer order
/// ([`DeviceChoice::Gpus`](crate::DeviceChoice::Gpus)). Shares are [`RunnerConfig::shares`], else equal ones;
/// [`DeviceMemory::shares`](crate::gpu::DeviceMemory::shares) has those that an engine takes.
///
/// # Errors
/// As [`memory_need`]; a model that cannot be cut into so many parts.
pub async fn memory_need_on(
    model: &OpenModel,
    config: &RunnerConfig,
    devices: &[&Caps],
) -> Result<Vec<Memory>, Error> {
    Ok(config.memory_on_devices(model, devices).await?)
}

/// The same with the first layers on the CPU, whose memory comes first
/// ([`EngineBuilder::gpu_layers`](crate::EngineBuilder::gpu_layers), `cpu` in
/// [`DeviceChoice::Gpus`](crate::DeviceChoice::Gpus)). What is free on the GPUs decides unless
/// [`RunnerConfig::gpu_layers`] or [`RunnerConfig::shares`], the CPU's first, do.
///
/// # Errors
/// As [`memory_need_on`].
pub async fn memory_need_after_cpu(
    model: &OpenModel,
    config: &RunnerConfig,
    devices: &[&Caps],
    free: &[Option<DeviceMemory>],
) -> Result<Vec<Memory>, Error> {
    Ok(config.memory_after_cpu(model, devices, free).await?)
}

/// The memory that [`crate::Engine`] will allocate for this model and configuration, by purpose: on a device with these
/// capabilities, or on the CPU ([`crate::DeviceChoice::Cpu`]) without any.
///
/// # Errors
/// [`Error`]: missing or invalid tensors, or a model that cannot be planned for such a device.
pub async fn memory_need(
    model: &OpenModel,
    config: &RunnerConfig,
    caps: Option<&Caps>,
) -> Result<Memory, Error> {
    Ok(match caps {
        Some(caps) => config.memory_on_device(model, caps).await?,
        None => config.memory_on_cpu(model).await?,
    })
}
