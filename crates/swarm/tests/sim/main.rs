//! The swarm in virtual time: random networks, workers and faults, from seeds.

mod engine;
mod lab;
mod liars;
mod model;
mod network;
mod scene;
mod tails;
mod trial;

use std::time::Instant;

/// Number of trials by default.
const N_TRIAL: u64 = 10_000;

/// A number in the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// `CHASKI_SIM_SEED=N` runs the trial of one seed alone, `CHASKI_SIM_TRIALS=N` another number of them.
#[test]
fn every_call_has_one_right_answer_whatever_fails() {
    let mut seen = trial::Seen::default();
    let first = number("CHASKI_SIM_SEED");
    let n = number("CHASKI_SIM_TRIALS").unwrap_or(N_TRIAL);
    let seeds = first.map_or(0..n, |seed| seed..seed + 1);
    let started = Instant::now();
    for seed in seeds {
        let trial = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| trial::run(seed, &mut seen)));
        if let Err(cause) = trial {
            let text = cause.downcast_ref::<String>().map_or("", String::as_str);
            panic!("seed {seed}, `CHASKI_SIM_SEED={seed}` replays it: {text}");
        }
    }
    let counts = format!("{seen:?}");
    if first.is_none() && n >= 1000 {
        assert!(!counts.contains(": 0"), "a situation that never came: {counts}");
    }
    use std::io::Write as _;
    writeln!(std::io::stderr(), "{counts} in {:.1?}", started.elapsed()).expect("stderr can be written");
}

#[test]
fn a_seed_replays_exactly() {
    let mut runs = [trial::Seen::default(), trial::Seen::default()];
    for seen in &mut runs {
        (0..60).for_each(|seed| trial::run(seed, seen));
    }
    assert_eq!(format!("{:?}", runs[0]), format!("{:?}", runs[1]));
}
