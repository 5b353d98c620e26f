//! Dispatches ready to be recorded: pipelines and bind groups, by plan and segment.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::buffers::{Buffers, Part};
use super::device::Gpu;
use super::lanes::Lanes;
use super::pipeline::Compiled;
use super::queue::DeviceQueue;
use crate::error::RuntimeError;
use crate::plan::{Columns, Crossing, Growth, Place, Planned, Stage, dispatches};

/// Objects to recreate for every dispatch, as engines without a plan do, to measure the benefit of reuse.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Ablation {
    /// The bind group.
    pub bind_groups: bool,
    /// A parameter buffer of 64 bytes, written once. No kernel reads it: sizes are pipeline constants.
    pub parameters: bool,
}

/// A dispatch that can be recorded.
pub(super) struct Ready {
    pub(super) compiled: Arc<Compiled>,
    pub(super) group: wgpu::BindGroup,
    pub(super) planned: Planned,
    /// The device that runs it.
    pub(super) device: usize,
}

/// Recorder and device of dispatches.
#[derive(Clone, Copy)]
pub(super) struct Recorder<'a> {
    pub(super) gpu: &'a Gpu,
    /// The lanes of several devices, and the index of this one.
    pub(super) lane: Option<(&'a Lanes, usize)>,
    pub(super) buffers: &'a Buffers,
    pub(super) ablation: Ablation,
}

/// The devices of a model; the main one is the last.
#[derive(Clone, Copy)]
pub(super) struct Devices<'a> {
    pub(super) others: &'a [Part],
    pub(super) main: Recorder<'a>,
}

impl<'a> Devices<'a> {
    pub(super) fn recorder(&self, device: usize) -> Recorder<'a> {
        self.others.get(device).map_or(self.main, |p| Recorder {
            gpu: &p.gpu,
            lane: self.main.lane.map(|(lanes, _)| (lanes, device)),
            buffers: &p.buffers,
            ..self.main
        })
    }
}

pub(super) type ReadySegment = Vec<Ready>;

/// A stage: a range of dispatches of a body.
pub(super) struct ReadyStage {
    pub(super) place: Place,
    pub(super) range: Range<usize>,
    pub(super) takes: Vec<Crossing>,
    pub(super) gives: Vec<Crossing>,
}

impl ReadyStage {
    /// Stages of consecutive dispatches.
    pub(super) fn all(stages: &[Stage]) -> Vec<ReadyStage> {
        let mut end = 0;
        let ready = |s: &Stage| {
            let start = end;
            end += s.segment.len();
            ReadyStage { place: s.place, range: start..end, takes: s.takes.clone(), gives: s.gives.clone() }
        };
        stages.iter().map(ready).collect()
    }
}

pub(super) struct ReadyDecode {
    pub(super) max_key: u32,
    /// All stages, consecutive.
    pub(super) body: ReadySegment,
    pub(super) stages: Vec<ReadyStage>,
    pub(super) head: ReadySegment,
}

pub(super) struct ReadyPrompt {
    pub(super) max_col: u32,
    /// All stages, consecutive.
    pub(super) body: ReadySegment,
    pub(super) stages: Vec<ReadyStage>,
    pub(super) heads: Vec<ReadyHead>,
    pub(super) hidden: ReadySegment,
    /// Activation buffer with the final hidden states.
    pub(super) hidden_at: usize,
    /// True where attention can go column by column: plans for long prompts of a single sequence cannot.
    pub(super) has_each: bool,
}

/// Logits of at most `max_row` picks.
pub(super) struct ReadyHead {
    pub(super) max_row: u32,
    pub(super) pick: ReadySegment,
    pub(super) head: ReadySegment,
}

impl ReadyPrompt {
    /// The head for `n_row` picks.
    pub(super) fn head_of(&self, n_row: u32) -> &ReadyHead {
        let heads = &self.heads;
        heads.iter().find(|h| n_row <= h.max_row).unwrap_or(&heads[heads.len() - 1])
    }
}

pub(super) struct ReadySegments {
    pub(super) decode: Vec<ReadyDecode>,
    pub(super) prompt: Vec<ReadyPrompt>,
    pub(super) take_chosen: ReadySegment,
    pub(super) mask: ReadySegment,
    pub(super) adjust: ReadySegment,
    pub(super) argmax: ReadySegment,
    pub(super) sample: ReadySegment,
    pub(super) sample_wide: ReadySegment,
}

/// All layers, in one of the plans.
#[derive(Clone, Copy)]
pub(super) enum Body {
    /// A token at this position.
    One { pos: u32 },
    /// A batch of columns.
    Many { n_col: u32 },
}

impl ReadySegments {
    /// The plan for a token at position `pos`, if there are plans for one ([`Self::body_at`]).
    pub(super) fn decode_at(&self, pos: u32) -> &ReadyDecode {
        let plans = &self.decode;
        plans.iter().find(|d| pos < d.max_key).unwrap_or(&plans[plans.len() - 1])
    }

