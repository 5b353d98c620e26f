//! The table of families: each has a fixture, and dispatches per layer do not increase.

use std::collections::{BTreeMap, BTreeSet};

use chaski::gguf::{GgmlType, OwnedValue};
use chaski::kernels::Caps;
use chaski_models::{ARCHS, ModelError};
use chaski_runtime::plan::{
    Fusions, Groups, PlanConfig, Planned, Segments, Streaming, dispatches, fuse, plan,
};

use crate::archs::{DONE, Edit, FAMILIES, FIXTURES, Fixture, open, value};
use crate::common::{Failures, block_on, chain, fixture, read_json, say};
use crate::{encoders, recurrent};

/// Dispatches of a layer for one token, where kernels merge their parts. Lower these with an improvement, never raise
/// them.
const PER_LAYER: &[(&str, usize)] = &[
    ("cohere2-dense", 7),
    ("command-r-dense", 7),
    ("deepseek2-moe", 12),
    ("ernie4_5-moe", 5),
    ("exaone4-dense", 8),
    ("gemma-dense", 5),
    ("gemma2-dense", 7),
    ("gemma3-dense", 8),
    ("gemma3-scaled", 8),
    ("gemma3n-dense", 30),
    ("gemma4-dense", 13),
    ("gemma4-moe", 14),
    ("glm4-dense", 7),
    ("glm4moe-moe", 8),
    ("gpt-oss-moe", 7),
    ("gpt-oss-yarn", 7),
    ("gpt2-dense", 9),
    ("gptneox-dense", 9),
    ("granite-dense", 5),
    ("granite-multipliers", 5),
    ("granitemoe-moe", 8),
    ("hunyuan-dense-dense", 6),
    ("internlm2-dense", 5),
    ("mistral3-dense", 5),
    ("mistral3-yarn-temperature", 5),
    ("olmo2-dense", 8),
    ("olmoe-moe", 7),
    ("phi2-dense", 8),
    ("phi3-dense", 5),
    ("phi3-longrope", 5),
    ("phimoe-moe", 9),
    ("qwen2-dense", 5),
    ("qwen2moe-moe", 11),
    ("qwen3-dense", 6),
    ("qwen3moe-moe", 7),
    ("smollm3-dense", 5),
    ("stablelm-dense", 9),
    ("starcoder2-dense", 9),
    ("mamba2-dense", 5),
    ("mamba-dense", 8),
    ("granitehybrid-dense", 6),
    ("falcon-h1-dense", 11),
    ("nemotron_h-dense", 4),
    ("lfm2-full-attention", 6),
    ("lfm2moe-moe", 6),
    ("qwen35-dense", 8),
    ("qwen35moe-moe", 14),
    ("qwen3next-moe", 14),
    ("qwen35-heads", 8),
    ("qwen3next-heads", 14),
    ("lfm2-window", 6),
    ("lfm2moe-choice", 6),
    ("nemotron_h_moe-plain", 6),
    ("nemotron_h_moe-latent", 7),
    ("qwen-dense", 5),
    ("qwen2vl-dense", 5),
    ("paddleocr-dense", 5),
    ("qwen3vl-dense", 6),
    ("qwen3vlmoe-moe", 7),
    ("minicpm-dense", 5),
    ("orion-dense", 8),
    ("xverse-dense", 5),
    ("baichuan-dense", 5),
    ("baichuan-alibi", 5),
    ("olmo-dense", 17),
    ("falcon-dense", 8),
    ("falcon-two-norms", 10),
    ("starcoder-dense", 9),
    ("codeshell-dense", 9),
    ("exaone-dense", 5),
    ("nemotron-dense", 9),
    ("chatglm-dense", 5),
    ("seed_oss-dense", 5),
    ("arcee-dense", 6),
    ("jais2-dense", 9),
    ("pangu-embedded-dense", 5),
    ("cogvlm-dense", 5),
    ("maincoder-dense", 6),
    ("openelm-dense", 6),
    ("apertus-dense", 7),
    ("minicpm3-dense", 10),
    ("plm-dense", 10),
    ("deepseek-moe", 7),
    ("deepseek2-ocr-moe", 7),
    ("dots1-moe", 8),
    ("bailingmoe-moe", 8),
    ("bailingmoe2-moe", 8),
    ("ernie4_5-moe-moe", 7),
    ("hunyuan-moe-moe", 9),
    ("llama4-moe", 14),
    ("minimax-m2-moe", 7),
    ("mellum-moe", 7),
    ("maple-moe", 7),
    ("exaone-moe-moe", 9),
    ("smallthinker-moe", 7),
    ("afmoe-moe", 13),
    ("dbrx-moe", 18),
    ("hy_v3-moe", 8),
    ("grok-both", 10),
    ("grok-moe", 8),
    ("arctic-moe", 9),
    ("cohere2moe-moe", 9),
    ("bloom-dense", 9),
    ("mpt-dense", 16),
    ("mpt-positions", 9),
    ("jais-dense", 8),
    ("refact-dense", 5),
    ("bitnet-dense", 5),
    ("plamo-dense", 6),
    ("plamo3-dense", 8),
    ("spark2_5-dense", 7),
    ("laguna-moe", 11),
    ("deci-dense", 4),
    ("granite_swa-dense", 5),
    ("jamba-moe", 11),
    ("mamba-norms", 12),
    ("mistral4-moe", 12),
    ("mimo2-moe", 6),
    ("step35-moe", 15),
    ("hunyuan_vl-dense", 6),
    ("plamo2-dense", 14),
    ("deepseek32-moe", 12),
    ("glm-dsa-moe", 12),
    ("talkie-dense", 19),
    ("muse-glimmer-dense", 11),
];

