//! Loading a model, initially and after device loss.

use std::sync::Arc;

use chaski_models::{Model, ModelError, Runner, RunnerConfig, Target};
use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::{Gpu, GpuOptions};
use chaski_runtime::kernels::Tuning;

use crate::device::{self, DeviceChoice, DeviceInfo, Opened, Wanted};
use crate::error::Error;
use crate::hooks::{IsTrusted, OnProgress, TuningFor};
use crate::source::{AnySource, Source};

/// The devices of a target, in layer order.
pub(crate) fn gpus_of(target: &Target) -> &[Arc<Gpu>] {
    match target {
        Target::Gpu(gpu) => std::slice::from_ref(gpu),
        Target::Gpus(gpus) | Target::AfterCpu(gpus) => gpus,
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

    /// Layers on GPUs, if the CPU has some or all.
    fn gpu_layers(&self, model: &Model<AnySource>) -> Option<u32> {
        let is_web = cfg!(target_arch = "wasm32");
        self.config.gpu_layers.filter(|n| !is_web && *n < model.config().n_layer)
    }

    /// Opens the device, or those of several that are wanted, and loads the model there.
    pub(crate) async fn load(
        &mut self,
        model: &Model<AnySource>,
        wanted: Wanted,
    ) -> Result<(Runner, Target, DeviceInfo), Error> {
        let opened = match (self.gpu_layers(model), self.shared.is_empty()) {
            (Some(0), _) => device::open(&DeviceChoice::Cpu, &mut self.gpu, wanted, &self.trusted).await?,
            (_, false) => device::share(&self.shared, wanted, &self.trusted).await?,
            (_, true) => device::open(&self.device, &mut self.gpu, wanted, &self.trusted).await?,
        };
        let opened = if self.gpu_layers(model).is_some() { opened.after_cpu() } else { opened };
        let Opened { target, info, missing, cpu } = opened;
        let gpus = gpus_of(&target);
        if let Some(first) = gpus.first() {
            let of = |gpu: &Arc<Gpu>| (gpu.summary().name.clone(), gpu.summary().driver.clone());
            // One plan, and with it one tuning, serves all devices.
            let is_alike = gpus.iter().all(|gpu| of(gpu) == of(first));
            self.config.tuning = if is_alike { (self.tuning)(first.summary()) } else { Tuning::default() };
        }
        let is_there = |i: &usize| missing.iter().all(|(nth, _)| nth != i);
        let mut order: Vec<usize> = (0..self.config.shares.len()).filter(is_there).collect();
        if let Some(cpu) = cpu.filter(|_| cfg!(not(target_arch = "wasm32"))) {
            // Its layers are the first.
            order.sort_by_key(|i| *i != cpu);
        }
        let shares = order.into_iter().map(|i| self.config.shares[i]).collect();
        let config = RunnerConfig { shares, ..self.config.clone() };
        let loaded = Runner::load(model, &target, &config, &mut self.progress).await;
        let runner = loaded.map_err(|e| match e {
            ModelError::Runtime(e) if !missing.is_empty() => {
                let missing = missing.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ");
                ModelError::Runtime(RuntimeError::Missing { missing, source: Box::new(e) })
            }
            e => e,
        })?;
        if self.config.kv_fits {
            // A device that is lost and opened again may have other programs' memory on it, but the same pages.
            self.config.kv_tokens = u32::try_from(runner.kv_tokens()).ok();
        }
        Ok((runner, target, info))
    }
}
