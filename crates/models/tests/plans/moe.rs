//! Mixtures of experts.

use std::collections::{BTreeMap, HashMap};

use chaski_runtime::kernels::Caps;
use chaski_runtime::plan::{PlanConfig, Planned, Slot, dispatches};

use crate::{Made, SHAPES, Shape, bound, check_device, config, devices, make_of, op, runs};

/// A small Mixtral, a model with many small experts, and a width that is no multiple of four.
const EXPERTS: [(usize, (u32, u32)); 3] = [(0, (8, 2)), (5, (128, 8)), (6, (5, 3))];

/// Bindings that hold everything, or some of the experts, and chunks whose activations fit.
fn every_moe(mut check: impl FnMut(&str, &Shape, &Caps, &PlanConfig, &Made)) {
    for (shape, experts) in EXPERTS.map(|(i, e)| (&SHAPES[i], e)) {
        for (device, caps) in devices() {
            // An expert's share of gate and up has 2 * n_ff rows.
            let row = shape.types[1].and_then(|t| t.row_bytes(shape.n_embd.into())).expect("a row");
            let share = 2 * u64::from(shape.n_ff) * row;
            for (max_binding_bytes, max_col) in
                [(u64::from(u32::MAX), 512), (u64::from(u32::MAX), 8), (2 * share + 4096, 8), (share - 1, 8)]
            {
                let caps = Caps { max_binding_bytes: max_binding_bytes.max(1 << 18), ..caps.clone() };
                let config = PlanConfig { max_col, ..config(64) };
                let made = make_of(shape, Some(experts), &caps, &config);
                let case = format!(
                    "{} with {experts:?} experts, {device}, bindings of {max_binding_bytes}, {max_col} columns",
                    shape.name
                );
                check(&case, shape, &caps, &config, &made);
            }
        }
    }
}

#[test]
fn a_moe_takes_six_to_eight_dispatches_a_layer() {
    every_moe(|case, shape, caps, _, made| {
        let found: Vec<&str> = made.kinds();
        let mut expected = vec!["embed", "input"];
        let layer = [
            "norm+qkv",
            "attention",
            "project+add",
            "norm+project",
            "topk_moe",
            "norm+gated by experts",
            "project+sum of experts+add",
        ];
        (0..shape.n_layer).for_each(|_| expected.extend(layer));
        expected.push("norm+project");
        assert_eq!(found, expected, "{case}");
        if caps.max_binding_bytes < u64::from(u32::MAX) {
            return;
        }
        for p in &made.segments.decode {
            let parts: Vec<&str> = dispatches(&p.body).map(|d| d.part).collect();
            let mut layer = vec!["qkv", "attention", "project", "project", "route", "gate_up", "project"];
            // The router's product chooses, too, where its last workgroup sees what the others wrote.
            if caps.uses_coherent() && caps.subgroup.is_some() && !caps.alone {
                layer.remove(3);
            }
            let mut expected = vec!["embed"];
            (0..shape.n_layer).for_each(|_| expected.extend(&layer));
            assert_eq!(parts, expected, "{case}");
        }
        // One norm of many columns for all of its readers: two per layer, and one before the logits.
        for p in &made.segments.prompt {
            let norms = dispatches(&p.body).filter(|d| d.part == "norm").count();
            assert_eq!(norms, 2 * shape.n_layer as usize, "{case}");
        }
    });
}

#[test]
fn buffers_hold_whole_experts_and_every_run_reads_each_once() {
    let (mut n_split, mut n_apart, mut sized) = (0, 0, HashMap::new());
    every_moe(|case, _, caps, _, made| {
        check_device(case, caps, made, &mut sized);
        for g in made.groups.groups.iter().filter(|g| g.n_expert > 1) {
            let share: u32 = g.members.iter().map(|(id, _)| made.graph.weights[id.0].expert_rows()).sum();
            assert_eq!(share * g.n_expert, g.n_row, "{case}");
            let mut at = 0;
            for s in &g.shards {
                assert_eq!((s.row0, s.n_row % share), (at, 0), "{case}: whole experts");
                assert!(g.layout(s).n_byte <= caps.max_binding_bytes, "{case}");
                at += s.n_row;
            }
            assert_eq!(at, g.n_row, "{case}");
            n_split += usize::from(g.shards.len() > 1);
            let name = &made.graph.weights[g.members[0].0.0].name;
            n_apart += usize::from(g.members.len() == 1 && name.contains("gate_exps"));
        }
        for (what, run, _) in runs(&made.segments) {
            let mut read: BTreeMap<(usize, usize), u32> = BTreeMap::new();
            let is_product = |p: &Planned| op(p).starts_with("mul_mat") && !op(p).starts_with("mul_mat_join");
            for p in run.iter().filter(|p| is_product(p)) {
                let Some(Slot::Weights { group, shard }) = bound(p, "w") else {
                    panic!("{case}: no weights")
                };
                *read.entry((group, shard)).or_default() += 1;
            }
            for (i, g) in made.groups.groups.iter().enumerate().filter(|(_, g)| g.n_expert > 1) {
                for shard in 0..g.shards.len() {
                    assert_eq!(
                        read.get(&(i, shard)),
                        Some(&1),
                        "{case}, {what}: buffer {shard} of group {i}"
                    );
                }
            }
        }
    });
    assert!(n_split > 10, "{n_split} groups were split");
    assert!(n_apart > 10, "{n_apart} gates lie apart from their ups");
}
