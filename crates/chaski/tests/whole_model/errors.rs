//! Failures report their cause and leave a working engine.

use chaski::errors::{FormatError, ModelError, PlanError, RuntimeError};
use chaski::gguf::{GgmlType, MemorySource, OwnedValue};
use chaski::kernels::FeatureSet;
use chaski::serve::{Refused, ServeError};
use chaski::{DeviceChoice, Engine, Error, Source};
use chaski_models::{Model, Runner, RunnerConfig, Target};

use crate::archs::{Edit, Fixture, open};
use crate::common::{Failures, Timed, block_on, build, chain, default_engine, greedy, shared_gpu, text};
use crate::golden_text::{ANSWER, PROMPT};

/// The error of a result that must fail.
fn error<T, E: Into<Error>>(result: Result<T, E>, case: &str) -> Error {
    match result {
        Ok(_) => panic!("{case}: an error was expected"),
        Err(e) => e.into(),
    }
}

#[test]
fn an_answer_whose_device_is_lost_goes_on_with_another() {
    let _t = Timed::new("errors, device lost");
    let mut engine = build(default_engine());
    let mut failures = Failures::default();
    for n_before in [0, 9] {
        let mut found = String::new();
        let mut g = engine.generate(PROMPT, greedy(32)).expect("a generation");
        for _ in 0..n_before {
            found.push_str(&block_on(g.next()).expect("a piece").expect("32 tokens").text);
        }
        g.executor().gpu().expect("a GPU").destroy();
        while let Some(piece) = block_on(g.next()).expect("another device") {
            found.push_str(&piece.text);
        }
        drop(g);
        let expected = &ANSWER[..found.len().min(ANSWER.len())];
        failures.same_text(format!("{n_before} tokens, then the rest"), &found, expected);
        failures.check(found.len() > 100, || format!("32 tokens of text, not {found:?}"));
        assert_eq!(engine.load().n_recovered, 1 + u64::from(n_before > 0));
        // Without a request, the loss is an error until the engine is rebuilt.
        engine.gpu().expect("a GPU").destroy();
        block_on(engine.runner().prefill(&[1])).ok();
        let lost = error(block_on(engine.runner().logits()), "a lost device");
        failures.check(lost.is_device_lost() && !lost.is_out_of_memory(), || chain(&lost));
        block_on(engine.rebuild()).expect("the adapter is still there");
        block_on(engine.runner().prefill(&[1])).expect("a device");
        block_on(engine.runner().logits()).expect("its logits");
    }
    failures.conclude();
}

/// The limit that a request exceeded: name, requested, available.
fn limit(e: &Error) -> Option<(&'static str, u64, u64)> {
    match e {
        Error::Model(ModelError::Runtime(RuntimeError::Limit { what, found, limit })) => {
            Some((*what, *found, *limit))
        }
        Error::Model(ModelError::Context { found, limit }) => {
            Some(("tokens of the sequence", *found, *limit))
        }
        Error::Serve(ServeError::Refused(Refused::Context { found, limit })) => {
            Some(("tokens of the sequence", *found as u64, *limit as u64))
        }
        _ => None,
    }
}

