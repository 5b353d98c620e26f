//! Loading a model with progress bars and the kernel cache, and notes about the device.

use std::path::Path;
use std::time::Instant;

use chaski::errors::ModelError;
use chaski::experts::AbsentExperts;
use chaski::gpu::Stage;
use chaski::kernels::Tuning;
use chaski::options::Speculation;
use chaski::{DeviceChoice, Engine, Source};

use crate::cache::{self, WarmCache};
use crate::options::{EngineArgs, Part, Shares, feature_word};
use crate::swarm;
use crate::tuned;
use crate::ui::{LoadTimes, Ui, bytes};

/// A loaded model.
pub(crate) struct Loaded {
    pub(crate) engine: Engine,
    pub(crate) times: LoadTimes,
}

/// Loads a model according to the options.
pub(crate) fn load(source: Source, args: &EngineArgs, ui: &Ui) -> anyhow::Result<Loaded> {
    let loaded = for_speed(source, args, ui)?;
    let trained = loaded.engine.info().n_ctx_train;
    if args.ctx_size > trained {
        ui.note(&format!(
            "the context of {} tokens is longer than the {trained} that the model was trained with: expect worse answers beyond",
            args.ctx_size
        ));
    }
    Ok(loaded)
}

/// The same for measurements of speed, where the quality of answers does not matter.
pub(crate) fn for_speed(source: Source, args: &EngineArgs, ui: &Ui) -> anyhow::Result<Loaded> {
    let start = Instant::now();
    let remembers = !args.no_warm_cache;
    // With a feature set, `auto` takes software renderers, too; without its test, a GPU that failed it.
    let is_plain = args.features.is_none() && !args.no_self_test;
    let placed = args.placed();
    let on_cpu = args.swarm.is_exact_hub();
    let is_auto = placed == DeviceChoice::Auto && is_plain && remembers && !on_cpu;
    let fallback = if is_auto { cache::known_fallback() } else { None };
    let shares = Shares::of(args.tensor_split.as_ref(), &placed)?;
    let device = if on_cpu || fallback.is_some() { DeviceChoice::Cpu } else { placed };
    let cache = if remembers { WarmCache::open(&device) } else { None };
    let progress = ui.loading();
    let (mut show, part) = (progress.callback(), args.part.clone());
    let (no_tuning, no_self_test) = (args.no_tuning, args.no_self_test);
    let experts = swarm::start(&source, args, ui)?;
    let mut builder = args
        .lora
        .attach(Engine::builder(source))?
        .context(args.ctx_size)
        .kv(args.kv()?)
        .chunk(args.chunk)
        .sequences(args.sequences)
        .experts_on_cpu(args.experts.experts_on_cpu)
        .expert_slots(args.experts.expert_slots)
        .f16_tiles(args.f16_tiles)
        .deterministic(args.deterministic)
        .inputs(args.inputs)
        .checked(args.checked)
        .threads(args.threads.threads, args.threads.threads_batch)
        .map(!args.no_mmap)
        .repack(!args.no_repack)
        .device(device)
        .shares(shares)
        .tuning(move |adapter| if no_tuning { Tuning::default() } else { tuned::known(adapter) })
        .self_test(move |adapter| no_self_test || (remembers && cache::is_tested(adapter)))
        .pipeline_cache(cache.as_ref().and_then(WarmCache::data))
        .on_progress(move |p| {
            if let Some(Part(tell)) = part.as_ref().filter(|_| p.stage == Stage::Upload) {
                tell(p.done as f32 / p.total.max(1) as f32);
            }
            show(p);
        });
    if let Some(experts) = experts {
        builder = builder.experts(experts);
        if args.swarm.experts_away {
            builder = builder.absent_experts(AbsentExperts::All);
        }
    }
    if let Some(service) = args.service {
        builder = builder.max_waiting(service.max_waiting).kv_fits(true);
        if let Some(n) = service.kv_tokens {
            builder = builder.kv_tokens(n);
        }
        if let Some(n_byte) = service.kv_memory {
            builder = builder.kv_memory(n_byte);
        }
        if let Some(n) = service.step_tokens {
            builder = builder.step_tokens(n as usize);
        }
    }
    if let Some(n) = args.gpu_layers() {
        builder = builder.gpu_layers(n);
    }
    if let Some(set) = args.features {
        builder = builder.feature_set(set.into());
    }
    for (key, value) in args.metadata.changes() {
        builder = builder.metadata(key, value);
    }
    let engine = pollster::block_on(builder.build())?;
    progress.finish();
    let total = start.elapsed();
    let on_gpu = engine.loaded().gpu().map(|g| g.load_times()).unwrap_or_default();
    let times = LoadTimes { compile: on_gpu.compile, upload: on_gpu.upload, total };
    if let Some(cache) = cache {
        cache.save(&engine);
    }
    if engine.device().distrust.is_none() && remembers && !no_self_test {
        let gpus = engine.gpus().iter().map(|gpu| gpu.summary());
        gpus.filter(|s| !cache::is_tested(s)).for_each(cache::remember_test);
    }
    let found = engine.device().fallback.as_deref();
    if let (true, Some(reason)) = (is_auto, found) {
        cache::remember_fallback(reason);
    }
    speak_of_device(&engine, fallback.as_deref().or(found), ui);
    if args.explain {
        explain(&engine);
    }
    Ok(Loaded { engine, times })
}

