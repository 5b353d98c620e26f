//! Encoders: vectors of tokens and of texts, and scores, as another engine computed them in f32.

use chaski::KvType;
use chaski::embedding::{EmbedOptions, EmbedRequest, Embedding, Pooling, VectorNorm};
use chaski::kernels::{ActivationPrecision, FeatureSet};
use chaski::serve::Request;
use chaski::steps::Runner;
use chaski::{DeviceChoice, Engine, Ranker, Source};
use chaski_models::serve::{Driver, Handle, serve};
use chaski_models::{Model, RunnerConfig, Target, Threads};
use ggml_format::{MemorySource, OwnedValue};
use serde_json::Value;

use crate::archs::{Edit, Fixture, GELU, open, wanted};
use crate::common::{
    Failures, Timed, block_on, build, chain, fixture, full, gpu_sets, greedy, in_turns, left_for_full, nmse,
    read_json, say, shared_gpu,
};
use crate::stages::gpus;

/// All fixtures, with the tolerance: reordered sums cost 5e-12, GELU what the others with it are allowed.
pub(crate) const FIXTURES: &[(&str, f64)] = &[
    ("bert-labels", GELU),
    ("bert-rank", GELU),
    ("eurobert", 1e-11),
    ("gemma-embedding", GELU),
    ("gemma-embedding-dense", GELU),
    ("jina-bert-v2", GELU),
    ("jina-bert-v2-joined", GELU),
    ("jina-bert-v2-plain", GELU),
    ("jina-bert-v3", GELU),
    ("modern-bert", GELU),
    ("modern-bert-silu", 1e-11),
    ("neo-bert", 1e-11),
    ("nomic-bert", 1e-11),
    ("nomic-bert-moe", GELU),
];

fn target(set: Option<FeatureSet>) -> Target {
    set.map_or(Target::Cpu, |set| Target::Gpu(shared_gpu(set, false)))
}

fn load(model: &Model<MemorySource>, set: Option<FeatureSet>, inputs: Option<ActivationPrecision>) -> Runner {
    let config = RunnerConfig { n_ctx: 128, kv: KvType::F32, chunk: 100, inputs, ..RunnerConfig::default() };
    let loaded = block_on(Runner::load(model, &target(set), &config, |_| {}));
    loaded.unwrap_or_else(|e| panic!("{}", chain(&e)))
}

/// A service, driven by the caller.
struct Service(Handle, Driver<Runner>);

impl Service {
    fn new(model: &Model<MemorySource>, set: Option<FeatureSet>) -> Service {
        Service::of(load(model, set, None), model)
    }

    fn of(runner: Runner, model: &Model<MemorySource>) -> Service {
        let (handle, driver) = serve(runner, model.shared_text().0, 100).expect("sizes that fit");
        Service(handle, driver)
    }

    fn embed(&mut self, texts: &[&[u32]], pooling: Pooling, norm: VectorNorm) -> Vec<Embedding> {
        let options = EmbedOptions { pooling: Some(pooling), norm };
        let texts = texts.iter().map(|text| text.to_vec()).collect();
        let readings = self.0.embed(EmbedRequest::new(texts, options), pooling).expect("texts");
        block_on(self.1.results(readings)).expect("embeddings")
    }
}

/// The CPU by references and by its own kernels, and the GPU.
#[test]
fn vectors_and_scores_match_the_golden_ones() {
    let _t = Timed::new("encoders, fixtures");
    let mut failures = Failures::default();
    for (nth, &(name, limit)) in FIXTURES.iter().enumerate().filter(|(_, f)| wanted(f.0)) {
        let f = Fixture::encoder(name);
        let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
        let width = model.config().n_embd as usize;
        let (of_tokens, mut rest) = f.values().split_at(48 * width);
        let mut check = |what: &str, found: &[f32], expected: &[f32]| {
            let e = nmse(found, expected);
            say(format!("{name:22} {what:24} NMSE {e:.1e}"));
            failures.check(e <= limit, || format!("{name}, {what}: {e:.2e} > {limit:.0e}"));
        };
        let mut references = Service::of(load(&model, None, Some(ActivationPrecision::F32)), &model);
        let found = references.embed(&[&f.tokens], Pooling::None, VectorNorm::None);
        check("CPU, references", &found[0].vectors.concat(), of_tokens);
        // By default every fourth of them on a GPU.
        let on_gpu = gpu_sets().iter().map(|set| Some(*set)).filter(|_| full() || nth % 4 == 0);
        let sets: Vec<Option<FeatureSet>> = [None].into_iter().chain(on_gpu).collect();
        let mut services: Vec<Service> = sets.iter().map(|set| Service::new(&model, *set)).collect();
        let word = |set: &Option<FeatureSet>| set.map_or("CPU", FeatureSet::word);
        for (set, service) in sets.iter().zip(&mut services) {
            let found = service.embed(&[&f.tokens], Pooling::None, VectorNorm::None);
            check(word(set), &found[0].vectors.concat(), of_tokens);
        }
        for pooling in f.poolings() {
            let mut n = 0;
            for (set, service) in sets.iter().zip(&mut services) {
                let found = service.embed(&[&f.tokens], pooling, VectorNorm::None);
                n = found[0].vectors[0].len();
                check(&format!("{}, {pooling}", word(set)), &found[0].vectors[0], &rest[..n]);
            }
            rest = &rest[n..];
        }
        assert!(rest.is_empty(), "{name}: {} values are left", rest.len());
    }
    failures.conclude();
}

