//! Families whose cache is more than keys and values per layer: latents, and layers that share the cache of earlier
//! ones.

use chaski::KvType;
use chaski::gguf::OwnedValue;
use chaski::steps::Runner;
use chaski_models::{RunnerConfig, Target};
use chaski_runtime::graph::Op;

use crate::archs::{Fixture, GELU_OF_LITTLE, open, weights};
use crate::common::{Failures, Timed, block_on, full, in_turns, left_for_full, nmse, one_in, say, targets};

/// The families, with the tolerance for a cache of f32 and of f16. Norms of keys and values give attention its full
/// weight, so their rounding is visible.
const FAMILIES: &[(&str, f64, f64)] = &[
    ("deepseek2-moe", 1e-11, 1e-5),
    ("gemma3n-dense", 3e-6, 1e-3),
    ("gemma4-dense", GELU_OF_LITTLE, 1e-2),
    ("gemma4-moe", GELU_OF_LITTLE, 3e-2),
];

fn runner(file: Vec<u8>, target: &Target, kv: KvType) -> Runner {
    let model = open(file).expect("a fixture is a model");
    let config = RunnerConfig { n_ctx: 64, kv, chunk: 16, ..RunnerConfig::default() };
    block_on(Runner::load(&model, target, &config, |_| {})).expect("a fixture loads")
}

/// In pieces of a whole chunk, less than one, and single tokens; and from the middle after a rewind.
#[test]
fn sequences_of_families_with_other_caches_can_be_cut_anywhere() {
    let _t = Timed::new("caches, cut anywhere");
    let mut failures = Failures::default();
    for (nth, (name, limit, limit_f16)) in FAMILIES.iter().enumerate() {
        let f = Fixture::load(name);
        let all = targets();
        // By default the first family on a GPU.
        let on_gpu = all[1..].iter().filter(|_| full() || nth == 0).cloned();
        for (device, target) in [all[0].clone()].into_iter().chain(on_gpu) {
            for (kv, limit) in in_turns(nth / 2, &[(KvType::F32, *limit), (KvType::F16, *limit_f16)]) {
                let mut r = runner(f.gguf(false, &|_, _| {}), &target, kv);
                let mut compare = |what: String, found: &[f32], from: usize, to: usize| {
                    let e = nmse(found, f.logits_of(from, to));
                    say(format!("{name:14} {device:10} {kv:4} {what}: NMSE {e:.1e}"));
                    failures.check(e <= limit, || {
                        format!("{name}, {device}, {kv}, {what}: {e:.2e} > {limit:.0e}")
                    });
                };
                // By default a whole chunk or less, each with its own pipelines, and single tokens.
                let many = in_turns(nth, &[16, 7]);
                for piece in many.iter().copied().chain([1]) {
                    r.truncate(0);
                    let all = block_on(r.eval_all(&f.tokens, piece)).expect("48 tokens run");
                    compare(format!("pieces of {piece}"), &all, 0, 48);
                }
                // Other tokens in place of the last ones, which are rewound.
                r.truncate(20);
                f.tokens[..14].chunks(many[0]).for_each(|t| block_on(r.prefill(t)).expect("other tokens"));
                for piece in many {
                    r.truncate(20);
                    let rest = block_on(r.eval_all(&f.tokens[20..], piece)).expect("28 tokens run");
                    compare(format!("set back, pieces of {piece}"), &rest, 20, 48);
                }
            }
        }
    }
    failures.conclude();
}

type Metadata = Vec<(String, OwnedValue)>;
type Shapes = Vec<(String, Vec<u64>)>;

/// Head sizes of the latent fixture: query channels without RoPE, with RoPE, value channels, and the latent.
const PLAIN: u64 = 128;
const ROT: u64 = 64;
const VALUE: u64 = 128;
const RANK: u64 = 512;

/// The latent fixture with more heads, in current files and in older ones where keys and values are one matrix.
fn heads(n_head: u64, joined: bool) -> impl Fn(&mut Metadata, &mut Shapes) + Sync {
    move |metadata, shapes| {
        let size = |n: u64| OwnedValue::from(u32::try_from(n).expect("32 bits"));
        metadata.retain(|(k, _)| !joined || !k.ends_with("_length_mla"));
        for (key, value) in metadata.iter_mut() {
            match key.as_str() {
                "deepseek2.attention.head_count" => *value = size(n_head),
                "deepseek2.attention.head_count_kv" if joined => *value = size(n_head),
                "deepseek2.attention.key_length" if joined => *value = size(PLAIN + ROT),
                "deepseek2.attention.value_length" if joined => *value = size(VALUE),
                _ => {}
            }
        }
        shapes.retain(|(name, _)| !joined || !name.ends_with("attn_v_b.weight"));
        for (name, ne) in shapes.iter_mut() {
            let Some((block, part)) = name.split_once(".attn_") else { continue };
            match part {
                "q_b.weight" => ne[1] = n_head * (PLAIN + ROT),
                "output.weight" => ne[0] = n_head * VALUE,
                "k_b.weight" if joined => {
                    (*name, *ne) =
                        (format!("{block}.attn_kv_b.weight"), vec![RANK, n_head * (PLAIN + VALUE)]);
                }
                "k_b.weight" => *ne = vec![PLAIN, RANK, n_head],
                "v_b.weight" => *ne = vec![RANK, VALUE, n_head],
                _ => {}
            }
        }
    }
}

