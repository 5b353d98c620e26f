//! Compile-time test: every public future, and everything that a server passes between threads, is `Send`.

use std::path::Path;

use chaski::embedding::EmbedOptions;
use chaski::errors::ModelError;
use chaski::experts::{ExpertReplay, ExpertWorker, GpuExpertWorker};
use chaski::gguf::{ByteSource, ModelFile, SourceError};
use chaski::gpu::{Gpu, GpuModel, GpuOptions};
use chaski::serve::{Answer, Event, Readings, Request};
use chaski::source::{AnySource, OpenModel};
use chaski::steps::{Driver, Runner, RunnerConfig};
use chaski::text::Tokenizer;
use chaski::tools::ImatrixOptions;
use chaski::{
    Chat, ChatEvent, Conversation, Engine, EngineBuilder, Error, GenerateOptions, Generation, Handle, Source,
};
use chaski_checkpoint::Folder;
use chaski_models::{Lora, Model, Target};
use chaski_runtime::Tensors;
use chaski_runtime::cpu::CpuModel;
use chaski_runtime::gpu::{ReadyCase, run_case};

fn is_send<T: Send>(_: T) {}
fn goes_anywhere<T: Send + 'static>() {}
fn is_shared<T: Send + Sync + Clone + 'static>() {}
fn is_stream<T: futures_core::Stream + Send + Unpin + 'static>() {}

#[test]
fn values_go_to_any_thread() {
    is_shared::<Handle>();
    is_stream::<Answer>();
    is_stream::<Chat>();
    // A future that no function of this crate declares: those of embeddings, logits and scores.
    goes_anywhere::<Readings<Vec<f32>>>();
    goes_anywhere::<Event>();
    goes_anywhere::<ChatEvent>();
    goes_anywhere::<Request>();
    goes_anywhere::<Engine>();
    goes_anywhere::<EngineBuilder>();
    goes_anywhere::<Driver>();
    goes_anywhere::<Runner>();
    goes_anywhere::<Error>();
    goes_anywhere::<GenerateOptions>();
}

/// A value of any type, for calls that never happen.
fn any<T>() -> T {
    unreachable!("only its type matters")
}

/// Never called.
#[allow(dead_code, reason = "only its types matter")]
fn futures_of_engines(source: &Source, builder: EngineBuilder, mut engine: Engine, mut driver: Driver) {
    is_send(source.open());
    is_send(source.open_with(any()));
    is_send(builder.build());
    is_send(engine.rebuild());
    is_send(engine.turn());
    is_send(engine.save());
    is_send(engine.restore(&[]));
    is_send(engine.embed(&["a"], &EmbedOptions::default()));
    is_send(engine.embed_tokens(any(), any()));
    is_send(engine.rank("a", &["b"]));
    is_send(driver.turn());
    is_send(driver.save());
    is_send(driver.restore(&[]));
    is_send(driver.results::<f64>(any()));
    is_send(driver.run());
}

/// Never called.
#[allow(dead_code, reason = "only its types matter")]
fn futures_of_answers(
    mut generation: Generation<'_>,
    mut conversation: Conversation<'_>,
    mut chat: Chat,
    mut answer: Answer,
    handle: &Handle,
    inner: &chaski_models::serve::Handle,
) {
    is_send(generation.prompt());
    is_send(generation.next());
    is_send(conversation.next());
    is_send(conversation.whole());
    is_send(chat.next());
    is_send(chat.whole());
    is_send(answer.next());
    is_send(handle.flush_cache());
    is_send(handle.save_slot(0));
    is_send(handle.restore_slot(0, None, Vec::new()));
    is_send(handle.erase_slot(0));
    is_send(inner.flush_cache());
    is_send(inner.save_slot(0));
    is_send(inner.restore_slot(0, None, Vec::new()));
    is_send(inner.erase_slot(0));
}

/// Never called.
#[allow(dead_code, reason = "only its types matter")]
fn futures_of_models(
    model: &OpenModel,
    target: &Target,
    config: &RunnerConfig,
    runner: &mut Runner,
    tokenizer: &Tokenizer,
    options: &ImatrixOptions,
) {
    is_send(Lora::<AnySource>::open(any()));
    is_send(Model::<AnySource>::open(any(), |_| any()));
    is_send(Model::<AnySource>::open_with(any(), |_| any(), any()));
    is_send(model.graph(1));
    is_send(model.unread());
    is_send(config.memory_on_device(model, any()));
    is_send(config.memory_on_devices(model, any()));
    is_send(config.memory_after_cpu(model, any(), any()));
    is_send(config.memory_on_cpu(model));
    is_send(chaski::tools::memory_need(model, config, None));
    is_send(chaski::tools::memory_need_on(model, config, &[]));
    is_send(chaski::tools::memory_need_after_cpu(model, config, &[], &[]));
    is_send(Runner::load(model, target, config, |_| {}));
    is_send(runner.prefill(&[]));
    is_send(runner.feed(&[]));
    is_send(runner.feed_watched(&[], false, any()));
    is_send(runner.eval(&[], 1, |_| any()));
    is_send(runner.eval_all(&[], 1));
    is_send(runner.eval_columns(&[]));
    is_send(runner.eval_hidden(&[]));
    is_send(runner.greedy(1));
    is_send(runner.logits());
    is_send(runner.settle());
    is_send(runner.profile(1, 0, 1));
    is_send(runner.tune(any(), |_| {}));
    is_send(runner.finish());
    is_send(runner.save());
    is_send(runner.restore(&[]));
    is_send(chaski::tools::perplexity(runner, tokenizer, "", 2, None, |_, _, _| {}));
    let progress = |_: &chaski::tools::ImatrixProgress<'_>| Ok::<(), ModelError>(());
    is_send(chaski::tools::imatrix(runner, tokenizer, "", options, &|_| 1, progress));
}

