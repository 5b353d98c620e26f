//! Memory requirements of a model, before loading.

use chaski_models::RunnerConfig;
use chaski_runtime::gpu::Memory;
use chaski_runtime::kernels::Caps;

use crate::error::Error;
use crate::source::OpenModel;

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