/// Texts of one request run together; on the CPU that changes no bit.
#[test]
fn a_text_has_the_same_vector_alone_and_beside_others() {
    let _t = Timed::new("encoders, batches");
    for (nth, name) in
        ["bert-rank", "modern-bert", "gemma-embedding", "nomic-bert-moe"].into_iter().enumerate()
    {
        let f = Fixture::encoder(name);
        let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
        let t = &f.tokens;
        let texts = [&t[..7], &t[..48], &t[3..4], &t[10..41], &t[..7], &t[20..40]];
        let on_gpu = gpu_sets().iter().map(|set| Some(*set));
        for set in [None].into_iter().chain(on_gpu.filter(|_| full() || nth == 0)) {
            let mut service = Service::new(&model, set);
            for pooling in in_turns(nth, &[Pooling::Mean, Pooling::Cls, Pooling::Last, Pooling::None]) {
                let together = service.embed(&texts, pooling, VectorNorm::P(2));
                for (text, found) in texts.iter().zip(&together) {
                    let alone = service.embed(&[text], pooling, VectorNorm::P(2)).remove(0);
                    assert_eq!((found.n_token, alone.n_token), (text.len(), text.len()));
                    if set.is_none() {
                        assert_eq!(*found, alone, "{name}, {pooling}");
                    }
                    // On a GPU, steps of more rows have other kernels.
                    let e = nmse(&found.vectors.concat(), &alone.vectors.concat());
                    assert!(e <= 1e-6, "{name}, {set:?}, {pooling}: {e:.1e}");
                }
            }
        }
    }
}

/// Deterministic runs have the same bits on GPUs, too.
#[test]
fn vectors_of_deterministic_runs_do_not_depend_on_other_texts() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("encoders, deterministic");
    for (name, set) in [("modern-bert", FeatureSet::Sg), ("nomic-bert-moe", FeatureSet::Base)] {
        let f = Fixture::encoder(name);
        let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
        let texts = [&f.tokens[..7], &f.tokens[10..41], &f.tokens[3..4], &f.tokens[..7], &f.tokens[20..40]];
        let find = |deterministic, texts: &[&[u32]]| {
            let config = RunnerConfig { n_ctx: 128, deterministic, ..RunnerConfig::default() };
            let runner = block_on(Runner::load(&model, &target(Some(set)), &config, |_| {}));
            let mut service = Service::of(runner.unwrap_or_else(|e| panic!("{name}: {}", chain(&e))), &model);
            service.embed(texts, Pooling::None, VectorNorm::None)
        };
        let each = |deterministic| texts.map(|text| find(deterministic, &[text]).remove(0));
        assert!(find(true, &texts) == each(true), "{name}");
        assert!(
            find(false, &texts) != each(false),
            "{name}: without the option, too, so the test sees nothing"
        );
    }
}

/// Layers on two devices have the same bits. Experts that come to the device when they are used run a few at a time, so
/// that some sums have another order.
#[test]
fn parts_elsewhere_give_the_same_vectors() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("encoders, two devices");
    for (name, set) in [("jina-bert-v3", FeatureSet::Sg), ("nomic-bert-moe", FeatureSet::Base)] {
        let f = Fixture::encoder(name);
        let model = open(f.gguf(true, &|_, _| {})).expect("a fixture is a model");
        let gpus = gpus(2, set);
        let texts = [&f.tokens[..31], &f.tokens[7..20], &f.tokens[..48]];
        let find = |target: &Target, experts_on_cpu: u32| {
            let sizes = RunnerConfig { n_ctx: 64, gpu_layers: Some(1), ..RunnerConfig::default() };
            let config = RunnerConfig { experts_on_cpu, expert_slots: 3, ..sizes };
            let runner = block_on(Runner::load(&model, target, &config, |_| {}));
            let mut service = Service::of(runner.unwrap_or_else(|e| panic!("{name}: {}", chain(&e))), &model);
            service.embed(&texts, Pooling::None, VectorNorm::None)
        };
        let one = find(&Target::Gpu(gpus[0].clone()), 0);
        assert!(one.iter().flat_map(|e| e.vectors.concat()).all(f32::is_finite));
        assert!(find(&Target::Gpus(gpus.clone()), 0) == one, "{name}: two devices");
        for (found, one) in find(&Target::AfterCpu(gpus[..1].to_vec()), 0).iter().zip(&one) {
            let e = nmse(&found.vectors.concat(), &one.vectors.concat());
            assert!(e <= GELU, "{name}, after the CPU: {e:.1e}");
        }
        if name.ends_with("moe") {
            let found = find(&Target::Gpu(gpus[0].clone()), u32::MAX);
            for (found, one) in found.iter().zip(&one) {
                let e = nmse(&found.vectors.concat(), &one.vectors.concat());
                say(format!("{name}: experts that come: NMSE {e:.1e}"));
                assert!(e <= GELU, "{name}: experts that come: {e:.1e}");
            }
        }
    }
}

