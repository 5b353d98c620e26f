//! Cases with random shapes, strides and types; failures are minimised.

use std::cell::RefCell;

use chaski_kernels::{Case, Rng};
use proptest::collection::vec;
use proptest::num::u32::ANY;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::{Place, Seen};

/// Random numbers per case; zeros follow.
const CHOICES: usize = 160;
/// Number of smaller cases to try when minimising a failure.
const SHRINK: u32 = 400;

/// Runs `n` cases determined by the numbers of `stream`; returns the largest error. Keeps the smallest failing case.
pub(crate) fn check(
    on: &Place<'_>,
    make: fn(&mut Rng) -> Case,
    n: u32,
    stream: [u64; 3],
    word: &str,
    seen: &mut Seen,
) -> f64 {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).zip(stream).for_each(|(to, n)| to.copy_from_slice(&n.to_le_bytes()));
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let config =
        Config { cases: n, max_shrink_iters: SHRINK, failure_persistence: None, ..Config::default() };
    let (worst, shared) = (RefCell::new(0.0f64), RefCell::new(seen));
    let result = TestRunner::new_with_rng(config, rng).run(&vec(ANY, CHOICES), |choices| {
        let case = make(&mut Rng::of_choices(choices));
        if !case.label.contains(word) {
            return Ok(());
        }
        let nmse = on.run(&case, &mut shared.borrow_mut()).map_err(TestCaseError::fail)?;
        let mut worst = worst.borrow_mut();
        *worst = worst.max(nmse);
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, _)) => shared.into_inner().failures.push(format!("at random: {why}")),
        Err(TestError::Abort(why)) => shared.into_inner().failures.push(format!("{}: {why}", on.op.name)),
    }
    worst.into_inner()
}
