//! A model computes the same, whichever operations are fused.

use std::cell::RefCell;
use std::collections::HashMap;

use chaski::KvType;
use chaski::kernels::FeatureSet;
use chaski::steps::Runner;
use chaski_models::{RunnerConfig, Target};
use chaski_runtime::graph::Graph;
use chaski_runtime::plan::{Fusions, RULES, Rule, fuse};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::archs::{Fixture, open};
use crate::common::{
    Failures, Timed, block_on, full, gpu_sets, in_turns, left_for_full, nmse, say, shared_gpu,
};

/// Models that together use every rule: MoE; MoE with biases, sinks and windows; norms after products; factors
/// everywhere; norms of heads; state beside attention; embeddings added to each layer.
const MODELS: &[&str] = &[
    "llama-moe",
    "gpt-oss-moe",
    "olmo2-dense",
    "granite-multipliers",
    "qwen3-dense",
    "falcon-h1-dense",
    "talkie-dense",
];
/// Number of random selections if tests run in full, otherwise a quarter of it, unless `PROPTEST_CASES` is set.
const CHOICES: u32 = 12;
/// Tolerance for reordered sums.
const LIMIT: f64 = 4e-11;

/// The rules whose bits are set.
fn rules(bits: u16) -> Fusions {
    let chosen = RULES.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
    chosen.fold(Fusions::NONE, |all, (_, rule)| all.with(rule))
}

/// Tokens to run: all at once, or by default a third of them one by one.
fn n_token(chunk: usize) -> usize {
    if full() || chunk > 1 { 48 } else { 16 }
}

/// The logits of the tokens, `chunk` at a time.
fn logits(f: &Fixture, fusions: Fusions, set: FeatureSet, chunk: usize) -> Vec<f32> {
    let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
    let config = RunnerConfig { n_ctx: 64, kv: KvType::F32, chunk: 64, fusions, ..RunnerConfig::default() };
    let target = Target::Gpu(shared_gpu(set, false));
    let mut runner = block_on(Runner::load(&model, &target, &config, |_| {})).expect("a fixture loads");
    block_on(runner.eval_all(&f.tokens[..n_token(chunk)], chunk)).expect("tokens run")
}

#[test]
fn any_choice_of_fusions_gives_the_same_logits() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("fusions");
    let asked = std::env::var("PROPTEST_CASES").ok();
    let choices = if full() { CHOICES } else { CHOICES / 4 };
    let cases = asked.map_or(choices, |n| n.parse().expect("PROPTEST_CASES is a number"));
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 64, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let sets = select(gpu_sets());
    let choice = (select(MODELS), any::<u16>(), sets, select(&[48usize, 7, 1]));
    // Logits of a model without fusion.
    let single: RefCell<HashMap<_, Vec<f32>>> = RefCell::default();
    let result = TestRunner::new_with_rng(config, rng).run(&choice, |(name, bits, set, chunk)| {
        let f = Fixture::load(name);
        let mut single = single.borrow_mut();
        let way = (name, set.word(), chunk);
        let expected = single.entry(way).or_insert_with(|| logits(&f, Fusions::NONE, set, chunk));
        let e = nmse(&logits(&f, rules(bits), set, chunk), expected);
        say(format!("{name}, {}, pieces of {chunk}, rules {:?}: NMSE {e:.1e}", set.word(), rules(bits)));
        prop_assert!(e <= LIMIT, "{name}, {}, pieces of {chunk}: {e:.2e}, {:?}", set.word(), rules(bits));
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
}

fn graphs() -> Vec<(&'static str, Graph)> {
    let graph = |name: &&'static str| {
        let model = open(Fixture::load(name).gguf(false, &|_, _| {})).expect("a fixture is a model");
        (*name, block_on(model.graph(64)).expect("a graph"))
    };
    MODELS.iter().map(graph).collect()
}

/// True if one of these rules forms a step of the graph.
fn uses(graph: &Graph, rules: Fusions, rule: &Rule) -> bool {
    fuse(graph, rules).list.iter().any(|s| s.rules().contains(&rule.name))
}

#[test]
fn every_rule_gives_the_logits_of_single_nodes() {
    let _t = Timed::new("fusions, rule by rule");
    let graphs = graphs();
    let mut failures = Failures::default();
    for (nth, rule) in RULES.iter().enumerate() {
        // Alone, and as the only one that is disabled.
        let alone = Fusions::NONE.with(rule);
        let with: Vec<&str> = graphs.iter().filter(|(_, g)| uses(g, alone, rule)).map(|g| g.0).collect();
        if with.is_empty() {
            failures.check(false, || format!("no fixture has use for `{}`", rule.name));
            continue;
        }
        let ways: Vec<_> = with.iter().flat_map(|name| gpu_sets().iter().map(|set| (*name, *set))).collect();
        for (name, set) in in_turns(nth, &ways) {
            let f = Fixture::load(name);
            // Many tokens at once, and one by one.
            for chunk in in_turns(nth / 2, &[48, 1]) {
                let single = logits(&f, Fusions::NONE, set, chunk);
                // By default without one in four of them: all together run in other tests.
                let others = Some(Fusions::ALL.without(rule)).filter(|_| full() || nth % 4 == 0);
                for rules in [alone].into_iter().chain(others) {
                    let e = nmse(&logits(&f, rules, set, chunk), &single);
                    let case = format!("{}: {name}, {}, pieces of {chunk}, {rules:?}", rule.name, set.word());
                    say(format!("{case}: NMSE {e:.1e}"));
                    failures.check(e <= LIMIT, || format!("{case}: {e:.2e}"));
                }
            }
        }
    }
    failures.conclude();
}

#[test]
fn every_rule_makes_steps_of_the_operations_in_its_row() {
    let graphs = graphs();
    for (name, graph) in &graphs {
        let single = fuse(graph, Fusions::NONE);
        assert_eq!(single.list.len(), graph.nodes.len(), "{name}: a step for each node");
        for step in &fuse(graph, Fusions::ALL).list {
            let ops = || step.nodes().iter().map(|i| graph.nodes[*i].op.name());
            let rules = || RULES.iter().filter(|r| step.rules().contains(&r.name));
            assert_eq!(step.nodes().len() > 1, rules().count() > 0, "{name}: {step:?}");
            let begins = |op: &str| rules().all(|r| r.from.contains(&op));
            let taken = |op: &&str| !rules().any(|r| r.takes.contains(op)) && !begins(op);
            assert!(rules().count() == 0 || ops().any(begins), "{name}: {step:?} begins with none of `from`");
            assert_eq!(ops().filter(taken).count(), 0, "{name}: {step:?} took in what no rule names");
        }
    }
    for rule in &RULES {
        let matters = |rules: Fusions, other: Fusions| {
            graphs.iter().any(|(_, g)| fuse(g, rules).list.len() < fuse(g, other).list.len())
        };
        let name = rule.name;
        assert!(matters(Fusions::NONE.with(rule), Fusions::NONE), "`{name}` does nothing by itself");
        assert!(matters(Fusions::ALL, Fusions::ALL.without(rule)), "without `{name}` nothing changes");
    }
}
