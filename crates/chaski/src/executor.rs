//! The executor of an engine: a loaded model that can be loaded again.

use std::sync::Arc;

use chaski_models::serve::{self, Executor, Outputs, Start};
use chaski_models::{Heads, Model, ModelError, Runner, Target};
use chaski_runtime::gpu::Gpu;
use chaski_runtime::{RowInput, RuntimeError};
use chaski_schedule::{Change, Found, Limits, Step};
use chaski_text::Sampler;

use crate::device::{DeviceInfo, Wanted};
use crate::error::Error;
use crate::loader::{Loader, gpus_of};
use crate::source::AnySource;

/// Drives a [`Handle`](crate::Handle): a future to poll while answers are needed.
pub type Driver = serve::Driver<ModelExecutor>;

/// A model on a device. After device loss it opens another device and loads the model again, or goes on over the rest
/// of several; a device of
/// [`EngineBuilder::gpu`](crate::EngineBuilder::gpu) can only be opened by its owner.
pub struct ModelExecutor {
    loader: Loader,
    model: Model<AnySource>,
    runner: Runner,
    target: Target,
    device: DeviceInfo,
}

impl std::fmt::Debug for ModelExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelExecutor").field("device", &self.device).finish_non_exhaustive()
    }
}

impl ModelExecutor {
    pub(crate) fn new(
        loader: Loader,
        model: Model<AnySource>,
        runner: Runner,
        target: Target,
        device: DeviceInfo,
    ) -> Self {
        ModelExecutor { loader, model, runner, target, device }
    }

    pub(crate) fn loader(&self) -> &Loader {
        &self.loader
    }

    pub(crate) fn model(&self) -> &Model<AnySource> {
        &self.model
    }

    pub(crate) fn runner(&self) -> &Runner {
        &self.runner
    }

    pub(crate) fn runner_mut(&mut self) -> &mut Runner {
        &mut self.runner
    }

    /// For a draft model.
    pub(crate) fn into_runner(self) -> Runner {
        self.runner
    }

    /// The open device, of several the last; `None` on the CPU.
    pub fn gpu(&self) -> Option<&Arc<Gpu>> {
        self.gpus().last()
    }

    /// All open devices, in layer order.
    pub fn gpus(&self) -> &[Arc<Gpu>] {
        gpus_of(&self.target)
    }

    pub(crate) fn device(&self) -> &DeviceInfo {
        &self.device
    }

    /// Opens the device and loads the model again; of several devices over those that are left.
    pub(crate) async fn reload(&mut self) -> Result<(), Error> {
        self.runner.release_lost();
        // Keep the current scales.
        self.model.set_lora_scales(self.runner.lora_scales())?;
        let experts = self.runner.take_experts();
        (self.runner, self.target, self.device) = self.loader.load(&self.model, Wanted::Left).await?;
        Ok(self.runner.set_experts(experts)?)
    }
}

impl Executor for ModelExecutor {
    fn limits(&self) -> Limits {
        self.runner.limits()
    }

    fn n_vocab(&self) -> usize {
        Executor::n_vocab(&self.runner)
    }

    fn row_input(&self) -> RowInput {
        self.runner.row_input()
    }

    fn heads(&self) -> Arc<Heads> {
        self.runner.heads()
    }

    fn lora(&self, asked: Option<&[f32]>) -> Result<Vec<f32>, ModelError> {
        self.runner.lora(asked)
    }

    fn can_choose(&self, sampler: &Sampler) -> Result<(), &'static str> {
        self.runner.can_choose(sampler)
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), ModelError> {
        self.runner.start(start)
    }

    fn change(&mut self, change: &Change) -> Result<(), ModelError> {
        self.runner.change(change)
    }

    fn submit(&mut self, step: &Step) -> Result<(), ModelError> {
        self.runner.submit(step)
    }

    fn mask(&mut self, masks: &[u32]) -> Result<(), ModelError> {
        self.runner.mask(masks)
    }

    async fn read(&mut self) -> Result<Outputs, ModelError> {
        self.runner.read().await
    }

    fn undo(&mut self, error: &ModelError) -> bool {
        self.runner.undo(error)
    }

    fn forget(&mut self) {
        self.runner.forget();
    }

    fn rows(&self, is_alone: bool) -> usize {
        self.runner.rows(is_alone)
    }

    fn max_under_way(&self) -> usize {
        self.runner.max_under_way()
    }

    async fn recover(&mut self, error: Arc<ModelError>) -> Result<(), Arc<ModelError>> {
        if !matches!(*error, ModelError::Runtime(RuntimeError::DeviceLost { .. })) {
            return self.runner.recover(error).await;
        }
        match self.reload().await {
            Ok(()) => Ok(()),
            Err(Error::Model(e)) => Err(Arc::new(e)),
            Err(Error::Runtime(e)) => Err(Arc::new(e.into())),
            Err(e) => {
                tracing::warn!(error = %e, "the model could not be loaded again");
                Err(error)
            }
        }
    }

    fn session_name(&self, lora: &[f32]) -> String {
        self.runner.session_name(lora)
    }

    fn session_bytes(&self, n_token: usize) -> u64 {
        Executor::session_bytes(&self.runner, n_token)
    }

    async fn read_prefix(&mut self, seq: u32, found: &Found, n_token: usize) -> Result<Vec<u8>, ModelError> {
        self.runner.read_prefix(seq, found, n_token).await
    }

    async fn write_prefix(
        &mut self,
        seq: u32,
        found: &Found,
        pages: &[u32],
        n_token: usize,
        bytes: &[u8],
    ) -> Result<(), ModelError> {
        self.runner.write_prefix(seq, found, pages, n_token, bytes).await
    }
}
