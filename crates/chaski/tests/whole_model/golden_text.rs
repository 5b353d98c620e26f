//! Greedy texts of every format and configuration, compared with texts that another engine generated in f32 from the
//! same weights.
//!
//! The golden files end with two line feeds that the generating program printed after the last token; they are removed.

use std::path::PathBuf;

use chaski::kernels::{ActivationPrecision, FeatureSet, MatVecTune, ProductClass, Tuning};
use chaski::{DeviceChoice, Engine, EngineBuilder, GenerateOptions, KvType, Source};

use crate::common::{
    Failures, Timed, build, default_model, fixture, full, greedy, left_for_full, more_data, one_in,
    read_json, read_text, test_data, text,
};

/// Formats of the storyteller, as golden.json names them.
const FORMATS: &[&str] = &["f16", "Q8_0", "Q6_K", "Q4_K_M", "Q4_0"];

/// Printed by the generating program after the last token.
const PRINTED_AFTER: &str = "\n\n";

/// Tokens per golden answer of the storyteller.
const N_TOKEN: usize = 96;

/// The storyteller's file in a format. Only that of the default model is in the repository.
pub(crate) fn storyteller(format: &str, test: &str) -> Option<PathBuf> {
    if format == "Q4_K_M" {
        return Some(default_model());
    }
    let folder = more_data("models/storyteller", &format!("{test} in {format}"))?;
    Some(folder.join(format!("storyteller-{format}.gguf")))
}

/// Prompts and golden answers of a format.
pub(crate) fn golden(format: &str) -> Vec<(String, String)> {
    let json = read_json(&fixture("storyteller/golden.json"));
    let texts = json[format]["greedy"].as_object().expect("prompts and answers");
    let answer = |v: &serde_json::Value| {
        let v = v.as_str().expect("a text");
        v.strip_suffix(PRINTED_AFTER).expect("two line feeds after the last token").to_owned()
    };
    texts.iter().map(|(prompt, v)| (prompt.clone(), answer(v))).collect()
}

fn gpu(source: Source) -> EngineBuilder {
    Engine::builder(source).device(DeviceChoice::Gpu(None))
}

#[test]
fn storyteller_tells_the_golden_texts_in_every_format() {
    let _t = Timed::new("golden_text, storyteller");
    let mut failures = Failures::default();
    for format in one_in(3, FORMATS) {
        let Some(file) = storyteller(format, "texts of the storyteller") else { continue };
        let mut engine = build(gpu(Source::path(file)));
        for (prompt, expected) in one_in(4, golden(format)) {
            let found = text(&mut engine, &prompt, greedy(N_TOKEN)).expect("a text");
            failures.same_text(format!("{format}, {prompt:?}"), &found, &expected);
        }
    }
    failures.conclude();
}

/// A prompt and the golden answer of the embedded model, so that some case always runs.
pub(crate) const PROMPT: &str =
    "<|user|>\nTell me a story about a fox who lost a kite.<|end|>\n<|assistant|>\n";
pub(crate) const ANSWER: &str = "Once upon a time, there lived a sleepy fox called Starling. Starling had one paper kite and flew it \
    on every windy day. One day after lunch, Starling went to the lake. When she came home, the paper kite was \
    missing.\n\nShe searched under the bridge and behind the haystack, but the kite was not there.\n\nJust then, a \
    little otter named Mossy came by. \"Why are you so sad?\" asked the otter";
/// Bytes of the first 32 tokens of the answer.
const BEGINNING: usize = 133;

#[test]
fn embedded_model_tells_the_whole_golden_text() {
    let _t = Timed::new("golden_text, embedded model");
    let mut failures = Failures::default();
    for (source, n, expected) in
        [(Source::Default, N_TOKEN, ANSWER), (Source::path(default_model()), 32, &ANSWER[..BEGINNING])]
    {
        let mut engine = build(gpu(source));
        let found = text(&mut engine, PROMPT, greedy(n)).expect("a text");
        failures.same_text(engine.info().file, &found, expected);
    }
    failures.conclude();
}

/// A tuning as it might result on a large GPU.
fn spread(act: ActivationPrecision) -> Tuning {
    let mut tuning = Tuning::default();
    for (format, epilogue, n_row, n_col) in [
        ("q4_K", "glu", 1536, 256),
        ("q4_K", "add", 256, 256),
        ("q4_K", "add", 256, 768),
        ("q6_K", "add", 256, 768),
        ("q6_K", "store", 2048, 256),
        ("q4_K", "rope_kv", 512, 256),
        ("q4_K+q6_K", "rope_kv", 512, 256),
    ] {
        let class = ProductClass { format: format.into(), epilogue: epilogue.into(), n_row, n_col };
        tuning.set(class, MatVecTune { fill: 1 << 16, team: 512, act, doubled: true });
    }
    tuning
}

