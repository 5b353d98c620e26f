//! A model on the device: all its dispatches ready, and the replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chaski_kernels::ops::adjust::{self, AdjustParams};
use chaski_kernels::ops::sample::SampleParams;
use chaski_kernels::{MatVecTune, ProductClass, Tuning, step};

use super::buffers::{Buffers, Memory, make_buffers, memory_of};
use super::device::Gpu;
use super::load::{Progress, Stage, Tensors};
use super::pace::Pace;
use super::pipeline::Compiled;
use super::stream::{ExpertReads, Streams};
use crate::error::RuntimeError;
use crate::graph::{AdapterScale, Graph};
use crate::plan::{Columns, Groups, PlanConfig, Planned, Segment, Segments, fuse, plan};
use crate::platform::{Aside, Clock};

/// How the next token is chosen on the device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Choose {
    /// The largest logit.
    Greedy,
    /// By the parameters of [`GpuModel::set_sampler`].
    Sample,
}

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

/// What is made anew for every dispatch, as engines without a plan do, to measure what reuse is worth.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Ablation {
    /// The bind group.
    pub bind_groups: bool,
    /// A buffer of parameters of 64 bytes, written once. No kernel here reads it: sizes are constants of pipelines.
    pub parameters: bool,
}

/// A token of a batch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its sequence.
    pub seq: u32,
    /// The token.
    pub token: u32,
    /// Its position in the sequence.
    pub pos: u32,
}

/// Which logits a call leaves.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    None,
    Last,
    /// What logits are made of, of all columns.
    Hidden,
}

/// A readback under way.
#[derive(Debug)]
pub struct Ticket {
    slot: usize,
    /// Ring index of its first token.
    first: u32,
    n: u32,
    index: wgpu::SubmissionIndex,
}

/// A dispatch that can be recorded.
pub(super) struct Ready {
    compiled: Arc<Compiled>,
    group: wgpu::BindGroup,
    pub(super) planned: Planned,
}

/// What dispatches are recorded and sent with.
#[derive(Clone, Copy)]
pub(super) struct On<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) buffers: &'a Buffers,
    ablation: Ablation,
}

type ReadySegment = Vec<Ready>;

struct ReadyDecode {
    max_key: u32,
    body: ReadySegment,
    head: ReadySegment,
}

struct ReadyPrompt {
    max_col: u32,
    body: ReadySegment,
    pick: ReadySegment,
    head: ReadySegment,
    head_all: ReadySegment,
    hidden: ReadySegment,
    /// The activation buffer that has what logits are made of.
    hidden_at: usize,
}

struct ReadySegments {
    decode: Vec<ReadyDecode>,
    prompt: Vec<ReadyPrompt>,
    adjust: ReadySegment,
    argmax: ReadySegment,
    sample: ReadySegment,
}

/// All layers, in one of the plans.
#[derive(Clone, Copy)]
enum Body {
    /// Of a token at this position.
    One { pos: u32 },
    /// Of so many columns.
    Many { n_col: u32 },
}

impl ReadySegments {
    /// The plan for a token at position `pos`.
    fn decode_at(&self, pos: u32) -> &ReadyDecode {
        let plans = &self.decode;
        plans.iter().find(|d| pos < d.max_key).unwrap_or(&plans[plans.len() - 1])
    }

    /// The plan for `n_col` columns.
    fn prompt_of(&self, n_col: u32) -> &ReadyPrompt {
        let plans = &self.prompt;
        plans.iter().find(|p| n_col <= p.max_col).unwrap_or(&plans[plans.len() - 1])
    }

