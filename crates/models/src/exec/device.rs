//! A model on a GPU or the CPU as one executor. Nothing outside this file distinguishes them.

use std::time::Duration;

use chaski_graph::Op;
use chaski_runtime::cpu::{CpuConfig, CpuModel, Watch};
use chaski_runtime::gpu::{Ablation, DeviceMemory, GpuModel, Memory, Profile, Progress, Stage, TuneStep};
use chaski_runtime::kernels::{ActivationPrecision, Caps, Tuning};
use chaski_runtime::plan::PlanError;
use chaski_runtime::{Experts, RowInput, RuntimeError};
use chaski_schedule::{Change, Input, Limits, Step, Want};
use chaski_text::Sampler;
use ggml_format::ByteSource;

use super::config::{RunnerConfig, Target, memory_of, narrowest};
use super::cpu::CpuExecutor;
use super::executor::{Outputs, Start};
use super::gpu::GpuExecutor;
use crate::error::ModelError;
use crate::model::Model;

/// A loaded model that runs steps.
pub(crate) enum DeviceExecutor {
    Gpu(Box<GpuExecutor>),
    Cpu(Box<CpuExecutor>),
}

/// Checks the inputs of a step other than tokens, which the CPU would find only when the step is read.
fn check_inputs(takes: RowInput, step: &Step) -> Result<(), ModelError> {
    let n_row = takes.n_row(&step.embeddings, u32::MAX)?;
    let named = step.rows.iter().filter_map(|row| match row.input {
        Input::Embedding(i) => Some(u64::from(i) + 1),
        Input::Token(_) | Input::Chosen => None,
    });
    let (found, limit) = (named.max().unwrap_or(0), u64::from(n_row));
    if found > limit {
        return Err(RuntimeError::Limit { what: "rows of embeddings", found, limit }.into());
    }
    Ok(takes.check_components(step.rows.iter().any(|row| row.components.is_some()))?)
}

/// The same call on either kind.
macro_rules! either {
    ($self:expr, $e:ident => $call:expr) => {
        match $self {
            DeviceExecutor::Gpu($e) => $call,
            DeviceExecutor::Cpu($e) => $call,
        }
    };
}

