//! `chaski bench`: prefill and decode speed, like llama-bench.

mod batched;
mod measure;
mod output;
mod profile;
mod range;
mod record;
mod sql;
mod steps;

use std::path::{Path, PathBuf};
use std::time::Duration;

use chaski::gpu::Ablation;
use chaski::{DeviceChoice, Engine, KvType};
use serde_json::Value;

use self::batched::Batch;
use self::measure::{Bench, Test};
use self::output::{Format, Writer};
use self::profile::Named;
use self::range::{List, Pair};
use self::record::{Columns, record};
use crate::failure::Usage;
use crate::load::{self, Loaded};
use crate::lora::LoraArgs;
use crate::model_names::{Role, Visit};
use crate::options::{self, EngineArgs, ExpertArgs, Features, GpuLayers, Shares, ThreadArgs, kv_pair};
use crate::output::{files_of_model, try_to_write};
use crate::overrides::MetadataArgs;
use crate::peaks;
use crate::progress::Unit;
use crate::swarm_options::SwarmArgs;
use crate::ui::{LoadTimes, Ui, bytes};

pub(crate) const LONG: &str = "\
Measures speed: test ppN processes a prompt of N tokens, test tgN generates N tokens.

Numbers may be lists (1,2,4) and ranges (1-4, 128-512+128, 1-64*2); every combination is measured. File I/O, \
tokenisation and sampling are not timed: prompts are random tokens, and generation is greedy, \
on the device. Generation at depth 0 starts after one token.

With --n-parallel, prompts and answers of that many sequences run at once, every combination once: PP and TG are the tokens \
of each prompt and answer, B the sequences, N_KV the tokens in the KV cache at the end, T_ times and S_ tokens a second.";

