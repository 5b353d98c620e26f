//! Plans over several devices, of models without weights: the same dispatches as on one device, each on a device with
//! its bindings.

mod fixture;
mod hollow;

use std::collections::{BTreeMap, HashSet};

use chaski_graph::Graph;
use chaski_runtime::kernels::Caps;
use chaski_runtime::plan::{
    BufferSlot, Crossing, Groups, Place, PlanConfig, PlanError, Planned, Segments, Slot, Stage, Streaming,
    dispatches, fuse, plan_on,
};
use ggml_format::GgmlType::Q8_0;

/// Dense, windows, AltUp, MoE, latents, recurrent state.
const FIXTURES: [&str; 6] =
    ["llama-plain", "gemma3-dense", "gemma3n-dense", "qwen3moe-moe", "deepseek2-moe", "qwen35-dense"];

const OFFLOADED: Streaming = Streaming { n_layer: u32::MAX, n_slot: 0 };

fn config() -> PlanConfig {
    PlanConfig { rows: true, ..PlanConfig::new(256, 2, 128) }
}

fn device() -> Caps {
    Caps { subgroup: Some((32, 32)), f16: true, coherent: true, ..Caps::base() }
}

fn planned(graph: &Graph, devices: &[Caps], config: &PlanConfig) -> Result<Segments, PlanError> {
    let devices: Vec<&Caps> = devices.iter().collect();
    let steps = fuse(graph, config.fusions);
    let mut groups = Groups::of_devices(graph, &steps, &devices, &config.experts)?;
    plan_on(graph, &steps, &mut groups, &devices, config)
}

/// Name, maximum columns or keys, and body of every plan.
fn bodies(s: &Segments) -> Vec<(String, &[Stage])> {
    let decode = s.decode.iter().map(|d| (format!("decode to {}", d.max_key), &d.body[..]));
    let prompt = s.prompt.iter().map(|p| (format!("prompt of {}", p.max_col), &p.body[..]));
    decode.chain(prompt).collect()
}

/// Plans of every fixture over two and three devices, with that of one device.
fn every_cut(mut check: impl FnMut(&str, usize, &Segments, &Segments)) {
    for name in FIXTURES {
        let graph = fixture::graph(name, |_| Q8_0, &[]);
        for experts in [Streaming::default(), OFFLOADED] {
            if experts == OFFLOADED && !name.ends_with("moe") {
                continue;
            }
            let config = PlanConfig { experts, ..config() };
            let plan =
                |n| planned(&graph, &vec![device(); n], &config).unwrap_or_else(|e| panic!("{name}: {e}"));
            let one = plan(1);
            for n in [2, 3] {
                check(&format!("{name}, {n} devices, {experts:?}"), n, &plan(n), &one);
            }
        }
    }
}

#[test]
fn devices_follow_one_another_and_what_one_gives_the_next_takes() {
    every_cut(|case, n_device, s, _| {
        assert_eq!(s.act_words.len(), n_device, "{case}");
        for (what, body) in bodies(s) {
            let case = format!("{case}, {what}");
            let mut devices: Vec<usize> = body.iter().map(|s| s.place.device()).collect();
            devices.dedup();
            assert_eq!(devices, (0..n_device).collect::<Vec<_>>(), "{case}");
            assert!(body[0].takes.is_empty() && body[body.len() - 1].gives.is_empty(), "{case}: open ends");
            for two in body.windows(2) {
                let [before, after] = two else { unreachable!("windows of two") };
                let crosses = before.place.device() != after.place.device();
                assert_eq!(crosses, !before.gives.is_empty(), "{case}: values are given where they cross");
                if !crosses {
                    continue;
                }
                let sizes =
                    |values: &[Crossing]| values.iter().map(|c| (c.value, c.n_word)).collect::<Vec<_>>();
                assert_eq!(sizes(&before.gives), sizes(&after.takes), "{case}");
                assert!(after.takes.iter().all(|c| c.n_word > 0), "{case}: {:?}", after.takes);
                let n_word: u64 = after.takes.iter().map(|c| u64::from(c.n_word)).sum();
                assert!(s.crossing_words >= n_word, "{case}: room for a column");
            }
        }
    });
}

#[test]
fn the_dispatches_of_a_body_are_those_of_one_device() {
    every_cut(|case, _, s, one| {
        for ((what, body), (_, expected)) in bodies(s).into_iter().zip(bodies(one)) {
            let kernels = |body: &[Stage]| {
                let of =
                    |p: &Planned| (p.dispatch.kernel.name, p.dispatch.grid, p.dispatch.constants.clone());
                dispatches(body).map(of).collect::<Vec<_>>()
            };
            assert_eq!(kernels(body), kernels(expected), "{case}, {what}");
        }
    });
}

