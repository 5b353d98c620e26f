//! One sequence on a device: what is in the cache, and how tokens get there.

use std::fmt;
use std::hash::BuildHasher as _;
use std::str::FromStr;
use std::sync::Arc;

use chaski_graph::Op;
use chaski_runtime::RuntimeError;
use chaski_runtime::cpu::{CpuModel, Watch};
use chaski_runtime::gpu::{Choose, Gpu, GpuModel, Memory, MemoryItem, Progress, Stage};
use chaski_runtime::kernels::Act;
use chaski_runtime::kernels::{Caps, Tuning};
use chaski_runtime::plan::{Fusions, PlanConfig, PlanError, Streaming, memory_need};
use ggml_format::{ByteSource, GgmlType};
use rustc_hash::FxBuildHasher;

use super::pages::Pages;
use super::sequences::Sequence;
use crate::error::ModelError;
use crate::model::Model;
use crate::serve::Slots;
use chaski_text::SampleError;

/// Where a model runs.
#[derive(Clone)]
pub enum Target {
    /// An open device.
    Gpu(Arc<Gpu>),
    /// The processor.
    Cpu,
}

/// Types of the KV cache.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum KvType {
    /// f32 while the cache is small (up to 64 MiB), f16 above.
    #[default]
    Auto,
    /// These, of [`chaski_runtime::kernels::KV_TYPES`].
    Of {
        /// Of the keys.
        k: GgmlType,
        /// Of the values.
        v: GgmlType,
    },
}

/// Tokens of a page of the KV cache.
const PAGE: u32 = 64;

/// Bytes up to which [`KvType::Auto`] spends full precision.
const SMALL_KV: u64 = 64 << 20;

impl KvType {
    /// f32: exact.
    pub const F32: KvType = KvType::both(GgmlType::F32);
    /// f16: half the memory.
    pub const F16: KvType = KvType::both(GgmlType::F16);

    /// One type for keys and values.
    pub const fn both(ty: GgmlType) -> KvType {
        KvType::Of { k: ty, v: ty }
    }

    /// The types of keys and values in a model's cache of `n_ctx` tokens for each of `n_seq` sequences.
    pub fn types<S: ByteSource>(self, model: &Model<S>, n_ctx: u32, n_seq: u32) -> (GgmlType, GgmlType) {
        let c = model.config();
        let heads: u64 = c.n_head_kv.iter().map(|h| u64::from(*h)).sum();
        let n_byte =
            heads * u64::from(c.d_head + c.d_head_v) * u64::from(n_ctx) * u64::from(n_seq.max(1)) * 4;
        match self {
            KvType::Of { k, v } => (k, v),
            KvType::Auto if n_byte > SMALL_KV => (GgmlType::F16, GgmlType::F16),
            KvType::Auto => (GgmlType::F32, GgmlType::F32),
        }
    }
}

/// The name of both types, or `K/V`.
impl fmt::Display for KvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KvType::Auto => f.pad("auto"),
            KvType::Of { k, v } if k == v => f.pad(k.name()),
            KvType::Of { k, v } => f.pad(&format!("{k}/{v}")),
        }
    }
}

/// A word that names no type of cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a type of KV cache, K/V or auto, found `{found}` (types: {})", kv_names())]
pub struct KvTypeError {
    /// The word.
    pub found: String,
}

fn kv_names() -> String {
    chaski_runtime::kernels::KV_TYPES.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for KvType {
    type Err = KvTypeError;

    fn from_str(s: &str) -> Result<KvType, KvTypeError> {
        if s == "auto" {
            return Ok(KvType::Auto);
        }
        let ty = |s: &str| GgmlType::from_name(s).filter(|t| chaski_runtime::kernels::KV_TYPES.contains(t));
        let (k, v) = s.split_once('/').unwrap_or((s, s));
        match (ty(k), ty(v)) {
            (Some(k), Some(v)) => Ok(KvType::Of { k, v }),
            _ => Err(KvTypeError { found: s.to_owned() }),
        }
    }
}

/// How products with quantised weights take their inputs when they make one token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inputs {
    /// As exactly as f32 sums need, in the form that suits the device.
    #[default]
    Auto,
    /// As f32. The processor then takes the references for everything, which is slow.
    F32,
    /// In 16 bits with a scale for each run: as exact as f32 sums, faster where a device multiplies bytes by fours.
    I16,
    /// In 8 bits with a scale for each run: faster still, and as inexact (normalised squared error about 1e-5). The processor
    /// takes 16.
    I8,
}