/// Default number of tokens per group on the device.
const GROUP: u32 = 16;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// GGUF files, or names such as hf:org/repo:Q4_K_M [default: the built-in model]
    #[arg(value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// The same; may be repeated or comma-separated
    #[arg(short, long, value_name = "FILE")]
    model: Vec<String>,
    /// Prompt tokens; 0 disables the test (also -npp) [default: 512]
    #[arg(short = 'p', long, value_name = "N", value_parser = range::list)]
    n_prompt: Vec<List>,
    /// Tokens to generate; 0 disables the test (also -ntg) [default: 128]
    #[arg(short = 'n', long, value_name = "N", value_parser = range::list)]
    n_gen: Vec<List>,
    /// Prompt of P tokens followed by N generated tokens, timed together (also -pg)
    #[arg(long, value_name = "P,N", value_parser = range::pair)]
    prompt_gen: Vec<Pair>,
    /// Sequences at once, such as 1,2,4,8,16,32,64: each with a prompt and an answer, timed apart, in the columns of
    /// llama-batched-bench (also -npl)
    #[arg(long, value_name = "N", value_parser = range::list, conflicts_with_all = ["prompt_gen", "n_depth"])]
    n_parallel: Vec<List>,
    /// Tokens in the KV cache before a test [default: 0]
    #[arg(short = 'd', long, value_name = "N", value_parser = range::list)]
    n_depth: Vec<List>,
    /// Logical batch size; here only an upper bound for --ubatch-size
    #[arg(short = 'b', long, value_name = "N", value_parser = range::list)]
    batch_size: Vec<List>,
    /// Prompt tokens per chunk (also -ub) [default: 512]
    #[arg(long, value_name = "N", value_parser = range::list)]
    ubatch_size: Vec<List>,
    /// Threads that compute on the CPU; 0: one for each core [default: 0]
    #[arg(short, long, value_name = "N", value_parser = range::threads, allow_negative_numbers = true)]
    threads: Vec<List>,
    /// KV cache type of the keys: auto, f32, f16, bf16, q8_0, q4_0 ...; default auto, or f16 with -ctv (also -ctk)
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    cache_type_k: Vec<KvType>,
    /// KV cache type of the values; default: that of the keys (also -ctv)
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    cache_type_v: Vec<KvType>,
    /// auto, gpu, cpu, or the name or index of a GPU (also -dev); 0/1, or all, shares the layers of a model
    #[arg(long, alias = "devices", value_name = "DEVICE", value_parser = options::devices_of_list, value_delimiter = ',')]
    #[arg(default_value = "auto")]
    device: Vec<DeviceChoice>,
    /// How a model is split over several GPUs (also -sm) [default: layer if --device names several]
    #[arg(long, value_enum, alias = "split-mode", value_name = "HOW")]
    split: Option<options::Split>,
    /// With several GPUs: the share of the model on each, such as 3/1 (also -ts) [default: by free memory]
    #[arg(long, value_name = "N/N", value_delimiter = ',')]
    tensor_split: Vec<Shares>,
    /// Layers on the GPU or GPUs, the last ones; the CPU runs the others (also -ngl) [default: all]
    #[arg(
        long,
        alias = "n-gpu-layers",
        value_name = "N",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    gpu_layers: Vec<GpuLayers>,
    /// Limit the GPU features in use to these sets
    #[arg(long, value_enum, value_name = "SET", value_delimiter = ',')]
    features: Vec<Features>,
    /// Round activations to f16 in GEMM: 0, 1 or both
    #[arg(long, value_name = "0|1", value_parser = range::list, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "1")]
    f16_tiles: Vec<List>,
    /// Use the built-in thread counts and ignore results of `chaski tune`
    #[arg(long)]
    no_tuning: bool,
    /// Print the kernel of each part of a token, and why it was chosen
    #[arg(long)]
    explain: bool,
    /// Activation precision of products with quantised weights
    #[arg(long, value_parser = options::inputs(), value_delimiter = ',', value_name = "TYPE", default_value = "auto")]
    inputs: Vec<options::Inputs>,
    /// Check bounds in shaders
    #[arg(long)]
    checked: bool,
    /// Tokens per readback on the GPU, 1 to 32
    #[arg(long, value_name = "N", default_value_t = GROUP, value_parser = clap::value_parser!(u32).range(1..=32))]
    interval: u32,
    /// Recreate objects for every dispatch, to measure the cost
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    ablate: Vec<Ablate>,
    /// Repetitions of each test
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Seconds to wait before each test
    #[arg(long, value_name = "S", default_value_t = 0)]
    delay: u64,
    /// Skip the warm-up run
    #[arg(long)]
    no_warmup: bool,
    /// Do not read or write the cache of compiled kernels
    #[arg(long)]
    no_warm_cache: bool,
    /// On the CPU, read the file into memory instead of mapping it
    #[arg(long)]
    no_mmap: bool,
    /// On the CPU, multiply from the file's own layout
    #[arg(long)]
    no_repack: bool,
    /// On GPUs, run every step by one plan: bits of a sequence do not depend on the others
    #[arg(long)]
    deterministic: bool,
    /// List the GPUs and exit
    #[arg(long)]
    list_devices: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "md")]
    output: Format,
    /// Also print the results on stderr, in this format (also -oe)
    #[arg(long, value_enum, value_name = "FORMAT")]
    output_err: Option<Format>,
    /// Profile every kernel against the device's limits, for one token and for a prompt chunk
    #[arg(long)]
    profile: bool,
    /// Write the profile as a trace for Chrome or Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Keep the experts of the first N MoE layers in host memory and stream the ones in use from the file (also -ncmoe)
    /// [default: 0]
    #[arg(long, alias = "n-cpu-moe", value_name = "N", value_parser = range::list)]
    experts_on_cpu: Vec<List>,
    /// Experts per offloaded layer that fit on the GPU; 0: twice the experts per token, or a quarter of all if that is
    /// more [default: 0]
    #[arg(long, value_name = "N", value_parser = range::list, requires = "experts_on_cpu")]
    expert_slots: Vec<List>,
    #[command(flatten)]
    lora: LoraArgs,
    #[command(flatten)]
    swarm: SwarmArgs,
}

/// Objects to recreate for every dispatch.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Ablate {
    /// Bind groups
    BindGroups,
    /// A small buffer, created and written, as if sizes were not pipeline constants
    Parameters,
}

/// One configuration for loading a model.
struct Setup {
    model: Option<PathBuf>,
    engine: EngineArgs,
    n_batch: u32,
}