    fn body(&self, body: Body) -> &ReadySegment {
        match body {
            Body::One { pos } => &self.decode_at(pos).body,
            Body::Many { n_col } => &self.prompt_of(n_col).body,
        }
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Ready> {
        let decode = self.decode.iter_mut().flat_map(|d| [&mut d.body, &mut d.head]);
        let prompt =
            self.prompt.iter_mut().flat_map(|p| [&mut p.body, &mut p.pick, &mut p.head, &mut p.head_all]);
        let rest = [&mut self.adjust, &mut self.argmax, &mut self.sample];
        decode.chain(prompt).chain(rest).flatten()
    }
}

impl On<'_> {
    pub(super) fn record(&self, pass: &mut wgpu::ComputePass<'_>, segment: &[Ready], n_col: u32) {
        for r in segment {
            pass.set_pipeline(&r.compiled.pipeline);
            if self.ablation == Ablation::default() {
                pass.set_bind_group(0, &r.group, &[]);
            } else {
                self.record_ablated(pass, r);
            }
            let [x, y, z] = r.planned.grid(n_col);
            pass.dispatch_workgroups(x, y, z);
        }
        self.gpu.counters().dispatches.fetch_add(segment.len() as u64, Ordering::Relaxed);
    }

    /// Binds what a dispatch needs the slow way.
    fn record_ablated(&self, pass: &mut wgpu::ComputePass<'_>, r: &Ready) {
        if self.ablation.parameters {
            let parameters = self.gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(r.planned.part),
                size: 64,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            self.gpu.queue.write_buffer(&parameters, 0, &[0; 64]);
        }
        if self.ablation.bind_groups {
            pass.set_bind_group(0, &bind(self.gpu, self.buffers, &r.compiled, &r.planned), &[]);
        } else {
            pass.set_bind_group(0, &r.group, &[]);
        }
    }

    /// Sends dispatches in one submission, with what `after` puts behind them.
    pub(super) fn send(
        &self,
        segment: &[Ready],
        n_col: u32,
        after: impl FnOnce(&mut wgpu::CommandEncoder),
    ) -> wgpu::SubmissionIndex {
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some("chaski") };
        let mut encoder = self.gpu.device.create_command_encoder(&descriptor);
        if !segment.is_empty() {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            self.record(&mut pass, segment, n_col);
        }
        after(&mut encoder);
        self.gpu.submit(Some(encoder))
    }
}

/// A loaded model.
pub struct GpuModel {
    pub(super) gpu: Arc<Gpu>,
    pub(super) config: PlanConfig,
    ready: ReadySegments,
    pub(super) buffers: Buffers,
    /// Experts that stay with the processor.
    streams: Option<Streams>,
    memory: Memory,
    pub(super) all_cols: u32,
    /// Values of a column of what logits are made of, and from one column to the next.
    hidden: (u32, u32),
    hidden_cols: u32,
    scales: Vec<ScalePlace>,
    n_vocab: u32,
    ld_logits: u32,
    n_layer: usize,
    /// Words of a step, reused.
    words: Vec<u32>,
    /// Tokens written to the ring so far.
    ring_at: u32,
    next_staging: usize,
    /// Tickets that nobody has redeemed or given up.
    n_ticket: usize,
    /// Logits are adjusted before a token is chosen.
    adjusts: bool,
    pace: Pace,
    times: LoadTimes,
    ablation: Ablation,
    /// The sequence that runs.
    pub(super) seq: u32,
    /// Tokens that the recurrent state of each sequence has seen; `None` if nobody knows.
    pub(super) state_at: Vec<Option<u32>>,
}

