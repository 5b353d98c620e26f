//! Rows of embeddings and positions of three components, in steps of an executor and in requests.

use std::time::Duration;

use chaski::kernels::FeatureSet;
use chaski::serve::{Embeddings, Request};
use chaski::steps::{Executor as _, Input, Outputs, Row, Runner, RunnerConfig, Step, Want};
use chaski::text::Logprobs;
use chaski::{DeviceChoice, Engine, EngineBuilder, Error, GenerateOptions, KvType, SamplerParams, Source};
use chaski_models::Target;
use chaski_runtime::plan::PlanConfig;
use chaski_runtime::{Column, ColumnOutput};

use crate::archs::{Fixture, wanted};
use crate::common::{Failures, Timed, block_on, build, full, gpu_sets, greedy, nmse, say, shared_gpu};
use crate::rows::{components, embeddings, gpu_model, opened, step as run_model};
use crate::serve::outcome;
use crate::stages::gpus;
use crate::streaming::bits;

/// Fixtures, and whether embeddings are multiplied by the square root of their width: dense, windows, learned
/// positions, MoE, recurrent state.
const FIXTURES: &[(&str, bool)] = &[
    ("llama-gqa-rope_freqs", false),
    ("gemma3-dense", true),
    ("gpt2-dense", false),
    ("gpt-oss-moe", false),
    ("mamba2-dense", false),
];

/// Sequences of a mixed step: first token of the fixture's text, number of tokens, and which of every three are rows.
const SEQUENCES: [(usize, usize, [bool; 3]); 3] =
    [(0, 14, [true; 3]), (5, 11, [false, true, true]), (9, 9, [false; 3])];

/// The table of a fixture's embeddings as they enter the model.
struct Table {
    values: Vec<f32>,
    width: usize,
}

impl Table {
    fn of(f: &Fixture, is_scaled: bool) -> Table {
        let all: Vec<u32> = (0..f.n_vocab as u32).collect();
        let values = embeddings(f, &opened(f), &all, is_scaled);
        Table { width: values.len() / all.len(), values }
    }

    fn row(&self, token: u32) -> &[f32] {
        &self.values[token as usize * self.width..][..self.width]
    }

    fn rows(&self, tokens: &[u32]) -> Embeddings {
        let values = tokens.iter().flat_map(|t| self.row(*t)).copied().collect();
        Embeddings::new(values, self.width).expect("whole rows")
    }
}

/// The CPU, and a GPU with one feature set; by default three of four fixtures run on the CPU alone.
fn targets(nth: usize) -> Vec<(&'static str, Target)> {
    let gpu = gpu_sets()[nth / 2 % gpu_sets().len()];
    let all = [("CPU", Target::Cpu), (gpu.word(), Target::Gpu(shared_gpu(gpu, false)))];
    all.into_iter().take(if full() || nth % 4 == 0 { 2 } else { 1 }).collect()
}

fn runner(f: &Fixture, target: &Target, rows: bool) -> Runner {
    let sizes = RunnerConfig { n_ctx: 64, n_seq: 3, chunk: 48, rows, ..RunnerConfig::default() };
    let config = RunnerConfig { kv: KvType::F32, ..sizes };
    block_on(Runner::load(&opened(f), target, &config, |_| {})).expect("a fixture loads")
}

/// Rows of the sequences from a position to before another, with logits of the last two; with `is_rows`, as embeddings
/// where the sequence has them.
fn step(f: &Fixture, table: &Table, seqs: &[usize], (from, to): (usize, usize), is_rows: bool) -> Step {
    let mut step = Step { repeat: 1, ..Step::default() };
    for seq in seqs {
        let (first, n, kinds) = SEQUENCES[*seq];
        for pos in from..to.min(n) {
            let token = f.tokens[first + pos];
            let input = if is_rows && kinds[pos % 3] {
                step.embeddings.extend(table.row(token));
                Input::Embedding((step.embeddings.len() / table.width) as u32 - 1)
            } else {
                Input::Token(token)
            };
            let want = if pos + 2 < n { Want::Nothing } else { Want::Logits };
            step.rows.push(Row { seq: *seq as u32, pos: pos as u32, components: None, input, want });
        }
    }
    step.n_planned = step.rows.len() as u32;
    step
}

fn run(r: &mut Runner, step: &Step) -> Outputs {
    r.submit(step).expect("a step");
    block_on(r.read()).expect("its outputs")
}