impl Args {
    /// Visits the names of models.
    pub(crate) fn models(&mut self, visit: Visit<'_>) -> anyhow::Result<()> {
        self.models = models(self).into_iter().flatten().collect();
        self.model.clear();
        self.models.iter_mut().try_for_each(|model| visit(model, Role::Main))
    }
}

pub(crate) fn run(args: Args, ui: &Ui) -> anyhow::Result<()> {
    if args.list_devices {
        return crate::devices::list();
    }
    let tests = tests(&args)?;
    let batches = batches(&args)?;
    let setups = setups(&args, n_ctx(&args, &tests, &batches))?;
    let inputs: Vec<PathBuf> = setups.iter().flat_map(|s| files_of_model(s.model.as_deref())).collect();
    if let Some(trace) = &args.trace {
        try_to_write(trace, &inputs)?;
    }
    if !batches.is_empty() {
        return run_batches(&args, &setups, &batches, ui);
    }
    let mut columns = None;
    let mut out = Writer::new(std::io::stdout().lock(), args.output);
    let mut err = args.output_err.map(|f| Writer::new(std::io::stderr().lock(), f));
    let mut profiles = Vec::new();
    for (i, setup) in setups.iter().enumerate() {
        let Loaded { mut engine, times } =
            load::for_speed(options::source(setup.model.as_deref()), &setup.engine, ui)?;
        describe(&mut engine, &times, ui);
        let ablation = Ablation {
            bind_groups: args.ablate.contains(&Ablate::BindGroups),
            parameters: args.ablate.contains(&Ablate::Parameters),
        };
        engine.runner().set_ablation(ablation);
        let wants_profile = args.profile || args.trace.is_some();
        let work = tests.iter().map(|test| test.work(args.repetitions, !args.no_warmup)).sum();
        let progress = ui.progress("bench", Unit::Tokens, work);
        let say = |text: String| {
            let setup =
                if setups.len() > 1 { format!("setup {}/{}: ", i + 1, setups.len()) } else { String::new() };
            progress.message(setup + &text);
        };
        if !args.no_warmup {
            for test in &tests {
                say(format!("warm-up of {}", test.name()));
                Bench::new(engine.runner(), args.interval, setup.engine.chunk, &progress).warm_up(test)?;
            }
        }
        for test in &tests {
            std::thread::sleep(Duration::from_secs(args.delay));
            let n = args.repetitions;
            let before = |r: u32| say(format!("{}, run {}/{n}", test.name(), r + 1));
            let samples = Bench::new(engine.runner(), args.interval, setup.engine.chunk, &progress)
                .run(test, n, before)?;
            let columns = columns.get_or_insert_with(|| Columns::new(&setups, engine.gpu().is_none()));
            let mut record = record(&mut engine, &args, setup, columns, test, &samples, &times);
            if wants_profile {
                say(format!("profile of {}", test.name()));
                let found = profiles_of(&mut engine, &runs_of(test), args.repetitions, ui)?;
                let all: Vec<Value> = found.iter().map(profile::as_json).collect();
                record.fields.insert("profiles".into(), all.into());
                for p in found {
                    if !profiles.iter().any(|q: &Named| q.name == p.name) {
                        profiles.push(p);
                    }
                }
            }
            progress.suspend(|| {
                out.add(&record)?;
                err.as_mut().map_or(Ok(()), |err| err.add(&record))
            })?;
        }
        if wants_profile && tests.is_empty() {
            say("profile".into());
            let found = profiles_of(&mut engine, &[(1, 0), (u32::MAX, 0)], args.repetitions, ui)?;
            for p in &found {
                out.add_alone("profiles", profile::as_json(p))?;
            }
            profiles.extend(found);
        }
        progress.finish();
    }
    out.end()?;
    if let Some(err) = &mut err {
        err.end()?;
    }
    drop((out, err));
    if args.profile {
        for p in &profiles {
            match args.output {
                Format::Md => profile::print(&mut std::io::stdout().lock(), p)?,
                Format::Csv | Format::Sql => profile::print(&mut std::io::stderr().lock(), p)?,
                // Those formats have it among their fields.
                Format::Json | Format::Jsonl | Format::None => {}
            }
        }
    }
    args.trace.as_ref().map_or(Ok(()), |path| profile::write_trace(path, &inputs, &profiles))
}

