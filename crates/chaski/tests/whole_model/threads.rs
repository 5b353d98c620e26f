//! Threads, and forms of weights, on the CPU: results do not depend on them.

use std::num::NonZero;

use chaski::kernels::ActivationPrecision;
use chaski::{DeviceChoice, Engine, Source};

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

/// A file that is mapped or read, and matrices as they are in it or in tiles: prompts and single tokens.
#[test]
fn tiles_of_weights_change_no_bit() {
    let tokens: Vec<u32> = (0..40).map(|i| 300 + i * 37 % 900).collect();
    let file = std::env::temp_dir().join(format!("chaski-tiles-{}.gguf", std::process::id()));
    std::fs::write(&file, include_bytes!("../../model/storyteller-Q4_K_M.gguf")).expect("there is room");
    let load = |map: bool, repack: bool| {
        let builder = Engine::builder(Source::path(&file)).device(DeviceChoice::Cpu).context(64);
        let mut engine = build(builder.map(map).repack(repack));
        let runner = engine.runner();
        let mut logits = block_on(runner.eval_all(&tokens[..20], 20)).expect("20 tokens run");
        logits.extend(block_on(runner.eval_all(&tokens[20..26], 6)).expect("6 tokens run"));
        for token in &tokens[26..] {
            logits.extend(block_on(runner.eval_all(&[*token], 1)).expect("a token runs"));
        }
        (logits, runner.memory().items.iter().map(|part| part.n_byte).sum::<u64>())
    };
    let (expected, n_byte) = load(true, false);
    assert!(expected.iter().all(|v| v.is_finite()) && expected.iter().any(|v| *v != 0.0));
    for (map, repack) in [(false, false), (true, true), (false, true)] {
        let (logits, n) = load(map, repack);
        let what = format!("mapped: {map}, in tiles: {repack}");
        assert!(logits.iter().map(|v| v.to_bits()).eq(expected.iter().map(|v| v.to_bits())), "{what}");
        // The scales of a format are the same; a table that is read, too, is there twice if it is not mapped.
        assert!(n >= n_byte && n < n_byte + n_byte / 3, "{what}: {n} bytes, {n_byte} as in the file");
    }
    std::fs::remove_file(&file).expect("it is there");
}