/// The plans of a fixture on a device.
fn segments(name: &'static str, caps: &Caps, kv: GgmlType) -> Segments {
    let model = open(Fixture::load(name).gguf(false, &|_, _| {})).expect("a fixture is a model");
    let graph = block_on(model.graph(64)).expect("a graph");
    let config = PlanConfig { kv: (kv, kv), ..PlanConfig::new(64, 1, 64) };
    let steps = fuse(&graph, Fusions::ALL);
    let mut groups = Groups::new(&graph, &steps, caps, &Streaming::default()).expect("groups");
    plan(&graph, &steps, &mut groups, caps, &config).expect("a plan")
}

/// Dispatches of a layer of a fixture, rounded up: layers may differ, and an unfused last norm counts, too.
fn per_layer(name: &'static str) -> usize {
    let caps = Caps { subgroup: Some((32, 32)), f16: true, coherent: true, ..Caps::base() };
    let segments = segments(name, &caps, GgmlType::F16);
    let body: Vec<&Planned> = dispatches(&segments.decode[0].body).collect();
    // Excluding the embeddings and their scaling.
    let first = body.iter().position(|p| ["qkv", "project", "norm"].contains(&p.part)).expect("a layer");
    (body.len() - first).div_ceil(segments.n_layer)
}

/// Kernel and constants, as bits.
type Pipeline = (&'static str, Vec<(&'static str, u64)>);

/// The pipelines of a family for single tokens and for at most `max_col` at once.
fn pipelines(name: &'static str, subgroup: Option<(u32, u32)>, max_col: u32) -> BTreeSet<Pipeline> {
    let caps = Caps { subgroup, f16: subgroup.is_some(), ..Caps::base() };
    let s = segments(name, &caps, GgmlType::F32);
    let decode = s.decode.iter().flat_map(|p| dispatches(&p.body));
    let prompt = s.prompt.iter().filter(|p| p.max_col <= max_col).flat_map(|p| dispatches(&p.body));
    let constants = |p: &Planned| {
        let mut all: Vec<_> = p.dispatch.constants.iter().map(|(name, v)| (*name, v.to_bits())).collect();
        all.sort_unstable();
        all
    };
    decode.chain(prompt).map(|p| (p.dispatch.kernel.name, constants(p))).collect()
}

/// The operations of pipelines.
fn operations(of: &BTreeSet<Pipeline>) -> BTreeSet<&'static str> {
    of.iter().filter_map(|(kernel, _)| kernel.split('.').next()).collect()
}

