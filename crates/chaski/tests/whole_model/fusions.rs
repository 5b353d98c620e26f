//! Whichever operations run together, a model computes the same.

use std::cell::RefCell;
use std::collections::HashMap;

use chaski::kernels::FeatureSet;
use chaski::{KvType, Runner};
use chaski_models::{RunnerConfig, Target};
use chaski_runtime::plan::{Fusion, Fusions, fuse};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::archs::{Fixture, open};
use crate::common::{Timed, block_on, nmse, say, shared_gpu};

/// Models that together have use for every rule: experts; experts with biases, sinks and windows; norms after products;
/// factors everywhere; norms of heads; state beside attention.
const MODELS: &[&str] =
    &["llama-moe", "gpt-oss-moe", "olmo2-dense", "granite-multipliers", "qwen3-dense", "falcon-h1-dense"];
/// Choices that are tried where `PROPTEST_CASES` does not say how many.
const CHOICES: u32 = 12;
/// What sums in another order cost.
const LIMIT: f64 = 4e-11;

/// The rules whose bits are set.
fn rules(bits: u8) -> Fusions {
    let chosen = Fusion::ALL.into_iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
    chosen.fold(Fusions::NONE, |all, (_, rule)| all.with(rule))
}

/// The logits of all tokens, in pieces of `chunk`.
fn logits(f: &Fixture, fusions: Fusions, set: FeatureSet, chunk: usize) -> Vec<f32> {
    let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
    let config = RunnerConfig { n_ctx: 64, kv: KvType::F32, chunk: 64, fusions, ..RunnerConfig::default() };
    let target = Target::Gpu(shared_gpu(set, false));
    let mut runner = block_on(Runner::load(&model, &target, &config, |_| {})).expect("a fixture loads");
    block_on(runner.eval_all(&f.tokens, chunk)).expect("48 tokens run")
}

#[test]
fn any_choice_of_fusions_gives_the_same_logits() {
    let _t = Timed::new("fusions");
    let asked = std::env::var("PROPTEST_CASES").ok();
    let cases = asked.map_or(CHOICES, |n| n.parse().expect("PROPTEST_CASES is a number"));
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 64, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let sets = select(&[FeatureSet::Sg, FeatureSet::Base]);
    let choice = (select(MODELS), any::<u8>(), sets, select(&[48usize, 7, 1]));
    // What comes of a model whose nodes all run by themselves.
    let single: RefCell<HashMap<_, Vec<f32>>> = RefCell::default();
    let result = TestRunner::new_with_rng(config, rng).run(&choice, |(name, bits, set, chunk)| {
        let f = Fixture::load(name);
        let mut single = single.borrow_mut();
        let way = (name, set.word(), chunk);
        let expected = single.entry(way).or_insert_with(|| logits(&f, Fusions::NONE, set, chunk));
        let e = nmse(&logits(&f, rules(bits), set, chunk), expected);
        say(format!("{name}, {}, pieces of {chunk}, rules {bits:08b}: NMSE {e:.1e}", set.word()));
        prop_assert!(e <= LIMIT, "{name}, {}, pieces of {chunk}: {e:.2e}, {:?}", set.word(), rules(bits));
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn every_rule_makes_steps_of_several_nodes() {
    let graphs: Vec<_> = MODELS
        .iter()
        .map(|name| {
            let model = open(Fixture::load(name).gguf(false, &|_, _| {})).expect("a fixture is a model");
            block_on(model.graph(64)).expect("a graph")
        })
        .collect();
    for (name, graph) in MODELS.iter().zip(&graphs) {
        assert_eq!(fuse(graph, Fusions::NONE).len(), graph.nodes.len(), "{name}: a step for each node");
    }
    for rule in Fusion::ALL {
        let matters = |rules: Fusions, other: Fusions| {
            graphs.iter().any(|g| fuse(g, rules).len() < fuse(g, other).len())
        };
        assert!(matters(Fusions::NONE.with(rule), Fusions::NONE), "{rule:?} does nothing by itself");
        assert!(matters(Fusions::ALL, Fusions::ALL.without(rule)), "without {rule:?} nothing changes");
    }
}