/// Keys and values of all heads as one matrix, with the values that the two have by their names.
fn joined(name: &str, n_head: u64) -> Option<Vec<f32>> {
    let block = name.strip_suffix(".attn_kv_b.weight")?;
    let of = |part: &str, n: u64| weights(&format!("{block}.attn_{part}_b.weight"), n_head * n * RANK, 1);
    let (keys, values) = (of("k", PLAIN), of("v", VALUE));
    let [plain, rank, value] = [PLAIN, RANK, VALUE].map(|n| n as usize);
    let mut out = Vec::new();
    for head in 0..n_head as usize {
        for channel in 0..plain {
            out.extend((0..rank).map(|r| keys[(head * rank + r) * plain + channel]));
        }
        out.extend_from_slice(&values[head * value * rank..][..value * rank]);
    }
    Some(out)
}

/// The fixture has one head. With more heads the reference is the CPU with the current file layout; both layouts hold
/// the same numbers.
#[test]
fn latents_of_several_heads_agree_in_both_kinds_of_files() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("caches, heads of latents");
    let mut failures = Failures::default();
    let f = Fixture::load("deepseek2-moe");
    // By default three, which no tile has.
    for n_head in one_in(3, [3, 1, 8]) {
        let file = |half, old: bool| f.gguf_of(half, &heads(n_head, old), &|name| joined(name, n_head));
        let mut r = runner(file(false, false), &Target::Cpu, KvType::F32);
        let expected = block_on(r.eval_all(&f.tokens, 48)).expect("48 tokens run");
        if n_head == 1 {
            let e = nmse(&expected, f.logits_of(0, 48));
            failures.check(e <= 1e-11, || format!("one head: {e:.2e}"));
        }
        let files = [(false, false), (false, true), (true, true)];
        let all = targets();
        for (nth, (device, target)) in all.into_iter().enumerate() {
            for (half, old) in in_turns(nth + n_head as usize, &files) {
                let mut r = runner(file(half, old), &target, KvType::F32);
                for piece in in_turns(n_head as usize / 2 + nth, &[16, 1]) {
                    r.truncate(0);
                    let found = block_on(r.eval_all(&f.tokens, piece)).expect("48 tokens run");
                    let e = nmse(&found, &expected);
                    let what = format!("{n_head} heads, {device}, old {old}, f16 {half}, pieces of {piece}");
                    say(format!("{what}: NMSE {e:.1e}"));
                    failures.check(e <= 1e-11, || format!("{what}: {e:.2e}"));
                }
            }
        }
    }
    failures.conclude();
}

/// A layer caches a latent and the RoPE channels per token, for any number of heads.
#[test]
fn a_cache_of_latents_is_small() {
    let f = Fixture::load("deepseek2-moe");
    for n_head in [1, 8] {
        let model = open(f.gguf(false, &heads(n_head, false))).expect("a fixture is a model");
        let graph = block_on(model.graph(64)).expect("a graph");
        assert_eq!(graph.kv.len(), 2);
        let r = runner(f.gguf(true, &heads(n_head, false)), &targets().last().expect("a GPU").1, KvType::F16);
        let found = r.memory().items.iter().find(|i| i.what == "kv cache").map(|i| i.n_byte);
        // Two layers of 64 tokens, and a scratch page for copies.
        assert_eq!(found, Some(3 * 64 * (RANK + ROT) * 2), "{n_head} heads");
    }
}

/// DeepSeek V3 as its authors run it: scores times 192^(-1/2) (0.1 ln 40 + 1)^2, and RoPE that preserves lengths.
/// Without the multiplier RoPE itself has the magnitude 0.1 ln 40 + 1, and scores its square.
#[test]
fn scaling_of_latent_attention_is_in_its_scores() {
    let f = Fixture::load("deepseek2-moe");
    let grown = 0.1 * 40f64.ln() + 1.0;
    for (multiplier, magnitude) in [(Some(0.1f32), 1.0), (None, grown)] {
        let edit = |metadata: &mut Metadata, _: &mut Shapes| {
            let mut set = |key: &str, value: OwnedValue| {
                metadata.push((format!("deepseek2.rope.scaling.{key}"), value));
            };
            set("type", "yarn".into());
            set("factor", 40f32.into());
            set("original_context_length", 4096u32.into());
            if let Some(m) = multiplier {
                set("yarn_log_multiplier", m.into());
            }
        };
        let model = open(f.gguf(false, &edit)).expect("a fixture is a model");
        let graph = block_on(model.graph(64)).expect("a graph");
        assert!((graph.ropes[0].magnitude - magnitude).abs() < 1e-6, "{}", graph.ropes[0].magnitude);
        let scores = graph.nodes.iter().filter_map(|n| match &n.op {
            Op::Attention { score, .. } => Some(f64::from(score.scale)),
            _ => None,
        });
        let expected = grown * grown / 192f64.sqrt();
        for found in scores {
            assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
        }
    }
}