#[test]
fn embeddings_of_tokens_in_steps_give_the_same_bits() {
    let _t = Timed::new("inputs, steps");
    let mut failures = Failures::default();
    for (nth, (name, is_scaled)) in FIXTURES.iter().copied().enumerate().filter(|(_, f)| wanted(f.0)) {
        let f = Fixture::load(name);
        let table = Table::of(&f, is_scaled);
        for (device, target) in targets(nth) {
            let mut r = runner(&f, &target, true);
            for (what, seqs, size) in [
                ("alone", &[0][..], 64),
                ("alone in chunks", &[0], 5),
                ("beside others", &[0, 1, 2], 64),
                ("beside others in chunks", &[0, 1, 2], 4),
                ("one by one", &[1], 1),
            ] {
                let mut all = |is_rows| -> Vec<u32> {
                    let parts = (0..14).step_by(size);
                    let step = |at| step(&f, &table, seqs, (at, at + size), is_rows);
                    let with_rows = parts.map(step).filter(|step| !step.rows.is_empty());
                    with_rows.flat_map(|step| bits(&run(&mut r, &step).logits)).collect()
                };
                let (expected, found) = (all(false), all(true));
                assert_eq!(expected.len(), 2 * seqs.len() * f.n_vocab, "{name}, {device}, {what}");
                failures.check(found == expected, || format!("{name}, {device}, {what}: other bits"));
            }
            // In pieces of a step: each column has its row.
            let mixed = |is_rows| step(&f, &table, &[0, 1, 2], (0, 64), is_rows);
            let expected = bits(&run(&mut r, &mixed(false)).logits);
            r.set_prompt_bound(Duration::ZERO);
            let found = bits(&run(&mut r, &mixed(true)).logits);
            failures.check(found == expected, || format!("{name}, {device}, pieces: other bits"));
        }
        say(format!("{name:24} steps take rows"));
    }
    failures.conclude();
}

/// Rows of a step with components, the last of which chooses, and tokens that the device chooses after them.
fn image_step(f: &Fixture, table: &Table) -> (Step, u32) {
    let at = components();
    let mut step = Step { repeat: 1, n_planned: at.len() as u32, ..Step::default() };
    for (i, components) in at.iter().enumerate() {
        let input = if (4..16).contains(&i) {
            step.embeddings.extend(table.row(f.tokens[i + 7]));
            Input::Embedding(i as u32 - 4)
        } else {
            Input::Token(f.tokens[i])
        };
        let want = if i + 1 == at.len() { Want::Logits } else { Want::Nothing };
        step.rows.push(Row { seq: 0, pos: i as u32, components: Some(*components), input, want });
    }
    (step, at[at.len() - 1][0] + 1)
}

#[test]
fn components_in_steps_are_those_of_the_model() {
    let _t = Timed::new("inputs, components");
    for (nth, name) in ["qwen2vl-dense", "qwen3vl-dense"].into_iter().enumerate() {
        let f = Fixture::load(name);
        let table = Table::of(&f, false);
        let (step, next) = image_step(&f, &table);
        for (device, target) in targets(nth) {
            let mut r = runner(&f, &target, true);
            let found = run(&mut r, &step).logits;
            let text = Step {
                rows: step.rows.iter().map(|row| Row { components: None, ..*row }).collect(),
                ..step.clone()
            };
            assert_ne!(bits(&run(&mut r, &text).logits), bits(&found), "{name}, {device}: nothing changes");
            // The same rows beside another sequence.
            let mut beside = step.clone();
            let other = |i: u32| Row {
                seq: 1,
                pos: i,
                components: None,
                input: Input::Token(f.tokens[i as usize]),
                want: Want::Nothing,
            };
            beside.rows.extend((0..6).map(other));
            beside.n_planned += 6;
            assert_eq!(bits(&run(&mut r, &beside).logits), bits(&found), "{name}, {device}, beside another");
            // The model itself.
            let Target::Gpu(gpu) = &target else { continue };
            let mut m = gpu_model(&opened(&f), gpu, |plan| PlanConfig { rows: true, max_col: 48, ..plan });
            m.set_rows(&step.embeddings).expect("so many rows");
            let column = |row: &Row| {
                let of = match row.input {
                    Input::Embedding(i) => Column::row(0, i, row.pos),
                    Input::Token(token) => Column::token(0, token, row.pos),
                    Input::Chosen => unreachable!("no row is chosen"),
                };
                of.at(row.components.expect("each has components"))
            };
            let columns: Vec<Column> = step.rows.iter().map(column).collect();
            let mut outputs = vec![ColumnOutput::Nothing; columns.len()];
            outputs[columns.len() - 1] = ColumnOutput::Logits;
            let expected = run_model(&mut m, &columns, &outputs, 1).logits;
            assert_eq!(bits(&found), bits(&expected), "{name}, {device}");
            // Tokens that the device chooses go on at the next positions.
            let mut choosing = step.clone();
            choosing.rows.last_mut().expect("rows").want = Want::Choose;
            let mut chosen = run(&mut r, &choosing).chosen;
            let pos = step.rows.len() as u32;
            let input = Input::Chosen;
            let row = Row { seq: 0, pos, components: Some([next; 3]), input, want: Want::Choose };
            let ahead = Step { rows: vec![row], repeat: 4, n_planned: 1, ..Step::default() };
            chosen.extend(run(&mut r, &ahead).chosen);
            let by_hand = |(i, token): (u32, &u32)| {
                let column = Column::token(0, *token, pos + i).at([next + i; 3]);
                m.send_step(&[column], &[ColumnOutput::Choice], greedy_step()).expect("a step");
                block_on(m.read_step()).expect("its token").chosen[0]
            };
            let expected: Vec<u32> = (0..).zip(&chosen[..4]).map(by_hand).collect();
            assert_eq!(chosen[1..], expected, "{name}, {device}");
        }
    }
}