#[test]
fn requests_beyond_the_engine_are_errors_and_harm_nothing() {
    let _t = Timed::new("errors, requests");
    let mut failures = Failures::default();
    for device in [DeviceChoice::Gpu(None), DeviceChoice::Cpu] {
        let mut engine = build(default_engine().device(device.clone()).context(64));
        let n_vocab = engine.runner().n_vocab();
        let healthy = |engine: &mut Engine, failures: &mut Failures, case: &str| {
            let found = text(engine, PROMPT, greedy(12)).expect("a text");
            failures.check(!found.is_empty() && ANSWER.starts_with(&found), || {
                format!("after {case}: {found:?}")
            });
        };
        let e = error(engine.generate_tokens(&[1; 65], greedy(1)).map(drop), "a prompt of 65 tokens");
        failures
            .check(limit(&e) == Some(("tokens of the sequence", 65, 64)), || format!("{device:?}: {e:?}"));
        healthy(&mut engine, &mut failures, "a prompt of 65 tokens");
        // A prompt that fills the context leaves room for one token.
        let mut g = engine.generate_tokens(&[1; 64], greedy(5)).expect("64 tokens fit");
        while block_on(g.next()).expect("a piece").is_some() {}
        failures.check(g.tokens().len() == 1, || format!("{device:?}: {} tokens after 64", g.tokens().len()));
        drop(g);
        for bad in [n_vocab, u32::MAX] {
            let e = error(engine.generate_tokens(&[1, bad], greedy(1)).map(drop), "a token that is none");
            let named = matches!(
                e.model(),
                Some(ModelError::Token { token, n_vocab: n }) if *token == bad && *n == n_vocab
            );
            failures.check(named, || format!("{device:?}: {e:?}"));
            let e = error(block_on(engine.runner().eval_all(&[bad], 1)), "a token that is none");
            failures
                .check(matches!(&e, Error::Model(ModelError::Token { .. })), || format!("{device:?}: {e:?}"));
        }
        healthy(&mut engine, &mut failures, "a token that is none");
        let e = error(engine.generate_tokens(&[], greedy(1)).map(drop), "an empty prompt");
        failures.check(matches!(&e, Error::Serve(ServeError::Refused(Refused::Empty))), || {
            format!("{device:?}: {e:?}")
        });
        healthy(&mut engine, &mut failures, "an empty prompt");
    }
    failures.conclude();
}

#[test]
fn devices_that_are_not_there_and_contexts_that_do_not_fit_are_errors() {
    let _t = Timed::new("errors, devices");
    let none = DeviceChoice::Gpu(Some("no such device".into()));
    let e = error(block_on(default_engine().device(none).build()), "a device that is not there");
    let found = chaski_runtime::gpu::adapters();
    let found = block_on(found);
    assert!(chain(&e).contains("no such device") && chain(&e).contains(&found[0].name), "{}", chain(&e));

    // More than a binding holds, and more cells than 32 bits can count.
    for n_ctx in [1 << 24, 1 << 29, u32::MAX - 3, u32::MAX] {
        let e = error(block_on(default_engine().context(n_ctx).build()), "a context of many millions");
        let chain = chain(&e);
        assert!(chain.contains("KV cache") && chain.contains("smaller context"), "{n_ctx}: {chain}");
    }

    let small = default_engine().max_binding_bytes(64 << 10).context(64).chunk(64);
    let e = error(block_on(small.build()), "chunks larger than a binding");
    assert!(chain(&e).contains("activation") && chain(&e).contains("smaller chunk"), "{}", chain(&e));

    let e = error(block_on(Engine::builder(Source::path("no/such/file.gguf")).build()), "no such file");
    assert!(chain(&e).contains("no/such/file.gguf"), "{}", chain(&e));
}

/// Loads a file in memory on the CPU.
fn load(model: &Model<MemorySource>) -> Result<Runner, ModelError> {
    let config = RunnerConfig { n_ctx: 64, ..RunnerConfig::default() };
    block_on(Runner::load(model, &Target::Cpu, &config, |_| {}))
}

/// Damage to a file, and words that the error must contain.
type Damage = (&'static str, Edit<'static>, &'static [&'static str]);

fn set(metadata: &mut [(String, OwnedValue)], key: &str, value: impl Into<OwnedValue>) {
    metadata.iter_mut().find(|(k, _)| k == key).expect("the fixture has the key").1 = value.into();
}

fn shape<'a>(tensors: &'a mut [(String, Vec<u64>)], name: &str) -> &'a mut Vec<u64> {
    &mut tensors.iter_mut().find(|(n, _)| n == name).expect("the fixture has the tensor").1
}

