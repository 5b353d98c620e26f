//! Properties of placement: balance, distinct hosts, and few moves when workers come and go.

use std::collections::{BTreeMap, BTreeSet};

use chaski_swarm::{Assignment, HostId, Place, Unit, UnitLoad, WorkerId, place, place_by_layer};
use proptest::prelude::*;

/// Experts and replicas of the layer that the bounds are stated for.
const N_UNIT: usize = 128;
const REPLICAS: usize = 2;

fn units(n: usize) -> Vec<UnitLoad> {
    (0..n)
        .map(|b| UnitLoad { unit: Unit { layer: 0, block: b as u16 }, bytes: 10, n_expert: 1, count: 1.0 })
        .collect()
}

fn worker(id: u64, capacity: f64) -> Place {
    let memory = (capacity * 1e6) as u64;
    Place { worker: WorkerId(id), host: HostId(id), memory, slots: None, speed: capacity }
}

fn workers(n: usize) -> Vec<Place> {
    (0..n as u64).map(|id| worker(id, 1.0)).collect()
}

fn fresh(units: &[UnitLoad], workers: &[Place], seed: u64) -> Assignment {
    place(units, workers, REPLICAS, &Assignment::default(), seed)
}

fn loads(assignment: &Assignment) -> BTreeMap<WorkerId, usize> {
    let mut loads = BTreeMap::new();
    assignment.holders.values().flatten().for_each(|&w| *loads.entry(w).or_default() += 1);
    loads
}

fn check_replicas(assignment: &Assignment, workers: &[Place], replicas: usize) {
    let host = |id: WorkerId| workers.iter().find(|w| w.worker == id).expect("a worker of the list").host;
    for (unit, holders) in &assignment.holders {
        let mut hosts: Vec<HostId> = holders.iter().map(|&w| host(w)).collect();
        hosts.sort();
        hosts.dedup();
        assert_eq!(hosts.len(), holders.len(), "{unit:?}: two replicas on one host");
        assert_eq!(holders.len(), replicas, "{unit:?}");
    }
}

#[test]
fn by_layer_most_layers_are_on_as_few_workers_as_there_are_replicas() {
    let units: Vec<UnitLoad> = (0..48)
        .flat_map(|layer| (0..16).map(move |block| Unit { layer, block }))
        .map(|unit| UnitLoad { unit, bytes: 10, n_expert: 8, count: 0.0 })
        .collect();
    for (n, replicas) in [(1, 1), (2, 1), (3, 2), (4, 2), (8, 2), (16, 3)] {
        for seed in 0..10 {
            let workers = workers(n);
            let assignment = place_by_layer(&units, &workers, replicas, &Assignment::default(), seed);
            check_replicas(&assignment, &workers, replicas);
            let most = loads(&assignment).into_values().max().unwrap() as f64;
            let mean = (units.len() * replicas) as f64 / n as f64;
            assert!(most <= 1.12 * mean, "{n} workers, seed {seed}: {}", most / mean);
            // Sets of workers that hold units of a layer.
            let sets = |layer| {
                let holders = assignment.holders.iter().filter(|(unit, _)| unit.layer == layer);
                holders
                    .map(|(_, h)| h.iter().copied().collect::<BTreeSet<_>>())
                    .collect::<BTreeSet<_>>()
                    .len()
            };
            let n_set: usize = (0..48).map(sets).sum();
            assert!(n_set <= 48 * 3 / 2, "{n} workers, seed {seed}: {n_set} sets for 48 layers");
        }
    }
}

#[test]
fn the_heaviest_worker_has_at_most_1_12_of_the_mean() {
    for n in 8..=32 {
        for seed in 0..40 {
            let assignment = fresh(&units(N_UNIT), &workers(n), seed);
            check_replicas(&assignment, &workers(n), REPLICAS);
            let most = loads(&assignment).into_values().max().unwrap() as f64;
            let mean = (N_UNIT * REPLICAS) as f64 / n as f64;
            assert!(most <= (1.12 * mean).max(mean.ceil()), "{n} workers, seed {seed}: {}", most / mean);
        }
    }
}

