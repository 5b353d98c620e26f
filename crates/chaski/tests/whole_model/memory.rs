//! Device memory, and that it does not grow during generation.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chaski::gguf::GgmlType;
use chaski::gpu::GpuOptions;
use chaski::steps::Runner;
use chaski::{GenerateOptions, KvType, SamplerParams};
use chaski_models::{ModelError, RunnerConfig, Target};
use chaski_runtime::gpu::Gpu;

use crate::archs::{Fixture, open};
use crate::common::{Failures, Timed, block_on, build, default_engine, greedy, in_turns, say, text};

/// Models with every kind of buffer: weights in several formats, experts, windows, latents, recurrent state with and
/// without a KV cache, several RoPE tables and none.
const SHAPES: &[&str] = &[
    "llama-plain",
    "gpt-oss-moe",
    "qwen3-dense",
    "gemma3-dense",
    "deepseek2-moe",
    "falcon-h1-dense",
    "mamba-norms",
    "gpt2-dense",
    "olmoe-moe",
    "gemma3n-dense",
];

#[test]
fn memory_told_before_loading_is_allocated_to_the_byte() {
    let _t = Timed::new("memory, told before loading");
    // A separate device, whose counters no other test changes.
    let gpu = Arc::new(block_on(Gpu::open(&GpuOptions::default())).expect("a GPU"));
    let few = RunnerConfig { n_ctx: 64, kv: KvType::F32, chunk: 64, ..RunnerConfig::default() };
    let blocks = KvType::Of { k: GgmlType::Q8_0, v: GgmlType::Q4_0 };
    let configs = [
        few.clone(),
        RunnerConfig { n_seq: 3, n_ctx: 300, chunk: 7, kv: KvType::both(GgmlType::BF16), ..few.clone() },
        RunnerConfig { n_seq: 4, n_ctx: 512, chunk: 33, kv: blocks, kv_tokens: Some(1024), ..few.clone() },
        RunnerConfig { experts_on_cpu: 9, n_seq: 2, n_ctx: 40, ..few },
    ];
    let made = || {
        let c = gpu.counters();
        [&c.buffers, &c.buffer_bytes].map(|n| n.load(Ordering::Relaxed))
    };
    let (mut failures, mut n_loaded) = (Failures::default(), 0);
    for (nth, name) in SHAPES.iter().enumerate() {
        let model = open(Fixture::load(name).gguf(nth % 2 == 0, &|_, _| {})).expect("a fixture is a model");
        for config in in_turns(nth, &configs) {
            let case = format!("{name}, {config:?}");
            let told = block_on(config.memory_on_device(&model, gpu.caps()));
            let before = made();
            let loaded = block_on(Runner::load(&model, &Target::Gpu(gpu.clone()), &config, |_| {}));
            let after = made();
            let (told, runner) = match (told, loaded) {
                (Ok(told), Ok(runner)) => (told, runner),
                // Models that cannot be planned cannot be loaded either: expert offload without experts.
                (Err(told), Err(e)) => {
                    failures.check(told.to_string() == e.to_string(), || format!("{case}: {told}, {e}"));
                    continue;
                }
                (told, loaded) => panic!("{case}: {:?}, {:?}", told.err(), loaded.err()),
            };
            n_loaded += 1;
            let n_buffer: usize = told.items.iter().map(|i| i.n_buffer).sum();
            let found = [after[0] - before[0], after[1] - before[1]];
            failures.check(found == [n_buffer as u64, told.n_byte()], || {
                format!("{case}: told {n_buffer} buffers and {} bytes, made {found:?}", told.n_byte())
            });
            failures.check(told == runner.memory(), || format!("{case}: {told:?}, {:?}", runner.memory()));
        }
    }
    say(format!("{n_loaded} models allocated what was told"));
    failures.check(n_loaded >= 7, || format!("{n_loaded} models were loaded"));
    failures.conclude();
}

#[test]
fn a_cache_takes_the_memory_that_it_was_given() {
    let _t = Timed::new("memory, of the cache");
    let gpu = Arc::new(block_on(Gpu::open(&GpuOptions::default())).expect("a GPU"));
    let config = |kv_tokens, kv_memory| {
        let kv = KvType::both(GgmlType::F16);
        RunnerConfig { n_ctx: 250, n_seq: 2, chunk: 32, kv, kv_tokens, kv_memory, ..RunnerConfig::default() }
    };
    let mut n_sized = 0;
    for name in SHAPES {
        let model = open(Fixture::load(name).gguf(true, &|_, _| {})).expect("a fixture is a model");
        for on_gpu in [true, false] {
            let memory = |config: RunnerConfig| match on_gpu {
                true => block_on(config.memory_on_device(&model, gpu.caps())),
                false => block_on(config.memory_on_cpu(&model)),
            };
            // Recurrent state has no pages.
            let needed = match memory(config(None, Some(1))) {
                Err(ModelError::SmallKvMemory { found: 1, needed, n_ctx: 250 }) => needed,
                told => {
                    assert_eq!(
                        told.expect("no pages"),
                        memory(config(None, None)).expect("no pages"),
                        "{name}"
                    );
                    continue;
                }
            };
            n_sized += 1;
            let less = memory(config(None, Some(needed - 1))).expect_err("less than a context").to_string();
            let says = format!("{} bytes, but a context of 250 tokens takes {needed}", needed - 1);
            assert!(less.contains(&says), "{name}: {less}");
            // A context of 4 pages.
            let one = memory(config(Some(256), None)).expect("a context");
            assert_eq!(memory(config(None, Some(needed))).expect("a context"), one, "{name}");
            let two = memory(config(None, Some(2 * needed))).expect("two contexts");
            let more = two.n_byte() - one.n_byte();
            assert!(0 < more && more <= 2 * needed, "{name}: {needed}, {more}");
            // A number of tokens comes first.
            assert_eq!(memory(config(Some(256), Some(1))).expect("a context"), one, "{name}");
        }
    }
    assert!(n_sized >= 16, "{n_sized}");
}