/// Never called.
#[allow(dead_code, reason = "only its types matter")]
fn futures_of_devices(gpu: &Gpu, model: &mut GpuModel, case: &ReadyCase<'_>) {
    let options = GpuOptions::default();
    is_send(chaski::gpu::adapters());
    is_send(chaski::gpu::adapters_with(&options));
    is_send(chaski::gpu::adapter_with(&options));
    is_send(chaski::gpu::self_test(gpu));
    is_send(chaski_runtime::gpu::self_test(gpu, &[]));
    is_send(run_case(gpu, any()));
    is_send(ReadyCase::new(gpu, any()));
    is_send(case.time(1));
    is_send(case.check());
    is_send(Gpu::open(&options));
    is_send(gpu.measure(any()));
    is_send(gpu.measure_format(any(), None, any()));
    is_send(model.finish());
    is_send(model.profile(1, 0, 1));
    is_send(model.tune(any(), |_| {}));
    is_send(model.snapshot(0, &[]));
    is_send(model.put_back(0, &[], 0, &[]));
    is_send(model.read_step());
    is_send(model.flush());
}

/// Never called.
#[allow(dead_code, reason = "only its types matter")]
fn futures_of_weights<T: Tensors + Send + Sync + 'static>(
    tensors: &T,
    model: &mut CpuModel,
    worker: &mut ExpertWorker,
    gpu_worker: &mut GpuExpertWorker,
    replay: &ExpertReplay,
) {
    is_send(GpuModel::load(any(), any(), any(), any::<T>(), |_| {}));
    is_send(GpuModel::load_on(any(), any(), any(), any::<T>(), |_| {}));
    is_send(GpuModel::load_after_cpu(any(), any(), any(), any(), any::<T>(), |_| {}));
    is_send(CpuModel::load(any(), any(), tensors, |_, _| {}));
    is_send(CpuModel::load_without(any(), any(), any(), tensors, |_, _| {}));
    is_send(model.run_step_away(&[], &[], 1, any()));
    is_send(model.add_expert(0, 0, tensors));
    is_send(worker.add(0, 0, tensors));
    is_send(GpuExpertWorker::new(any(), any(), any()));
    is_send(gpu_worker.add(0, 0, tensors));
    is_send(gpu_worker.compute(any()));
    is_send(gpu_worker.canary(0, 0));
    is_send(replay.pack(0, 0, tensors));
}

/// Never called.
#[allow(dead_code, reason = "only its types matter")]
fn futures_of_files<S: ByteSource + Send + Sync + 'static>(
    source: &S,
    mut siblings: impl FnMut(&str) -> Result<S, SourceError> + Send,
    file: &ModelFile<S>,
    folder: &Folder<S>,
) {
    is_send(chaski::gguf::read_header(source));
    is_send(ModelFile::open(any::<S>(), &mut siblings));
    is_send(file.read_tensor(any(), 0, &mut []));
    is_send(chaski_checkpoint::safetensors::read_header(source));
    is_send(chaski_checkpoint::weight_files(folder));
    is_send(chaski_checkpoint::open::<S>(any(), any()));
    is_send(chaski_checkpoint::mlc::open::<S>(any(), any()));
    is_send(chaski_checkpoint::mlc::verify(folder));
    is_send(chaski_checkpoint::hf::open::<S>(any(), any()));
    is_send(folder.try_read(""));
    is_send(folder.read(""));
}

/// Public functions that other crates do not see, or by another name, by the lines that declare them.
const INSIDE: [&str; 3] = [
    "pub async fn open(path: &Path, options: &OpenOptions)",
    "pub async fn read<S: ByteSource>(",
    "pub async fn self_test_of(gpu: &Gpu)",
];

/// The lines of a folder's files that declare public asynchronous functions.
fn declared(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            declared(&path, found);
        } else if !path.ends_with("no_away.rs") {
            // That file has browsers' forms of others.
            let text = std::fs::read_to_string(&path).expect("a source");
            let lines = text.lines().map(str::trim).filter(|line| line.starts_with("pub async fn "));
            found.extend(lines.map(String::from));
        }
    }
}

#[test]
fn every_public_future_is_here() {
    let this = include_str!("send.rs");
    let mut found = Vec::new();
    for name in ["chaski", "models", "runtime", "checkpoint", "ggml-format"] {
        declared(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"), &mut found);
    }
    assert!(found.len() > 80, "{found:#?}");
    found.retain(|line| !INSIDE.iter().any(|inside| line.starts_with(inside)));
    let name = |line: &String| {
        let end = line["pub async fn ".len()..].split(['(', '<']).next();
        end.unwrap_or_default().to_owned()
    };
    let names: Vec<String> = found.iter().map(name).collect();
    // Each call is on the line of its `is_send`, with the name after a `.`, a `:` or the parenthesis.
    let calls = |name: &str| {
        let is_call = |line: &&str| {
            let rest = line.trim().strip_prefix("is_send(").unwrap_or_default();
            let word = rest.split(['(', '.', ':', '<']).any(|word| word == name);
            word && !rest.is_empty()
        };
        this.lines().filter(is_call).count()
    };
    let declared = |name: &str| names.iter().filter(|n| *n == name).count();
    let missing: Vec<&String> = names.iter().filter(|name| calls(name) < declared(name)).collect();
    assert!(missing.is_empty(), "fewer calls than declarations: {missing:?}");
}