/// Compiling ends early if the model is given up.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Readbacks that may be under way at once.
pub(super) const STAGING: usize = 4;

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
        let clock = Clock::start();
        let steps = fuse(graph, config.fusions);
        let mut groups = Groups::new(graph, &steps, gpu.caps(), &config.experts)?;
        let segments = plan(graph, &steps, &mut groups, gpu.caps(), &config)?;
        let all = all_segments(&segments);
        let missing = gpu.missing(all.iter().flat_map(|s| s.iter().map(|p| &p.dispatch)));
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
        let memory = memory_of(&buffers);
        let scales = scale_places(graph, &groups);
        let ready = |s: &Segment| -> Result<ReadySegment, RuntimeError> {
            s.iter().map(|p| make_ready(&gpu, &buffers, p)).collect()
        };
        let decode: Result<Vec<ReadyDecode>, RuntimeError> = segments
            .decode
            .iter()
            .map(|d| Ok(ReadyDecode { max_key: d.max_key, body: ready(&d.body)?, head: ready(&d.head)? }))
            .collect();
        let prompt: Result<Vec<ReadyPrompt>, RuntimeError> = segments
            .prompt
            .iter()
            .map(|p| {
                Ok(ReadyPrompt {
                    max_col: p.max_col,
                    body: ready(&p.body)?,
                    pick: ready(&p.pick)?,
                    head: ready(&p.head)?,
                    head_all: ready(&p.head_all)?,
                    hidden: ready(&p.hidden.segment)?,
                    hidden_at: p.hidden.act,
                })
            })
            .collect();
        let ready = ReadySegments {
            decode: decode?,
            prompt: prompt?,
            adjust: ready(&segments.adjust)?,
            argmax: ready(&segments.argmax)?,
            sample: ready(&segments.sample)?,
        };
        // Sequence s has the s-th run of pages until something else is said.
        let at = step::pages_at(config.max_col as usize);
        let pages: Vec<u32> = (0..config.n_seq * config.pages_per_seq()).collect();
        gpu.queue.write_buffer(&buffers.step, at as u64 * 4, bytemuck::cast_slice(&pages));
        gpu.check()?;
        let times = LoadTimes { compile, upload, total: clock.elapsed() };
        let n_vocab = graph.logits.map_or(0, |l| graph.width(l));
        Ok(GpuModel {
            words: vec![0; step::pages_at(config.max_col as usize)],
            ready,
            buffers,
            streams: Streams::new(graph, groups, tensors),
            memory,
            all_cols: segments.all_cols,
            hidden: segments.hidden,
            hidden_cols: segments.hidden_cols,
            scales,
            n_vocab,
            ld_logits: segments.ld_logits,
            n_layer: segments.n_layer,
            gpu,
            ring_at: 0,
            next_staging: 0,
            n_ticket: 0,
            adjusts: false,
            pace: Pace::new(segments.prompt.last().map_or(1, |p| tile_of(&p.body))),
            times,
            ablation: Ablation::default(),
            seq: 0,
            state_at: vec![Some(0); config.n_seq as usize],
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

    /// Tokens of one call of [`Self::decode`] at most: one where experts stay with the processor, which must see what
    /// each token wants.
    pub fn max_in_flight(&self) -> u32 {
        if self.streams.is_some() { 1 } else { self.config.ring / STAGING as u32 }
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
    pub(super) fn needs_experts(&self, what: &'static str) -> Result<(), RuntimeError> {
        self.streams.as_ref().map_or(Ok(()), |_| Err(RuntimeError::NeedsExperts { what }))
    }

    /// Makes things anew for every dispatch from now on; for measurements alone.
    pub fn set_ablation(&mut self, ablation: Ablation) {
        self.ablation = ablation;
    }

    /// Columns whose logits one call of [`Self::eval_all`] gives at most.
    pub fn all_cols(&self) -> u32 {
        self.all_cols
    }

    /// Classes of products of a token, those with the most weights first: how they are tuned now, and whether their
    /// weights have scales.
    pub(crate) fn products(&self) -> Vec<(ProductClass, MatVecTune, bool)> {
        let mut all: Vec<(ProductClass, MatVecTune, bool, u64)> = Vec::new();
        let default = MatVecTune::shipped(self.gpu.caps()).0;
        for r in [&self.ready.decode[0].body, &self.ready.decode[0].head].into_iter().flatten() {
            let Some(call) = &r.planned.product else { continue };
            let class = call.class();
            match all.iter_mut().find(|a| a.0 == class) {
                Some(a) => a.3 += r.planned.work.weights,
                None => {
                    let open = call.act.is_none() && call.w.format.run > 0;
                    all.push((class, call.tune.unwrap_or(default), open, r.planned.work.weights));
                }
            }
        }
        all.sort_by_key(|a| std::cmp::Reverse(a.3));
        all.into_iter().map(|(class, tune, open, _)| (class, tune, open)).collect()
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
            [&p.body, &p.pick, &p.head]
        }
    }

    pub(crate) fn timeline(&self, n_col: u32, pos: u32) -> Vec<&Planned> {
        self.batch(n_col, pos).into_iter().flatten().map(|r| &r.planned).collect()
    }

    /// Sets the parameters of [`Choose::Sample`].
    pub fn set_sampler(&mut self, params: &SampleParams, n_drawn: u32) {
        self.gpu.queue.write_buffer(&self.buffers.sampler, 0, bytemuck::cast_slice(&params.words()));
        // The count of draws starts again, so that a seed gives one text; or goes on where that was interrupted.
        self.gpu.queue.write_buffer(&self.buffers.step, 4 * step::DRAWS as u64, &n_drawn.to_le_bytes());
    }

    /// Says what is done to the logits, in place, before each choice of a token until [`Self::clear_adjust`].
    ///
    /// `recent` are the tokens so far, the newest last; those that are chosen follow them on the device, so penalties
    /// look back on both. To be called again when the sequence becomes another.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] for too many biases or a window longer than the ring.
    pub fn set_adjust(&mut self, params: &AdjustParams, recent: &[u32]) -> Result<(), RuntimeError> {
        let ring = self.config.ring;
        let window = u64::from(ring.min(adjust::MAX_WINDOW));
        for (what, found, limit) in [
            ("biases of logits", params.bias.len() as u64, adjust::MAX_BIAS as u64),
            ("tokens that penalties look back on", params.last_n.into(), window),
        ] {
            if found > limit {
                return Err(RuntimeError::Limit { what, found, limit });
            }
        }
        // The tokens so far take the places of older ones in the ring, as if they had been chosen. Readbacks under
        // way have been copied by then: the queue keeps the order.
        let n = recent.len().min(params.last_n as usize);
        let (tail, first) = (&recent[recent.len() - n..], self.ring_at.wrapping_sub(n as u32));
        let at = (first & (ring - 1)) as usize;
        let (front, back) = tail.split_at(n.min(ring as usize - at));
        let queue = &self.gpu.queue;
        for (at, part) in [(at, front), (0, back)] {
            if !part.is_empty() {
                queue.write_buffer(&self.buffers.ring, 4 * at as u64, bytemuck::cast_slice(part));
            }
        }
        queue.write_buffer(&self.buffers.adjust, 0, bytemuck::cast_slice(&params.words(first)));
        self.adjusts = true;
        Ok(())
    }

    /// Leaves the logits as they are from now on.
    pub fn clear_adjust(&mut self) {
        self.adjusts = false;
    }

    /// Runs tokens at positions from `pos` on, in chunks, and leaves the logits of the last one if `last`.
    ///
    /// Nobody waits, unless experts stay with the processor.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] past the context; [`RuntimeError::State`]; device errors.
    pub async fn prefill(&mut self, tokens: &[u32], pos: u32, last: bool) -> Result<(), RuntimeError> {
        self.check_room(tokens.len(), pos)?;
        let mut at = 0;
        while at < tokens.len() {
            self.pace.probe(&self.gpu);
            at = self.prefill_piece(tokens, at, pos, last).await?;
        }
        Ok(())
    }

    /// Sends the next piece of [`Self::prefill`], of which `at` tokens have been sent, and returns how many are sent then.
    ///
    /// A piece is as much of a chunk as the device runs in the time that [`Self::set_prompt_bound`] allows. Nobody waits
    /// here: see [`Self::has_room`] and [`Self::room`]. Where experts stay with the processor, a piece is a whole chunk, since
    /// each may want all of them, and ends when the last layer is under way.
    ///
    /// # Errors
    /// As [`Self::prefill`].
    pub async fn prefill_piece(
        &mut self,
        tokens: &[u32],
        at: usize,
        pos: u32,
        last: bool,
    ) -> Result<usize, RuntimeError> {
        if at >= tokens.len() {
            return Ok(tokens.len());
        }
        self.check_room(tokens.len() - at, pos + at as u32)?;
        let chunk = self.config.max_col as usize;
        let whole = chunk.min(tokens.len() - at / chunk * chunk);
        let left = whole - at % chunk;
        let end = at + if self.streams.is_some() { left } else { self.pace.n_col(left) };
        let want = if last && end == tokens.len() { Want::Last } else { Want::None };
        self.run_piece(&tokens[at..end], pos + at as u32, want, whole as u32).await?;
        Ok(end)
    }

    /// Whether the device should get another piece of a prompt now, and would take it without a wait; does not wait.
    pub fn has_room(&mut self) -> bool {
        self.streams.is_none() && self.pace.has_room(&self.gpu)
    }

    /// Waits until the device should get another piece of a prompt.
    ///
    /// # Errors
    /// Device errors.
    pub async fn room(&mut self) -> Result<(), RuntimeError> {
        self.pace.room(&self.gpu).await
    }

    /// What a submission of a prompt may take, about; 100 ms if nothing is said.
    pub fn set_prompt_bound(&mut self, bound: Duration) {
        self.pace.set_bound(bound);
    }

    /// Whether `n` tokens from position `pos` on fit, and the recurrent state can go on there.
    fn check_room(&self, n: usize, pos: u32) -> Result<(), RuntimeError> {
        let at = self.state_at();
        if self.has_state() && n > 0 && pos > 0 && at != Some(pos) {
            return Err(RuntimeError::State { found: at, pos });
        }
        let end = u64::from(pos) + n as u64;
        let limit = u64::from(self.config.n_ctx);
        if end > limit {
            return Err(RuntimeError::Limit { what: "tokens of the sequence", found: end, limit });
        }
        Ok(())
    }

    fn write_columns(&mut self, tokens: &[u32], pos: u32) {
        let seq = self.seq;
        let columns = tokens.iter().zip(pos..).map(|(token, pos)| Column { seq, token: *token, pos });
        self.write(tokens.len(), columns);
    }

    /// Puts columns in place; the last is the one whose logits are wanted.
    fn write(&mut self, n: usize, columns: impl Iterator<Item = Column>) {
        for (c, Column { token, pos, seq }) in columns.enumerate() {
            let at = step::HEADER + step::COLUMN * c;
            self.words[at..at + 4].copy_from_slice(&[token, pos, seq, 0]);
        }
        let head = [n as u32, n.saturating_sub(1) as u32];
        let queue = &self.gpu.queue;
        queue.write_buffer(&self.buffers.step, 0, bytemuck::cast_slice(&head));
        let cols = &self.words[step::HEADER..step::HEADER + step::COLUMN * n];
        queue.write_buffer(&self.buffers.step, 4 * step::HEADER as u64, bytemuck::cast_slice(cols));
    }

    /// Runs a piece of a chunk of `whole` columns, by the chunk's plan: how a chunk is cut changes no result.
    async fn run_piece(
        &mut self,
        tokens: &[u32],
        pos: u32,
        want: Want,
        whole: u32,
    ) -> Result<(), RuntimeError> {
        self.write_columns(tokens, pos);
        let n = tokens.len() as u32;
        let one = n == 1 && want != Want::Hidden;
        let body = if one { Body::One { pos } } else { Body::Many { n_col: whole } };
        let from = self.stream(body, n).await?;
        self.set_state_at(Some(pos + n));
        let (single, several) = (self.ready.decode_at(pos), self.ready.prompt_of(whole));
        let head: &[&ReadySegment] = match (one, want) {
            (_, Want::Hidden) => &[&several.hidden],
            (_, Want::None) => &[],
            (true, Want::Last) => &[&single.head],
            (false, Want::Last) => &[&several.pick, &several.head],
        };
        let per_submit = self.per_submit(body, n);
        // At least one, which has the head.
        let body = &self.ready.body(body)[from..];
        let mut cuts = body.chunks(per_submit).chain(body.is_empty().then_some(body)).peekable();
        let (start, mut index) = (web_time::Instant::now(), None);
        while let Some(cut) = cuts.next() {
            let mut encoder = self.encoder();
            {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                self.on().record(&mut pass, cut, n);
                if cuts.peek().is_none() {
                    head.iter().for_each(|s| self.on().record(&mut pass, s, n));
                }
            }
            index = Some(self.gpu.submit(Some(encoder)));
        }
        if let (Some(index), true) = (index, n > 1) {
            self.pace.sent(&self.gpu, tokens.len(), start, index);
        }
        self.gpu.check()
    }

    pub(super) fn encoder(&self) -> wgpu::CommandEncoder {
        self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("chaski") })
    }

    fn on(&self) -> On<'_> {
        On { gpu: &self.gpu, buffers: &self.buffers, ablation: self.ablation }
    }

    /// Dispatches of a body that go in one submission.
    fn per_submit(&self, body: Body, n_col: u32) -> usize {
        let n_cut = if n_col == 1 { 1 } else { self.pace.n_cut(n_col as usize) };
        self.ready.body(body).len().div_ceil(n_cut).max(1)
    }

    /// Runs what of a body must run before all experts that it wants are on the device, and returns the first dispatch that is
    /// left: 0 if all experts are there anyway. The columns are in place; if this fails, the recurrent state is not known.
    async fn stream(&mut self, body: Body, n_col: u32) -> Result<usize, RuntimeError> {
        let per_submit = self.per_submit(body, n_col);
        let Some(streams) = &mut self.streams else { return Ok(0) };
        self.state_at[self.seq as usize] = None;
        let on = On { gpu: &self.gpu, buffers: &self.buffers, ablation: self.ablation };
        streams.run(on, self.ready.body(body), n_col, per_submit).await
    }

    /// Chooses the token after the logits that [`Self::prefill`] left; it becomes the input of [`Self::decode`].
    ///
    /// With [`Self::set_adjust`] the logits are others afterwards.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] for more tickets than there are readbacks; device errors.
    pub fn choose(&mut self, choose: Choose) -> Result<Ticket, RuntimeError> {
        self.check_ticket()?;
        let mut encoder = self.encoder();
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            self.record_choice(&mut pass, choose);
        }
        self.read_back(encoder, 1)
    }

    fn record_choice(&self, pass: &mut wgpu::ComputePass<'_>, choose: Choose) {
        if self.adjusts {
            self.on().record(pass, &self.ready.adjust, 1);
        }
        let chooser = match choose {
            Choose::Greedy => &self.ready.argmax,
            Choose::Sample => &self.ready.sample,
        };
        self.on().record(pass, chooser, 1);
    }

    /// Runs `n` tokens, each chosen from the last one's logits, without waiting for any, unless experts stay with the
    /// processor.
    ///
    /// `pos` is the position of the first; the device keeps its own, the plan is chosen by this one.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] past the context, for more tokens than the ring has slots, or for more tickets than there
    /// are readbacks; [`RuntimeError::State`]; device errors.
    pub async fn decode(&mut self, n: u32, pos: u32, choose: Choose) -> Result<Ticket, RuntimeError> {
        self.check_ticket()?;
        self.check_room(n as usize, pos)?;
        let limit = u64::from(self.max_in_flight());
        if u64::from(n) > limit {
            return Err(RuntimeError::Limit { what: "tokens in flight", found: n.into(), limit });
        }
        // Where anything has run by then, there is but one token.
        let mut from = 0;
        if n > 0 {
            from = self.stream(Body::One { pos }, 1).await?;
            self.set_state_at(Some(pos + n));
        }
        let mut encoder = self.encoder();
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for i in 0..n {
                let d = self.ready.decode_at(pos + i);
                self.on().record(&mut pass, &d.body[from..], 1);
                self.on().record(&mut pass, &d.head, 1);
                self.record_choice(&mut pass, choose);
            }
        }
        self.read_back(encoder, n)
    }

    /// Whether there is a readback for another ticket.
    fn check_ticket(&self) -> Result<(), RuntimeError> {
        if self.n_ticket < STAGING {
            return Ok(());
        }
        let (found, limit) = (self.n_ticket as u64 + 1, STAGING as u64);
        Err(RuntimeError::Limit { what: "tickets that are not redeemed", found, limit })
    }

    fn read_back(&mut self, mut encoder: wgpu::CommandEncoder, n: u32) -> Result<Ticket, RuntimeError> {
        let slot = self.next_staging;
        self.next_staging = (slot + 1) % STAGING;
        let n_byte = u64::from(self.config.ring) * 4;
        encoder.copy_buffer_to_buffer(&self.buffers.ring, 0, &self.buffers.ring_staging[slot], 0, n_byte);
        let index = self.gpu.submit(Some(encoder));
        self.gpu.check()?;
        self.n_ticket += 1;
        let first = self.ring_at;
        self.ring_at = self.ring_at.wrapping_add(n);
        Ok(Ticket { slot, first, n, index })
    }

    /// The tokens of a ticket. Tickets must be redeemed in order, at most four behind.
    ///
    /// # Errors
    /// Device errors.
    pub async fn tokens(&mut self, ticket: Ticket) -> Result<Vec<u32>, RuntimeError> {
        self.n_ticket -= 1;
        let n_byte = u64::from(self.config.ring) * 4;
        let bytes =
            self.gpu.read(&self.buffers.ring_staging[ticket.slot], n_byte, Some(ticket.index)).await?;
        let ring: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
        let mask = self.config.ring - 1;
        Ok((0..ticket.n).map(|i| ring[(ticket.first.wrapping_add(i) & mask) as usize]).collect())
    }

    /// Gives a ticket up.
    pub fn discard(&mut self, _: Ticket) {
        // Its staging buffer was never mapped, so there is nothing else to undo.
        self.n_ticket -= 1;
    }

    /// The logits of the last token that ran.
    ///
    /// # Errors
    /// Device errors.
    pub async fn logits(&mut self) -> Result<Vec<f32>, RuntimeError> {
        self.read_logits(1).await
    }

    /// Runs tokens and returns the logits of each: `[n, n_vocab]`, at most [`Self::all_cols`] tokens.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`]; [`RuntimeError::State`]; device errors.
    pub async fn eval_all(&mut self, tokens: &[u32], pos: u32) -> Result<Vec<f32>, RuntimeError> {
        self.check_room(tokens.len(), pos)?;
        let (found, limit) = (tokens.len() as u64, u64::from(self.all_cols));
        if found > limit {
            return Err(RuntimeError::Limit { what: "tokens with logits at once", found, limit });
        }
        let n = tokens.len() as u32;
        if n == 0 {
            return Ok(Vec::new());
        }
        if n == 1 {
            self.run_piece(tokens, pos, Want::Last, n).await?;
            return self.read_logits(1).await;
        }
        self.write_columns(tokens, pos);
        self.run_all(n).await?;
        self.set_state_at(Some(pos + n));
        self.read_logits(n).await
    }

    /// Runs tokens of several sequences together and returns the logits of each: `[n, n_vocab]`, at most
    /// [`Self::all_cols`] tokens. Those of one sequence follow each other, in the order of their positions.
    ///
    /// Recurrent state is that of the selected sequence, so models with one run their sequences one after the other, by
    /// [`Self::eval_all`].
    ///
    /// # Errors
    /// [`RuntimeError::Limit`]; device errors.
    pub async fn eval_columns(&mut self, columns: &[Column]) -> Result<Vec<f32>, RuntimeError> {
        let most = |of: fn(&Column) -> u32| columns.iter().map(of).max().map_or(0, |n| u64::from(n) + 1);
        let (n_seq, n_ctx) = (u64::from(self.config.n_seq), u64::from(self.config.n_ctx));
        for (what, found, limit) in [
            ("sequences", most(|c| c.seq), n_seq),
            ("tokens of the sequence", most(|c| c.pos), n_ctx),
            ("tokens with logits at once", columns.len() as u64, self.all_cols.into()),
            (
                "columns that know no recurrent state",
                columns.len() as u64,
                if self.has_state() { 0 } else { u64::MAX },
            ),
        ] {
            if found > limit {
                return Err(RuntimeError::Limit { what, found, limit });
            }
        }
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let n = columns.len() as u32;
        self.write(columns.len(), columns.iter().copied());
        self.run_all(n).await?;
        self.read_logits(n).await
    }

    /// Runs the columns that are in place and makes the logits of all.
    async fn run_all(&mut self, n: u32) -> Result<(), RuntimeError> {
        let from = self.stream(Body::Many { n_col: n }, n).await?;
        let mut encoder = self.encoder();
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            let p = self.ready.prompt_of(n);
            self.on().record(&mut pass, &p.body[from..], n);
            self.on().record(&mut pass, &p.head_all, n);
        }
        self.gpu.submit(Some(encoder));
        Ok(())
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

    /// Columns that one call of [`Self::eval_hidden`] takes at most.
    pub fn hidden_cols(&self) -> u32 {
        self.hidden_cols
    }

    /// Runs tokens and returns what the logits of each would be made of, the result of the last norm: `[n, n_embd]`, at most
    /// [`Self::hidden_cols`] tokens.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`]; [`RuntimeError::State`]; device errors.
    pub async fn eval_hidden(&mut self, tokens: &[u32], pos: u32) -> Result<Vec<f32>, RuntimeError> {
        self.check_room(tokens.len(), pos)?;
        let (found, limit) = (tokens.len() as u64, u64::from(self.hidden_cols));
        if found > limit {
            return Err(RuntimeError::Limit { what: "tokens with embeddings at once", found, limit });
        }
        let n = tokens.len() as u32;
        if n == 0 {
            return Ok(Vec::new());
        }
        self.run_piece(tokens, pos, Want::Hidden, n).await?;
        let from = self.buffers.acts[self.ready.prompt_of(n).hidden_at].clone();
        self.read_rows(&from, n, self.hidden).await
    }

    async fn read_logits(&mut self, n: u32) -> Result<Vec<f32>, RuntimeError> {
        let from = self.buffers.logits.clone();
        self.read_rows(&from, n, (self.n_vocab, self.ld_logits)).await
    }

    /// The first `n` rows of `width` values, every `ld` values, of a buffer; no more than the logits have room for.
    async fn read_rows(
        &mut self,
        from: &wgpu::Buffer,
        n: u32,
        (width, ld): (u32, u32),
    ) -> Result<Vec<f32>, RuntimeError> {
        let n_byte = u64::from(ld) * 4 * u64::from(n);
        let mut encoder = self.encoder();
        encoder.copy_buffer_to_buffer(from, 0, &self.buffers.logits_staging, 0, n_byte);
        let index = self.gpu.submit(Some(encoder));
        let bytes = self.gpu.read(&self.buffers.logits_staging, n_byte, Some(index)).await?;
        let mut out = Vec::with_capacity((n * width) as usize);
        for row in bytes.chunks_exact(ld as usize * 4) {
            out.extend(bytemuck::pod_collect_to_vec::<u8, f32>(&row[..width as usize * 4]));
        }
        Ok(out)
    }

    /// Waits until the device has done everything.
    ///
    /// # Errors
    /// Device errors.
    pub async fn finish(&self) -> Result<(), RuntimeError> {
        self.gpu.finish().await
    }

    /// Tokens that a profile chose do not count: the device goes on where the ring was.
    pub(crate) fn forget_choices(&self) {
        let at = 4 * step::RING as u64;
        self.gpu.queue.write_buffer(&self.buffers.step, at, bytemuck::bytes_of(&self.ring_at));
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

    /// Puts tokens in place without running them, for the profiler.
    pub(crate) fn stage_columns(&mut self, tokens: &[u32], pos: u32) {
        // What is timed changes the recurrent state, too.
        self.set_state_at(None);
        self.write_columns(tokens, pos);
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

/// The largest tile of columns of the products and of attention in a segment: fewer columns take as long.
fn tile_of(segment: &Segment) -> usize {
    let tile = |p: &Planned| match p.columns {
        Columns::XTiles(tile) | Columns::YTiles(tile) => tile as usize,
        _ => 1,
    };
    segment.iter().map(tile).max().unwrap_or(1)
}

fn all_segments(s: &Segments) -> Vec<&Segment> {
    let decode = s.decode.iter().flat_map(|d| [&d.body, &d.head]);
    let prompt = s.prompt.iter().flat_map(|p| [&p.body, &p.pick, &p.head, &p.head_all, &p.hidden.segment]);
    decode.chain(prompt).chain([&s.adjust, &s.argmax, &s.sample]).collect()
}

fn make_ready(gpu: &Gpu, buffers: &Buffers, p: &Planned) -> Result<Ready, RuntimeError> {
    let compiled = gpu.compile(&p.dispatch)?;
    let group = bind(gpu, buffers, &compiled, p);
    Ok(Ready { compiled, group, planned: p.clone() })
}

fn bind(gpu: &Gpu, buffers: &Buffers, compiled: &Compiled, p: &Planned) -> wgpu::BindGroup {
    let bound: Vec<(&str, wgpu::BindingResource<'_>)> =
        p.bind.iter().map(|(n, s)| (*n, buffers.of(*s))).collect();
    gpu.bind_group(p.part, &compiled.layout, p.dispatch.kernel, &bound)
}