/// Measures several sequences at once.
fn run_batches(args: &Args, setups: &[Setup], batches: &[Batch], ui: &Ui) -> anyhow::Result<()> {
    let mut out = batched::Writer::new(std::io::stdout().lock(), args.output);
    for setup in setups {
        let (group, chunk) = (args.interval, setup.engine.chunk);
        let Loaded { mut engine, times } =
            load::for_speed(options::source(setup.model.as_deref()), &setup.engine, ui)?;
        describe(&mut engine, &times, ui);
        let short = batches.last().filter(|_| !args.no_warmup).map(Batch::short);
        let work = batches.iter().chain(&short).map(|batch| u64::from(batch.n_kv())).sum();
        let progress = ui.progress("bench", Unit::Tokens, work);
        if let Some(short) = short {
            batched::run(engine.runner(), short, group, chunk, &progress)?;
        }
        for batch in batches {
            std::thread::sleep(Duration::from_secs(args.delay));
            progress
                .message(format!("pp{} and tg{} of {} sequences", batch.n_prompt, batch.n_gen, batch.n_seq));
            let times = batched::run(engine.runner(), *batch, group, chunk, &progress)?;
            progress.suspend(|| out.add(&batched::record(&engine, *batch, times, chunk)))?;
        }
        progress.finish();
    }
    Ok(out.end()?)
}

/// Every combination of prompt, answer and number of sequences.
fn batches(args: &Args) -> anyhow::Result<Vec<Batch>> {
    if !args.n_parallel.is_empty() && args.output == Format::Sql {
        return Err(Usage("-npl has no table of SQL: choose md, csv, json or jsonl".into()).into());
    }
    let mut batches = Vec::new();
    for n_prompt in values(&args.n_prompt, 512) {
        for n_gen in values(&args.n_gen, 128) {
            for n_seq in args.n_parallel.iter().flat_map(|l| l.0.iter().copied()) {
                if n_prompt == 0 || n_seq == 0 {
                    return Err(Usage(
                        "-npl needs sequences with a prompt: -p and -npl are at least 1".into(),
                    )
                    .into());
                }
                batches.push(Batch { n_prompt, n_gen, n_seq });
            }
        }
    }
    Ok(batches)
}

fn values(lists: &[List], default: u32) -> Vec<u32> {
    if lists.is_empty() { vec![default] } else { lists.iter().flat_map(|l| l.0.iter().copied()).collect() }
}

fn tests(args: &Args) -> anyhow::Result<Vec<Test>> {
    let mut tests = Vec::new();
    let pairs = || args.prompt_gen.iter().map(|p| (p.0, p.1));
    for n_depth in values(&args.n_depth, 0) {
        let prompts = values(&args.n_prompt, 512).into_iter().map(|p| (p, 0));
        let answers = values(&args.n_gen, 128).into_iter().map(|n| (0, n));
        for (n_prompt, n_gen) in prompts.chain(answers).chain(pairs()) {
            if n_prompt.max(n_gen) > 0 {
                tests.push(Test { n_prompt, n_gen, n_depth });
            }
        }
    }
    if tests.is_empty() && !args.profile && args.trace.is_none() {
        return Err(Usage("nothing to measure: -p and -n are 0".into()).into());
    }
    Ok(tests)
}

/// Context size that suffices for all tests and the profile.
fn n_ctx(args: &Args, tests: &[Test], batches: &[Batch]) -> u32 {
    if !batches.is_empty() {
        return batches.iter().map(|b| b.n_prompt + b.n_gen + 1).max().unwrap_or(1);
    }
    let largest = |lists: &[List], default| values(lists, default).into_iter().max().unwrap_or(0);
    let profile = largest(&args.n_depth, 0).saturating_add(largest(&args.ubatch_size, 512));
    let wanted = args.profile || args.trace.is_some();
    tests.iter().map(Test::n_ctx).chain(wanted.then_some(profile)).max().unwrap_or(1)
}

