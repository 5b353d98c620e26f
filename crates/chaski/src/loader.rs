//! Loading a model, initially and after device loss.

use std::sync::Arc;

use chaski_models::{Model, Runner, RunnerConfig, Target};
use chaski_runtime::gpu::{Gpu, GpuOptions};
use chaski_runtime::kernels::Tuning;

use crate::device::{self, DeviceChoice, DeviceInfo, Opened};
use crate::error::Error;
use crate::hooks::{IsTrusted, OnProgress, TuningFor};
use crate::source::{AnySource, Source};

/// The devices of a target, in layer order.
pub(crate) fn gpus_of(target: &Target) -> &[Arc<Gpu>] {
    match target {
        Target::Gpu(gpu) => std::slice::from_ref(gpu),
        Target::Gpus(gpus) => gpus,
        Target::Cpu => &[],
    }
}

/// The source of a model, and the options of device and model.
pub(crate) struct Loader {
    pub(crate) source: Source,
    pub(crate) device: DeviceChoice,
    pub(crate) gpu: GpuOptions,
    /// Open devices, in place of these two if there are any.
    pub(crate) shared: Vec<Arc<Gpu>>,
    pub(crate) config: RunnerConfig,
    pub(crate) tuning: TuningFor,
    pub(crate) trusted: IsTrusted,
    pub(crate) progress: OnProgress,
}

impl Loader {
    /// Default options.
    pub(crate) fn new(source: Source) -> Self {
        Loader {
            source,
            device: DeviceChoice::default(),
            gpu: GpuOptions::default(),
            shared: Vec::new(),
            config: RunnerConfig::default(),
            tuning: Box::new(|_| Tuning::default()),
            trusted: Box::new(|_| true),
            progress: Box::new(|_| {}),
        }
    }

    /// Opens the device and loads the model onto it.
    pub(crate) async fn load(
        &mut self,
        model: &Model<AnySource>,
    ) -> Result<(Runner, Target, DeviceInfo), Error> {
        let Opened { target, info } = match self.shared.is_empty() {
            false => device::share(&self.shared, &self.trusted).await?,
            true => device::open(&self.device, &mut self.gpu, &self.trusted).await?,
        };
        let gpus = gpus_of(&target);
        if let Some(first) = gpus.first() {
            let of = |gpu: &Arc<Gpu>| (gpu.summary().name.clone(), gpu.summary().driver.clone());
            // One plan, and with it one tuning, serves all devices.
            let is_alike = gpus.iter().all(|gpu| of(gpu) == of(first));
            self.config.tuning = if is_alike { (self.tuning)(first.summary()) } else { Tuning::default() };
        }
        let runner = Runner::load(model, &target, &self.config, &mut self.progress).await?;
        Ok((runner, target, info))
    }
}