/// A few families that together use every operation that any of them uses for at most `max_col` tokens on a device with
/// such subgroups. Chosen greedily: each time the family that has the most operations left for the pipelines that it
/// adds, since compiling those is what takes the time.
///
/// Other tests run those in `done`.
pub(crate) fn covering(
    families: &[(&'static str, f64)],
    done: &[&'static str],
    subgroup: Option<(u32, u32)>,
    max_col: u32,
) -> Vec<(&'static str, f64)> {
    let all: Vec<_> = families.iter().map(|f| (*f, pipelines(f.0, subgroup, max_col))).collect();
    let mut left: BTreeSet<&str> = all.iter().flat_map(|(_, p)| operations(p)).collect();
    let (mut chosen, mut compiled) = (Vec::new(), BTreeSet::new());
    for name in done {
        compiled.extend(pipelines(name, subgroup, max_col));
    }
    let known = operations(&compiled);
    left.retain(|op| !known.contains(op));
    while !left.is_empty() {
        let gain = |of: &BTreeSet<Pipeline>| {
            let n_op = operations(of).intersection(&left).count();
            n_op as f64 / of.difference(&compiled).count().max(1) as f64
        };
        let best = all.iter().max_by(|a, b| gain(&a.1).total_cmp(&gain(&b.1)));
        let (family, added) = best.expect("a family of each operation that is left");
        let added_ops = operations(added);
        left.retain(|op| !added_ops.contains(op));
        compiled.extend(added.iter().cloned());
        chosen.push(*family);
    }
    say(format!("{} families with {} pipelines use every operation", chosen.len(), compiled.len()));
    chosen
}

#[test]
fn families_of_the_default_tests_use_every_operation_that_any_family_uses() {
    for subgroup in [Some((8, 8)), None] {
        let chosen = covering(FAMILIES, DONE, subgroup, 8);
        let used = |families: &[(&'static str, f64)], more: &[&'static str]| -> BTreeSet<&str> {
            let names = families.iter().map(|f| f.0).chain(more.iter().copied());
            names.flat_map(|name| operations(&pipelines(name, subgroup, 8))).collect()
        };
        assert_eq!(used(&chosen, DONE), used(FAMILIES, DONE), "{subgroup:?}");
        assert!(chosen.len() < FAMILIES.len() / 2, "{} of {}", chosen.len(), FAMILIES.len());
    }
}

#[test]
fn every_family_has_a_fixture() {
    let with_state = recurrent::FIXTURES.iter().copied();
    let names = || FIXTURES.iter().copied().chain(FAMILIES.iter().map(|f| f.0)).chain(with_state.clone());
    let mut fixtures: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names() {
        let model = open(Fixture::load(name).gguf(false, &|_, _| {})).expect("a fixture is a model");
        fixtures.entry(model.arch().name.to_owned()).or_default().push(name);
    }
    for (name, _) in encoders::FIXTURES {
        let model = open(Fixture::encoder(name).gguf(false, &|_, _| {})).expect("a fixture is a model");
        assert!(block_on(model.unread()).expect("a graph").is_empty(), "{name}");
        fixtures.entry(model.arch().name.to_owned()).or_default().push(name);
    }
    let without: Vec<&str> = ARCHS.iter().map(|a| a.name).filter(|a| !fixtures.contains_key(*a)).collect();
    assert!(without.is_empty(), "families without a fixture: {without:?}");
}

#[test]
fn families_that_need_a_feed_forward_length_say_so() {
    let mut failures = Failures::default();
    let with_state = recurrent::FIXTURES.iter().copied();
    let mut n_refused = 0;
    for name in FIXTURES.iter().copied().chain(FAMILIES.iter().map(|f| f.0)).chain(with_state) {
        let names = |remove: bool| -> Result<Vec<String>, ModelError> {
            let file = Fixture::load(name).gguf(false, &|keys, _| {
                keys.retain(|(key, _)| !remove || !key.ends_with(".feed_forward_length"));
            });
            let graph = block_on(open(file)?.graph(64))?;
            Ok(graph.weights.into_iter().map(|w| w.name).collect())
        };
        let whole = names(false).expect("a fixture has a graph");
        match names(true) {
            Ok(found) => failures.check(found == whole, || format!("{name}: another graph")),
            Err(e) => {
                n_refused += 1;
                let message = chain(&e);
                let says =
                    message.contains(".feed_forward_length`") && message.contains("the key is missing");
                failures.check(says, || format!("{name}: {message:?}"));
            }
        }
    }
    failures.check(n_refused > 80, || format!("{n_refused} fixtures need the length"));
    failures.conclude();
}

/// Unused tensors of fixtures, by part of the name: scales and biases that families ignore, keys of layers that share
/// earlier ones', parts for images, classification, and long contexts.
const UNREAD: &[(&str, &str)] = &[
    ("ernie4_5-moe", ".attn_output.bias"),
    ("falcon-h1-dense", ".attn_output.bias"),
    ("gemma3-scaled", ".scale"),
    ("gpt-oss-yarn", ".scale"),
    ("granite-multipliers", ".scale"),
    ("lfm2-full-attention", ".scale"),
    ("phi3-longrope", ".scale"),
    ("gemma3n-dense", ".attn_"),
    ("deci-dense", "blk.3.attn_"),
    ("cogvlm-dense", ".vis_"),
    ("deepseek32-moe", ".indexer."),
    ("glm-dsa-moe", ".indexer."),
    ("qwen3next-moe", ".ssm_in.weight"),
];

#[test]
fn tensors_that_nothing_reads_are_known_and_named() {
    let mut failures = Failures::default();
    let unread = |name: &'static str, more: &[(&str, u64)]| -> Vec<String> {
        let file = Fixture::load(name).gguf(false, &|_, shapes| {
            shapes.extend(more.iter().map(|(name, n)| ((*name).to_owned(), vec![*n])));
        });
        let model = open(file).expect("a fixture is a model");
        let unread = block_on(model.unread()).expect("a fixture has a graph");
        // Scales of activations are for 4-bit products, which no device here has.
        unread.iter().map(|t| t.name.clone()).filter(|t| !t.ends_with(".input_scale")).collect()
    };
    let with_state = recurrent::FIXTURES.iter().copied();
    for name in FIXTURES.iter().copied().chain(FAMILIES.iter().map(|f| f.0)).chain(with_state) {
        let found = unread(name, &[]);
        let word = UNREAD.iter().find(|row| row.0 == name).map(|row| row.1);
        let known =
            word.map_or(found.is_empty(), |w| !found.is_empty() && found.iter().all(|t| t.contains(w)));
        failures.check(known, || format!("{name}: nothing reads {found:?}, but {word:?} is known"));
    }
    failures.conclude();
    assert_eq!(unread("gemma3-dense", &[("blk.0.ffn_up.scale", 1)]), ["blk.0.ffn_up.scale"]);
    let long = "rope_factors_long.weight";
    assert_eq!(unread("llama-gqa-rope_freqs", &[(long, 8)]), [long]);
}

#[test]
fn a_layer_takes_no_more_dispatches_than_it_did() {
    let mut failures = Failures::default();
    let names = FAMILIES.iter().map(|f| f.0).chain(recurrent::FIXTURES.iter().copied());
    for name in names {
        let found = per_layer(name);
        say(format!("{name:24} {found} dispatches a layer"));
        let limit = PER_LAYER.iter().find(|row| row.0 == name).map(|row| row.1);
        failures.check(limit == Some(found), || format!("{name}: {found} dispatches a layer, not {limit:?}"));
    }
    failures.conclude();
}

#[test]
fn a_context_longer_than_the_table_of_positions_is_an_error() {
    let model = open(Fixture::load("gpt2-dense").gguf(false, &|_, _| {})).expect("a fixture is a model");
    assert!(block_on(model.graph(256)).is_ok());
    let e = block_on(model.graph(257)).expect_err("the table has 256 positions");
    assert_eq!(chain(&e), "tokens of the context: 257, but at most 256");
}

/// Layers that see part of a long context in ways other than a window, with contexts short enough that they see all.
#[test]
fn a_context_longer_than_what_all_layers_see_is_an_error() {
    for (name, most) in [("llama4-moe", 8191), ("glm-dsa-moe", 64)] {
        let model = open(Fixture::load(name).gguf(false, &|_, _| {})).expect("a fixture is a model");
        assert!(block_on(model.graph(most)).is_ok(), "{name}");
        let e = block_on(model.graph(most + 1)).expect_err("more than all layers see");
        assert_eq!(chain(&e), format!("tokens of the context: {}, but at most {most}", most + 1), "{name}");
    }
}

/// Invalid values of family-specific keys.
#[test]
fn wrong_keys_of_families_are_errors_that_name_them() {
    let cases: [(&str, &str, OwnedValue, &str); 17] = [
        ("glm4moe-moe", "glm4moe.expert_gating_func", 9u32.into(), "must be 1 to 4"),
        (
            "glm4-dense",
            "glm4.rope.dimension_sections",
            vec![1i32, 1, 1, 61].into(),
            "must have at least 64 pairs",
        ),
        ("granite-dense", "granite.logit_scale", f32::NAN.into(), "must be finite"),
        ("granite-dense", "granite.rope.scaling.factor", f32::NAN.into(), "must be finite and at least 0"),
        ("granite-dense", "granite.rope.scaling.attn_factor", f32::NAN.into(), "must be finite"),
        ("gemma3-dense", "gemma3.attention.sliding_window_pattern", "all".into(), "sliding_window_pattern"),
        (
            "qwen35-heads",
            "qwen35.rope.dimension_sections",
            vec![0i32; 4].into(),
            "must be four counts of pairs",
        ),
        (
            "qwen35-heads",
            "qwen35.rope.dimension_sections",
            vec![8i32, 8, -1, 1].into(),
            "must be four counts",
        ),
        ("qwen35-heads", "qwen35.full_attention_interval", 0u32.into(), "must be 1 to 4096"),
        ("qwen35-heads", "qwen35.ssm.time_step_rank", 7u32.into(), "must be a multiple of 2"),
        ("qwen35-heads", "qwen35.ssm.inner_size", 128u32.into(), "must be 6 heads of 32 channels"),
        ("lfm2-window", "lfm2.shortconv.l_cache", 1u32.into(), "must be 2 to 64"),
        ("llama4-moe", "llama4.expert_used_count", 2u32.into(), "must be 1 in this family"),
        ("llama4-moe", "llama4.attention.sliding_window", 0u32.into(), "small models of this family"),
        ("bailingmoe2-moe", "bailingmoe2.expert_shared_count", u32::MAX.into(), "must be less"),
        ("step35-moe", "step35.rope.dimension_count_swa", 33u32.into(), "must be even"),
        (
            "hunyuan_vl-dense",
            "hunyuan_vl.rope.dimension_sections",
            vec![6i32; 3].into(),
            "must be four counts",
        ),
    ];
    let mut failures = Failures::default();
    for (name, key, value, expected) in cases {
        let edit = |metadata: &mut Vec<(String, OwnedValue)>, _: &mut Vec<(String, Vec<u64>)>| {
            metadata.retain(|(k, _)| k != key);
            metadata.push((key.to_owned(), value.clone()));
        };
        let model = open(Fixture::load(name).gguf(false, &edit)).expect("a fixture is a model");
        let text = block_on(model.graph(64)).map_or_else(|e| chain(&e), |_| "a graph".to_owned());
        failures.check(text.contains(key) && text.contains(expected), || format!("{name}, {key}: {text}"));
    }
    failures.conclude();
}

/// Fixtures that llama.cpp does not save, or from whose saved file it computes other logits.
const NOT_SAVED: &[&str] = &[
    "apertus-dense",
    "bitnet-dense",
    "codeshell-dense",
    "deepseek32-moe",
    "gemma3n-dense",
    "gemma4-dense",
    "gemma4-moe",
    "mistral4-moe",
    "nemotron_h_moe-latent",
    "nemotron_h_moe-plain",
    "step35-moe",
];

/// Keys that llama.cpp does not read in a family, and therefore saves at a default of its own: fixture and key.
const NOT_READ: &[(&str, &str)] = &[("qwen2vl-dense", "attention.layer_norm_rms_epsilon")];

/// When llama.cpp saves a model it writes every key that it knows, mostly at its default. It computes the same logits
/// from such files.
#[test]
fn files_that_llama_cpp_saved_again_are_the_same_models() {
    let saved = read_json(&fixture("saved.json"));
    let most = saved["most"].as_object().expect("entries");
    let of = saved["of"].as_object().expect("fixtures");
    let mut failures = Failures::default();
    for name in FAMILIES.iter().map(|(name, _)| *name).chain(recurrent::FIXTURES.iter().copied()) {
        let Some(own) = of.get(name) else {
            failures
                .check(NOT_SAVED.contains(&name), || format!("{name}: `golden.py saved` did not find it"));
            continue;
        };
        let f = Fixture::load(name);
        let described = |edit: Edit<'_>| {
            let model = open(f.gguf(true, edit)).map_err(|e| chain(&e))?;
            let graph = block_on(model.graph(64)).map_err(|e| chain(&e))?;
            Ok::<_, String>(format!("{graph:#?}"))
        };
        let with_saved = |metadata: &mut Vec<(String, OwnedValue)>, _: &mut Vec<(String, Vec<u64>)>| {
            for (key, entry) in most {
                let entry = own.get(key).unwrap_or(entry);
                if !entry.is_null() && !NOT_READ.contains(&(name, key)) {
                    let key = format!("{}.{key}", f.architecture());
                    metadata.retain(|(k, _)| *k != key);
                    if entry["type"] != "none" {
                        metadata.push((key, value(entry)));
                    }
                }
            }
        };
        let before = described(&|_, _| {}).expect("a fixture is a model");
        match described(&with_saved) {
            Ok(after) => failures.check(before == after, || {
                let line =
                    |(a, b): (&str, &str)| (a != b).then(|| format!("{} instead of {}", b.trim(), a.trim()));
                let first = before.lines().zip(after.lines()).find_map(line);
                format!("{name}: {}", first.unwrap_or_else(|| "more or fewer operations".into()))
            }),
            Err(e) => failures.check(false, || format!("{name}: {e}")),
        }
    }
    failures.conclude();
}