    /// The layers for a token at position `pos`: a deterministic plan of several columns runs it, too.
    pub(super) fn body_at(&self, pos: u32) -> Body {
        if cfg!(not(target_arch = "wasm32")) && self.decode.is_empty() {
            Body::Many { n_col: 1 }
        } else {
            Body::One { pos }
        }
    }

    /// The layers, the logits and the greedy choice of a token at position `pos`.
    pub(super) fn token_at(&self, pos: u32) -> [&ReadySegment; 4] {
        const NONE: &ReadySegment = &Vec::new();
        match self.body_at(pos) {
            Body::One { pos } => {
                let plan = self.decode_at(pos);
                [&plan.body, NONE, &plan.head, &self.argmax]
            }
            Body::Many { n_col } => {
                let plan = self.prompt_of(n_col);
                let head = plan.head_of(1);
                [&plan.body, &head.pick, &head.head, &self.argmax]
            }
        }
    }

    /// The plan for `n_col` columns.
    pub(super) fn prompt_of(&self, n_col: u32) -> &ReadyPrompt {
        let plans = &self.prompt;
        plans.iter().find(|p| n_col <= p.max_col).unwrap_or(&plans[plans.len() - 1])
    }

    pub(super) fn body(&self, body: Body) -> &ReadySegment {
        match body {
            Body::One { pos } => &self.decode_at(pos).body,
            Body::Many { n_col } => &self.prompt_of(n_col).body,
        }
    }

    pub(super) fn stages(&self, body: Body) -> &[ReadyStage] {
        match body {
            Body::One { pos } => &self.decode_at(pos).stages,
            Body::Many { n_col } => &self.prompt_of(n_col).stages,
        }
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Ready> {
        let decode = self.decode.iter_mut().flat_map(|d| [&mut d.body, &mut d.head]);
        let prompt = self.prompt.iter_mut().flat_map(|p| {
            let heads = p.heads.iter_mut().flat_map(|h| [&mut h.pick, &mut h.head]);
            [&mut p.body].into_iter().chain(heads)
        });
        let rest = [&mut self.take_chosen, &mut self.mask, &mut self.adjust];
        let samplers = [&mut self.argmax, &mut self.sample, &mut self.sample_wide];
        decode.chain(prompt).chain(rest).chain(samplers).flatten()
    }
}

impl<'a> Recorder<'a> {
    /// Where its submissions go.
    pub(super) fn queue(&self) -> DeviceQueue<'a> {
        DeviceQueue { gpu: self.gpu, lane: self.lane }
    }

    pub(super) fn record(&self, pass: &mut wgpu::ComputePass<'_>, segment: &[Ready], columns: Columns) {
        let mut n = 0;
        for r in segment {
            let Some([x, y, z]) = r.planned.grid(columns) else { continue };
            n += 1;
            pass.set_pipeline(&r.compiled.pipeline);
            if self.ablation == Ablation::default() {
                pass.set_bind_group(0, &r.group, &[]);
            } else {
                self.record_ablated(pass, r);
            }
            pass.dispatch_workgroups(x, y, z);
        }
        self.gpu.counters().dispatches.fetch_add(n, Ordering::Relaxed);
    }

    /// Creates and binds a dispatch's resources without reuse.
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

    /// Submits dispatches together with the commands of `after`.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn send(
        &self,
        segment: &[Ready],
        columns: Columns,
        after: impl FnOnce(&mut wgpu::CommandEncoder),
    ) -> wgpu::SubmissionIndex {
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some("chaski") };
        let mut encoder = self.gpu.device.create_command_encoder(&descriptor);
        if !segment.is_empty() {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            self.record(&mut pass, segment, columns);
        }
        after(&mut encoder);
        self.gpu.submit(Some(encoder))
    }
}

/// Compiles a dispatch of a device and binds its resources.
pub(super) fn make_ready(recorder: Recorder<'_>, device: usize, p: &Planned) -> Result<Ready, RuntimeError> {
    let compiled = recorder.gpu.compile(&p.dispatch)?;
    let group = bind(recorder.gpu, recorder.buffers, &compiled, p);
    Ok(Ready { compiled, group, planned: p.clone(), device })
}

fn bind(gpu: &Gpu, buffers: &Buffers, compiled: &Compiled, p: &Planned) -> wgpu::BindGroup {
    let bound: Vec<(&str, wgpu::BindingResource<'_>)> =
        p.bind.iter().map(|(n, s)| (*n, buffers.of(*s))).collect();
    gpu.bind_group(p.part, &compiled.layout, p.dispatch.kernel, &bound)
}

/// The largest tile of columns of products and attention in a body: fewer columns take as long.
pub(super) fn tile_of(body: &[Stage]) -> usize {
    let tile = |p: &Planned| match p.columns {
        Growth::XTiles(tile) | Growth::YTiles(tile) | Growth::YRest(tile) => tile as usize,
        _ => 1,
    };
    dispatches(body).map(tile).max().unwrap_or(1)
}