#[test]
fn nothing_is_created_after_warm_up() {
    let _t = Timed::new("memory, nothing is created");
    let mut engine = build(default_engine());
    let gpu = engine.gpu().expect("a GPU").clone();
    let sampled = |n| GenerateOptions {
        sampler: SamplerParams { seed: Some(1), ..SamplerParams::default() },
        max_tokens: Some(n),
        ..GenerateOptions::default()
    };
    let penalised = |n| {
        let mut options = sampled(n);
        options.sampler.penalty_repeat = 1.2;
        options.sampler.logit_bias = vec![(7, 2.0)];
        options
    };
    text(&mut engine, "Once upon a time", greedy(2)).expect("a text");
    text(&mut engine, "Once upon a time", sampled(2)).expect("a text");
    let (objects, memory) = (gpu.counters().objects(), engine.memory());
    let mut failures = Failures::default();
    let ways = [
        ("greedy", greedy(100), "Once upon a time"),
        ("another prompt", greedy(20), "The old goat"),
        ("sampled", sampled(20), "One day"),
        ("penalised", penalised(20), "One day"),
    ];
    for (name, options, prompt) in ways {
        let answer = text(&mut engine, prompt, options).expect("a text");
        failures.check(!answer.is_empty(), || format!("{name}: an empty answer"));
        let now = gpu.counters().objects();
        failures.check(now == objects, || {
            format!("{name}: buffers, groups, pipelines {objects:?}, then {now:?}")
        });
        failures.check(engine.memory() == memory, || format!("{name}: the memory's account changed"));
    }
    let tokens: Vec<u32> = (0..20).collect();
    engine.runner().truncate(0);
    let logits = block_on(engine.runner().eval_all(&tokens, 20)).expect("logits");
    failures
        .check(logits.len() == 20 * engine.runner().n_vocab() as usize, || "a row of logits a token".into());
    let now = gpu.counters().objects();
    failures.check(now == objects, || {
        format!("all logits: buffers, groups, pipelines {objects:?}, then {now:?}")
    });
    failures.conclude();
}

#[test]
fn memory_lists_every_buffer() {
    let _t = Timed::new("memory, account");
    let engine = build(default_engine());
    let [n_buffer, ..] = engine.gpu().expect("a GPU").counters().objects();
    let memory = engine.memory();
    let listed: usize = memory.items.iter().map(|i| i.n_buffer).sum();
    assert_eq!(listed as u64, n_buffer, "{memory:?}");
    for item in &memory.items {
        assert!(item.n_buffer > 0 && item.n_byte > 0, "{item:?}");
    }
    assert_eq!(memory.n_byte(), memory.items.iter().map(|i| i.n_byte).sum::<u64>());
    let weights = memory.items.iter().find(|i| i.what == "weights").expect("weights").n_byte;
    let file = engine.model().n_byte();
    // The device layout pads rows and planes, but no block grows; scales and norms are stored as f32.
    assert!(
        weights >= file && weights < file + file / 20,
        "{weights} bytes of weights for {file} in the file"
    );
    // Keys and values in f32: 8 layers, 4 heads of 32 channels, 512 tokens; and a scratch page of 64.
    let kv = memory.items.iter().find(|i| i.what == "kv cache").expect("a cache");
    let token = 2 * 4 * 32 * 4;
    assert_eq!((kv.n_buffer, kv.n_byte), (9, 8 * 512 * token + 64 * token));
}

#[test]
fn a_dense_layer_takes_at_most_six_dispatches_a_token() {
    let _t = Timed::new("memory, dispatches");
    let mut engine = build(default_engine());
    let gpu = engine.gpu().expect("a GPU").clone();
    let model = engine.loaded().gpu().expect("a model on a GPU");
    let (per_layer, all) = model.dispatches_per_token();
    assert!(per_layer <= 6.0, "{per_layer} dispatches a layer");
    // Besides the 8 layers: embeddings, head with its norm, two for the argmax.
    assert!(all <= 8 * 6 + 4, "{all} dispatches a token");
    assert_eq!(all, model.explain().len(), "every dispatch is explained");
    // The counters count recorded dispatches, not planned ones; short sequences may need fewer.
    let count = || gpu.counters().dispatches.load(std::sync::atomic::Ordering::Relaxed);
    let mut at = Vec::new();
    for n in [10, 20] {
        let before = count();
        text(&mut engine, "Once upon a time", greedy(n)).expect("a text");
        at.push(count() - before);
        engine.runner().truncate(0);
    }
    let ten = at[1] - at[0];
    // A step of chosen tokens has one more, and longer answers may take fewer steps.
    let least = 10 * (8 * 5 + 4) - 10;
    assert!(ten >= least && ten <= 10 * (all as u64 + 1), "{ten} dispatches of ten more tokens");
}
