//! Files with one matrix for q, k and v of a layer (`convert_hf_to_gguf.py --fuse-qkv`): the same model.

use chaski::gguf::OwnedValue;
use chaski_models::{Runner, Target};

use crate::archs::{FAMILIES, Fixture, open};
use crate::common::{Failures, Timed, block_on, chain};
use crate::recurrent;
use crate::streaming::config;

type Shapes = Vec<(String, Vec<u64>)>;

/// `attn_q`, `attn_k` or `attn_v` of a name, with what is before and behind it.
fn part_of(name: &str) -> Option<(&str, &str, &str)> {
    let (block, rest) = name.split_once(".attn_")?;
    let (part, end) = rest.split_once('.')?;
    ["q", "k", "v"].contains(&part).then_some((block, part, end))
}

/// The names of q, k and v that a fused tensor replaces.
fn parts(fused: &str) -> Option<[String; 3]> {
    let (block, end) = fused.split_once(".attn_qkv.")?;
    Some(["q", "k", "v"].map(|part| format!("{block}.attn_{part}.{end}")))
}

/// The fixture with fused matrices, and their number; scales of weights in other types are left out.
fn fused(f: &Fixture) -> (Vec<u8>, usize) {
    let whole = f.gguf(false, &|_, _| {});
    let tensors = open(whole).expect("a fixture").tensors().to_vec();
    let find = |name: &str| tensors.iter().find(|t| t.name == name);
    let join = |_: &mut Vec<(String, OwnedValue)>, shapes: &mut Shapes| {
        let mut out = Shapes::new();
        for (name, ne) in shapes.drain(..) {
            let Some((block, part, end)) = part_of(&name) else {
                out.push((name, ne));
                continue;
            };
            let fused = format!("{block}.attn_qkv.{end}");
            let all = parts(&fused).expect("a fused name");
            if !all.iter().all(|part| find(part).is_some()) {
                out.push((name, ne));
            } else if part == "q" && !end.contains("scale") {
                let n_row = all.iter().filter_map(|part| find(part)).map(|t| t.ne[ne.len() - 1]).sum();
                out.push((fused, [&ne[..ne.len() - 1], &[n_row]].concat()));
            }
        }
        *shapes = out;
    };
    // Delta nets have a matrix of this name, too.
    let own = |name: &str| -> Option<Vec<f32>> {
        let values = parts(name)?.into_iter().map(|part| Some(f.weights_of(&part, find(&part)?.n_elem())));
        Some(values.collect::<Option<Vec<_>>>()?.concat())
    };
    let bytes = f.gguf_of(false, &join, &own);
    let fused = open(bytes.clone()).expect("a head");
    let n = fused.tensors().iter().filter(|t| own(&t.name).is_some()).count();
    (bytes, n)
}

#[test]
fn fused_matrices_are_taken_in_all_families() {
    let _t = Timed::new("fused q, k, v");
    let mut failures = Failures::default();
    let mut n_fused = 0;
    for name in FAMILIES.iter().map(|(name, _)| *name).chain(recurrent::FIXTURES.iter().copied()) {
        let f = Fixture::load(name);
        let (bytes, n) = fused(&f);
        n_fused += usize::from(n > 0);
        let graph = block_on(open(bytes).expect("a head").graph(64)).map(drop).map_err(|e| chain(&e));
        failures.check(graph.is_ok(), || format!("{name}: {graph:?}"));
    }
    failures.check(n_fused > 80, || format!("{n_fused} fixtures have such matrices"));
    failures.conclude();
}

#[test]
fn fused_matrices_are_the_same_model_to_the_bit() {
    let _t = Timed::new("fused q, k, v, logits");
    let mut failures = Failures::default();
    // Plain; gates among the rows of q; layers with the keys and values of others.
    for name in ["qwen3-dense", "qwen35-heads", "qwen35moe-moe", "qwen3next-heads", "gemma3n-dense"] {
        let f = Fixture::load(name);
        let logits = |bytes: Vec<u8>| {
            let model = open(bytes).expect("a model");
            let config = config(None);
            let runner = Runner::load(&model, &Target::Cpu, &config, |_| {});
            let mut runner = block_on(runner).expect("a runner");
            block_on(runner.eval_all(&f.tokens[..11], 8)).expect("logits")
        };
        let (bytes, n) = fused(&f);
        let (apart, together) = (logits(f.gguf(false, &|_, _| {})), logits(bytes));
        failures.check(n > 0 && apart == together, || format!("{name}: other logits"));
    }
    failures.conclude();
}