const DAMAGES: &[Damage] = &[
    (
        "a missing matrix",
        &|_, t| t.retain(|(n, _)| n != "blk.1.ffn_up.weight"),
        &["`blk.1.ffn_up.weight` is missing"],
    ),
    (
        "a missing norm",
        &|_, t| t.retain(|(n, _)| n != "output_norm.weight"),
        &["`output_norm.weight` is missing"],
    ),
    (
        "a matrix of another shape",
        &|_, t| *shape(t, "blk.0.attn_output.weight") = vec![256, 128],
        &["`blk.0.attn_output.weight`", "[256, 256]", "[128, 256]"],
    ),
    (
        "a matrix turned around",
        &|_, t| shape(t, "blk.0.ffn_gate.weight").reverse(),
        &["`blk.0.ffn_gate.weight`", "[384, 256]", "[256, 384]"],
    ),
    (
        "a matrix of three dimensions",
        &|_, t| *shape(t, "blk.1.attn_k.weight") = vec![256, 128, 2],
        &["`blk.1.attn_k.weight`", "2, 128, 256]"],
    ),
    (
        "a vocabulary larger than its embeddings",
        &|m, _| set(m, "llama.vocab_size", 200u32),
        &["`token_embd.weight`", "[200, 256]", "[128, 256]"],
    ),
    (
        "an unknown architecture",
        &|m, _| set(m, "general.architecture", "alpaca"),
        &["`alpaca` is not supported", "llama"],
    ),
    ("a missing key", &|m, _| m.retain(|(k, _)| k != "llama.embedding_length"), &["llama.embedding_length"]),
    ("a key of another type", &|m, _| set(m, "llama.embedding_length", "many"), &["llama.embedding_length"]),
    (
        "heads that do not divide",
        &|m, _| set(m, "llama.attention.head_count_kv", 3u32),
        &["llama.attention.head_count_kv"],
    ),
    (
        "an unknown RoPE scaling",
        &|m, _| m.push(("llama.rope.scaling.type".into(), "spiral".into())),
        &["spiral", "not supported"],
    ),
    (
        "more layers than tensors",
        &|m, _| set(m, "llama.block_count", 3u32),
        &["`blk.2.attn_norm.weight` is missing"],
    ),
    (
        "fewer layers than tensors",
        &|m, _| set(m, "llama.block_count", 1u32),
        &["`llama.block_count` is 1, but", "up to layer 1", "`blk.1."],
    ),
    (
        "no layers at all",
        &|m, _| set(m, "llama.block_count", 0u32),
        &["`llama.block_count` is 0, but", "up to layer 1", "`blk.1."],
    ),
    ("layers beyond all reason", &|m, _| set(m, "llama.block_count", u32::MAX), &["llama.block_count"]),
];

#[test]
fn errors_of_a_file_name_what_is_wrong() {
    let _t = Timed::new("errors, files");
    let fixture = Fixture::load("llama-plain");
    let mut failures = Failures::default();
    for (case, edit, words) in DAMAGES {
        let e = error(open(fixture.gguf(true, edit)).and_then(|m| load(&m)).map(drop), case);
        let message = chain(&e);
        for word in *words {
            failures.check(message.contains(word), || format!("{case}: {word:?} is not in {message:?}"));
        }
    }
    failures.conclude();
}

/// Changes a tensor's type from f32 to i32.
fn call_integer(file: &mut [u8], tensor: &str) {
    let name = file.windows(tensor.len()).position(|w| w == tensor.as_bytes()).expect("the tensor");
    let at = name + tensor.len();
    let n_dims = u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let ty = &mut file[at + 4 + 8 * n_dims as usize..][..4];
    assert_eq!(ty, GgmlType::F32.id().to_le_bytes());
    ty.copy_from_slice(&GgmlType::I32.id().to_le_bytes());
}

