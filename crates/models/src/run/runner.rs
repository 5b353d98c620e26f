//! A loaded model with sequences, one of which is selected.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use chaski_runtime::Experts;
use chaski_runtime::gpu::{Ablation, GpuModel, Memory, Profile, Progress, TuneStep};
use chaski_runtime::kernels::Tuning;
use ggml_format::{ByteSource, GgmlType};
use rustc_hash::FxBuildHasher;

use super::pages::Pages;
use super::sequence::Sequence;
use crate::error::{KvTypeError, ModelError};
use crate::exec::{DeviceExecutor, KvType, RunnerConfig, Target};
use crate::heads::Heads;
use crate::model::Model;

/// A loaded model with one or more sequences, one of which is selected ([`Runner::select`]).
pub struct Runner {
    pub(super) device: DeviceExecutor,
    pub(super) n_ctx: u32,
    n_vocab: u32,
    kv: (GgmlType, GgmlType),
    /// The sequences, and which one is selected.
    pub(super) seqs: Vec<Sequence>,
    pub(super) at: usize,
    /// The pages of the sequences.
    pub(super) pages: Pages,
    /// Identifies the model in sessions.
    pub(super) name: String,
    /// Default scale of each LoRA.
    pub(super) scales: Vec<f32>,
    /// Number of submitted, unread steps.
    pub(super) n_sent: usize,
    /// Logits of the last token of [`Self::prefill`], if read.
    pub(super) logits: Vec<f32>,
    /// The device runs the steps of a scheduler ([`crate::serve`]), so the sequences are empty.
    pub(super) is_served: bool,
    /// Layers after the pooling of embeddings.
    pub(super) heads: Arc<Heads>,
}

impl Runner {
    /// Loads a model onto a target.
    ///
    /// # Errors
    /// [`ModelError`] if a tensor is missing or invalid, the model does not fit, or the device fails.
    pub async fn load<S: ByteSource + Send + Sync + 'static>(
        model: &Model<S>,
        target: &Target,
        config: &RunnerConfig,
        progress: impl FnMut(Progress),
    ) -> Result<Runner, ModelError> {
        let n_ctx = config.n_ctx_for(model);
        let kv = config.kv.types(model, n_ctx, config.n_seq);
        if let Some(ty) = [kv.0, kv.1].into_iter().find(|ty| !chaski_runtime::kernels::KV_TYPES.contains(ty))
        {
            return Err(KvTypeError { found: ty.name().to_owned() }.into());
        }
        // They may depend on the context.
        let ropes = FxBuildHasher.hash_one(format!("{:?}", model.graph(n_ctx).await?.ropes));
        let mut device = DeviceExecutor::load(model, target, config, progress).await?;
        let scales = model.lora_scales();
        device.reset(&scales);
        let limits = device.limits();
        // As many sequences as the pool has whole contexts for: nothing here waits for pages.
        let per_seq = limits.n_ctx.div_ceil(limits.page);
        let n_seq = limits.n_seq.min(limits.n_page / per_seq.max(1));
        Ok(Runner {
            device,
            n_ctx,
            n_vocab: model.config().n_vocab,
            kv,
            seqs: vec![Sequence { scales: scales.clone(), ..Sequence::default() }; n_seq],
            at: 0,
            pages: Pages::new(n_seq as u32, per_seq as u32),
            name: format!("{} {:x?}, rotations {:x}", model.describe(), model.fingerprints().await?, ropes),
            scales,
            n_sent: 0,
            logits: Vec::new(),
            is_served: false,
            heads: Arc::new(model.heads().await?),
        })
    }

    /// Sets experts elsewhere, for steps that are submitted from now on; `None`: all are computed here. Results do not
    /// change if theirs are those of the model. After an error
    /// ([`RuntimeError::Experts`](chaski_runtime::RuntimeError::Experts)) the sequences are as before the call that
    /// failed, which can be repeated.
    ///
    /// # Errors
    /// [`RuntimeError::NotPlanned`](chaski_runtime::RuntimeError::NotPlanned) for a model on a GPU that was loaded
    /// without [`RunnerConfig::experts_away`].
    pub fn set_experts(&mut self, experts: Option<Box<dyn Experts>>) -> Result<(), ModelError> {
        self.device.set_experts(experts)
    }

    /// Takes back [`Self::set_experts`].
    pub fn take_experts(&mut self) -> Option<Box<dyn Experts>> {
        self.device.take_experts()
    }

    /// Context size in tokens.
    pub fn n_ctx(&self) -> u32 {
        self.n_ctx
    }

    /// Capacity of the KV cache in tokens, shared by all sequences.
    pub fn kv_tokens(&self) -> u64 {
        let limits = self.device.limits();
        limits.n_page as u64 * limits.page as u64
    }

    /// Size of the vocabulary.
    pub fn n_vocab(&self) -> u32 {
        self.n_vocab
    }

    /// The types of keys and values in the cache.
    pub fn kv_type(&self) -> KvType {
        KvType::Of { k: self.kv.0, v: self.kv.1 }
    }

    /// Tokens whose keys and values are in the cache.
    pub fn history(&self) -> &[u32] {
        &self.seqs[self.at].history
    }

    /// Memory by purpose.
    pub fn memory(&self) -> Memory {
        self.device.memory()
    }

    /// Number of CPU threads that compute a step of `n_col` tokens; `None` on a GPU.
    pub fn n_thread(&self, n_col: usize) -> Option<usize> {
        self.device.n_thread(n_col)
    }

    /// The model on a GPU, for queries.
    pub fn gpu(&self) -> Option<&GpuModel> {
        self.device.gpu()
    }

    /// Frees the memory of a model one of whose several devices is lost ([`GpuModel::release_lost`]), before it is
    /// loaded onto the others. No effect while all are there.
    pub fn release_lost(&mut self) {
        self.device.release_lost();
    }

    /// Approximate time limit of a submission; default: 100 ms. No effect on the CPU.
    pub fn set_prompt_bound(&mut self, bound: Duration) {
        self.device.set_prompt_bound(bound);
    }

    /// Recreates objects for every dispatch, for measurements. No effect on the CPU.
    pub fn set_ablation(&mut self, ablation: Ablation) {
        self.device.set_ablation(ablation);
    }

    /// Times one run of `n_col` tokens at `pos` of the first sequence, the median of `repeat`; `None` if the device has
    /// no timestamps. Clears all sequences.
    ///
    /// # Errors
    /// [`ModelError::NeedsGpu`] on the CPU; with offloaded experts; past the context; device errors.
    pub async fn profile(
        &mut self,
        n_col: u32,
        pos: u32,
        repeat: u32,
    ) -> Result<Option<Profile>, ModelError> {
        self.forget_all();
        self.device.profile(n_col, pos, repeat).await
    }

    /// Tunes every class of products within a time limit, and keeps improvements. Clears all sequences.
    ///
    /// # Errors
    /// [`ModelError::NeedsGpu`] on the CPU; with offloaded experts; device errors.
    pub async fn tune(
        &mut self,
        budget: Duration,
        report: impl FnMut(&TuneStep),
    ) -> Result<Tuning, ModelError> {
        self.forget_all();
        self.device.tune(budget, report).await
    }

    /// Waits until the device has finished all submitted work.
    ///
    /// # Errors
    /// Device errors.
    pub async fn finish(&self) -> Result<(), ModelError> {
        self.device.finish().await
    }
}
