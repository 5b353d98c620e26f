//! A model on the device: all its dispatches ready, and the replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chaski_kernels::ops::mul_mat_vec::MulMatVec;
use chaski_kernels::{Op, ProductClass, Tuning, step};

use super::buffers::{Buffers, make_buffers};
use super::device::Gpu;
use super::load::{Progress, Stage};
use super::pace::Pace;
use super::reads::ExpertReads;
use super::ready::{
    Ablation, Body, On, Ready, ReadyDecode, ReadyHead, ReadyPrompt, ReadySegment, ReadySegments,
    all_segments, make_ready, tile_of,
};
use super::steps::Steps;
use super::stream::Streams;
use crate::error::RuntimeError;
use crate::graph::{AdapterScale, Graph};
use crate::plan::{Groups, HeadPlan, Memory, PlanConfig, Planned, Segment, fuse, plan};
use crate::platform::{Aside, Clock};
use crate::step::Column;
use crate::tensors::Tensors;

/// How long loading took; compiling and sending weights go on at the same time where there are threads.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadTimes {
    /// Until the last kernel was compiled.
    pub compile: Duration,
    /// Until the last weight was on its way.
    pub upload: Duration,
    /// All of it, the plan included.
    pub total: Duration,
}

/// A loaded model.
pub struct GpuModel {
    pub(super) gpu: Arc<Gpu>,
    pub(super) config: PlanConfig,
    pub(super) ready: ReadySegments,
    pub(super) buffers: Buffers,
    /// Experts that stay with the processor.
    pub(super) streams: Option<Streams>,
    memory: Memory,
    pub(super) all_cols: u32,
    /// Rows that can be chosen from at once.
    pub(super) n_choice: u32,
    /// Steps that were sent and not read.
    pub(super) steps: Steps,
    /// Values of a column of what logits are made of, and from one column to the next.
    pub(super) hidden: (u32, u32),
    pub(super) hidden_cols: u32,
    scales: Vec<ScalePlace>,
    pub(super) n_vocab: u32,
    pub(super) ld_logits: u32,
    n_layer: usize,
    /// Words of a step, reused.
    words: Vec<u32>,
    /// Picks that the device has for certain.
    pub(super) picks: Vec<u32>,
    /// Tokens that each sequence has chosen so far, those under way included: the place in its ring.
    pub(super) ring_at: Vec<u32>,
    pub(super) next_staging: usize,
    /// Sequences whose logits are adjusted before a token is chosen.
    pub(super) adjusts: Vec<bool>,
    pub(super) pace: Pace,
    times: LoadTimes,
    pub(super) ablation: Ablation,
    /// Tokens that the recurrent state of each sequence has seen; `None` if nobody knows.
    pub(super) state_at: Vec<Option<u32>>,
    /// The window of every layer of the KV cache.
    pub(super) windows: Vec<u32>,
}