#[test]
fn loads_follow_capacities() {
    let workers: Vec<Place> = [8.0, 8.0, 4.0, 4.0, 2.0, 2.0, 1.0, 1.0]
        .into_iter()
        .enumerate()
        .map(|(i, c)| worker(i as u64, c))
        .collect();
    let assignment = fresh(&units(240), &workers, 3);
    let loads = loads(&assignment);
    for w in &workers {
        let share = 480.0 * w.speed / 30.0;
        let load = *loads.get(&w.worker).unwrap_or(&0) as f64;
        assert!(load <= (1.1 * share).max(share.ceil()), "{w:?}: {load} of {share}");
        assert!(load >= 0.7 * share, "{w:?}: {load} of {share}");
    }
}

#[test]
fn a_leaver_moves_its_own_units_alone() {
    for seed in 0..60 {
        let n = 8 + seed as usize % 25;
        let before = fresh(&units(N_UNIT), &workers(n), seed);
        let gone = WorkerId(seed % n as u64);
        let left: Vec<Place> = workers(n).into_iter().filter(|w| w.worker != gone).collect();
        let after = place(&units(N_UNIT), &left, REPLICAS, &before, seed);
        check_replicas(&after, &left, REPLICAS);
        assert_eq!(after.epoch, before.epoch + 1);
        for (unit, holders) in &before.holders {
            let stays = holders.iter().filter(|&&w| w != gone).all(|w| after.holders(*unit).contains(w));
            assert!(stays, "{n} workers, seed {seed}: {unit:?} moved from a worker that stays");
        }
        assert_eq!(after.moves_from(&before), loads(&before)[&gone]);
    }
}

#[test]
fn a_joiner_takes_its_share_and_nobody_else_moves() {
    // Whole units round the share up by one at most.
    const SLACK: f64 = 0.15;
    let mut sum = 0.0;
    for seed in 0..60 {
        let n = 8 + seed as usize % 25;
        let before = fresh(&units(N_UNIT), &workers(n), seed);
        let after = place(&units(N_UNIT), &workers(n + 1), REPLICAS, &before, seed);
        check_replicas(&after, &workers(n + 1), REPLICAS);
        let share = (N_UNIT * REPLICAS) as f64 / (n + 1) as f64;
        let moves = after.moves_from(&before) as f64;
        assert!(
            moves <= (share * (1.0 + SLACK)).max(share.ceil()),
            "{n} workers, seed {seed}: {moves} of {share}"
        );
        let taken = loads(&after).get(&WorkerId(n as u64)).copied().unwrap_or(0) as f64;
        assert!(taken >= 0.5 * share, "{n} workers, seed {seed}: the joiner has {taken} of {share}");
        sum += moves / share;
    }
    assert!((0.8..=1.05).contains(&(sum / 60.0)), "mean of moves over share: {}", sum / 60.0);
}

#[test]
fn nothing_moves_without_a_change() {
    let before = fresh(&units(N_UNIT), &workers(9), 5);
    assert_eq!(place(&units(N_UNIT), &workers(9), REPLICAS, &before, 5), before);
}

#[test]
fn hot_units_get_a_copy_more_where_memory_is_left() {
    let mut hot = units(32);
    hot[3].count = 50.0;
    let roomy = fresh(&hot, &workers(4), 1);
    assert_eq!(roomy.holders(hot[3].unit).len(), 3);
    assert_eq!(roomy.holders(hot[4].unit).len(), 2);
    let tight: Vec<Place> = workers(4).into_iter().map(|w| Place { memory: 160, ..w }).collect();
    let full = fresh(&hot, &tight, 1);
    assert_eq!(full.holders(hot[3].unit).len(), 2);
    check_replicas(&full, &tight, REPLICAS);
}

#[test]
fn first_replicas_come_before_second_ones_where_memory_is_short() {
    let tight: Vec<Place> = workers(4).into_iter().map(|w| Place { memory: 100, ..w }).collect();
    let assignment = fresh(&units(36), &tight, 1);
    assert!(assignment.holders.values().all(|h| !h.is_empty()), "{assignment:?}");
    assert_eq!(assignment.holders.values().map(Vec::len).sum::<usize>(), 40);
    let order = assignment.units(WorkerId(0));
    let rank = |unit: &Unit| assignment.holders(*unit).iter().position(|&w| w == WorkerId(0)).unwrap();
    assert!(order.is_sorted_by_key(rank));
}

