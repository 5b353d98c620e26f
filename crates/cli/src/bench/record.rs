//! One result: the fields of llama-bench, and more, about the build, the machine, the setup and the test.

use std::time::{SystemTime, UNIX_EPOCH};

use chaski::kernels::ActivationPrecision;
use chaski::text::LocalTime;
use chaski::{DeviceChoice, Engine, KvType};
use serde_json::{Map, Value, json};

use super::measure::{ExpertCost, Samples, Test, deviation, mean};
use super::output::Record;
use super::{Args, Setup};
use crate::options::{self, EngineArgs};
use crate::ui::LoadTimes;

/// Columns that differ between rows, or from the defaults.
pub(super) struct Columns {
    device: bool,
    shares: bool,
    features: bool,
    tiles: bool,
    inputs: bool,
    chunk: bool,
    threads: bool,
    kv: bool,
    experts: bool,
}

impl Columns {
    pub(super) fn new(setups: &[Setup]) -> Self {
        let any = |f: &dyn Fn(&EngineArgs) -> bool| setups.iter().any(|s| f(&s.engine));
        let first = setups.first().map(|s| s.engine.device.clone());
        Columns {
            device: any(&|e| Some(&e.device) != first.as_ref()),
            shares: any(&|e| e.tensor_split.is_some()),
            features: any(&|e| e.features.is_some()),
            tiles: any(&|e| e.f16_tiles),
            inputs: any(&|e| e.inputs.is_some()),
            chunk: any(&|e| e.chunk != 512),
            threads: any(&|e| e.device == DeviceChoice::Cpu || e.threads.threads > 0),
            kv: any(&|e| e.kv != KvType::Auto),
            experts: any(&|e| e.experts.experts_on_cpu > 0),
        }
    }
}