#[test]
fn encoders_refuse_what_they_cannot_do() {
    let f = Fixture::encoder("nomic-bert");
    let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
    let Service(handle, _driver) = Service::new(&model, None);
    let e = handle.generate(Request::new(f.tokens.clone(), greedy(4))).expect_err("no text");
    let expected = "the model is an encoder: it makes embeddings and scores, and no text (`chaski embed`, `chaski rerank`)";
    assert_eq!(chain(&e), expected);
    let ask = |n: usize, pooling| {
        let readings = handle.embed(EmbedRequest::new(vec![vec![1; n]], EmbedOptions::default()), pooling);
        readings.map(drop).map_err(|e| chain(&e))
    };
    assert_eq!(ask(129, Pooling::Mean), Err("the prompt has 129 tokens, but the context has 128".into()));
    let no_scores =
        "the model has no scores: its file has neither `cls.weight` nor `cls.output.weight` of a reranker";
    assert_eq!(ask(3, Pooling::Rank), Err(no_scores.into()));
    for set in [None, Some(FeatureSet::Base)] {
        let mut runner = load(&model, set, None);
        let e = block_on(runner.prefill(&[1, 2])).expect_err("no logits");
        assert_eq!(chain(&e), expected);
        block_on(runner.feed(&[1, 2])).expect("a text");
        let e = block_on(runner.feed(&[3])).expect_err("a part of a text");
        let part = "the model is an encoder, which takes a text at once: found a token at position 2 that does not \
                    follow the one before";
        assert_eq!(chain(&e), part);
    }
    // A head that does not fit.
    let wrong = Fixture::encoder("bert-rank").gguf(false, &|_, tensors| {
        tensors.iter_mut().filter(|t| t.0 == "cls.output.weight").for_each(|t| t.1[0] = 63);
    });
    let model = open(wrong).expect("a model");
    let config = RunnerConfig::default();
    let e =
        block_on(Runner::load(&model, &Target::Cpu, &config, |_| {})).map(drop).expect_err("a wrong shape");
    let expected = "tensor `cls.output.weight`: expected shape [1, 64], found [1, 63] (outermost first)";
    assert_eq!(chain(&e), expected);
}

/// A decoder that makes scores reads them, too: a tensor that counts as read is not left out.
#[test]
fn dense_layers_of_decoders_are_loaded() {
    let f = Fixture::load("qwen3-dense");
    let bytes = f.gguf(false, &|_, tensors| {
        let n_embd = tensors.iter().find(|t| t.0 == "output_norm.weight").expect("a norm").1[0];
        tensors.extend([("dense_2.weight".into(), vec![n_embd, 5]), ("dense_2.bias".into(), vec![5])]);
    });
    let model = open(bytes).expect("a fixture is a model");
    let unread = block_on(model.unread()).expect("a graph");
    let unread: Vec<&str> =
        unread.iter().map(|t| t.name.as_str()).filter(|n| n.starts_with("dense")).collect();
    assert!(unread.is_empty(), "{unread:?}");
    let found = Service::new(&model, None).embed(&[&f.tokens[..3]], Pooling::Mean, VectorNorm::None);
    assert_eq!(found[0].vectors.concat().len(), 5);
}