#[test]
fn a_stage_reads_what_its_device_wrote_or_took() {
    let mut n_read = 0;
    every_cut(|case, _, s, _| {
        for (what, body) in bodies(s) {
            let mut written: HashSet<(usize, usize)> = HashSet::new();
            for stage in body {
                let device = stage.place.device();
                written.extend(stage.takes.iter().map(|c| (device, c.act)));
                for p in &stage.segment {
                    let case = format!("{case}, {what}, {} on device {device}", p.dispatch.kernel.name);
                    let (writes, reads): (Vec<_>, Vec<_>) =
                        p.bind.iter().partition(|(name, _)| ["y", "out"].contains(name));
                    for (name, slot) in reads {
                        let Slot::Act(act) = slot else { continue };
                        // A kernel may write through another name; then it is the first to bind the buffer.
                        let is_known = !written.insert((device, act));
                        assert!(is_known || !["x", "w", "a"].contains(&name), "{case}: `{name}`");
                        n_read += usize::from(is_known);
                    }
                    written.extend(writes.into_iter().filter_map(|(_, slot)| match slot {
                        Slot::Act(act) => Some((device, act)),
                        _ => None,
                    }));
                }
                for c in &stage.gives {
                    assert!(written.contains(&(device, c.act)), "{case}, {what}: {c:?} was never written");
                }
            }
        }
    });
    assert!(n_read > 1000, "{n_read} reads of activations");
}

#[test]
fn a_device_has_the_buffers_that_its_dispatches_bind_and_layers_are_on_one() {
    every_cut(|case, n_device, s, one| {
        let listed: HashSet<(usize, BufferSlot)> = s.buffers.iter().map(|b| (b.device, b.slot)).collect();
        assert_eq!(listed.len(), s.buffers.len(), "{case}: a buffer is listed twice");
        for device in 0..n_device {
            for p in s.of_device(device) {
                for (name, slot) in &p.bind {
                    let whole = match *slot {
                        Slot::Keys(layer) | Slot::Values(layer) => Slot::Kv(layer),
                        slot => slot,
                    };
                    let is_listed = listed.contains(&(device, BufferSlot::Bound(whole)));
                    assert!(
                        is_listed,
                        "{case}: device {device} lacks `{name}` of {}",
                        p.dispatch.kernel.name
                    );
                }
            }
        }
        let mut n_copy: BTreeMap<String, usize> = BTreeMap::new();
        for b in &s.buffers {
            if let BufferSlot::Bound(slot @ (Slot::Kv(_) | Slot::State(_) | Slot::Rows | Slot::Logits)) =
                b.slot
            {
                *n_copy.entry(slot.to_string()).or_default() += 1;
            }
        }
        let bytes = |s: &Segments, what: &str| {
            s.buffers.iter().filter(|b| b.what == what).map(|b| b.n_byte).sum::<u64>()
        };
        assert!(n_copy.values().all(|n| *n == 1), "{case}: {n_copy:?}");
        assert!(n_copy.len() > 2 && bytes(s, "weights") >= bytes(one, "weights"), "{case}");
        assert_eq!(bytes(s, "recurrent state"), bytes(one, "recurrent state"), "{case}");
    });
}

#[test]
fn stages_of_offloaded_experts_are_on_the_device_of_their_layer_and_take_the_route() {
    let mut n_stage = [0; 2];
    every_cut(|case, _, s, _| {
        for (what, body) in bodies(s) {
            for stage in body {
                let Place::Cpu { device, experts } = stage.place else { continue };
                let [route] = stage.takes[..] else { panic!("{case}, {what}: {:?}", stage.takes) };
                assert!(!stage.segment.is_empty() && route.n_word == 0, "{case}, {what}");
                let of_group = |p: &Planned| {
                    p.bind
                        .iter()
                        .any(|b| matches!(b.1, Slot::Weights { group, .. } if group == experts.group))
                };
                assert!(stage.segment.iter().all(of_group), "{case}, {what}: dispatches without experts");
                n_stage[device.min(1)] += 1;
            }
        }
    });
    assert!(n_stage.iter().all(|n| *n > 0), "{n_stage:?} stages on the first device and on others");
}

#[test]
fn shares_move_the_cut() {
    let graph = fixture::graph("llama-plain", |_| Q8_0, &[]);
    let at = |shares: &[f32]| {
        let config = PlanConfig { shares: shares.to_vec(), ..config() };
        let s = planned(&graph, &[device(), device()], &config).unwrap_or_else(|e| panic!("{shares:?}: {e}"));
        let n_first = |body: &[Stage]| dispatches(&body[..1]).count();
        assert!(s.decode.iter().all(|d| n_first(&d.body) > 0), "{shares:?}: an empty stage");
        n_first(&s.decode[0].body)
    };
    let cuts = [&[1.0, 9.0][..], &[1.0, 1.0], &[9.0, 1.0]].map(at);
    assert!(cuts[0] < cuts[1] && cuts[1] < cuts[2], "{cuts:?}");
    assert_eq!(at(&[]), cuts[1]);
    assert_eq!(at(&[30.0, 30.0]), cuts[1]);
}

#[test]
fn plans_over_devices_that_cannot_be_are_errors() {
    let graph = fixture::graph("llama-plain", |_| Q8_0, &[]);
    let error = |n: usize, shares: &[f32]| {
        let config = PlanConfig { shares: shares.to_vec(), ..config() };
        planned(&graph, &vec![device(); n], &config).map(drop).expect_err("no such plan").to_string()
    };
    assert_eq!(error(0, &[]), "a model needs at least one device");
    let e = error(99, &[]);
    assert!(e.starts_with("the model cannot be split over 99 devices: there are "), "{e}");
    let e = error(2, &[1.0, 2.0, 3.0]);
    assert_eq!(
        e,
        "the shares of 2 devices are [1.0, 2.0, 3.0], but must be as many numbers, none negative, not all 0"
    );
}
