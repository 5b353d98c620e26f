//! One result: the fields of llama-bench, and more, about the build, the machine, the setup and the test.

use std::time::{SystemTime, UNIX_EPOCH};

use chaski::kernels::ActivationPrecision;
use chaski::text::LocalTime;
use chaski::{DeviceChoice, Engine, KvType};
use serde_json::{Map, Value, json};

use super::measure::{ExpertCost, Samples, Test, deviation, mean};
use super::output::Record;
use super::sql::FIELDS;
use super::{Args, Setup};
use crate::options::{self, EngineArgs, Split};
use crate::ui::LoadTimes;

/// Columns that differ between rows, or from the defaults.
pub(super) struct Columns {
    ngl: bool,
    threads: bool,
    device: bool,
    shares: bool,
    features: bool,
    tiles: bool,
    inputs: bool,
    batch: bool,
    chunk: bool,
    kv: bool,
    experts: bool,
}

impl Columns {
    /// For these setups; `on_cpu` says where the first one runs.
    pub(super) fn new(setups: &[Setup], on_cpu: bool) -> Self {
        let any = |f: &dyn Fn(&EngineArgs) -> bool| setups.iter().any(|s| f(&s.engine));
        let first = setups.first().map(|s| s.engine.device.clone());
        let is_cpu =
            |e: &EngineArgs| e.device == DeviceChoice::Cpu || on_cpu && Some(&e.device) == first.as_ref();
        Columns {
            ngl: any(&|e| !is_cpu(e)),
            threads: any(&|e| is_cpu(e) || e.threads.threads > 0),
            device: any(&|e| Some(&e.device) != first.as_ref()),
            shares: any(&|e| e.tensor_split.is_some()),
            features: any(&|e| e.features.is_some()),
            tiles: any(&|e| e.f16_tiles),
            inputs: any(&|e| e.inputs.is_some()),
            batch: setups.iter().any(|s| s.n_batch != 2048),
            chunk: any(&|e| e.chunk != 512),
            kv: any(&|e| e.kv != KvType::Auto),
            experts: any(&|e| e.experts.experts_on_cpu > 0),
        }
    }
}

fn round(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
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
    let mut all = as_llama_bench(engine, setup, test, samples);
    let mut fields = Map::new();
    for (name, _) in FIELDS {
        fields.insert(name.to_owned(), all.remove(name).expect("every field has a value"));
    }
    fields.extend(of_load(engine, setup, samples, times));
    fields.extend(of_run(args, setup, test, samples));
    let columns = cells(engine, setup, columns, samples, &fields);
    Record { fields, test: *test, columns }
}

/// The values of llama-bench's fields.
fn as_llama_bench(engine: &Engine, setup: &Setup, test: &Test, samples: &Samples) -> Map<String, Value> {
    let info = engine.info();
    let (type_k, type_v) = match engine.loaded().kv_type() {
        KvType::Of { k, v } => (k.name(), v.name()),
        KvType::Auto => ("auto", "auto"),
    };
    let gpus: Vec<&str> = engine.gpus().iter().map(|gpu| gpu.summary().name.as_str()).collect();
    let backend = engine.gpu().map_or("CPU".to_owned(), |gpu| capitalised(&gpu.summary().backend));
    let (ns, rates, e) = (samples.ns(), samples.rates(), &setup.engine);
    let shares = e.tensor_split.as_ref().map_or("0.00".to_owned(), ToString::to_string);
    let devices = match &e.device {
        DeviceChoice::Auto | DeviceChoice::Gpu(None) => "auto".to_owned(),
        DeviceChoice::Cpu => "none".to_owned(),
        _ => gpus.join("/"),
    };
    let machine = json!({
        "build_commit": env!("CHASKI_COMMIT"),
        "build_number": env!("CHASKI_BUILD_NUMBER").parse::<u64>().unwrap_or(0),
        "cpu_info": cpu_info(),
        "gpu_info": gpus.join(", "),
        "backends": backend,
        "model_filename": info.file,
        "model_type": info.description,
        "model_size": info.n_byte,
        "model_n_params": info.n_param,
    });
    let options = json!({
        "n_batch": setup.n_batch,
        "n_ubatch": e.chunk,
        "n_threads": n_thread(engine),
        "type_k": type_k,
        "type_v": type_v,
        "n_gpu_layers": if gpus.is_empty() { 0 } else { e.gpu_layers().unwrap_or(99) },
        "n_cpu_moe": e.experts.experts_on_cpu,
        "split_mode": if e.split == Some(Split::None) { "none" } else { "layer" },
        "main_gpu": 0,
        "flash_attn": 1,
        "devices": devices,
        "tensor_split": shares,
        "load_mode": "none",
    });
    // Options that this program lacks, at the values of its only way.
    let fixed = json!({
        "cpu_mask": "0x0",
        "cpu_strict": false,
        "poll": 0,
        "no_kv_offload": false,
        "tensor_buft_overrides": "none",
        "embeddings": false,
        "no_op_offload": 0,
        "no_host": false,
        "fit_target": 0,
        "fit_min_ctx": 0,
    });
    let result = json!({
        "n_prompt": test.n_prompt,
        "n_gen": test.n_gen,
        "n_depth": test.n_depth,
        "test_time": now(),
        "avg_ns": mean(&ns).round() as u64,
        "stddev_ns": deviation(&ns).round() as u64,
        "avg_ts": round(mean(&rates)),
        "stddev_ts": round(deviation(&rates)),
    });
    [machine, options, fixed, result].into_iter().flat_map(object).collect()
}