fn greedy_step() -> chaski_runtime::gpu::StepOptions {
    let choose = chaski_runtime::gpu::SampleMode::Greedy;
    chaski_runtime::gpu::StepOptions { repeat: 1, n_planned: 1, choose }
}

#[test]
fn inputs_that_a_model_does_not_take_are_refused_with_the_numbers() {
    let f = Fixture::load("llama-gqa-rope_freqs");
    let table = Table::of(&f, false);
    let n = table.width;
    let row = |input, components| Row { seq: 0, pos: 0, components, input, want: Want::Nothing };
    let of = |input, components, embeddings: Vec<f32>| Step {
        rows: vec![row(input, components)],
        repeat: 1,
        n_planned: 1,
        embeddings,
    };
    let refused = |r: &mut Runner, step: &Step| r.submit(step).expect_err("such a step").to_string();
    for (device, target) in targets(0) {
        let mut r = runner(&f, &target, true);
        let e = refused(&mut r, &of(Input::Embedding(0), None, vec![0.0; n + 1]));
        assert_eq!(e, format!("values of rows: {}, but must be {}", n + 1, 2 * n), "{device}");
        let e = refused(&mut r, &of(Input::Embedding(2), None, vec![0.0; 2 * n]));
        assert_eq!(e, "rows of embeddings: 3, but at most 2", "{device}");
        let e = refused(&mut r, &of(Input::Token(1), Some([0; 3]), Vec::new()));
        assert_eq!(e, "components of a position: 3, but at most 1", "{device}");
        // The executor goes on.
        run(&mut r, &of(Input::Embedding(0), None, vec![0.5; n]));
    }
    let mut plain = runner(&f, &Target::Gpu(shared_gpu(FeatureSet::Sg, false)), false);
    let e = refused(&mut plain, &of(Input::Embedding(0), None, vec![0.0; n]));
    assert!(e.starts_with("rows of embeddings: ") && e.ends_with(", but at most 0"), "{e}");
    let input = plain.row_input();
    assert_eq!((input.width, input.components), (0, false));
    // Requests are refused before anything runs.
    let mut engine = build(engine_of(&f, DeviceChoice::Cpu));
    let error = |engine: &mut Engine, at: usize, rows: Embeddings| {
        let asked = Request { embeddings: vec![(at, rows)], ..Request::new(vec![1; 5], greedy(1)) };
        let e = engine.generate_request(asked).map(drop).expect_err("rows that do not fit");
        assert_eq!(e.code(), "bad_request", "{e}");
        match e {
            Error::Serve(e) => std::error::Error::source(&e).map_or(e.to_string(), ToString::to_string),
            other => other.to_string(),
        }
    };
    let narrow = Embeddings::new(vec![0.0; 2 * n + 2], n + 1).expect("two rows");
    let said = error(&mut engine, 0, narrow);
    assert!(said.contains(&format!("values of a row: {}, but must be {n}", n + 1)), "{said}");
    let two = table.rows(&[1, 2]);
    let said = error(&mut engine, 4, two.clone());
    assert!(said.contains("embeddings at 4 to 6 do not fit between 0 and 5"), "{said}");
    let said = error(&mut engine, 0, two.at(vec![[0; 3]; 2]).expect("positions"));
    assert!(said.contains("components of a position: 3, but at most 1"), "{said}");
    let mut plain = build(engine_of(&f, DeviceChoice::Gpu(None)).input_rows(false));
    let said = error(&mut plain, 0, two);
    assert!(said.contains("rows of embeddings: 2, but at most 0"), "{said}");
}

