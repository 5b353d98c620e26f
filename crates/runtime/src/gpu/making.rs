//! Planning, compiling and loading a model, on one or several devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chaski_kernels::ops::mul_mat_vec::ActivationPrecision;
use chaski_kernels::{Caps, Dispatch, Op, step};

use super::buffers::{Part, make_buffers};
use super::device::Gpu;
use super::first::First;
use super::lanes::Lanes;
use super::load::{Progress, Stage};
use super::model::{GpuModel, LoadTimes};
use super::pace::Pace;
use super::ready::{
    Ablation, Devices, Ready, ReadyDecode, ReadyHead, ReadyPrompt, ReadySegment, ReadySegments, ReadyStage,
    Recorder, make_ready, tile_of,
};
use super::scales::Scales;
use super::sent::{LastChosen, Steps};
use super::stream::Streams;
use crate::cpu::CpuConfig;
use crate::error::RuntimeError;
use crate::graph::Graph;
use crate::plan::{
    Groups, Growth, HeadPlan, Memory, PlanConfig, PlanError, Segment, Segments, Stage as PlanStage, fuse,
    plan_on,
};
use crate::platform::{Background, Clock};
use crate::tensors::Tensors;

impl GpuModel {
    /// Plans, compiles and loads a model; kernels are compiled while weights are uploaded, if there are threads. The
    /// tensors' source is kept if experts are offloaded ([`PlanConfig::experts`]), for reads on demand.
    ///
    /// # Errors
    /// [`RuntimeError`] if the model does not fit the device, a tensor cannot be read, or the device fails.
    pub async fn load(
        gpu: Arc<Gpu>,
        graph: &Graph,
        config: PlanConfig,
        tensors: impl Tensors + Send + Sync + 'static,
        progress: impl FnMut(Progress),
    ) -> Result<GpuModel, RuntimeError> {
        GpuModel::load_on(&[gpu], graph, config, tensors, progress).await
    }

    /// The same on several devices: each gets layers with their cache, in proportion to its share
    /// ([`PlanConfig::shares`]). The last has the head and samples. Activations cross to the next device through the
    /// CPU: a token waits for each boundary, while the devices run different pieces of prompts.
    ///
    /// # Errors
    /// As [`Self::load`]; [`PlanError::Cut`] if the model cannot be cut into that many parts, [`PlanError::Shares`] if
    /// the number of shares differs from the number of devices, [`PlanError::NoDevice`] for none,
    /// [`PlanError::OneDevice`] in a browser.
    pub async fn load_on(
        gpus: &[Arc<Gpu>],
        graph: &Graph,
        config: PlanConfig,
        tensors: impl Tensors + Send + Sync + 'static,
        progress: impl FnMut(Progress),
    ) -> Result<GpuModel, RuntimeError> {
        GpuModel::load_after_cpu(gpus, None, graph, config, tensors, progress).await
    }

    /// The same with the first layers on the CPU ([`PlanConfig::cpu`]), by these sizes, which must be those of the
    /// plan.
    ///
    /// # Errors
    /// As [`Self::load_on`]; [`PlanError::OffloadAfterCpu`]; [`RuntimeError::Threads`].
    pub async fn load_after_cpu(
        gpus: &[Arc<Gpu>],
        cpu: Option<CpuConfig>,
        graph: &Graph,
        config: PlanConfig,
        tensors: impl Tensors + Send + Sync + 'static,
        mut progress: impl FnMut(Progress),
    ) -> Result<GpuModel, RuntimeError> {
        debug_assert_eq!(cpu.is_some(), config.cpu.is_some(), "the CPU has sizes if it has layers");
        assert!(config.ring.is_power_of_two(), "the ring's size is a power of two");
        if cfg!(target_arch = "wasm32") && config.experts.n_layer > 0 {
            return Err(PlanError::NoStreaming.into());
        }
        if cfg!(target_arch = "wasm32") && (gpus.len() > 1 || cpu.is_some()) {
            return Err(PlanError::OneDevice.into());
        }
        let clock = Clock::start();
        let (groups, segments) = planned(gpus, graph, &config)?;
        let missing = missing(gpus, &segments);
        let n_kernel = missing.iter().map(|m| m.len() as u64).sum();
        let compiling = |done| Progress { stage: Stage::Compile, done, total: n_kernel };
        progress(compiling(0));
        let stop = StopOnDrop(Arc::default());
        let background = {
            let (gpus, stop) = (gpus.to_vec(), stop.0.clone());
            Background::start(move || {
                let mut all = gpus.iter().zip(&missing);
                (all.try_for_each(|(gpu, missing)| gpu.compile_all(missing, &stop)), clock.elapsed())
            })
        };
        #[cfg(not(target_arch = "wasm32"))]
        let tensors = Arc::new(tensors);
        let parts = make_buffers(gpus, graph, &groups, &segments, &config, &tensors, &mut progress).await?;
        let is_exact = config.inputs == Some(ActivationPrecision::F32);
        let report = |done, total| progress(Progress { stage: Stage::Upload, done, total });
        let first = First::load(graph, segments.cpu.as_ref(), (cpu, !is_exact), &tensors, report).await?;
        let upload = clock.elapsed();
        if !background.is_done() {
            progress(compiling(0));
        }
        let (compiled, compile) = background.join();
        compiled?;
        progress(compiling(n_kernel));
        // By default sequence s has the s-th run of pages, modulo the pool.
        let at = step::pages_at(config.max_col as usize);
        let pages: Vec<u32> =
            (0..config.n_seq * config.pages_per_seq()).map(|page| page % config.n_page().max(1)).collect();
        for Part { gpu, buffers } in &parts {
            gpu.queue.write_buffer(&buffers.step, at as u64 * 4, bytemuck::cast_slice(&pages));
            gpu.check_alive()?;
        }
        let streams = Streams::new(graph, groups.clone(), tensors);
        let lanes = if streams.is_none() { Lanes::new(&parts, first.is_some()) } else { None };
        let mut others = parts;
        let Part { gpu, buffers } = others.pop().expect("a model has a device");
        let main = Recorder { gpu: &gpu, lane: None, buffers: &buffers, ablation: Ablation::default() };
        let ready = ready(Devices { others: &others, main }, &segments)?;
        let mut memory = Memory::of(&segments.buffers);
        memory.items.extend(first.as_ref().map(First::memory));
        let times = LoadTimes { compile, upload, total: clock.elapsed() };
        Ok(GpuModel {
            picks: Vec::new(),
            words: vec![0; step::pages_at(config.max_col as usize)],
            ready,
            buffers,
            scales: Scales::new(graph, &groups, config.n_seq),
            first,
            streams,
            lanes,
            n_step_sent: 0,
            read_at: None,
            others,
            memory,
            specs: segments.buffers,
            all_cols: segments.all_cols,
            n_choice: segments.n_choice,
            steps: Steps::default(),
            hidden: segments.hidden,
            hidden_cols: segments.hidden_cols,
            n_vocab: graph.logits.map_or(0, |l| graph.width(l)),
            ld_logits: segments.ld_logits,
            n_layer: segments.n_layer,
            gpu,
            last_chosen: vec![LastChosen::Unknown; config.n_seq as usize],
            ring_at: vec![0; config.n_seq as usize],
            next_staging: 0,
            adjusts: vec![false; config.n_seq as usize],
            pace: Pace::new(segments.prompt.last().map_or(1, |p| tile_of(&p.body))),
            times,
            ablation: Ablation::default(),
            rows: segments.rows,
            has_sections: graph.ropes.iter().any(|rope| rope.sections.is_some()),
            n_row: 0,
            shifts: Vec::new(),
            has_state: !graph.states.is_empty(),
            is_encoder: graph.is_encoder(),
            state_at: vec![Some(0); config.n_seq as usize],
            windows: graph.kv.iter().map(|l| l.window).collect(),
            config,
        })
    }
}