/// Loads the draft model on the same device as the main model.
pub(crate) fn draft(file: &Path, args: &EngineArgs, engine: &Engine, ui: &Ui) -> anyhow::Result<Engine> {
    let progress = ui.loading();
    let no_tuning = args.no_tuning;
    let mut builder = Engine::builder(Source::path(file))
        .context(engine.loaded().n_ctx())
        .kv(args.kv()?)
        .chunk(args.chunk)
        .sequences(args.sequences.min(Speculation::MAX_RUNNING as u32))
        .threads(args.threads.threads, args.threads.threads_batch)
        .map(!args.no_mmap)
        .repack(!args.no_repack)
        .device(DeviceChoice::Cpu)
        .tuning(move |adapter| if no_tuning { Tuning::default() } else { tuned::known(adapter) })
        .on_progress(progress.callback());
    if let Some(gpu) = engine.gpu() {
        builder = builder.gpu(gpu.clone());
    }
    let draft = pollster::block_on(builder.build())?;
    progress.finish();
    let (found, expected) = (draft.loaded().n_vocab(), engine.loaded().n_vocab());
    if found != expected {
        return Err(ModelError::Draft { found, expected }.into());
    }
    Ok(draft)
}

/// Prints the kernel of each part of a token and why it was chosen; identical parts share a line.
fn explain(engine: &Engine) {
    let Some(model) = engine.loaded().gpu() else {
        eprintln!(
            "the CPU backend has no kernels: products use integer arithmetic (f32 with `--inputs f32`), other ops run the references"
        );
        return;
    };
    let mut lines: Vec<(&str, &str, String, usize)> = Vec::new();
    for (part, kernel, why) in model.explain() {
        match lines.iter_mut().find(|l| (l.0, l.1, &l.2) == (part, kernel, &why)) {
            Some(l) => l.3 += 1,
            None => lines.push((part, kernel, why, 1)),
        }
    }
    for (part, kernel, why, n) in lines {
        eprintln!("{n:>4} x {part:<10} {kernel:<44} {why}");
    }
}

fn speak_of_device(engine: &Engine, fallback: Option<&str>, ui: &Ui) {
    let device = engine.device().clone();
    if let Some(reason) = fallback {
        ui.note(&format!("running on the CPU, which is slow: {reason}"));
    }
    if let Some(reason) = &device.distrust {
        ui.note(&format!("using fewer device features: {reason}"));
    }
    let info = engine.info();
    ui.detail(&format!("model   {} ({}, {})", info.file, info.description, bytes(info.n_byte)));
    let software = device.caps.as_ref().is_some_and(|c| c.software);
    let kind = if software { ", a software renderer" } else { "" };
    let set = device.caps.as_ref().map_or(String::new(), |c| format!(", feature set {}", feature_word(c)));
    ui.detail(&format!("device  {} ({}){set}{kind}", device.name, device.driver));
    let runner = engine.loaded();
    ui.detail(&format!("context {} tokens, KV cache {}", runner.n_ctx(), runner.kv_type()));
}