/// An engine for a fixture that takes rows.
fn engine_of(f: &Fixture, device: DeviceChoice) -> EngineBuilder {
    let bytes: &'static [u8] = f.gguf(false, &|_, _| {}).leak();
    let name = "fixture.gguf".into();
    let builder = Engine::builder(Source::Bytes { name, bytes }).context(256).chunk(48).kv(KvType::F32);
    builder.device(device).input_rows(true)
}

/// Tokens and log probabilities of an answer, and the number of cached tokens of its prompt.
fn answer(engine: &mut Engine, request: Request) -> ((Vec<u32>, Vec<Logprobs>), usize) {
    let mut g = engine.generate_request(request).expect("a request that fits");
    let (mut tokens, mut logprobs) = (Vec::new(), Vec::new());
    while let Some(piece) = block_on(g.next()).expect("the device runs") {
        tokens.extend(piece.token);
        logprobs.extend(piece.logprobs);
    }
    ((tokens, logprobs), g.stats().n_cached)
}

/// A prompt of `n` tokens whose tokens from `at` are rows; their tokens in the prompt are placeholders.
fn with_rows(f: &Fixture, n: usize, at: usize, rows: &Embeddings, options: &GenerateOptions) -> Request {
    let mut prompt = f.tokens[..n].to_vec();
    prompt[at..at + rows.len()].fill(0);
    Request { embeddings: vec![(at, rows.clone())], ..Request::new(prompt, options.clone()) }
}

#[test]
fn requests_with_embeddings_of_tokens_get_the_answers_of_the_tokens() {
    let _t = Timed::new("inputs, requests");
    let with_logprobs = GenerateOptions { logprobs: Some(3), ..greedy(6) };
    let penalised = SamplerParams { penalty_repeat: 1.3, penalty_last_n: 8, ..SamplerParams::default() };
    let seeded = GenerateOptions { sampler: SamplerParams { seed: Some(3), ..penalised }, ..greedy(6) };
    for (nth, (name, is_scaled)) in FIXTURES.iter().copied().enumerate() {
        let f = Fixture::load(name);
        let table = Table::of(&f, is_scaled);
        for (device, choice) in [("CPU", DeviceChoice::Cpu), ("GPU", DeviceChoice::Gpu(None))] {
            if device == "GPU" && nth > 0 && !full() {
                continue;
            }
            let builder = || match &choice {
                DeviceChoice::Gpu(_) => engine_of(&f, choice.clone()).gpu(shared_gpu(FeatureSet::Sg, false)),
                _ => engine_of(&f, choice.clone()),
            };
            let (at, n_row, n) = (3, 9, 18);
            let rows = table.rows(&f.tokens[at..at + n_row]);
            let plain = |options: &GenerateOptions| Request::new(f.tokens[..n].to_vec(), options.clone());
            let mut engine = build(builder());
            let case = format!("{name}, {device}");
            for options in [&greedy(6), &with_logprobs] {
                let expected = answer(&mut engine, plain(options)).0;
                assert!(!expected.0.is_empty(), "{case}");
                assert_eq!(expected.1.len(), if options.logprobs.is_some() { expected.0.len() } else { 0 });
                engine.clear();
                let found = answer(&mut engine, with_rows(&f, n, at, &rows, options)).0;
                assert_eq!(found, expected, "{case}");
                engine.clear();
            }
            // Beside others, some with rows and some without. Placeholders are in no penalty's window.
            let expected = answer(&mut engine, plain(&seeded)).0.0;
            let of_greedy = answer(&mut engine, plain(&greedy(6))).0.0;
            let handle = build(builder().sequences(3)).spawn().expect("a thread");
            let asked = [
                with_rows(&f, n, at, &rows, &greedy(6)),
                plain(&seeded),
                with_rows(&f, n, at, &rows, &with_logprobs),
                plain(&greedy(6)),
                with_rows(&f, n, n - n_row - 9, &table.rows(&f.tokens[..n_row]), &greedy(6)),
            ];
            let answers: Vec<_> =
                asked.into_iter().map(|r| handle.generate_tokens(r).expect("it fits")).collect();
            let found: Vec<Vec<u32>> = answers.into_iter().map(|a| outcome(a).tokens).collect();
            let all = [&of_greedy, &expected, &of_greedy, &of_greedy, &of_greedy];
            assert!(found.iter().eq(all), "{case}: {found:?}, not {all:?}");
            // At the end of the prompt no row is in the window of the last 8 tokens.
            let late = handle.generate_tokens(with_rows(&f, n, 0, &table.rows(&f.tokens[..9]), &seeded));
            assert_eq!(outcome(late.expect("it fits")).tokens, expected, "{case}");
        }
    }
}