/// Fields of our own: the device, the model on it, and its loading.
fn of_load(engine: &Engine, setup: &Setup, samples: &Samples, times: &LoadTimes) -> Map<String, Value> {
    let (device, e) = (engine.device(), &setup.engine);
    let summary = engine.gpu().map(|g| g.summary());
    let dispatches = engine.loaded().gpu().map(|g| g.dispatches_per_token());
    object(json!({
        "ttft_ms": samples.first_ms().map(round),
        "load_ms": round(times.total.as_secs_f64() * 1e3),
        "compile_ms": round(times.compile.as_secs_f64() * 1e3),
        "upload_ms": round(times.upload.as_secs_f64() * 1e3),
        "peak_gpu_bytes": summary.is_some().then_some(engine.memory().n_byte()),
        "dispatches_per_token": dispatches.map(|(_, all)| all),
        "dispatches_per_layer": dispatches.map(|(per_layer, _)| per_layer),
        "feature_set": device.caps.as_ref().map(options::feature_word),
        "f16_tiles": e.f16_tiles,
        "inputs": inputs(e),
        "deterministic": e.deterministic,
        "checked": e.checked,
        "driver": device.driver,
        "wgpu": env!("CHASKI_WGPU_VERSION"),
        "max_binding_bytes": device.caps.as_ref().map(|c| c.max_binding_bytes),
        "max_buffer_bytes": summary.map(|s| s.max_buffer_bytes),
    }))
}

/// Fields of our own: the runs.
fn of_run(args: &Args, setup: &Setup, test: &Test, samples: &Samples) -> Map<String, Value> {
    let (cost, e) = (samples.expert_cost(), &setup.engine);
    let of_cost = |f: fn(&ExpertCost) -> f64| cost.as_ref().map(f);
    object(json!({
        "host_us_per_token": samples.host_us(test).map(round),
        "peak_process_bytes": peak_process_bytes(),
        "interval": args.interval,
        "ablate": words(&args.ablate),
        "experts_on_cpu": e.experts.experts_on_cpu,
        "expert_slots": e.experts.expert_slots,
        "expert_hits": of_cost(|c| c.hits).map(round),
        "experts_wanted_per_token": of_cost(|c| c.wanted_per_token).map(round),
        "expert_bytes_per_token": of_cost(|c| c.bytes_per_token).map(f64::round),
        "samples_ns": samples.ns().iter().map(|n| *n as u64).collect::<Vec<_>>(),
        "samples_ts": samples.rates().into_iter().map(round).collect::<Vec<_>>(),
    }))
}

/// Cells of the table, with llama-bench's titles and order, then those of our own options.
fn cells(
    engine: &Engine,
    setup: &Setup,
    columns: &Columns,
    samples: &Samples,
    fields: &Map<String, Value>,
) -> Vec<(&'static str, String, usize)> {
    let (cost, e) = (samples.expert_cost(), &setup.engine);
    let of_cost = |f: fn(&ExpertCost) -> f64| cost.as_ref().map(f);
    let cell = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    let of = |name: &str| match &fields[name] {
        Value::String(s) => s.clone(),
        value => value.to_string(),
    };
    let set = engine.device().caps.as_ref().map_or("-", options::feature_word);
    let hits = of_cost(|c| 100.0 * c.hits).map(|p| format!("{p:.1}%"));
    let mib = of_cost(|c| c.bytes_per_token / f64::from(1 << 20)).map(|n| format!("{n:.2}"));
    let all = [
        (columns.ngl, "ngl", of("n_gpu_layers"), 3),
        (columns.experts, "n_cpu_moe", of("n_cpu_moe"), 10),
        (columns.threads, "threads", of("n_threads"), 7),
        (columns.batch, "n_batch", of("n_batch"), 7),
        (columns.chunk, "n_ubatch", of("n_ubatch"), 8),
        (columns.kv, "type_k", of("type_k"), 6),
        (columns.kv, "type_v", of("type_v"), 6),
        (columns.device, "dev", engine.device().name.clone(), 12),
        (columns.shares, "ts", of("tensor_split"), 10),
        (columns.features, "features", set.to_owned(), 8),
        (columns.tiles, "f16_tiles", u8::from(e.f16_tiles).to_string(), 8),
        (columns.inputs, "inputs", inputs(e).to_owned(), 8),
        (columns.experts, "slots", e.experts.expert_slots.to_string(), 8),
        (columns.experts, "hits", cell(hits), 8),
        (columns.experts, "MiB/token", cell(mib), 8),
    ];
    all.into_iter()
        .filter(|(wanted, ..)| *wanted)
        .map(|(_, title, value, width)| (title, value, width))
        .collect()
}

fn inputs(e: &EngineArgs) -> &'static str {
    e.inputs.map_or("auto", ActivationPrecision::word)
}

/// The fields of an object that is written as one.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
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
pub(super) fn now() -> String {
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
pub(super) fn cpu_info() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("model name"));
    line.and_then(|l| l.split_once(':'))
        .map_or(std::env::consts::ARCH.to_owned(), |(_, v)| v.trim().to_owned())
}