/// A worker with slots for one block of each layer holds one of each, wherever scores would put the others, and what it
/// has no room for goes elsewhere.
#[test]
fn slots_of_a_layer_bound_what_a_worker_gets() {
    let units: Vec<UnitLoad> = (0..16)
        .map(|i| UnitLoad { unit: Unit { layer: i / 4, block: i % 4 }, bytes: 80, n_expert: 8, count: 1.0 })
        .collect();
    let even =
        |id, slots: u32| Place { slots: Some(slots), memory: u64::from(slots) * 40, ..worker(id, 1.0) };
    for seed in 0..200 {
        // Exactly as much room as there is to hold: one block a layer, and 12 blocks of any layer.
        let tight = [even(0, 8), Place { memory: 12 * 80, ..worker(1, 1.0) }];
        let full = place(&units, &tight, 1, &Assignment::default(), seed);
        assert!(full.holders.values().all(|h| h.len() == 1), "seed {seed}: {full:?}");
        let layers: Vec<u16> = full.units(WorkerId(0)).iter().map(|u| u.layer).collect();
        let of = |layer| layers.iter().filter(|l| **l == layer).count();
        assert!((0..4).all(|layer| of(layer) == 1), "seed {seed}: {layers:?}");
        // 20 slots are two blocks of 8; two such workers have all.
        let halves = [even(0, 20), even(1, 20)];
        let both = place(&units, &halves, 1, &Assignment::default(), seed);
        assert!(both.holders.values().all(|h| h.len() == 1), "seed {seed}: {both:?}");
        // One of them alone has half, and the rest has nobody.
        let alone = place(&units, &halves[..1], 1, &both, seed);
        assert_eq!(alone.holders.values().filter(|h| h.is_empty()).count(), 8, "seed {seed}");
    }
}

/// A change of the list of workers.
#[derive(Clone, Debug)]
enum Change {
    Join { host: u64, memory: u64, speed: f64 },
    Leave(usize),
    Speed(usize, f64),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let join = (0u64..6, 0u64..600, 0.1f64..10.0).prop_map(|(host, memory, speed)| Change::Join {
        host,
        memory,
        speed,
    });
    let speed = (0usize..8, 0.1f64..10.0).prop_map(|(i, s)| Change::Speed(i, s));
    proptest::collection::vec(
        prop_oneof![3 => join, 1 => (0usize..8).prop_map(Change::Leave), 1 => speed],
        1..14,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any sequence of changes keeps memory, hosts and numbers of replicas, and leaves no unit without a worker while
    /// one has room for it.
    #[test]
    fn every_placement_is_valid(changes in changes(), n_unit in 0usize..40, replicas in 1usize..4, seed: u64) {
        let units = units(n_unit);
        let (mut list, mut next, mut now) = (Vec::<Place>::new(), 0, Assignment::default());
        for change in changes {
            match change {
                Change::Join { host, memory, speed } => {
                    list.push(Place { worker: WorkerId(next), host: HostId(host), memory, slots: None, speed });
                    next += 1;
                }
                Change::Leave(i) if !list.is_empty() => drop(list.remove(i % list.len())),
                Change::Speed(i, s) if !list.is_empty() => {
                    let i = i % list.len();
                    list[i].speed = s;
                }
                _ => {}
            }
            let after = place(&units, &list, replicas, &now, seed);
            prop_assert_eq!(after.epoch, now.epoch + u32::from(after.holders != now.holders || after.workers != now.workers));
            let by_id = |id: WorkerId| list.iter().find(|w| w.worker == id).copied();
            let mut bytes: BTreeMap<WorkerId, u64> = BTreeMap::new();
            for holders in after.holders.values() {
                prop_assert!(holders.len() <= replicas);
                let mut hosts: Vec<HostId> = holders.iter().map(|&w| by_id(w).expect("a present worker").host).collect();
                hosts.sort();
                hosts.dedup();
                prop_assert_eq!(hosts.len(), holders.len());
                holders.iter().for_each(|&w| *bytes.entry(w).or_default() += 10);
            }
            let held = |w: &Place| bytes.get(&w.worker).copied().unwrap_or(0);
            prop_assert!(list.iter().all(|w| held(w) <= w.memory));
            let is_full = list.iter().all(|w| held(w) + 10 > w.memory);
            prop_assert!(is_full || after.holders.values().all(|h| !h.is_empty()));
            now = after;
        }
    }
}