#[test]
fn a_cached_prefix_with_embeddings_is_used_by_clones_of_them() {
    let f = Fixture::load("llama-gqa-rope_freqs");
    let table = Table::of(&f, false);
    let long: Vec<u32> = f.tokens.iter().cycle().take(150).copied().collect();
    let mut engine = build(engine_of(&f, DeviceChoice::Cpu));
    let options = GenerateOptions { logprobs: Some(2), ..greedy(4) };
    let mut ask = |rows: Option<&Embeddings>| {
        let embeddings = rows.map(|rows| (10, rows.clone())).into_iter().collect();
        answer(&mut engine, Request { embeddings, ..Request::new(long.clone(), options.clone()) })
    };
    // Rows of other tokens than those in the prompt, which are placeholders.
    let (rows, same) = (table.rows(&f.tokens[20..40]), table.rows(&f.tokens[20..40]));
    let (expected, n_cached) = ask(Some(&rows));
    assert_eq!(n_cached, 0);
    let (found, n_cached) = ask(Some(&rows));
    assert!(found == expected && n_cached == 149, "{n_cached} tokens are cached");
    // Equal values in another object are computed again, as is everything after the first ten tokens.
    let (found, n_cached) = ask(Some(&same));
    assert!(found == expected && n_cached == 10, "{n_cached} tokens are cached");
    let (of_tokens, n_cached) = ask(None);
    assert!(of_tokens != expected && n_cached == 10, "{n_cached} tokens are cached");
}

#[test]
fn an_image_in_a_request_has_the_positions_of_its_rows() {
    let f = Fixture::load("qwen2vl-dense");
    let table = Table::of(&f, false);
    let (step, _) = image_step(&f, &table);
    let options = GenerateOptions { logprobs: Some(2), ..greedy(8) };
    // 3 x 4 patches after 4 tokens.
    let patch = |i: u32| [0, i / 4, i % 4];
    let image = table.rows(&f.tokens[11..23]).at((0..12).map(patch).collect()).expect("positions");
    let request = |options: &GenerateOptions| with_rows(&f, step.rows.len(), 4, &image, options);
    let gpu = shared_gpu(FeatureSet::Sg, false);
    for (device, target) in [("CPU", Target::Cpu), ("GPU", Target::Gpu(gpu.clone()))] {
        let builder = engine_of(&f, DeviceChoice::Cpu);
        let mut engine = build(if device == "GPU" { builder.gpu(gpu.clone()) } else { builder });
        let ((found, logprobs), _) = answer(&mut engine, request(&options));
        assert_eq!(found.len(), 8, "{device}");
        // By hand: the same rows in one step, then token after token.
        let mut r = runner(&f, &target, true);
        let mut logits = run(&mut r, &step).logits;
        for (i, token) in (0u32..).zip(&found) {
            let largest = logits.iter().copied().fold(f32::MIN, f32::max);
            assert_eq!(logits[*token as usize].to_bits(), largest.to_bits(), "{device}, token {i}");
            let (pos, at) = (step.rows.len() as u32 + i, 12 + i);
            let row = Row {
                seq: 0,
                pos,
                components: Some([at; 3]),
                input: Input::Token(*token),
                want: Want::Logits,
            };
            logits =
                run(&mut r, &Step { rows: vec![row], repeat: 1, n_planned: 1, ..Step::default() }).logits;
        }
        // The device's own choices, many at once, and without the image.
        engine.clear();
        assert_eq!(answer(&mut engine, request(&greedy(8))).0.0, found, "{device}");
        engine.clear();
        let flat = Request { embeddings: vec![(4, table.rows(&f.tokens[11..23]))], ..request(&options) };
        assert_ne!(answer(&mut engine, flat).0.1, logprobs, "{device}: positions change nothing");
    }
    // Over two devices, and after the CPU.
    let gpus = |n| gpus(n, FeatureSet::Sg);
    let targets = [Target::Gpus(gpus(1)), Target::Gpus(gpus(2)), Target::AfterCpu(gpus(1))];
    let [one, two, three] = targets.map(|target| run(&mut runner(&f, &target, true), &step).logits);
    assert_eq!(bits(&one), bits(&two));
    let e = nmse(&three, &one);
    assert!(e <= 1e-10, "after the CPU: {e:.1e}");
}
