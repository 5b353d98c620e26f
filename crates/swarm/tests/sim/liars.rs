//! Workers that lie: how soon they are caught, and that honest ones never are.

use std::io::Write as _;
use std::time::Duration;

use chaski_swarm::{Class, HubConfig, WorkerId};

use crate::lab::{Machine, News};
use crate::model::{LIES, Lie};
use crate::network::{Delay, Network};
use crate::scene::{Scene, model};

/// A swarm in which one worker lies.
#[derive(Copy, Clone, Debug)]
struct Case {
    lie: Lie,
    /// The hub can make products itself.
    is_local: bool,
    verify_all: bool,
    /// Workers sum products.
    sums: bool,
}

/// Lies that somebody can see: with sums answers are compared by value.
fn lies(sums: bool) -> impl Iterator<Item = Lie> {
    LIES.into_iter().filter(move |lie| !sums || *lie != Lie::Flip)
}

/// Tokens until a liar is caught, or `None` if it is not within all.
fn caught(case: Case, seed: u64) -> Option<usize> {
    let Case { lie, is_local, verify_all, sums } = case;
    let delay = Delay::Lognormal { ms: 0.2, sigma: 0.3 };
    let machine = |host| Machine { service: Delay::Exponential { ms: 0.05 }, ..Machine::new(host, 1200) };
    let mut machines: Vec<Machine> = (0..8).map(machine).collect();
    let liar = seed as usize % 8;
    machines[liar].lie = Some(lie);
    let scene = Scene {
        config: HubConfig {
            local: is_local.then_some(Class(0)),
            verify_all,
            exact: !sums,
            sums,
            replicas: if verify_all { 3 } else { 2 },
            ..HubConfig::new(model(48, 32, 4), seed)
        },
        network: Network { to_worker: delay, to_hub: delay, is_ordered: true },
        machines,
        n_stream: 1,
        n_token: if verify_all { 4 } else { 20 },
        n_used: 8,
        think: Duration::ZERO,
        n_layer: 48,
        seed,
    };
    let mut running = scene.begin();
    let mut after = None;
    while let Some(news) = running.step() {
        for news in news {
            if let News::Tainted(worker, since) = news {
                assert_eq!(worker, WorkerId(liar as u64), "an honest worker is in quarantine");
                assert!(since.is_none(), "a liar passed a check");
                after.get_or_insert(running.tokens.len());
            }
        }
        if after.is_some() && !verify_all {
            break;
        }
    }
    assert!(
        !verify_all || running.wrong.is_empty(),
        "{case:?}, seed {seed}: wrong rows in spite of verification"
    );
    // Answers of a worker in quarantine are used no more.
    let wrong = running.wrong.len();
    for _ in 0..2000 {
        if running.step().is_none() {
            break;
        }
    }
    assert_eq!(running.wrong.len(), wrong, "{case:?}, seed {seed}: wrong rows after the liar was caught");
    after
}

#[test]
fn a_worker_that_always_lies_is_caught_within_10_tokens() {
    let is_full = std::env::var_os("CHASKI_TEST_FULL").is_some();
    for (is_local, sums) in [(true, false), (false, false), (true, true), (false, true)] {
        let n_seed = if is_full {
            200
        } else if sums {
            6
        } else {
            14
        };
        let (mut n_late, mut n, mut sum) = (0, 0, 0);
        // A decoder refuses NaN, so that such a worker loses its connection instead.
        for lie in lies(sums).filter(|lie| *lie != Lie::Nan) {
            for seed in 0..n_seed {
                let after = caught(Case { lie, is_local, verify_all: false, sums }, seed);
                n += 1;
                n_late += usize::from(after.is_none_or(|tokens| tokens >= 10));
                sum += after.unwrap_or(20);
            }
        }
        let mean = sum as f64 / f64::from(n);
        let name = if is_local { "hub can tell" } else { "workers alone" };
        writeln!(
            std::io::stderr(),
            "liars, {name}, sums {sums}: {n_late} of {n} not within 10 tokens, {mean:.1} tokens on average"
        )
        .expect("stderr can be written");
        assert!(n_late * 100 <= n as usize, "{name}, sums {sums}: {n_late} of {n} liars are caught late");
    }
}

#[test]
fn no_wrong_row_is_used_if_every_answer_is_verified() {
    let all = [false, true].into_iter().flat_map(|sums| lies(sums).map(move |lie| (sums, lie)));
    for (seed, (sums, lie)) in all.enumerate() {
        let case = Case { lie, is_local: seed % 2 == 0, verify_all: true, sums };
        let after = caught(case, seed as u64);
        assert!(after.is_some() || lie == Lie::Nan, "{case:?} is not caught");
    }
}
