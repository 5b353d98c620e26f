//! Numbers of threads on the CPU.

use std::num::NonZero;

use chaski::DeviceChoice;
use chaski::kernels::ActivationPrecision;

use crate::common::{block_on, build, default_engine};

/// A prompt and single tokens, through the references and the fast products.
#[test]
fn threads_are_as_many_as_asked_for_and_change_no_bit() {
    let tokens: Vec<u32> = (0..40).map(|i| 300 + i * 37 % 900).collect();
    for inputs in [ActivationPrecision::F32, ActivationPrecision::I16] {
        let logits = |decode: u32, batch: u32| {
            let builder = default_engine().device(DeviceChoice::Cpu).context(64).inputs(inputs);
            let mut engine = build(builder.threads(decode, batch));
            let runner = engine.runner();
            let found = [1, 40].map(|n| runner.n_thread(n).expect("it is on the CPU"));
            let mut logits = block_on(runner.eval_all(&tokens[..30], 30)).expect("30 tokens run");
            for token in &tokens[30..] {
                logits.extend(block_on(runner.eval_all(&[*token], 1)).expect("a token runs"));
            }
            (found, logits)
        };
        let (one, expected) = logits(1, 0);
        assert_eq!(one, [1, 1]);
        assert!(expected.iter().all(|v| v.is_finite()) && expected.iter().any(|v| *v != 0.0));
        let all = std::thread::available_parallelism().map_or(1, NonZero::get);
        for (asked, n_thread) in [((3, 0), [3, 3]), ((2, 5), [2, 5]), ((0, 1), [all, 1])] {
            let (found, logits) = logits(asked.0, asked.1);
            assert_eq!(found, n_thread);
            assert!(logits.iter().map(|v| v.to_bits()).eq(expected.iter().map(|v| v.to_bits())), "{asked:?}");
        }
    }
}