/// Compiling ends early if the model is given up.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl GpuModel {
    /// Plans, compiles and loads a model; kernels are compiled while weights are read and sent, where there are threads.
    /// Tensors are kept where experts stay with the processor ([`PlanConfig::experts`]), and read when tokens want them.
    ///
    /// # Errors
    /// [`RuntimeError`] if the model does not fit the device, a tensor cannot be read, or the device fails.
    pub async fn load(
        gpu: Arc<Gpu>,
        graph: &Graph,
        config: PlanConfig,
        tensors: impl Tensors + Send + Sync + 'static,
        mut progress: impl FnMut(Progress),
    ) -> Result<GpuModel, RuntimeError> {
        assert!(config.ring.is_power_of_two(), "the ring's size is a power of two");
        if cfg!(target_arch = "wasm32") && config.experts.n_layer > 0 {
            return Err(crate::plan::PlanError::NoStreaming.into());
        }
        let clock = Clock::start();
        let steps = fuse(graph, config.fusions);
        let mut groups = Groups::new(graph, &steps, gpu.caps(), &config.experts)?;
        let segments = plan(graph, &steps, &mut groups, gpu.caps(), &config)?;
        let all = all_segments(&segments);
        let missing = gpu.missing(all.iter().flat_map(|s| s.iter().map(|p| &p.dispatch)));
        debug_assert!(
            missing.iter().all(|d| d.kernel.features.coop || Op::of(d.kernel).on_web()),
            "models have an operation that browsers lack"
        );
        let n_kernel = missing.len() as u64;
        let compiling = |done| Progress { stage: Stage::Compile, done, total: n_kernel };
        progress(compiling(0));
        let stop = StopOnDrop(Arc::default());
        let aside = {
            let (gpu, stop) = (gpu.clone(), stop.0.clone());
            Aside::start(move || (gpu.compile_all(&missing, &stop), clock.elapsed()))
        };
        let buffers = make_buffers(&gpu, graph, &groups, &segments, &config, &tensors, &mut progress).await?;
        let upload = clock.elapsed();
        if !aside.is_done() {
            progress(compiling(0));
        }
        let (compiled, compile) = aside.join();
        compiled?;
        progress(compiling(n_kernel));
        let memory = Memory::of(&segments.buffers);
        let scales = scale_places(graph, &groups);
        let ready = |s: &Segment| -> Result<ReadySegment, RuntimeError> {
            s.iter().map(|p| make_ready(&gpu, &buffers, p)).collect()
        };
        let decode: Result<Vec<ReadyDecode>, RuntimeError> = segments
            .decode
            .iter()
            .map(|d| Ok(ReadyDecode { max_key: d.max_key, body: ready(&d.body)?, head: ready(&d.head)? }))
            .collect();
        let head = |h: &HeadPlan| -> Result<ReadyHead, RuntimeError> {
            Ok(ReadyHead { max_row: h.max_row, pick: ready(&h.pick)?, head: ready(&h.head)? })
        };
        let prompt: Result<Vec<ReadyPrompt>, RuntimeError> = segments
            .prompt
            .iter()
            .map(|p| {
                Ok(ReadyPrompt {
                    max_col: p.max_col,
                    body: ready(&p.body)?,
                    heads: p.heads.iter().map(head).collect::<Result<_, _>>()?,
                    hidden: ready(&p.hidden.segment)?,
                    hidden_at: p.hidden.act,
                })
            })
            .collect();
        let ready = ReadySegments {
            decode: decode?,
            prompt: prompt?,
            take_chosen: ready(&segments.take_chosen)?,
            adjust: ready(&segments.adjust)?,
            argmax: ready(&segments.argmax)?,
            sample: ready(&segments.sample)?,
        };
        // Sequence s has the s-th run of pages until something else is said, as far as there are so many.
        let at = step::pages_at(config.max_col as usize);
        let pages: Vec<u32> =
            (0..config.n_seq * config.pages_per_seq()).map(|page| page % config.n_page().max(1)).collect();
        gpu.queue.write_buffer(&buffers.step, at as u64 * 4, bytemuck::cast_slice(&pages));
        gpu.check()?;
        let times = LoadTimes { compile, upload, total: clock.elapsed() };
        let n_vocab = graph.logits.map_or(0, |l| graph.width(l));
        Ok(GpuModel {
            picks: Vec::new(),
            words: vec![0; step::pages_at(config.max_col as usize)],
            ready,
            buffers,
            streams: Streams::new(graph, groups, tensors),
            memory,
            all_cols: segments.all_cols,
            n_choice: segments.n_choice,
            steps: Steps::default(),
            hidden: segments.hidden,
            hidden_cols: segments.hidden_cols,
            scales,
            n_vocab,
            ld_logits: segments.ld_logits,
            n_layer: segments.n_layer,
            gpu,
            ring_at: vec![0; config.n_seq as usize],
            next_staging: 0,
            adjusts: vec![false; config.n_seq as usize],
            pace: Pace::new(segments.prompt.last().map_or(1, |p| tile_of(&p.body))),
            times,
            ablation: Ablation::default(),
            state_at: vec![Some(0); config.n_seq as usize],
            windows: graph.kv.iter().map(|l| l.window).collect(),
            config,
        })
    }

    /// The device.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// The sizes it was planned for.
    pub fn config(&self) -> &PlanConfig {
        &self.config
    }

    /// Device memory, to the byte.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// How long loading took.
    pub fn load_times(&self) -> LoadTimes {
        self.times
    }

    /// What experts that stay with the processor have cost so far; `None` if all are on the device.
    pub fn expert_reads(&self) -> Option<ExpertReads> {
        self.streams.as_ref().map(Streams::reads)
    }

    /// Whether tokens are worth sending before earlier ones were read. Software devices run at once what they are sent, and
    /// where experts stay with the processor it waits for each token anyway.
    pub fn runs_ahead(&self) -> bool {
        !self.gpu.caps().software && self.streams.is_none()
    }

    /// Fails where experts stay with the processor.
    ///
    /// # Errors
    /// [`RuntimeError::NeedsExperts`] with what was asked.
    pub(super) fn needs_experts(&self, what: &'static str) -> Result<(), RuntimeError> {
        self.streams.as_ref().map_or(Ok(()), |_| Err(RuntimeError::NeedsExperts { what }))
    }

    /// Makes things anew for every dispatch from now on; for measurements alone.
    pub fn set_ablation(&mut self, ablation: Ablation) {
        self.ablation = ablation;
    }

    /// Columns of a step that choose or have logits at most.
    pub fn all_cols(&self) -> u32 {
        self.all_cols
    }

    /// Columns of a step whose hidden states can be read at most.
    pub fn hidden_cols(&self) -> u32 {
        self.hidden_cols
    }

    /// Classes of products of a token, those with the most weights first, and one of each.
    pub(crate) fn products(&self) -> Vec<(ProductClass, MulMatVec)> {
        let mut all: Vec<(ProductClass, MulMatVec, u64)> = Vec::new();
        for r in [&self.ready.decode[0].body, &self.ready.decode[0].head].into_iter().flatten() {
            let Some(call) = &r.planned.product else { continue };
            let class = call.class();
            match all.iter_mut().find(|a| a.0 == class) {
                Some(a) => a.2 += r.planned.work.weights,
                None => all.push((class, *call, r.planned.work.weights)),
            }
        }
        all.sort_by_key(|a| std::cmp::Reverse(a.2));
        all.into_iter().map(|(class, call, _)| (class, call)).collect()
    }

    /// Makes the products anew with other numbers.
    ///
    /// # Errors
    /// [`RuntimeError`] if the device refuses a kernel.
    pub fn retune(&mut self, tuning: &Tuning) -> Result<(), RuntimeError> {
        self.config.tuning = tuning.clone();
        for r in self.ready.all_mut() {
            let Some(mut call) = r.planned.product else { continue };
            call.tune = tuning.product(&call.class());
            let dispatch = call.dispatch(self.gpu.caps()).map_err(crate::plan::PlanError::from)?;
            let old = &r.planned.dispatch;
            if (dispatch.kernel.name, &dispatch.constants, dispatch.grid)
                != (old.kernel.name, &old.constants, old.grid)
            {
                let planned = Planned { dispatch, product: Some(call), ..r.planned.clone() };
                *r = make_ready(&self.gpu, &self.buffers, &planned)?;
            }
        }
        Ok(())
    }

    /// Dispatches of one token of a sequence that fills the context: (per layer, in all with a greedy choice).
    pub fn dispatches_per_token(&self) -> (f64, usize) {
        let d = self.ready.decode_at(self.config.n_ctx - 1);
        let layers = d.body.iter().filter(|r| r.planned.part != "embed").count();
        let per_layer = layers as f64 / self.n_layer.max(1) as f64;
        (per_layer, d.body.len() + d.head.len() + self.ready.argmax.len())
    }

    /// What a token runs, in order: part of the model, kernel, and why it was chosen.
    pub fn explain(&self) -> Vec<(&'static str, &'static str, String)> {
        let d = self.ready.decode_at(self.config.n_ctx - 1);
        let line =
            |r: &Ready| (r.planned.part, r.planned.dispatch.kernel.name, r.planned.dispatch.why.clone());
        [&d.body, &d.head, &self.ready.argmax].into_iter().flatten().map(line).collect()
    }

    /// What one run of a batch of `n_col` columns at `pos` consists of.
    fn batch(&self, n_col: u32, pos: u32) -> [&ReadySegment; 3] {
        if n_col == 1 {
            let d = self.ready.decode_at(pos);
            [&d.body, &d.head, &self.ready.argmax]
        } else {
            let p = self.ready.prompt_of(n_col);
            let head = p.head_of(1);
            [&p.body, &head.pick, &head.head]
        }
    }

    pub(crate) fn timeline(&self, n_col: u32, pos: u32) -> Vec<&Planned> {
        self.batch(n_col, pos).into_iter().flatten().map(|r| &r.planned).collect()
    }

    /// What a submission of a prompt may take, about; 100 ms if nothing is said.
    pub fn set_prompt_bound(&mut self, bound: Duration) {
        self.pace.set_bound(bound);
    }

    /// Puts columns in place, and says which have logits.
    pub(super) fn write(
        &mut self,
        columns: impl Iterator<Item = Column>,
        picks: impl ExactSizeIterator<Item = u32>,
    ) {
        let mut n = 0;
        for Column { token, pos, seq } in columns {
            let at = step::HEADER + step::COLUMN * n;
            let column = [token.unwrap_or(0), pos, seq, u32::from(token.is_none())];
            self.words[at..at + step::COLUMN].copy_from_slice(&column);
            n += 1;
        }
        let mut rows = [0; step::MAX_PICK];
        let n_pick = picks.len();
        rows.iter_mut().zip(picks).for_each(|(row, pick)| *row = pick);
        self.words[step::N_COL] = n as u32;
        self.words[step::N_PICK] = n_pick as u32;
        let (queue, to) = (&self.gpu.queue, &self.buffers.step);
        let words = &self.words[..step::HEADER + step::COLUMN * n];
        queue.write_buffer(to, 0, bytemuck::cast_slice(words));
        if !self.picks.starts_with(&rows[..n_pick]) {
            let at = 4 * u64::from(self.config.choice().picks);
            queue.write_buffer(to, at, bytemuck::cast_slice(&rows[..n_pick]));
            self.picks = rows[..n_pick].to_vec();
        }
    }

    pub(super) fn encoder(&self) -> wgpu::CommandEncoder {
        self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("chaski") })
    }

    pub(super) fn on(&self) -> On<'_> {
        On { gpu: &self.gpu, buffers: &self.buffers, ablation: self.ablation }
    }

    /// Dispatches of a body that go in one submission.
    pub(super) fn per_submit(&self, body: Body, n_col: u32) -> usize {
        let n_cut = if n_col == 1 { 1 } else { self.pace.n_cut(n_col as usize) };
        self.ready.body(body).len().div_ceil(n_cut).max(1)
    }

    /// Sets the scales of adapters, [`AdapterScale::of`] says which; what runs from now on has them.
    ///
    /// # Panics
    /// If there are fewer than the graph names.
    pub fn set_adapter_scales(&mut self, scales: &[f32]) {
        for p in &self.scales {
            let words = [p.by * scales[p.scale.of], 0.0].repeat(p.n_row);
            self.gpu.queue.write_buffer(
                &self.buffers.aux[p.aux],
                4 * p.at as u64,
                bytemuck::cast_slice(&words),
            );
        }
    }

    /// Waits until the device has done everything.
    ///
    /// # Errors
    /// Device errors.
    pub async fn finish(&self) -> Result<(), RuntimeError> {
        self.gpu.finish().await
    }

    /// Records one run of a batch of `n_col` columns for the profiler, with a call after every dispatch.
    pub(crate) fn record_timed(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        n_col: u32,
        pos: u32,
        mut after: impl FnMut(&mut wgpu::ComputePass<'_>),
    ) {
        for r in self.batch(n_col, pos).into_iter().flatten() {
            pass.set_pipeline(&r.compiled.pipeline);
            pass.set_bind_group(0, &r.group, &[]);
            let [x, y, z] = r.planned.grid(n_col);
            pass.dispatch_workgroups(x, y, z);
            after(pass);
        }
    }

    /// Puts tokens of the first sequence in place without running them, for the profiler.
    pub(crate) fn stage_columns(&mut self, tokens: &[u32], pos: u32) {
        // What is timed changes the recurrent state and the picks, too.
        self.state_at[0] = None;
        self.picks.clear();
        let n = tokens.len() as u32;
        let column = |(token, pos): (&u32, u32)| Column { seq: 0, token: Some(*token), pos };
        self.write(tokens.iter().zip(pos..).map(column), n.saturating_sub(1)..n);
    }
}

/// Rows of products whose scale is that of an adapter, in the buffers of small vectors.
struct ScalePlace {
    scale: AdapterScale,
    aux: usize,
    /// First word.
    at: usize,
    n_row: usize,
    by: f32,
}

fn scale_places(graph: &Graph, groups: &Groups) -> Vec<ScalePlace> {
    let mut out = Vec::new();
    for scale in &graph.scales {
        for (aux, a) in groups.aux.iter().enumerate() {
            let places = a.places(scale.weight).into_iter();
            let place = |(at, n_row, by)| ScalePlace { scale: *scale, aux, at, n_row, by: by * scale.by };
            out.extend(places.map(place));
        }
    }
    out
}