/// Stops compiling early if loading is cancelled.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Placement of weights, and the segments of each device.
fn planned(
    gpus: &[Arc<Gpu>],
    graph: &Graph,
    config: &PlanConfig,
) -> Result<(Groups, Segments), RuntimeError> {
    let devices: Vec<&Caps> = gpus.iter().map(|gpu| gpu.caps()).collect();
    let steps = fuse(graph, config.rules());
    let mut groups = Groups::of_devices(graph, &steps, &devices, &config.experts)?;
    let segments = plan_on(graph, &steps, &mut groups, &devices, config)?;
    Ok((groups, segments))
}

/// Kernels of each device that are not compiled there.
fn missing(gpus: &[Arc<Gpu>], segments: &Segments) -> Vec<Vec<Dispatch>> {
    let of = |(device, gpu): (usize, &Arc<Gpu>)| {
        let missing = gpu.missing(segments.of_device(device).map(|p| &p.dispatch));
        let is_there = |d: &Dispatch| {
            let op = Op::of(d.kernel);
            d.kernel.features.coop || op.on_web() || op.is_replaced_on_web()
        };
        debug_assert!(missing.iter().all(is_there), "models have an operation that browsers lack");
        missing
    };
    gpus.iter().enumerate().map(of).collect()
}

/// All dispatches, ready to be recorded.
fn ready(devices: Devices<'_>, segments: &Segments) -> Result<ReadySegments, RuntimeError> {
    let last = devices.others.len();
    let on_device = |device: usize, s: &Segment| -> Result<ReadySegment, RuntimeError> {
        s.iter().map(|p| make_ready(devices.recorder(device), device, p)).collect()
    };
    let ready = |s: &Segment| on_device(last, s);
    let body = |stages: &[PlanStage]| -> Result<(Vec<Ready>, Vec<ReadyStage>), RuntimeError> {
        let mut all = Vec::new();
        for stage in stages {
            all.extend(on_device(stage.place.device(), &stage.segment)?);
        }
        Ok((all, ReadyStage::all(stages)))
    };
    let head = |h: &HeadPlan| -> Result<ReadyHead, RuntimeError> {
        Ok(ReadyHead { max_row: h.max_row, pick: ready(&h.pick)?, head: ready(&h.head)? })
    };
    let mut decode = Vec::new();
    for d in &segments.decode {
        let (body, stages) = body(&d.body)?;
        decode.push(ReadyDecode { max_key: d.max_key, body, stages, head: ready(&d.head)? });
    }
    let mut prompt = Vec::new();
    for p in &segments.prompt {
        let (body, stages) = body(&p.body)?;
        prompt.push(ReadyPrompt {
            max_col: p.max_col,
            has_each: body.iter().any(|r| matches!(r.planned.columns, Growth::Each(_))),
            body,
            stages,
            heads: p.heads.iter().map(head).collect::<Result<_, _>>()?,
            hidden: ready(&p.hidden.segment)?,
            hidden_at: p.hidden.act,
        });
    }
    Ok(ReadySegments {
        decode,
        prompt,
        take_chosen: ready(&segments.take_chosen)?,
        mask: ready(&segments.mask)?,
        adjust: ready(&segments.adjust)?,
        argmax: ready(&segments.argmax)?,
        sample: ready(&segments.sample)?,
        sample_wide: ready(&segments.sample_wide)?,
    })
}
