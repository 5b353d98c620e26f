//! Random schedules over a fake device: every request ends once, with the same answer as alone; no page leaks and no
//! request starves. Then single properties, one by one.

mod cases;
mod device;
mod fairness;
mod random;
mod trial;

use trial::{N_SCHEDULE, Seen, run};

/// Number of those after them whose prompts run whole.
const N_WHOLE: u64 = N_SCHEDULE / 10;

#[test]
fn answers_are_those_of_requests_alone_whatever_runs_beside_them() {
    if let Ok(seed) = std::env::var("CHASKI_SCHEDULE") {
        run(seed.parse().expect("a seed"));
        return;
    }
    let mut all = Seen::default();
    for seed in 0..N_SCHEDULE + N_WHOLE {
        let seen = std::panic::catch_unwind(|| run(seed));
        let seen = seen.unwrap_or_else(|_| panic!("schedule {seed}: CHASKI_SCHEDULE={seed} runs it alone"));
        all.n_preempted += seen.n_preempted;
        all.n_shared += seen.n_shared;
        all.n_copied += seen.n_copied;
        all.n_restored += seen.n_restored;
        all.n_repeated += seen.n_repeated;
        all.n_mixed += seen.n_mixed;
        all.n_drafted += seen.n_drafted;
        all.n_right += seen.n_right;
        all.n_piece += seen.n_piece;
        all.n_masked_ahead += seen.n_masked_ahead;
        all.n_image += seen.n_image;
        all.n_image_shared += seen.n_image_shared;
        all.n_read += seen.n_read;
        all.n_read_again += seen.n_read_again;
        all.n_read_beside += seen.n_read_beside;
        all.n_groups += seen.n_groups;
        all.n_changed += seen.n_changed;
        all.n_whole_beside += seen.n_whole_beside;
        all.n_whole_over += seen.n_whole_over;
        all.n_undone += seen.n_undone;
    }
    let Seen { n_preempted, n_shared, n_copied, n_restored, n_repeated, n_mixed, .. } = all;
    let Seen { n_drafted, n_right, n_piece, n_masked_ahead, n_image, n_image_shared, .. } = all;
    let rest = [n_drafted, n_right, n_piece, n_masked_ahead, n_image, n_image_shared];
    let rest = rest.into_iter().chain([all.n_read, all.n_read_again, all.n_read_beside]);
    let rest = rest.chain([all.n_groups, all.n_changed, all.n_whole_beside, all.n_whole_over]);
    let rest = rest.chain([all.n_undone]);
    for n in [n_preempted, n_shared, n_copied, n_restored, n_repeated, n_mixed].into_iter().chain(rest) {
        assert!(n > N_SCHEDULE / 100, "{all:?}");
    }
}