/// A change of the default settings.
type Change = (&'static str, fn(EngineBuilder) -> EngineBuilder, fn(GenerateOptions) -> GenerateOptions);

fn same(o: GenerateOptions) -> GenerateOptions {
    o
}

const CHANGES: &[Change] = &[
    ("1 token a readback", |b| b, |o| GenerateOptions { interval: 1, ..o }),
    ("4 tokens a readback", |b| b, |o| GenerateOptions { interval: 4, ..o }),
    ("16 tokens a readback", |b| b, |o| GenerateOptions { interval: 16, ..o }),
    ("chunks of 3", |b| b.chunk(3), same),
    ("chunks of 1", |b| b.chunk(1), same),
    ("chunks of 512", |b| b.chunk(512), same),
    ("bindings of 64 KiB", |b| b.max_binding_bytes(64 << 10).chunk(8).context(64), same),
    ("bindings of 256 KiB", |b| b.max_binding_bytes(256 << 10).chunk(32).context(128), same),
    ("KV f32", |b| b.kv(KvType::F32), same),
    ("KV f16", |b| b.kv(KvType::F16), same),
    ("no features", |b| b.feature_set(FeatureSet::Base), same),
    ("threads alone", |b| b.feature_set(FeatureSet::Alone), same),
    ("threads alone, KV f16", |b| b.feature_set(FeatureSet::Alone).kv(KvType::F16), same),
    ("threads alone, bounds checks", |b| b.feature_set(FeatureSet::Alone).checked(true).chunk(8), same),
    ("bounds checks", |b| b.checked(true), same),
    ("no features, bounds checks", |b| b.feature_set(FeatureSet::Base).checked(true), same),
    ("inputs in 16 bits", |b| b.inputs(ActivationPrecision::I16), same),
    (
        "inputs in 16 bits, no features",
        |b| b.inputs(ActivationPrecision::I16).feature_set(FeatureSet::Base),
        same,
    ),
    (
        "inputs in 16 bits, as many threads as a large GPU has",
        |b| b.tuning(|_| spread(ActivationPrecision::I16)),
        same,
    ),
    ("as many threads as a large GPU has", |b| b.tuning(|_| spread(ActivationPrecision::F32)), same),
    ("CPU", |b| b.device(DeviceChoice::Cpu), same),
];

#[test]
fn embedded_model_tells_the_same_text_however_it_is_run() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("golden_text, ways to run");
    let mut failures = Failures::default();
    for (name, change, options) in one_in(6, CHANGES) {
        let mut engine = build(change(gpu(Source::Default)));
        let found = text(&mut engine, PROMPT, options(greedy(32))).expect("a text");
        failures.same_text(name, &found, &ANSWER[..BEGINNING]);
    }
    failures.conclude();
}

/// A model, and the number of bytes that must match the golden text of f32.
type Story = (&'static str, &'static str, usize);

const ALL: usize = usize::MAX;
const STORIES: &[Story] = &[
    ("stories260K", "stories260K-f32", ALL),
    ("stories260K", "stories260K-f16", ALL),
    ("babyllama", "babyllama-F16", ALL),
    ("babyllama", "babyllama-Q8_0", 60),
];

#[test]
fn small_llamas_tell_the_golden_texts() {
    let _t = Timed::new("golden_text, small llamas");
    let Some(folder) = test_data("models/babyllama").and(test_data("models")) else { return };
    let mut failures = Failures::default();
    for (dir, file, n) in one_in(4, STORIES) {
        let golden = read_text(&folder.join(dir).join("golden-greedy-f32.txt"));
        let golden = golden.strip_suffix(PRINTED_AFTER).expect("two line feeds after the last token");
        let expected = golden.strip_prefix(" Once upon a time").expect("the text begins with its prompt");
        let mut engine = build(gpu(Source::path(folder.join(dir).join(format!("{file}.gguf")))));
        let n = if full() { *n } else { 60.min(*n) };
        // Longer than the golden text, or than what must match: a token has a byte or more.
        let found = text(&mut engine, "Once upon a time", greedy(220.min(n))).expect("a text");
        let n = expected.len().min(n);
        failures.same_text(file, found.get(..n).unwrap_or(&found), &expected[..n]);
    }
    failures.conclude();
}