/// Files with a tensor less, tensors of other shapes, and keys of other values: an error or vectors.
#[test]
fn damaged_files_are_errors_or_run() {
    let _t = Timed::new("encoders, damage");
    let (mut n_error, mut n_run) = (0, 0);
    let mut check = |f: &Fixture, edit: Edit<'_>| {
        let config =
            RunnerConfig { n_ctx: 64, threads: Threads { decode: 1, batch: 1 }, ..RunnerConfig::default() };
        let loaded = open(f.gguf(false, edit))
            .and_then(|m| Ok((block_on(Runner::load(&m, &Target::Cpu, &config, |_| {}))?, m)));
        let Ok((runner, model)) = loaded else {
            n_error += 1;
            return;
        };
        n_run += 1;
        let (handle, mut driver) = serve(runner, model.shared_text().0, 64).expect("sizes that fit");
        for pooling in [Pooling::Mean, Pooling::Rank] {
            let options = EmbedOptions { pooling: Some(pooling), norm: VectorNorm::P(2) };
            let Ok(readings) = handle.embed(EmbedRequest::new(vec![vec![1, 2, 3]], options), pooling) else {
                continue;
            };
            block_on(driver.results(readings)).expect("a vector, of whatever values");
        }
    };
    for name in FIXTURES.iter().map(|f| f.0).filter(|name| wanted(name)) {
        let f = Fixture::encoder(name);
        let (mut keys, mut names) = (Vec::new(), Vec::new());
        {
            let list = std::sync::Mutex::new((&mut keys, &mut names));
            f.gguf(false, &|metadata, tensors| {
                let mut list = list.lock().expect("one thread");
                list.0.extend(metadata.iter().cloned());
                list.1.extend(tensors.iter().map(|t| t.0.clone()).filter(|t| !t.starts_with("blk.1.")));
            });
        }
        for tensor in &names {
            check(&f, &|_, tensors| tensors.retain(|t| t.0 != *tensor));
            for change in [
                |ne: &mut Vec<u64>| ne.reverse(),
                |ne: &mut Vec<u64>| ne[0] *= 2,
                |ne: &mut Vec<u64>| ne.push(2),
            ] {
                let of = |t: &&mut (String, Vec<u64>)| t.0 == *tensor;
                check(&f, &|_, tensors| tensors.iter_mut().filter(of).for_each(|t| change(&mut t.1)));
            }
        }
        for (key, value) in keys.iter().filter(|(key, _)| *key != "general.architecture") {
            check(&f, &|metadata, _| metadata.retain(|m| m.0 != *key));
            let values: Vec<OwnedValue> = match value {
                OwnedValue::U32(_) => [0u32, 1, 3, u32::MAX].map(OwnedValue::U32).to_vec(),
                OwnedValue::F32(_) => [0.0, -1.0, f32::NAN, f32::INFINITY].map(OwnedValue::F32).to_vec(),
                _ => vec![OwnedValue::U32(7)],
            };
            for other in values {
                check(&f, &|metadata, _| {
                    metadata.iter_mut().filter(|m| m.0 == *key).for_each(|m| m.1 = other.clone());
                });
            }
        }
    }
    say(format!("{n_error} damaged encoders are errors, {n_run} run"));
    assert!(n_error > n_run, "{n_error} errors, {n_run} run");
}

/// Tokens, vectors and scores of texts, with the tokens of a BERT vocabulary.
#[test]
fn texts_and_pairs_are_those_of_another_engine() {
    let pairs = read_json(&fixture("encoders/reranker.txt"));
    let pairs = pairs.as_array().expect("a list");
    let text = |pair: &Value, name: &str| pair[name].as_str().expect("a text").to_owned();
    for device in [DeviceChoice::Cpu, DeviceChoice::Gpu(None)] {
        let source = Source::path(fixture("encoders/reranker.gguf"));
        // By default every second one on a GPU.
        let n = if full() || device == DeviceChoice::Cpu { 1 } else { 2 };
        let mut engine = build(Engine::builder(source).device(device));
        let ranker = Ranker::of(engine.model()).expect("a reranker");
        let mean = EmbedOptions { pooling: Some(Pooling::Mean), norm: VectorNorm::None };
        for pair in pairs.iter().step_by(n) {
            let (query, document) = (text(pair, "query"), text(pair, "document"));
            let tokens =
                ranker.tokens(engine.tokenizer().within(usize::MAX), &query, &document).expect("a tokenizer");
            assert_eq!(serde_json::json!(tokens), pair["tokens"], "{query} {document}");
            let score = block_on(engine.rank(&query, &[&document])).expect("a score")[0];
            assert!(
                (score - pair["score"].as_f64().expect("a score")).abs() < 1e-6,
                "{query} {document}: {score}"
            );
            let found = block_on(engine.embed(&[&document], &mean)).expect("a vector").remove(0);
            let expected = pair["mean_of_document"].as_array().expect("a vector").iter();
            let expected: Vec<f32> = expected.map(|v| v.as_f64().expect("a number") as f32).collect();
            let e = nmse(&found.vectors[0], &expected);
            assert!(e <= GELU, "{document}: {e:.1e}");
        }
    }
}