impl Inputs {
    /// All of them, each with its name and what it is in a few words.
    pub const ALL: [(Inputs, &'static str, &'static str); 4] = [
        (Inputs::Auto, "auto", "i16 where the device multiplies bytes by fours, else f32"),
        (Inputs::F32, "f32", "32 bits: exact"),
        (Inputs::I16, "i16", "16 bits with a scale for each run: as exact as sums in f32"),
        (Inputs::I8, "i8", "8 bits with a scale for each run: fastest, a little less exact"),
    ];

    fn act(self) -> Option<Act> {
        match self {
            Inputs::Auto => None,
            Inputs::F32 => Some(Act::F32),
            Inputs::I16 => Some(Act::I16),
            Inputs::I8 => Some(Act::I8),
        }
    }
}

/// The name.
impl fmt::Display for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name, _) = Inputs::ALL.iter().find(|(i, ..)| i == self).expect("a row for every variant");
        f.pad(name)
    }
}

/// A word that names no way to take inputs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a type of inputs, found `{found}` (types: {})", Inputs::ALL.map(|(_, name, _)| name).join(", "))]
pub struct InputsError {
    /// The word.
    pub found: String,
}

impl FromStr for Inputs {
    type Err = InputsError;

    fn from_str(s: &str) -> Result<Inputs, InputsError> {
        let row = Inputs::ALL.iter().find(|(_, name, _)| *name == s);
        row.map(|(i, ..)| *i).ok_or_else(|| InputsError { found: s.to_owned() })
    }
}

/// How to run a model.
#[derive(Clone, Debug)]
pub struct RunnerConfig {
    /// Tokens of the sequence at most; 0 takes the model's own context, at most 4096.
    pub n_ctx: u32,
    /// Type of the KV cache.
    pub kv: KvType,
    /// Tokens that are run at once at most when a prompt is read.
    pub chunk: u32,
    /// Products of many columns may round their inputs to f16.
    pub f16_tiles: bool,
    /// How products with quantised weights take their inputs.
    pub inputs: Inputs,
    /// What a tuner measured on this device.
    pub tuning: Tuning,
    /// Rules by which operations run together on a device; fewer are slower, and compute the same.
    pub fusions: Fusions,
    /// Sequences that can be held at once, each of `n_ctx` tokens at most.
    pub n_seq: u32,
    /// Tokens that the KV cache of all sequences on a device has room for, in whole pages of 64; `None`: a context for each
    /// sequence. With fewer, only a service ([`crate::serve`]) uses all sequences, since it knows how to wait for pages.
    pub kv_tokens: Option<u32>,
    /// Layers of a mixture, from the first one with experts on, whose experts stay with the processor; more than there are
    /// means all. On the device each has room for some of its experts, and those that tokens want and that are not there
    /// are read from the file. The processor itself reads all weights there anyway: for it this changes nothing.
    pub experts_on_cpu: u32,
    /// Experts of each such layer that the device has room for; 0: twice as many as a token uses, or a quarter of all if that
    /// is more.
    pub expert_slots: u32,
}

impl Default for RunnerConfig {
    fn default() -> Self {
        RunnerConfig {
            n_ctx: 0,
            kv: KvType::Auto,
            chunk: 512,
            f16_tiles: false,
            inputs: Inputs::Auto,
            tuning: Tuning::default(),
            fusions: Fusions::ALL,
            n_seq: 1,
            kv_tokens: None,
            experts_on_cpu: 0,
            expert_slots: 0,
        }
    }
}