impl DeviceExecutor {
    /// Loads a model onto a target.
    ///
    /// # Errors
    /// [`ModelError`] if a tensor is missing or invalid, the model does not fit, or the device fails.
    pub(crate) async fn load<S: ByteSource + Send + Sync + 'static>(
        model: &Model<S>,
        target: &Target,
        config: &RunnerConfig,
        mut progress: impl FnMut(Progress),
    ) -> Result<Self, ModelError> {
        let graph = model.graph(config.n_ctx_for(model)).await?;
        let absent = config.absent_experts.layers(&graph)?;
        let small = |n_page: u32, per_seq: u32, page: u32, n_ctx: u32| match n_page < per_seq {
            true => Err(ModelError::SmallPool { found: n_page * page, needed: n_ctx }),
            false => Ok(()),
        };
        let lora = model.lora_scales();
        let gpus = match target {
            Target::Gpu(gpu) => std::slice::from_ref(gpu),
            Target::Gpus(gpus) | Target::AfterCpu(gpus) if gpus.is_empty() => {
                return Err(RuntimeError::Plan(PlanError::NoDevice).into());
            }
            Target::Gpus(gpus) | Target::AfterCpu(gpus) => gpus,
            Target::Cpu => &[],
        };
        match narrowest(gpus.iter().map(|gpu| gpu.caps())) {
            Some(caps) => {
                let all: Vec<&Caps> = gpus.iter().map(|gpu| gpu.caps()).collect();
                let mut plan = config.pooled(config.plan_for(model, caps), &graph, &all)?;
                let mut cpu = None;
                if cfg!(not(target_arch = "wasm32")) && matches!(target, Target::AfterCpu(_)) {
                    cpu = Some(CpuConfig { pool: plan.pool, ..config.cpu_for(model) });
                    plan = config.after_cpu(plan, &memory_of(gpus));
                } else {
                    let memory = memory_of(gpus);
                    if gpus.len() > 1 && plan.shares.is_empty() {
                        plan.shares = DeviceMemory::shares(&memory);
                    }
                    plan = config.within_devices(plan, &graph, &all, &memory)?;
                }
                small(plan.n_page(), plan.pages_per_seq(), plan.page, plan.n_ctx)?;
                let files = model.files().clone();
                let loaded = GpuModel::load_after_cpu(gpus, cpu, &graph, plan, files, progress).await?;
                Ok(DeviceExecutor::Gpu(Box::new(GpuExecutor::new(loaded, lora))))
            }
            None => {
                let has_experts = graph.nodes.iter().any(|n| matches!(n.op, Op::TopkMoe { .. }));
                if config.experts_on_cpu > 0 && !has_experts {
                    return Err(RuntimeError::Plan(PlanError::NoExperts).into());
                }
                let sizes = config.cpu_within_memory(model, &graph)?;
                small(sizes.n_page(), sizes.pages_per_seq(), sizes.page, sizes.n_ctx)?;
                let report = |done, total| progress(Progress { stage: Stage::Upload, done, total });
                let mut loaded = CpuModel::load_without(graph, sizes, &absent, model, report).await?;
                loaded.set_inputs_in_16_bits(config.inputs != Some(ActivationPrecision::F32));
                Ok(DeviceExecutor::Cpu(Box::new(CpuExecutor::new(loaded, lora))))
            }
        }
    }

    /// Sets experts elsewhere, for steps that are submitted from now on.
    ///
    /// # Errors
    /// [`RuntimeError::NotPlanned`] on a GPU without [`RunnerConfig::experts_away`].
    pub(crate) fn set_experts(&mut self, experts: Option<Box<dyn Experts>>) -> Result<(), ModelError> {
        match self {
            DeviceExecutor::Gpu(e) => Ok(e.model_mut().set_experts(experts)?),
            DeviceExecutor::Cpu(e) => {
                e.set_experts(experts);
                Ok(())
            }
        }
    }

    pub(crate) fn take_experts(&mut self) -> Option<Box<dyn Experts>> {
        match self {
            DeviceExecutor::Gpu(e) => e.model_mut().take_experts(),
            DeviceExecutor::Cpu(e) => e.take_experts(),
        }
    }

    /// True if a step that fails because of experts elsewhere leaves the sequences as they were.
    pub(crate) fn undoes(&self) -> bool {
        matches!(self, DeviceExecutor::Cpu(_))
    }

    pub(crate) fn limits(&self) -> Limits {
        either!(self, e => e.limits())
    }

    /// Number of CPU threads that compute a step of `n_col` columns; `None` on a GPU.
    pub(crate) fn n_thread(&self, n_col: usize) -> Option<usize> {
        match self {
            DeviceExecutor::Gpu(_) => None,
            DeviceExecutor::Cpu(e) => Some(e.n_thread(n_col)),
        }
    }

    /// Inputs other than tokens that the model takes.
    pub(crate) fn row_input(&self) -> RowInput {
        either!(self, e => e.row_input())
    }

    /// Rows per step that run in a fraction of a second; fewer if other requests wait for it.
    pub(crate) fn rows(&self, is_alone: bool) -> usize {
        either!(self, e => e.rows(is_alone))
    }

    /// Maximum number of columns per step of one sequence.
    pub(crate) fn max_columns(&self) -> usize {
        either!(self, e => e.max_columns())
    }

    /// Maximum number of columns per step whose logits are read.
    pub(crate) fn max_logits(&self) -> usize {
        either!(self, e => e.max_logits())
    }

    /// Maximum number of columns per step whose hidden states are read.
    pub(crate) fn max_hidden(&self) -> usize {
        either!(self, e => e.max_hidden())
    }

    /// Maximum number of repetitions of a step.
    pub(crate) fn max_repeat(&self) -> u32 {
        either!(self, e => e.max_repeat())
    }

    pub(crate) fn can_choose(&self, sampler: &Sampler) -> Result<(), &'static str> {
        either!(self, e => e.can_choose(sampler))
    }

    pub(crate) fn start(&mut self, start: Start<'_>) -> Result<(), ModelError> {
        either!(self, e => e.start(start))
    }

    pub(crate) fn change(&mut self, change: &Change) {
        either!(self, e => e.change(change));
    }

    pub(crate) fn submit(&mut self, step: &Step) -> Result<(), ModelError> {
        let found = step.rows.iter().map(|row| u64::from(row.seq) + 1).max().unwrap_or(0);
        let limit = self.limits().n_seq as u64;
        if found > limit {
            return Err(RuntimeError::Limit { what: "sequences", found, limit }.into());
        }
        check_inputs(self.row_input(), step)?;
        let is_read = |want| matches!(want, Want::Nothing | Want::Hidden);
        if self.limits().whole && !step.rows.iter().all(|row| is_read(row.want)) {
            return Err(ModelError::Encoder);
        }
        if step.rows.is_empty() {
            return Err(ModelError::NoRows);
        }
        either!(self, e => e.submit(step))
    }

    /// Gives the step that was submitted last its masks.
    pub(crate) fn mask(&mut self, masks: &[u32]) -> Result<(), ModelError> {
        either!(self, e => e.mask(masks))
    }

    /// True if another step can be submitted before the oldest is read.
    pub(crate) fn takes_step(&self) -> bool {
        either!(self, e => e.takes_step())
    }

    /// Useful number of steps in flight.
    pub(crate) fn max_under_way(&self) -> usize {
        either!(self, e => e.max_under_way())
    }

    /// Submits the rest of the steps in flight; they remain to be read.
    pub(crate) async fn flush(&mut self) -> Result<(), ModelError> {
        either!(self, e => e.flush().await)
    }

    pub(crate) async fn read(&mut self) -> Result<Outputs, ModelError> {
        if either!(self, e => e.n_step()) == 0 {
            return Err(ModelError::NoStep);
        }
        either!(self, e => e.read().await)
    }

    /// Drops unread steps.
    pub(crate) fn drop_steps(&mut self) {
        either!(self, e => e.drop_steps());
    }

    /// Drops steps and requests: slots are greedy, with these LoRA scales, and have their own pages as far as the pool
    /// allows.
    pub(crate) fn reset(&mut self, lora: &[f32]) {
        either!(self, e => e.reset(lora));
        let Limits { n_seq, n_ctx, page, n_page, .. } = self.limits();
        let per_seq = n_ctx.div_ceil(page);
        for seq in 0..n_seq.min(n_page / per_seq.max(1)) {
            let pages = (seq * per_seq..(seq + 1) * per_seq).map(|p| p as u32).collect();
            self.change(&Change::Pages { seq: seq as u32, first: 0, pages });
        }
    }

    /// Runs a step, and passes the inputs of every product to `watch`.
    pub(crate) fn run_watched(&mut self, step: &Step, watch: Watch<'_>) -> Result<(), ModelError> {
        match self {
            DeviceExecutor::Gpu(_) => Err(ModelError::NeedsCpu { what: "watching products" }),
            DeviceExecutor::Cpu(e) => e.run_watched(step, watch),
        }
    }

    pub(crate) fn has_state(&self) -> bool {
        either!(self, e => e.has_state())
    }

    /// Tokens that the recurrent state of a sequence has processed; `None` if unknown.
    pub(crate) fn state_at(&self, seq: usize) -> Option<u32> {
        either!(self, e => e.state_at(seq as u32))
    }

    /// True if the windows of a sequence written up to position `top` cover what a token at `pos` attends to.
    pub(crate) fn can_go_on(&self, top: usize, pos: usize) -> bool {
        either!(self, e => e.can_go_on(top as u32, pos as u32))
    }

    /// Copies the windows from one sequence to another.
    pub(crate) fn copy_window(&mut self, from: usize, to: usize) {
        either!(self, e => e.copy_window(from as u32, to as u32));
    }

    /// Layout of a session's bytes.
    pub(crate) fn session_layout(&self) -> String {
        either!(self, e => e.session_layout())
    }

    /// Bytes of a session of `n` tokens.
    pub(crate) fn session_bytes(&self, n: usize) -> u64 {
        either!(self, e => e.session_bytes(n))
    }

    /// A sequence of `n` tokens as bytes: these pages, windows and recurrent state.
    pub(crate) async fn save(&mut self, seq: u32, pages: &[u32], n: usize) -> Result<Vec<u8>, ModelError> {
        either!(self, e => e.save(seq, pages, n).await)
    }

    /// Restores the result of [`Self::save`] to these pages of a sequence.
    pub(crate) async fn put_back(
        &mut self,
        seq: u32,
        pages: &[u32],
        n: usize,
        bytes: &[u8],
    ) -> Result<(), ModelError> {
        either!(self, e => e.put_back(seq, pages, n, bytes).await)
    }

    pub(crate) fn memory(&self) -> Memory {
        either!(self, e => e.memory())
    }

    pub(crate) fn gpu(&self) -> Option<&GpuModel> {
        match self {
            DeviceExecutor::Gpu(e) => Some(e.model()),
            DeviceExecutor::Cpu(_) => None,
        }
    }

    fn gpu_mut(&mut self, what: &'static str) -> Result<&mut GpuModel, ModelError> {
        match self {
            DeviceExecutor::Gpu(e) => Ok(e.model_mut()),
            DeviceExecutor::Cpu(_) => Err(ModelError::NeedsGpu { what }),
        }
    }

    pub(crate) fn release_lost(&mut self) {
        if let Ok(model) = self.gpu_mut("a lost device") {
            model.release_lost();
        }
    }

    pub(crate) fn set_prompt_bound(&mut self, bound: Duration) {
        if let Ok(model) = self.gpu_mut("a bound on submissions") {
            model.set_prompt_bound(bound);
        }
    }

    pub(crate) fn set_ablation(&mut self, ablation: Ablation) {
        if let Ok(model) = self.gpu_mut("an ablation") {
            model.set_ablation(ablation);
        }
    }

    pub(crate) async fn profile(
        &mut self,
        n_col: u32,
        pos: u32,
        repeat: u32,
    ) -> Result<Option<Profile>, ModelError> {
        Ok(self.gpu_mut("a profile")?.profile(n_col, pos, repeat).await?)
    }

    pub(crate) async fn tune(
        &mut self,
        budget: Duration,
        report: impl FnMut(&TuneStep),
    ) -> Result<Tuning, ModelError> {
        Ok(self.gpu_mut("tuning")?.tune(budget, report).await?)
    }

    /// Waits until the device has finished all work.
    pub(crate) async fn finish(&self) -> Result<(), ModelError> {
        match self {
            DeviceExecutor::Gpu(e) => Ok(e.model().finish().await?),
            DeviceExecutor::Cpu(_) => Ok(()),
        }
    }
}
