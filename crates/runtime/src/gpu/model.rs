//! A model on the device: its prepared dispatches, and their replay.

use std::sync::Arc;
use std::time::Duration;

use web_time::Instant;

use chaski_kernels::ops::mul_mat_vec::MulMatVec;
use chaski_kernels::{ProductClass, Tuning, step};

use super::buffers::{Buffers, Part};
use super::device::Gpu;
use super::first::First;
use super::lanes::Lanes;
use super::pace::Pace;
use super::queue::DeviceQueue;
use super::reads::ExpertReads;
use super::ready::{Ablation, Body, Devices, Ready, ReadySegments, Recorder, make_ready};
use super::scales::Scales;
use super::sent::{LastChosen, Steps};
use super::stream::Streams;
use crate::error::RuntimeError;
use crate::experts::Experts;
use crate::plan::{BufferSpec, Columns, Memory, PlanConfig, Planned};
use crate::step::Column;

/// Loading times; compiling and uploading overlap if there are threads.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadTimes {
    /// Until the last kernel was compiled.
    pub compile: Duration,
    /// Until the last weight was submitted.
    pub upload: Duration,
    /// Total, including planning.
    pub total: Duration,
}

/// A loaded model.
pub struct GpuModel {
    /// The device with the head, which samples: the last of several.
    pub(super) gpu: Arc<Gpu>,
    pub(super) config: PlanConfig,
    pub(super) ready: ReadySegments,
    pub(super) buffers: Buffers,
    /// The other devices, with the earlier layers.
    pub(super) others: Vec<Part>,
    /// The first layers, if they are on the CPU.
    pub(super) first: Option<First>,
    /// Bodies with offloaded experts.
    pub(super) streams: Option<Streams>,
    /// The work of several devices, unless experts are offloaded.
    pub(super) lanes: Option<Lanes>,
    /// Steps sent so far, and when the last was read.
    pub(super) n_step_sent: u64,
    pub(super) read_at: Option<Instant>,
    pub(super) memory: Memory,
    /// All buffers of all devices.
    pub(super) specs: Vec<BufferSpec>,
    pub(super) all_cols: u32,
    /// Rows that can be sampled at once.
    pub(super) n_choice: u32,
    /// Submitted, unread steps.
    pub(super) steps: Steps,
    /// Width of the final hidden state, and its column stride.
    pub(super) hidden: (u32, u32),
    pub(super) hidden_cols: u32,
    pub(super) scales: Scales,
    pub(super) n_vocab: u32,
    pub(super) ld_logits: u32,
    pub(super) n_layer: usize,
    /// Words of a step, reused.
    pub(super) words: Vec<u32>,
    /// Picks that the device certainly has.
    pub(super) picks: Vec<u32>,
    /// Over several devices: the last token of each sequence.
    pub(super) last_chosen: Vec<LastChosen>,
    /// Tokens chosen per sequence, including those in flight: the position in its ring.
    pub(super) ring_at: Vec<u32>,
    pub(super) next_staging: usize,
    /// Sequences with adjusted logits.
    pub(super) adjusts: Vec<bool>,
    pub(super) pace: Pace,
    pub(super) times: LoadTimes,
    pub(super) ablation: Ablation,
    pub(super) has_state: bool,
    /// A step takes whole texts only.
    pub(super) is_encoder: bool,
    /// Width of an input row, and the row stride.
    pub(super) rows: (u32, u32),
    /// Some RoPE has sections.
    pub(super) has_sections: bool,
    /// Uploaded input rows.
    pub(super) n_row: u32,
    /// Differences between components and positions of the columns, reused.
    pub(super) shifts: Vec<u32>,
    /// Tokens that the recurrent state of each sequence has processed; `None` if unknown.
    pub(super) state_at: Vec<Option<u32>>,
    /// The window of each layer of the KV cache.
    pub(super) windows: Vec<u32>,
}

impl GpuModel {
    /// The device with the head, which samples.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// All devices in layer order, with their buffers.
    pub(super) fn parts(&self) -> impl Iterator<Item = (DeviceQueue<'_>, &Buffers)> {
        let others = self.others.iter().map(|p| (&*p.gpu, &p.buffers));
        let all = others.chain([(&*self.gpu, &self.buffers)]).enumerate();
        all.map(|(device, (gpu, buffers))| (DeviceQueue { gpu, lane: self.lane(device) }, buffers))
    }

