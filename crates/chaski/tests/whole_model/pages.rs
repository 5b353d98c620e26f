//! Experts as data for pages: plans of every family stay within their buffers, and packed experts fill them.

use chaski::experts::{ExpertReplay, PlanConfig, ReplayPlan, Streaming};
use chaski::kernels::Caps;
use serde_json::Value;

use crate::archs::{Fixture, wanted};
use crate::away::{model_of, names};
use crate::common::{Failures, Timed, block_on, chain};
use crate::streaming::N_USED;

/// Slots of each layer: more than a token uses, and fewer than there are experts.
const N_SLOT: u32 = N_USED + 1;

fn devices() -> [(&'static str, Caps); 3] {
    let alone = Caps { subgroup: Some((4, 4)), software: true, alone: true, ..Caps::base() };
    let gpu = Caps { subgroup: Some((32, 32)), f16: true, max_threads: 1024, ..Caps::base() };
    [("base", Caps::base()), ("software", alone), ("GPU", gpu)]
}

/// Everything that a page refuses.
fn check(failures: &mut Failures, case: &str, plan: &ReplayPlan) {
    let json = serde_json::to_value(plan).expect("a plan is JSON");
    // JSON has no infinity, for which it would have null.
    let constants = json["pipelines"].as_array().expect("a list").iter().map(|p| &p["constants"]);
    let are_finite = constants.flat_map(|c| c.as_object().expect("an object").values()).all(Value::is_f64);
    failures.check(are_finite, || format!("{case}: a constant is no number"));
    for layer in &plan.layers {
        for piece in &layer.pieces {
            failures.check(piece.stride >= piece.n_byte && piece.n_byte % 4 == 0, || {
                format!("{case}: {piece:?}")
            });
            let n_slot: u32 = piece.shards.iter().map(|s| s.n_slot).sum();
            failures.check(n_slot >= plan.n_slot, || format!("{case}: {n_slot} slots"));
            for shard in &piece.shards {
                let end = shard.start + u64::from(shard.n_slot - 1) * piece.stride + piece.n_byte;
                let n_byte = plan.buffers[shard.buffer];
                failures.check(end <= n_byte, || format!("{case}: {shard:?} of {n_byte} bytes"));
            }
        }
    }
    for fill in &plan.fills {
        let end = fill.at + plan.data[fill.data].len() as u64;
        failures.check(end <= plan.buffers[fill.buffer], || format!("{case}: {fill:?}"));
    }
    for steps in &plan.plans {
        for l in &steps.layers {
            let (n_col, n_pair) = (u64::from(steps.max_col), u64::from(steps.max_col * l.route.n_used));
            let has = |buffer: usize, words: u64| 4 * words <= plan.buffers[buffer];
            let is_right = has(l.input.buffer, n_col * u64::from(l.input.words))
                && has(l.slots.buffer, n_pair * u64::from(l.slots.words))
                && 4 * n_pair * u64::from(l.slots.words) <= plan.readback
                && (!steps.many || has(l.route.buffer, u64::from(l.route.pairs_at) + n_pair));
            failures.check(is_right, || format!("{case}: rows of {n_col} columns"));
        }
    }
    for kernel in &plan.kernels {
        failures
            .check(!kernel.text.contains("wgpu_"), || format!("{case}: {} is not for browsers", kernel.name));
    }
}

#[test]
fn every_familys_experts_can_be_planned_for_a_page() {
    let _t = Timed::new("experts for pages, all families");
    let (mut failures, mut n_plan) = (Failures::default(), 0);
    for name in names().into_iter().filter(|name| wanted(name)) {
        let (model, has_more) = model_of(&Fixture::load(name));
        let graph = block_on(model.graph(64)).expect("a graph");
        if !has_more {
            continue;
        }
        for (device, caps) in devices() {
            let case = format!("{name} on {device}");
            let experts = Streaming { n_layer: u32::MAX, n_slot: N_SLOT };
            let config = PlanConfig { experts, away: true, ..PlanConfig::new(64, 1, 64) };
            let replay = match block_on(ExpertReplay::new(&graph, &caps, &config, &model)) {
                Ok(replay) => replay,
                Err(error) => {
                    failures.check(false, || format!("{case}: {}", chain(&error)));
                    continue;
                }
            };
            let plan = replay.plan();
            check(&mut failures, &case, plan);
            n_plan += 1;
            for layer in &plan.layers {
                let packed = block_on(replay.pack(layer.layer, 1, &model)).expect("an expert");
                let expected = replay.expert_bytes(layer.layer);
                failures.check(Some(packed.len() as u64) == expected, || format!("{case}: {}", packed.len()));
                let other = block_on(replay.pack(layer.layer, 0, &model)).expect("another expert");
                failures.check(packed != other, || format!("{case}: experts are alike"));
                let beyond = u16::try_from(layer.n_expert).expect("few experts");
                failures.check(block_on(replay.pack(layer.layer, beyond, &model)).is_err(), || case.clone());
            }
            failures.check(block_on(replay.pack(999, 0, &model)).is_err(), || case.clone());
        }
    }
    failures.check(n_plan > 0, || "no plan".to_owned());
    failures.conclude();
}