/// The values of an option, or `None` alone if it was not given.
fn given<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.iter().copied().map(Some).collect() }
}

/// Every combination of models and options.
fn setups(args: &Args, n_ctx: u32) -> anyhow::Result<Vec<Setup>> {
    let kv = match (&args.cache_type_k[..], &args.cache_type_v[..]) {
        ([], []) => vec![KvType::Auto],
        (k, v) => {
            let (k, v) = (given(k), given(v));
            k.iter().flat_map(|k| v.iter().map(|v| kv_pair(*k, *v))).collect::<Result<_, Usage>>()?
        }
    };
    let features = given(&args.features);
    let chunks = values(&args.ubatch_size, 512);
    if chunks.contains(&0) || values(&args.batch_size, 2048).contains(&0) {
        return Err(Usage("-b and -ub must be at least 1".into()).into());
    }
    let threads = values(&args.threads, 0);
    if let Some(most) = threads.iter().find(|n| options::threads(&n.to_string()).is_err()) {
        return Err(Usage(format!("-t {most} is too many threads")).into());
    }
    // Without offloaded layers the number of slots is meaningless.
    let mut experts = Vec::new();
    for experts_on_cpu in values(&args.experts_on_cpu, 0) {
        let slots = if experts_on_cpu > 0 { values(&args.expert_slots, 0) } else { vec![0] };
        experts.extend(slots.into_iter().map(|expert_slots| ExpertArgs { experts_on_cpu, expert_slots }));
    }
    let sequences = args.n_parallel.iter().flat_map(|l| l.0.iter().copied()).max().unwrap_or(1);
    let mut setups = Vec::new();
    for model in models(args) {
        for (device, tensor_split, gpu_layers) in placements(args)? {
            for &features in &features {
                for (&tiles, &inputs) in
                    values(&args.f16_tiles, 0).iter().flat_map(|t| args.inputs.iter().map(move |i| (t, i)))
                {
                    for &n_batch in &values(&args.batch_size, 2048) {
                        for (&chunk, &threads) in
                            chunks.iter().flat_map(|c| threads.iter().map(move |t| (c, t)))
                        {
                            for (&kv, &experts) in
                                kv.iter().flat_map(|kv| experts.iter().map(move |e| (kv, e)))
                            {
                                let engine = EngineArgs {
                                    ctx_size: n_ctx,
                                    sequences,
                                    service: None,
                                    part: None,
                                    kv,
                                    cache_type_k: None,
                                    cache_type_v: None,
                                    device: device.clone(),
                                    split: args.split,
                                    tensor_split: tensor_split.clone(),
                                    gpu_layers,
                                    features,
                                    chunk: chunk.min(n_batch),
                                    threads: ThreadArgs { threads, threads_batch: threads },
                                    checked: args.checked,
                                    f16_tiles: tiles != 0,
                                    inputs,
                                    no_warm_cache: args.no_warm_cache,
                                    no_mmap: args.no_mmap,
                                    no_repack: args.no_repack,
                                    deterministic: args.deterministic,
                                    no_tuning: args.no_tuning,
                                    // Load time is measured.
                                    no_self_test: true,
                                    explain: args.explain,
                                    experts,
                                    lora: args.lora.clone(),
                                    metadata: MetadataArgs::default(),
                                    swarm: args.swarm.clone(),
                                };
                                setups.push(Setup { model: model.clone(), engine, n_batch });
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(setups)
}

/// Devices, with the shares for their number, by free memory if there are none, and the layers on GPUs.
type Placement = (DeviceChoice, Option<Shares>, Option<GpuLayers>);

fn placements(args: &Args) -> Result<Vec<Placement>, Usage> {
    let layers: Vec<Option<GpuLayers>> = match &args.gpu_layers[..] {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    let split = splits(args)?.into_iter();
    let of = |(device, shares): (DeviceChoice, Option<Shares>)| {
        layers.iter().map(|n| (device.clone(), shares.clone(), *n)).collect::<Vec<_>>()
    };
    Ok(split.flat_map(of).collect())
}

/// Devices, each with the shares for their number.
fn splits(args: &Args) -> Result<Vec<(DeviceChoice, Option<Shares>)>, Usage> {
    let mut out = Vec::new();
    for device in &args.device {
        let placed = options::Split::over(args.split, device);
        let fits = |shares: &&Shares| Shares::of(Some(shares), &placed).is_ok();
        let own: Vec<&Shares> = args.tensor_split.iter().filter(fits).collect();
        match own.is_empty() {
            true => out.push((device.clone(), None)),
            false => out.extend(own.into_iter().map(|s| (device.clone(), Some(s.clone())))),
        }
    }
    let is_used = |shares: &&Shares| out.iter().any(|(_, used)| used.as_ref() == Some(*shares));
    match args.tensor_split.iter().find(|shares| !is_used(shares)) {
        Some(unused) => Shares::of(Some(unused), &args.device[0]).map(|_| out),
        None => Ok(out),
    }
}

fn models(args: &Args) -> Vec<Option<PathBuf>> {
    let mut models: Vec<Option<PathBuf>> = args.models.iter().cloned().map(Some).collect();
    for text in &args.model {
        if Path::new(text).exists() {
            models.push(Some(text.into()));
        } else {
            models.extend(text.split(',').map(|m| Some(m.into())));
        }
    }
    if models.is_empty() {
        models.push(None);
    }
    models
}

/// Properties of a setup shared by all its tests, as text.
fn describe(engine: &mut Engine, times: &LoadTimes, ui: &Ui) {
    if ui.quiet() {
        return;
    }
    let device = engine.device().clone();
    let memory = engine.memory().n_byte();
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let dispatches = engine.loaded().gpu().map_or(String::new(), |g| {
        let (per_layer, all) = g.dispatches_per_token();
        format!(", {all} dispatches per token ({per_layer:.1} per layer)")
    });
    eprintln!(
        "{} ({}): load {:.0} ms (kernels after {:.0} ms, weights after {:.0} ms); {} of device memory{dispatches}",
        device.name,
        device.driver,
        ms(times.total),
        ms(times.compile),
        ms(times.upload),
        bytes(memory)
    );
}

/// Batch sizes and start positions to profile: one token, and one prompt chunk.
fn runs_of(t: &Test) -> Vec<(u32, u32)> {
    let all = [(t.n_gen.min(1), t.n_depth), (t.n_prompt, t.n_depth)];
    all.into_iter().filter(|(n, _)| *n > 0).collect()
}

fn profiles_of(engine: &mut Engine, runs: &[(u32, u32)], n: u32, ui: &Ui) -> anyhow::Result<Vec<Named>> {
    let model = engine.info().description;
    let mut profiles = Vec::new();
    let Some(summary) = engine.gpu().map(|g| g.summary().clone()) else {
        ui.note("the CPU backend has no profile");
        return Ok(profiles);
    };
    if engine.expert_reads().is_some() {
        ui.note("profiles are not available with CPU-offloaded experts");
        return Ok(profiles);
    }
    if engine.gpus().len() > 1 {
        ui.note("profiles are not available for several devices: name one with `--device`");
        return Ok(profiles);
    }
    let Some((n_ctx, max_col)) = engine.loaded().gpu().map(|g| (g.config().n_ctx, g.config().max_col)) else {
        return Ok(profiles);
    };
    for (n_col, pos) in runs {
        let (n_col, pos) = ((*n_col).min(max_col), *pos);
        if n_col.saturating_add(pos) > n_ctx {
            continue;
        }
        match pollster::block_on(engine.runner().profile(n_col, pos, n))? {
            Some(profile) => {
                let what =
                    if n_col == 1 { "one token".to_owned() } else { format!("a prompt chunk of {n_col}") };
                let name = format!("{model}: {what} at {pos}");
                let peaks = peaks::known_or_measured(&summary, ui)?;
                profiles.push(Named { name, run: (n_col, pos), profile, peaks });
            }
            None => {
                ui.note("no profile: the device does not support timestamps inside passes");
                break;
            }
        }
    }
    Ok(profiles)
}
