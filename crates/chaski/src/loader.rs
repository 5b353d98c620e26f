//! Loading a model, initially and after device loss.

use std::sync::Arc;

use chaski_models::{Model, Runner, RunnerConfig, Target};
use chaski_runtime::gpu::{Gpu, GpuOptions};
use chaski_runtime::kernels::Tuning;

use crate::device::{self, DeviceChoice, DeviceInfo, Opened};
use crate::error::Error;
use crate::hooks::{IsTrusted, OnProgress, TuningFor};
use crate::source::{AnySource, Source};

/// The source of a model, and the options of device and model.
pub(crate) struct Loader {
    pub(crate) source: Source,
    pub(crate) device: DeviceChoice,
    pub(crate) gpu: GpuOptions,
    /// An open device, in place of these two.
    pub(crate) shared: Option<Arc<Gpu>>,
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
            shared: None,
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
        let Opened { target, info } = match &self.shared {
            Some(gpu) => device::share(gpu.clone(), &self.trusted).await?,
            None => device::open(&self.device, &mut self.gpu, &self.trusted).await?,
        };
        if let Target::Gpu(g) = &target {
            self.config.tuning = (self.tuning)(g.summary());
        }
        let runner = Runner::load(model, &target, &self.config, &mut self.progress).await?;
        Ok((runner, target, info))
    }
}