impl RunnerConfig {
    /// The context that a model gets.
    pub fn n_ctx_for<S: ByteSource>(&self, model: &Model<S>) -> u32 {
        if self.n_ctx > 0 { self.n_ctx } else { model.config().n_ctx_train.clamp(1, 4096) }
    }

    /// [`Runner::memory`] of a model on a device with these capabilities, before it is loaded.
    ///
    /// # Errors
    /// [`ModelError`]: missing or invalid tensors, or a model that cannot be planned for such a device.
    pub async fn memory_on_device<S: ByteSource>(
        &self,
        model: &Model<S>,
        caps: &Caps,
    ) -> Result<Memory, ModelError> {
        let config = self.plan_for(model, caps);
        let graph = model.graph(config.n_ctx).await?;
        Ok(memory_need(&graph, caps, &config).map_err(RuntimeError::Plan)?)
    }

    /// [`Runner::memory`] of a model on the processor ([`Target::Cpu`]), before it is loaded.
    ///
    /// # Errors
    /// [`ModelError`]: tensors that are missing or wrong.
    pub async fn memory_on_processor<S: ByteSource>(&self, model: &Model<S>) -> Result<Memory, ModelError> {
        let n_ctx = self.n_ctx_for(model);
        let kv = self.kv.types(model, n_ctx, self.n_seq);
        let graph = model.graph(n_ctx).await?;
        Ok(on_processor(chaski_runtime::cpu::n_byte(&graph, (n_ctx, self.n_seq.max(1)), kv)))
    }

    /// What a model's plan on a device is made for.
    pub fn plan_for<S: ByteSource>(&self, model: &Model<S>, caps: &Caps) -> PlanConfig {
        let n_ctx = self.n_ctx_for(model);
        PlanConfig {
            n_ctx,
            n_seq: self.n_seq.max(1),
            // Columns stand along an axis of some grids.
            max_col: self.chunk.clamp(1, n_ctx.min(caps.max_groups)),
            page: PAGE,
            kv: self.kv.types(model, n_ctx, self.n_seq),
            f16_tiles: self.f16_tiles,
            inputs: self.inputs.act(),
            tuning: self.tuning.clone(),
            pool: self.kv_tokens.map(|n| n / PAGE),
            ring: 128,
            fusions: self.fusions,
            experts: Streaming { n_layer: self.experts_on_cpu, n_slot: self.expert_slots },
        }
    }
}

/// Memory of a model that is not on a device.
fn on_processor(n_byte: u64) -> Memory {
    Memory { items: vec![MemoryItem { what: "weights and kv cache (processor)", n_buffer: 0, n_byte }] }
}

pub(crate) enum Device {
    Gpu(Box<GpuModel>),
    Cpu(Box<CpuModel>),
}

/// A loaded model with one sequence, or several of which one is selected ([`Runner::select`]).
pub struct Runner {
    pub(crate) device: Device,
    pub(super) n_ctx: u32,
    n_vocab: u32,
    kv: (GgmlType, GgmlType),
    /// The sequences, and which one runs.
    pub(super) seqs: Vec<Sequence>,
    pub(super) at: usize,
    /// Whose the pages of the cache are, on a GPU.
    pub(super) pages: Pages,
    /// Which model it is, for sessions.
    pub(super) name: String,
    /// How much each of its adapters counts where nothing else is said, and on the device now.
    pub(super) scales: Vec<f32>,
    pub(super) device_scales: Vec<f32>,
    /// Logits of the last token, where they came to the processor anyway.
    pub(crate) cpu_logits: Vec<f32>,
    /// The requests in the device's slots, where it runs the steps of a scheduler ([`crate::serve`]).
    pub(crate) slots: Slots,
    /// It does, so the sequences have no tokens.
    is_served: bool,
}