    /// True after [`Self::release_lost`] freed the layers.
    pub(super) fn is_closed(&self) -> bool {
        self.lanes.as_ref().is_some_and(|lanes| lanes.check().is_err())
    }

    fn lane(&self, device: usize) -> Option<(&Lanes, usize)> {
        self.lanes.as_ref().map(|lanes| (lanes, device))
    }

    /// Writes to a buffer of the device with the head, after everything sent before.
    pub(super) fn write_main(&self, buffer: &wgpu::Buffer, at: u64, bytes: &[u8]) {
        self.recorder().queue().write(buffer, at, bytes);
    }

    /// Frees the memory of the layers on all devices, if one of several is lost: the others have room for the model
    /// again. Everything that would run fails with [`RuntimeError::DeviceLost`] from then on. No effect with offloaded
    /// experts, nor while all devices are there.
    pub fn release_lost(&mut self) {
        let lost = self.parts().find_map(|(queue, _)| match queue.gpu.check_alive() {
            Err(RuntimeError::DeviceLost { reason }) => {
                Some(format!("{}: {reason}", queue.gpu.summary().name))
            }
            _ => None,
        });
        let (Some(reason), Some(lanes)) = (lost, &self.lanes) else { return };
        lanes.close(reason);
        if let Some(first) = &mut self.first {
            first.end();
        }
        for (_, buffers) in self.parts() {
            buffers.free_layers();
        }
    }

    /// Waits until every device has been sent all work, for direct access to their buffers.
    ///
    /// # Errors
    /// Device errors.
    pub(super) fn drain(&self) -> Result<(), RuntimeError> {
        self.lanes.as_ref().map_or(Ok(()), Lanes::drain)
    }

    /// Number of devices with layers; the CPU is none.
    pub fn n_device(&self) -> usize {
        self.others.len() + 1
    }

    /// Memory of the first layers, if they are on the CPU.
    pub fn memory_on_cpu(&self) -> Option<Memory> {
        self.first.as_ref().map(|first| Memory { items: vec![first.memory()] })
    }

    /// The sizes it was planned for.
    pub fn config(&self) -> &PlanConfig {
        &self.config
    }

    /// Memory of one device, to the byte.
    pub fn memory_of(&self, device: usize) -> Memory {
        Memory::of(self.specs.iter().filter(|b| b.device == device))
    }

    /// Memory of all devices, to the byte.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Loading times.
    pub fn load_times(&self) -> LoadTimes {
        self.times
    }

    /// Sets experts elsewhere, for steps from now on; `None`: offloaded experts are all computed here.
    ///
    /// # Errors
    /// [`RuntimeError::NotPlanned`] for a model without [`PlanConfig::away`] or without offloaded experts.
    pub fn set_experts(&mut self, experts: Option<Box<dyn Experts>>) -> Result<(), RuntimeError> {
        let is_planned = self.config.away && self.expert_reads().is_some();
        match self.streams.as_mut().filter(|_| is_planned) {
            Some(streams) => drop(streams.set_experts(experts)),
            None if experts.is_none() => {}
            None => return Err(RuntimeError::NotPlanned { what: "experts elsewhere" }),
        }
        Ok(())
    }

    /// Takes back [`Self::set_experts`].
    pub fn take_experts(&mut self) -> Option<Box<dyn Experts>> {
        self.streams.as_mut().and_then(|streams| streams.set_experts(None))
    }

    /// Cost of offloaded experts so far; `None` if all are on the device.
    pub fn expert_reads(&self) -> Option<ExpertReads> {
        self.streams.as_ref().map(Streams::reads)
    }

    /// True if it pays to submit tokens before earlier ones are read. Software devices execute during submission, but
    /// of several devices one works while another waits; with offloaded experts every token waits anyway.
    pub fn runs_ahead(&self) -> bool {
        (!self.gpu.caps().software || self.lanes.is_some()) && self.streams.is_none()
    }

    /// Fails with offloaded experts or several devices.
    ///
    /// # Errors
    /// [`RuntimeError::NeedsExperts`] or [`RuntimeError::NeedsOneDevice`], naming the operation.
    pub(super) fn needs_experts(&self, what: &'static str) -> Result<(), RuntimeError> {
        match (self.streams.is_some(), self.others.is_empty() && self.first.is_none()) {
            (true, _) => Err(RuntimeError::NeedsExperts { what }),
            (false, false) => Err(RuntimeError::NeedsOneDevice { what }),
            (false, true) => Ok(()),
        }
    }

