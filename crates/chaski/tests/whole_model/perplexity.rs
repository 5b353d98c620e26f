//! Perplexities of every format, compared with those of another engine in f32 from the same weights.

use std::num::NonZeroUsize;
use std::path::Path;

use chaski::kernels::ActivationPrecision;
use chaski::tools::perplexity;
use chaski::{DeviceChoice, Engine, EngineBuilder, Source};

use crate::common::{
    Failures, Timed, block_on, build, fixture, full, left_for_full, one_in, read_json, read_text, say,
    test_data,
};
use crate::golden_text::storyteller;

/// Perplexity of the first `max_chunks` windows, or all, of `n_ctx` tokens.
fn measure(file: &Path, device: DeviceChoice, text: &str, n_ctx: u32, max_chunks: Option<usize>) -> f64 {
    measure_with(Engine::builder(Source::path(file)).device(device), file, text, n_ctx, max_chunks)
}

fn measure_with(
    builder: EngineBuilder,
    file: &Path,
    text: &str,
    n_ctx: u32,
    max_chunks: Option<usize>,
) -> f64 {
    let mut engine = build(builder.context(n_ctx).chunk(256));
    let (tokenizer, runner) = engine.parts();
    let mut steps = Vec::new();
    let p = block_on(perplexity(
        runner,
        tokenizer,
        text,
        n_ctx as usize,
        max_chunks.and_then(NonZeroUsize::new),
        |n_done, n_all, value| steps.push((n_done, n_all, value.is_some())),
    ))
    .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    // The number of windows is known before the first one runs, its value after it.
    let expected: Vec<_> = (0..=p.n_chunk).map(|i| (i, p.n_chunk, i > 0)).collect();
    assert_eq!(steps, expected);
    let name = file.file_name().expect("a file").to_string_lossy();
    say(format!("{name}: perplexity {:.6} ± {:.4} of {} windows of {n_ctx}", p.value, p.error, p.n_chunk));
    p.value
}

/// Records a failure unless two perplexities agree within `share` of the golden one.
fn close(failures: &mut Failures, name: &str, found: f64, golden: f64, share: f64) {
    failures.check((found - golden).abs() <= share * golden, || {
        format!("{name}: perplexity {found:.6}, golden {golden:.6}, allowed {:.3} %", share * 100.0)
    });
}

/// The text of the storyteller's golden perplexities.
fn validation() -> String {
    read_text(&fixture("storyteller/validation.txt"))
}

/// A model, and its perplexity over the first window of 256 tokens.
///
/// The values were computed from the formulas in f64 over the dequantised weights, with an independent program in
/// NumPy; the golden perplexities of whole texts have four digits and take long.
type Case = (&'static str, f64);

const STORYTELLER: &[Case] =
    &[("f16", 1.422404), ("Q8_0", 1.422122), ("Q6_K", 1.422067), ("Q4_K_M", 1.426766), ("Q4_0", 1.427254)];

const SMALL: &[Case] = &[
    ("stories260K/stories260K-f32.gguf", 3.463555),
    ("babyllama/babyllama-F16.gguf", 1.791254),
    ("babyllama/babyllama-Q8_0.gguf", 1.788861),
    ("babyllama/babyllama-Q6_K.gguf", 1.789086),
    ("babyllama/babyllama-Q4_K_M.gguf", 1.776226),
    ("babyllama/babyllama-Q4_0.gguf", 1.828988),
];

/// Smaller than the distance between any two formats of a model.
const FIRST_WINDOW: f64 = 1e-5;

const GPU: DeviceChoice = DeviceChoice::Gpu(None);

#[test]
fn perplexity_of_the_storyteller_is_the_golden_one_in_every_format() {
    let _t = Timed::new("perplexity, storyteller");
    let json = read_json(&fixture("storyteller/golden.json"));
    let text = validation();
    let mut failures = Failures::default();
    for (format, first) in one_in(3, STORYTELLER) {
        let Some(file) = storyteller(format, "perplexity of the storyteller") else { continue };
        close(&mut failures, format, measure(&file, GPU, &text, 256, Some(1)), *first, FIRST_WINDOW);
        if full() {
            let golden = json[format]["perplexity_c512"].as_f64().expect("a perplexity");
            close(&mut failures, format, measure(&file, GPU, &text, 512, None), golden, 0.002);
        }
    }
    failures.conclude();
}

/// The value of a file in `perplexity.txt`: lines `value +/- error  name`.
fn listed(list: &str, file: &str) -> f64 {
    let row = |l: &&str| l.split_whitespace().last().is_some_and(|n| file.ends_with(n));
    let line = list.lines().find(row).unwrap_or_else(|| panic!("{file} is not in perplexity.txt"));
    let value = line.split_whitespace().next().and_then(|v| v.parse().ok());
    value.unwrap_or_else(|| panic!("a number in {line:?}"))
}

#[test]
fn perplexity_of_small_llamas_is_the_golden_one_in_every_format() {
    let _t = Timed::new("perplexity, small llamas");
    let Some(folder) = test_data("models/babyllama").and(test_data("models")) else { return };
    let text = read_text(&folder.join("../corpus/tinystories-clean-20k.txt"));
    let list = read_text(&folder.join("perplexity.txt"));
    let mut failures = Failures::default();
    for (file, first) in one_in(8, SMALL) {
        let path = folder.join(file);
        close(&mut failures, file, measure(&path, GPU, &text, 256, Some(1)), *first, FIRST_WINDOW);
        if full() {
            close(&mut failures, file, measure(&path, GPU, &text, 256, None), listed(&list, file), 0.005);
        }
    }
    failures.conclude();
}

/// 8-bit activations, which prefill multiplies as bytes: a different value, but a close one.
#[test]
fn perplexity_with_inputs_in_8_bits_is_close() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("perplexity, inputs in 8 bits");
    let text = validation();
    let mut failures = Failures::default();
    // Blocks with and without minima, with any selection of tests.
    for (format, exact) in STORYTELLER.iter().filter(|(f, _)| full() && *f != "f16" || *f == "Q4_K_M") {
        let Some(file) = storyteller(format, "perplexity with inputs in 8 bits") else { continue };
        let builder = Engine::builder(Source::path(&file)).device(GPU).inputs(ActivationPrecision::I8);
        let found = measure_with(builder, &file, &text, 256, Some(1));
        close(&mut failures, format, found, *exact, 1e-3);
        failures
            .check((found - exact).abs() > FIRST_WINDOW * exact, || format!("{format}: nothing was rounded"));
    }
    failures.conclude();
}

#[test]
fn perplexity_on_the_cpu_is_that_of_the_gpu() {
    let _t = Timed::new("perplexity, CPU");
    let text = validation();
    let mut failures = Failures::default();
    let (_, first) = STORYTELLER[3];
    let file = crate::common::default_model();
    close(&mut failures, "CPU", measure(&file, DeviceChoice::Cpu, &text, 256, Some(1)), first, FIRST_WINDOW);
    failures.conclude();
}