impl Runner {
    /// Loads a model onto a target.
    ///
    /// # Errors
    /// [`ModelError`] if a tensor is missing or wrong, the model does not fit, or the device fails.
    pub async fn load<S: ByteSource + Send + Sync + 'static>(
        model: &Model<S>,
        target: &Target,
        config: &RunnerConfig,
        mut progress: impl FnMut(Progress),
    ) -> Result<Runner, ModelError> {
        let n_ctx = config.n_ctx_for(model);
        let kv = config.kv.types(model, n_ctx, config.n_seq);
        if let Some(ty) = [kv.0, kv.1].into_iter().find(|ty| !chaski_runtime::kernels::KV_TYPES.contains(ty))
        {
            return Err(KvTypeError { found: ty.name().to_owned() }.into());
        }
        let graph = model.graph(n_ctx).await?;
        let n_vocab = model.config().n_vocab;
        // They may depend on the context.
        let ropes = FxBuildHasher.hash_one(format!("{:?}", graph.ropes));
        let device = match target {
            Target::Gpu(gpu) => {
                let plan = config.plan_for(model, gpu.caps());
                if plan.n_page() < plan.pages_per_seq() {
                    let (found, needed) = (plan.n_page() * plan.page, n_ctx);
                    return Err(ModelError::SmallPool { found, needed });
                }
                let loaded =
                    GpuModel::load(gpu.clone(), &graph, plan, model.files().clone(), progress).await?;
                Device::Gpu(Box::new(loaded))
            }
            Target::Cpu => {
                let has_experts = graph.nodes.iter().any(|n| matches!(n.op, Op::TopkMoe { .. }));
                if config.experts_on_cpu > 0 && !has_experts {
                    return Err(RuntimeError::Plan(PlanError::NoExperts).into());
                }
                let report = |done, total| progress(Progress { stage: Stage::Upload, done, total });
                let mut loaded =
                    CpuModel::load(graph, (n_ctx, config.n_seq.max(1)), kv, model, report).await?;
                loaded.set_inputs_in_16_bits(config.inputs != Inputs::F32);
                Device::Cpu(Box::new(loaded))
            }
        };
        let scales = model.adapter_scales();
        // As many sequences as a pool has whole contexts for: nobody here waits for pages.
        let (n_seq, per_seq) = match &device {
            Device::Gpu(g) => {
                let (c, per_seq) = (g.config(), g.config().pages_per_seq());
                (c.n_seq.min(c.n_page() / per_seq.max(1)), per_seq)
            }
            Device::Cpu(_) => (config.n_seq.max(1), 0),
        };
        let slots = Slots::of(&device, config.n_seq.max(1));
        let mut runner = Runner {
            device,
            n_ctx,
            n_vocab,
            kv,
            seqs: vec![Sequence { scales: scales.clone(), ..Sequence::default() }; n_seq as usize],
            at: 0,
            pages: Pages::new(n_seq, per_seq),
            name: format!("{} {:x?}, rotations {:x}", model.describe(), model.fingerprints().await?, ropes),
            // Devices begin with zeros.
            device_scales: vec![0.0; scales.len()],
            scales,
            cpu_logits: Vec::new(),
            slots,
            is_served: false,
        };
        runner.use_scales();
        Ok(runner)
    }

    /// Sequences that the device has room for.
    pub(crate) fn n_slot(&self) -> u32 {
        match &self.device {
            Device::Gpu(g) => g.config().n_seq,
            Device::Cpu(_) => self.seqs.len() as u32,
        }
    }

    /// The device runs the steps of a scheduler from now on, so the sequences lose their tokens.
    pub(crate) fn serve(&mut self) {
        if !std::mem::replace(&mut self.is_served, true) {
            self.seqs
                .iter_mut()
                .for_each(|seq| *seq = Sequence { scales: seq.scales.clone(), ..Sequence::default() });
        }
    }

    /// Forgets what a scheduler had on the device: sequences begin without tokens.
    pub(crate) fn leave_service(&mut self) {
        self.slots = Slots::of(&self.device, self.n_slot());
        self.is_served = false;
        if let Device::Gpu(g) = &mut self.device {
            g.drop_steps();
            let per_seq = g.config().pages_per_seq();
            self.pages = Pages::new(self.seqs.len() as u32, per_seq);
            for seq in 0..self.seqs.len() as u32 {
                let home: Vec<u32> = (seq * per_seq..(seq + 1) * per_seq).collect();
                g.set_pages(seq, 0, &home);
                g.select(seq);
                g.clear_adjust();
            }
        }
        self.select(self.at);
    }

    /// Tokens that the sequence may have.
    pub fn n_ctx(&self) -> u32 {
        self.n_ctx
    }

    /// Entries of the vocabulary.
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

    /// Memory, by what it holds.
    pub fn memory(&self) -> Memory {
        match &self.device {
            Device::Gpu(g) => g.memory().clone(),
            Device::Cpu(c) => on_processor(c.n_byte()),
        }
    }

    /// The model on a GPU, for measurements. The history does not know of what they run: where that takes places in the
    /// cache that the history has, as [`GpuModel::profile`] and [`GpuModel::tune`] do, [`Self::truncate`] it afterwards; with
    /// several sequences, all of them: one's free places may be pages of another.
    pub fn gpu_mut(&mut self) -> Option<&mut GpuModel> {
        match &mut self.device {
            Device::Gpu(g) => Some(g),
            Device::Cpu(_) => None,
        }
    }

    /// The model on a GPU.
    pub fn gpu(&self) -> Option<&GpuModel> {
        match &self.device {
            Device::Gpu(g) => Some(g),
            Device::Cpu(_) => None,
        }
    }

    pub(super) fn check(&self, tokens: &[u32]) -> Result<(), ModelError> {
        match tokens.iter().find(|t| **t >= self.n_vocab) {
            Some(t) => Err(ModelError::Token { token: *t, n_vocab: self.n_vocab }),
            None => Ok(()),
        }
    }

    /// Runs tokens after the history, in chunks; the logits of the last stay where they are made.
    ///
    /// # Errors
    /// [`ModelError::Token`]; a full context; device errors.
    pub async fn prefill(&mut self, tokens: &[u32]) -> Result<(), ModelError> {
        self.check(tokens)?;
        let pos = self.ready(tokens.len()).await?;
        match &mut self.device {
            Device::Gpu(g) => g.prefill(tokens, pos, true).await?,
            Device::Cpu(c) => {
                if !tokens.is_empty() {
                    self.cpu_logits = c.eval(tokens, pos, false)?;
                }
            }
        }
        self.ran(tokens);
        Ok(())
    }

    /// Whether `tokens` can follow the first `n` of the history.
    pub(crate) fn check_prompt(&self, n: usize, tokens: &[u32]) -> Result<(), ModelError> {
        self.check(tokens)?;
        let (found, limit) = ((n + tokens.len()) as u64, u64::from(self.n_ctx));
        if found > limit {
            return Err(RuntimeError::Limit { what: "tokens of the sequence", found, limit }.into());
        }
        Ok(())
    }

    /// Runs on greedily after [`Self::prefill`]: the `n` tokens that have the largest logits, of which all but the last are
    /// in the cache then.
    ///
    /// # Errors
    /// A full context; device errors; logits that are not finite.
    pub async fn greedy(&mut self, n: usize) -> Result<Vec<u32>, ModelError> {
        let mut out = Vec::new();
        if n == 0 {
            return Ok(out);
        }
        let pos = self.history().len();
        if let Device::Gpu(g) = &mut self.device {
            let first = g.choose(Choose::Greedy)?;
            let most = g.max_in_flight() as usize;
            let mut tickets = std::collections::VecDeque::from([first]);
            let mut sent = 0;
            while !tickets.is_empty() || sent + 1 < n {
                while sent + 1 < n && tickets.len() < 2 {
                    let some = most.min(n - 1 - sent);
                    tickets.push_back(self.decode(some as u32, pos + sent, Choose::Greedy).await?);
                    sent += some;
                }
                let Device::Gpu(g) = &mut self.device else { break };
                if let Some(ticket) = tickets.pop_front() {
                    out.extend(g.tokens(ticket).await?);
                }
            }
            // What no kernel found stands for itself.
            if out.iter().any(|t| *t >= self.n_vocab) {
                self.truncate(pos);
                return Err(SampleError::NothingLeft.into());
            }
            self.set_history(pos, &out[..n - 1]);
            return Ok(out);
        }
        loop {
            let best = |a: &(usize, &f32), b: &(usize, &f32)| a.1.total_cmp(b.1).then(b.0.cmp(&a.0));
            let token = self.cpu_logits.iter().enumerate().max_by(best).map_or(0, |(i, _)| i as u32);
            out.push(token);
            if out.len() == n {
                return Ok(out);
            }
            self.prefill(&[token]).await?;
        }
    }

    /// Runs tokens without keeping any logits.
    ///
    /// # Errors
    /// As [`Self::prefill`].
    pub async fn feed(&mut self, tokens: &[u32]) -> Result<(), ModelError> {
        self.check(tokens)?;
        let pos = self.ready(tokens.len()).await?;
        match &mut self.device {
            Device::Gpu(g) => g.prefill(tokens, pos, false).await?,
            Device::Cpu(c) => drop(c.eval(tokens, pos, false)?),
        }
        self.ran(tokens);
        Ok(())
    }

    /// Runs tokens as [`Self::feed`] does, and shows `watch` what every matrix is multiplied with; the output matrix gets
    /// all tokens if `all`, else the last one.
    ///
    /// # Errors
    /// [`ModelError::NeedsProcessor`] for a model on a GPU; otherwise as [`Self::feed`].
    pub async fn feed_watched(
        &mut self,
        tokens: &[u32],
        all: bool,
        watch: Watch<'_>,
    ) -> Result<(), ModelError> {
        self.check(tokens)?;
        let pos = self.ready(tokens.len()).await?;
        match &mut self.device {
            Device::Gpu(_) => return Err(ModelError::NeedsProcessor { what: "watching products" }),
            Device::Cpu(c) => drop(c.eval_watched(tokens, pos, all, watch)?),
        }
        self.ran(tokens);
        Ok(())
    }

    /// The logits of the last token of [`Self::prefill`]: `[n_vocab]`.
    ///
    /// # Errors
    /// Device errors.
    pub async fn logits(&mut self) -> Result<Vec<f32>, ModelError> {
        Ok(match &mut self.device {
            Device::Gpu(g) => g.logits().await?,
            Device::Cpu(_) => self.cpu_logits.clone(),
        })
    }

    /// Runs tokens after the history and returns what the logits of each would be made of, the result of the last norm:
    /// `[n, n_embd]`.
    ///
    /// # Errors
    /// [`ModelError::Token`]; a full context; device errors.
    pub async fn eval_hidden(&mut self, tokens: &[u32]) -> Result<Vec<f32>, ModelError> {
        self.check(tokens)?;
        let mut out = Vec::new();
        let chunk = match &self.device {
            Device::Gpu(g) => g.hidden_cols() as usize,
            Device::Cpu(_) => tokens.len(),
        };
        for part in tokens.chunks(chunk.max(1)) {
            let pos = self.ready(part.len()).await?;
            out.extend(match &mut self.device {
                Device::Gpu(g) => g.eval_hidden(part, pos).await?,
                Device::Cpu(c) => c.eval_hidden(part, pos)?,
            });
            self.ran(part);
        }
        Ok(out)
    }

    /// Runs tokens after the history, `chunk` at once, and returns the logits of each: `[n, n_vocab]`.
    ///
    /// # Errors
    /// [`ModelError::Token`]; a full context; device errors.
    pub async fn eval_all(&mut self, tokens: &[u32], chunk: usize) -> Result<Vec<f32>, ModelError> {
        self.check(tokens)?;
        let mut out = Vec::new();
        let chunk = match &self.device {
            Device::Gpu(g) => chunk.min(g.all_cols() as usize),
            Device::Cpu(_) => chunk,
        };
        for part in tokens.chunks(chunk.max(1)) {
            let pos = self.ready(part.len()).await?;
            out.extend(match &mut self.device {
                Device::Gpu(g) => g.eval_all(part, pos).await?,
                Device::Cpu(c) => c.eval(part, pos, true)?,
            });
            self.ran(part);
        }
        Ok(out)
    }
}