#[test]
fn tensors_in_types_that_are_no_formats_are_refused_on_every_device() {
    let fixture = Fixture::load("llama-plain");
    let config = RunnerConfig { n_ctx: 64, ..RunnerConfig::default() };
    for wrong in ["token_embd.weight", "blk.1.ffn_up.weight", "blk.0.attn_norm.weight"] {
        let mut file = fixture.gguf(false, &|_, _| {});
        call_integer(&mut file, wrong);
        let model = open(file).expect("whole numbers have a place in a file");
        for target in [Target::Cpu, Target::Gpu(shared_gpu(FeatureSet::Base, false))] {
            let e = error(block_on(Runner::load(&model, &target, &config, |_| {})).map(drop), wrong);
            let named = matches!(
                &e,
                Error::Model(ModelError::Runtime(
                    RuntimeError::Format(FormatError { tensor, ty })
                        | RuntimeError::Plan(PlanError::Format(FormatError { tensor, ty }))
                )) if tensor == wrong && *ty == GgmlType::I32
            );
            assert!(named, "{wrong}: {e:?}");
        }
    }
}

#[test]
fn factors_that_make_no_sense_are_errors_that_name_their_tensor() {
    let fixture = Fixture::load("llama-gqa-rope_freqs");
    let wrong_factor = |value: f32| {
        let mut factors = vec![1.0; 32];
        factors[5] = value;
        let own = |name: &str| (name == "rope_freqs.weight").then(|| factors.clone());
        let model = open(fixture.gguf_of(false, &|_, _| {}, &own)).expect("values are read later");
        chain(&error(load(&model).map(drop), "a wrong factor"))
    };
    for (value, found) in [(0.0, "0"), (-1.0, "-1"), (f32::NAN, "NaN")] {
        let want = format!("tensor `rope_freqs.weight` has the value {found}, but must have positive values");
        assert_eq!(wrong_factor(value), want);
    }
    let gemma = Fixture::load("gemma4-dense");
    let scale = "blk.0.layer_output_scale.weight";
    let own = |name: &str| (name == scale).then(|| vec![f32::NAN]);
    let model = open(gemma.gguf_of(false, &|_, _| {}, &own)).expect("values are read later");
    let want = format!("tensor `{scale}` has the value NaN, but must have a finite value");
    assert_eq!(chain(&error(load(&model).map(drop), "a wrong scale")), want);
    let mut file = fixture.gguf(false, &|_, _| {});
    call_integer(&mut file, "rope_freqs.weight");
    let e = error(load(&open(file).expect("a place in a file")).map(drop), "whole numbers");
    let want = "tensor `rope_freqs.weight` has values of type i32, but must have values of type f32";
    assert_eq!(chain(&e), want);
}

#[test]
fn a_file_without_text_takes_ids_and_refuses_text() {
    let fixture = Fixture::load("llama-plain");
    let bytes: &'static [u8] = fixture.gguf(true, &|_, _| {}).leak();
    let source = Source::Bytes { name: "fixture.gguf".into(), bytes };
    let mut engine = build(Engine::builder(source).device(DeviceChoice::Cpu));
    let e = error(text(&mut engine, "Once", greedy(1)), "a text for a model without text");
    assert!(chain(&e).contains("token ids"), "{}", chain(&e));
    let logits = block_on(engine.runner().eval_all(&fixture.tokens, 48)).expect("ids run");
    assert_eq!(logits.len(), 48 * 128);
}

#[test]
fn a_file_that_ends_early_is_an_error() {
    let bytes = Fixture::load("llama-plain").gguf(true, &|_, _| {});
    for n in [0, 3, 24, 1000, bytes.len() / 2, bytes.len() - 64] {
        let e = error(open(bytes[..n].to_vec()).and_then(|m| load(&m)).map(drop), "a file that ends early");
        assert!(chain(&e).contains("fixture.gguf"), "{n} bytes: {}", chain(&e));
    }
}