/// The result of a test, with its setup and environment.
pub(super) fn record(
    engine: &mut Engine,
    args: &Args,
    setup: &Setup,
    columns: &Columns,
    test: &Test,
    samples: &Samples,
    times: &LoadTimes,
) -> Record {
    let info = engine.info();
    let device = engine.device().clone();
    let summary = engine.gpu().map(|g| g.summary().clone());
    let memory = engine.memory().n_byte();
    let kv = engine.loaded().kv_type();
    let (type_k, type_v) = match kv {
        KvType::Of { k, v } => (k.name(), v.name()),
        KvType::Auto => ("auto", "auto"),
    };
    let n_thread = n_thread(engine);
    let dispatches = engine.loaded().gpu().map(|g| g.dispatches_per_token());
    let backend = summary.as_ref().map_or("CPU".to_owned(), |s| capitalised(&s.backend));
    let set = device.caps.as_ref().map(options::feature_word);
    let (ns, rates) = (samples.ns(), samples.rates());
    let round = |x: f64| (x * 1e6).round() / 1e6;
    let e = &setup.engine;
    let inputs = e.inputs.map_or("auto", ActivationPrecision::word).to_owned();
    let fields = json!({
        "build_commit": env!("CHASKI_COMMIT"),
        "build_number": env!("CHASKI_BUILD_NUMBER").parse::<u64>().unwrap_or(0),
        "cpu_info": cpu_info(),
        "gpu_info": summary.as_ref().map_or("", |s| s.name.as_str()),
        "backends": backend,
        "model_filename": info.file,
        "model_type": info.description,
        "model_size": info.n_byte,
        "model_n_params": info.n_param,
        "n_batch": setup.n_batch,
        "n_ubatch": e.chunk,
        "n_threads": n_thread,
        "type_k": type_k,
        "type_v": type_v,
        "n_gpu_layers": if summary.is_some() { 99 } else { 0 },
        "flash_attn": true,
        "n_prompt": test.n_prompt,
        "n_gen": test.n_gen,
        "n_depth": test.n_depth,
        "test_time": now(),
        "avg_ns": mean(&ns).round() as u64,
        "stddev_ns": deviation(&ns).round() as u64,
        "avg_ts": round(mean(&rates)),
        "stddev_ts": round(deviation(&rates)),
        "ttft_ms": samples.first_ms().map(round),
        "load_ms": round(times.total.as_secs_f64() * 1e3),
        "compile_ms": round(times.compile.as_secs_f64() * 1e3),
        "peak_gpu_bytes": summary.is_some().then_some(memory),
        "dispatches_per_token": dispatches.map(|(_, all)| all),
        "dispatches_per_layer": dispatches.map(|(per_layer, _)| per_layer),
        "feature_set": set,
        "f16_tiles": e.f16_tiles,
        "inputs": inputs,
        "checked": e.checked,
        "driver": device.driver,
        "wgpu": env!("CHASKI_WGPU_VERSION"),
        "max_binding_bytes": device.caps.as_ref().map(|c| c.max_binding_bytes),
        "max_buffer_bytes": summary.as_ref().map(|s| s.max_buffer_bytes),
        "samples_ns": ns.iter().map(|n| *n as u64).collect::<Vec<_>>(),
        "samples_ts": rates.iter().copied().map(round).collect::<Vec<_>>(),
    });
    let mut extra = Vec::new();
    let mut add = |wanted: bool, title, value: String| {
        if wanted {
            extra.push((title, value));
        }
    };
    add(columns.threads, "threads", n_thread.to_string());
    add(columns.chunk, "n_ubatch", e.chunk.to_string());
    add(columns.kv, "type_kv", kv.to_string());
    add(columns.features, "features", set.unwrap_or("-").to_owned());
    add(columns.tiles, "f16_tiles", u8::from(e.f16_tiles).to_string());
    add(columns.inputs, "inputs", inputs.clone());
    add(columns.device, "device", device.name);
    let shares = e.tensor_split.as_ref().map_or(String::new(), ToString::to_string);
    add(columns.shares, "ts", shares.clone());
    let cost = samples.expert_cost();
    let of_cost = |f: fn(&ExpertCost) -> f64| cost.as_ref().map(f);
    let cell = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    add(columns.experts, "experts_cpu", e.experts.experts_on_cpu.to_string());
    add(columns.experts, "slots", e.experts.expert_slots.to_string());
    add(columns.experts, "hits", cell(of_cost(|c| 100.0 * c.hits).map(|p| format!("{p:.1}%"))));
    let mib = of_cost(|c| c.bytes_per_token / f64::from(1 << 20)).map(|n| format!("{n:.2}"));
    add(columns.experts, "MiB/token", cell(mib));
    // Fields that llama-bench lacks, in their own object: the macro has a limit.
    let more = json!({
        "upload_ms": round(times.upload.as_secs_f64() * 1e3),
        "host_us_per_token": samples.host_us(test).map(round),
        "peak_process_bytes": peak_process_bytes(),
        "interval": args.interval,
        "ablate": words(&args.ablate),
        "tensor_split": shares,
        "experts_on_cpu": e.experts.experts_on_cpu,
        "expert_slots": e.experts.expert_slots,
        "expert_hits": of_cost(|c| c.hits).map(round),
        "experts_wanted_per_token": of_cost(|c| c.wanted_per_token).map(round),
        "expert_bytes_per_token": of_cost(|c| c.bytes_per_token).map(f64::round),
    });
    let objects =
        [fields, more].into_iter().filter_map(|v| if let Value::Object(m) = v { Some(m) } else { None });
    let fields: Map<String, Value> = objects.flatten().collect();
    Record { fields, test: *test, extra }
}

/// CPU threads that generate tokens; on a GPU, those of the machine.
fn n_thread(engine: &Engine) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    engine.loaded().n_thread(1).unwrap_or_else(all)
}

/// The words of a list of options.
fn words<T: clap::ValueEnum>(values: &[T]) -> String {
    let names = values.iter().filter_map(T::to_possible_value);
    names.map(|v| v.get_name().to_owned()).collect::<Vec<_>>().join(",")
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}

/// Now in UTC, as `2026-01-02T03:04:05Z`.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs() as i64);
    LocalTime::from_unix(seconds, 0).strftime("%Y-%m-%dT%H:%M:%SZ")
}

/// Peak memory of this process in bytes, if the system reports it in a file.
fn peak_process_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// The CPU's name, if the system reports it in a file.
fn cpu_info() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("model name"));
    line.and_then(|l| l.split_once(':'))
        .map_or(std::env::consts::ARCH.to_owned(), |(_, v)| v.trim().to_owned())
}