    /// Recreates objects for every dispatch from now on, for measurements.
    pub fn set_ablation(&mut self, ablation: Ablation) {
        self.ablation = ablation;
    }

    /// Maximum number of columns per step that choose or have logits.
    pub fn all_cols(&self) -> u32 {
        self.all_cols
    }

    /// Maximum number of columns per step whose hidden states are read.
    pub fn hidden_cols(&self) -> u32 {
        self.hidden_cols
    }

    /// Classes of products of a token with one example each, those with the most weights first.
    pub(crate) fn products(&self) -> Vec<(ProductClass, MulMatVec)> {
        let mut all: Vec<(ProductClass, MulMatVec, u64)> = Vec::new();
        for r in self.ready.token_at(0).into_iter().flatten() {
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

    /// Rebuilds the products with another tuning.
    ///
    /// # Errors
    /// [`RuntimeError`] if the device rejects a kernel.
    pub fn retune(&mut self, tuning: &Tuning) -> Result<(), RuntimeError> {
        self.config.tuning = tuning.clone();
        for r in self.ready.all_mut() {
            let Some(mut call) = r.planned.product else { continue };
            call.tune = tuning.product(&call.class());
            let main =
                Recorder { gpu: &self.gpu, lane: None, buffers: &self.buffers, ablation: self.ablation };
            let recorder = Devices { others: &self.others, main }.recorder(r.device);
            let dispatch = call.dispatch(recorder.gpu.caps()).map_err(crate::plan::PlanError::from)?;
            let old = &r.planned.dispatch;
            if (dispatch.kernel.name, &dispatch.constants, dispatch.grid)
                != (old.kernel.name, &old.constants, old.grid)
            {
                let planned = Planned { dispatch, product: Some(call), ..r.planned.clone() };
                *r = make_ready(recorder, r.device, &planned)?;
            }
        }
        Ok(())
    }

    /// Dispatches of one token at a full context: (per layer, total with greedy sampling).
    pub fn dispatches_per_token(&self) -> (f64, usize) {
        let all = self.ready.token_at(self.config.n_ctx - 1);
        let layers = all[0].iter().filter(|r| r.planned.part != "embed").count();
        let per_layer = layers as f64 / self.n_layer.max(1) as f64;
        (per_layer, all.into_iter().map(Vec::len).sum())
    }

    /// Dispatches of a token, in order: part of the model, kernel, and the reason for choosing it.
    pub fn explain(&self) -> Vec<(&'static str, &'static str, String)> {
        let line =
            |r: &Ready| (r.planned.part, r.planned.dispatch.kernel.name, r.planned.dispatch.why.clone());
        self.ready.token_at(self.config.n_ctx - 1).into_iter().flatten().map(line).collect()
    }

    /// Segments of one run of a batch of `n_col` columns at `pos`.
    fn batch(&self, n_col: u32, pos: u32) -> Vec<&Ready> {
        if n_col == 1 {
            self.ready.token_at(pos).into_iter().flatten().collect()
        } else {
            let p = self.ready.prompt_of(n_col);
            let head = p.head_of(1);
            [&p.body, &head.pick, &head.head].into_iter().flatten().collect()
        }
    }

    pub(crate) fn timeline(&self, n_col: u32, pos: u32) -> Vec<&Planned> {
        self.batch(n_col, pos).into_iter().map(|r| &r.planned).collect()
    }

    /// Sets the approximate time limit of a prefill submission; default: 100 ms.
    pub fn set_prompt_bound(&mut self, bound: Duration) {
        self.pace.set_bound(bound);
    }

    /// Writes columns of a step that runs the plan for `n_planned`, and their picks.
    pub(super) fn write(
        &mut self,
        columns: &[Column],
        n_planned: u32,
        picks: impl ExactSizeIterator<Item = u32>,
    ) -> Columns {
        self.shifts.clear();
        for (i, Column { token, pos, seq, row, components }) in columns.iter().copied().enumerate() {
            let at = step::HEADER + step::COLUMN * i;
            let source = match (row, token) {
                (Some(row), _) => step::FIRST_ROW + row,
                (None, Some(_)) => step::TOKEN,
                (None, None) => step::CHOSEN,
            };
            self.words[at..at + step::COLUMN].copy_from_slice(&[token.unwrap_or(0), pos, seq, source]);
            if self.config.rows {
                let components = components.unwrap_or([pos; step::SHIFT]);
                self.shifts.extend(components.map(|c| c.wrapping_sub(pos)));
            }
        }
        let all = match self.ready.prompt_of(n_planned).has_each {
            true => Columns::of(columns.iter().map(|c| (c.seq, c.pos)), self.config.few()),
            false => (columns.len() as u32).into(),
        };
        let mut rows = [0; step::MAX_PICK];
        let n_pick = picks.len();
        rows.iter_mut().zip(picks).for_each(|(row, pick)| *row = pick);
        self.words[step::N_COL] = all.n;
        self.words[step::N_PICK] = n_pick as u32;
        self.words[step::N_EACH] = all.each;
        let words = &self.words[..step::HEADER + step::COLUMN * columns.len()];
        for (queue, buffers) in self.parts() {
            queue.write(&buffers.step, 0, bytemuck::cast_slice(words));
            if let Some(at) = self.config.shifts_at() {
                queue.write(&buffers.step, 4 * u64::from(at), bytemuck::cast_slice(&self.shifts));
            }
        }
        for write in self.scales.writes(columns, &rows[..n_pick]) {
            for (queue, buffers) in self.parts() {
                if let Some(aux) = &buffers.aux[write.aux] {
                    queue.write(aux, write.at, bytemuck::cast_slice(&write.words));
                }
            }
        }
        if !self.picks.starts_with(&rows[..n_pick]) {
            let at = 4 * u64::from(self.config.choice().picks);
            self.write_main(&self.buffers.step, at, bytemuck::cast_slice(&rows[..n_pick]));
            self.picks = rows[..n_pick].to_vec();
        }
        all
    }

    pub(super) fn recorder(&self) -> Recorder<'_> {
        let lane = self.lane(self.others.len());
        Recorder { gpu: &self.gpu, lane, buffers: &self.buffers, ablation: self.ablation }
    }

    /// Dispatches of a body per submission.
    pub(super) fn per_submit(&self, body: Body, n_col: u32) -> usize {
        let n_cut = if n_col == 1 { 1 } else { self.pace.n_cut(n_col as usize) };
        self.ready.body(body).len().div_ceil(n_cut).max(1)
    }

    /// Sets the LoRA scales of a sequence, indexed by [`LoraScale::of`](crate::graph::LoraScale::of), for its columns
    /// in steps from now on. Columns of a step that were not submitted yet have them, too.
    ///
    /// # Panics
    /// If there are fewer scales than the graph uses, or no such sequence.
    pub fn set_lora_scales(&mut self, seq: u32, scales: &[f32]) {
        let is_other = self.scales.set(seq, scales);
        if let Some(first) = self.first.as_ref().filter(|_| is_other) {
            let scales = scales.to_vec();
            first.change(move |model| model.set_lora_scales(seq, &scales));
        }
    }

    /// Waits until the device has finished all work.
    ///
    /// # Errors
    /// Device errors.
    pub async fn finish(&self) -> Result<(), RuntimeError> {
        self.drain()?;
        for part in &self.others {
            part.gpu.finish().await?;
        }
        self.gpu.finish().await
    }

    /// Records one run of a batch of columns for the profiler, with a callback after every dispatch.
    pub(crate) fn record_timed(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        columns: Columns,
        pos: u32,
        mut after: impl FnMut(&mut wgpu::ComputePass<'_>),
    ) {
        for r in self.batch(columns.n, pos) {
            if let Some([x, y, z]) = r.planned.grid(columns) {
                pass.set_pipeline(&r.compiled.pipeline);
                pass.set_bind_group(0, &r.group, &[]);
                pass.dispatch_workgroups(x, y, z);
            }
            after(pass);
        }
    }

    /// Writes tokens of the first sequence without running them, for the profiler.
    pub(crate) fn stage_columns(&mut self, tokens: &[u32], pos: u32) -> Columns {
        // The timed run changes the recurrent state and the picks, too.
        self.state_at[0] = None;
        self.picks.clear();
        let n = tokens.len() as u32;
        let column = |(token, pos): (&u32, u32)| Column::token(0, *token, pos);
        let columns: Vec<Column> = tokens.iter().zip(pos..).map(column).collect();
        self.write(&columns, n, n.saturating_sub(1)..n)
    }
}
