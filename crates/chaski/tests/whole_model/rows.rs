//! Input rows in place of tokens, and positions of three components.

use std::sync::Arc;

use chaski::errors::RuntimeError;
use chaski::gguf::{GgmlType, MemorySource};
use chaski::kernels::FeatureSet;
use chaski::steps::RunnerConfig;
use chaski_models::Model;
use chaski_runtime::cpu::{CpuConfig, CpuModel, Threads};
use chaski_runtime::gpu::{Gpu, GpuModel, SampleMode, StepOptions};
use chaski_runtime::plan::{Fusions, PlanConfig};
use chaski_runtime::{Column, ColumnOutput, StepOutputs, Tensors};

use crate::archs::{Fixture, open, wanted};
use crate::common::{Failures, Timed, block_on, full, gpu_sets, in_turns, nmse, one_in, say, shared_gpu};
use crate::stages::gpus;
use crate::streaming::{bits, config};

/// Fixtures, and whether embeddings are multiplied by the square root of their width: dense, windows, per-layer
/// embeddings, a norm of embeddings, learned positions, MoE, recurrent state.
const FIXTURES: &[(&str, bool)] = &[
    ("llama-gqa-rope_freqs", false),
    ("gemma3-dense", true),
    ("gemma3n-dense", true),
    ("bloom-dense", false),
    ("gpt2-dense", false),
    ("gpt-oss-moe", false),
    ("mamba2-dense", false),
];

/// Consecutive sections; interleaved; interleaved with a fourth one, whose pairs have no RoPE.
const SECTIONS: &[&str] = &["qwen2vl-dense", "qwen3vl-dense", "qwen35-dense"];

pub(crate) type TestModel = Arc<Model<MemorySource>>;

/// Tensors of a model with shared ownership.
struct Shared(TestModel);

impl Tensors for Shared {
    async fn read(
        &self,
        name: &str,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.0.read(name, offset, buf).await
    }
}

pub(crate) fn opened(f: &Fixture) -> TestModel {
    Arc::new(open(f.gguf(false, &|_, _| {})).expect("a fixture is a model"))
}

pub(crate) fn gpu_model(
    model: &TestModel,
    gpu: &Arc<Gpu>,
    change: impl FnOnce(PlanConfig) -> PlanConfig,
) -> GpuModel {
    gpus_model(model, std::slice::from_ref(gpu), change)
}

/// The same on several devices of one kind.
fn gpus_model(
    model: &TestModel,
    gpus: &[Arc<Gpu>],
    change: impl FnOnce(PlanConfig) -> PlanConfig,
) -> GpuModel {
    let plan = change(RunnerConfig { n_seq: 2, ..config(None) }.plan_for(model, gpus[0].caps()));
    let graph = block_on(model.graph(plan.n_ctx)).expect("a graph");
    block_on(GpuModel::load_on(gpus, &graph, plan, Shared(model.clone()), |_| {})).expect("it fits")
}

/// A step whose masks never come chooses nothing: the next choice of its sequence is read from where it is written.
#[test]
fn a_step_that_is_dropped_before_its_masks_chooses_nothing() {
    let f = Fixture::load("llama-gqa-rope_freqs");
    let mut m = gpu_model(&opened(&f), &shared_gpu(FeatureSet::Sg, false), |plan| plan);
    let column = |pos: u32| Column::token(0, f.tokens[pos as usize], pos);
    let expected: Vec<u32> =
        (0..3).map(|pos| step(&mut m, &[column(pos)], &[ColumnOutput::Choice], 1).chosen[0]).collect();
    assert!(expected[1..].iter().any(|token| *token != expected[0]), "{expected:?}");
    for _ in 0..3 {
        m.send_step(&[column(0)], &[ColumnOutput::MaskedChoice], greedy(1)).expect("a step");
        m.drop_steps();
    }
    let found: Vec<u32> =
        (0..3).map(|pos| step(&mut m, &[column(pos)], &[ColumnOutput::Choice], 1).chosen[0]).collect();
    assert_eq!(found, expected);
}

fn cpu_model(model: &TestModel) -> CpuModel {
    let graph = block_on(model.graph(64)).expect("a graph");
    let sizes = CpuConfig {
        n_ctx: 64,
        n_seq: 1,
        page: 64,
        pool: None,
        kv: (GgmlType::F32, GgmlType::F32),
        threads: Threads::default(),
        map: true,
        repack: false,
    };
    block_on(CpuModel::load(graph, sizes, &**model, |_, _| {})).expect("it fits")
}

/// Runs columns with logits.
fn run(m: &mut GpuModel, columns: &[Column]) -> Vec<f32> {
    let outputs = vec![ColumnOutput::Logits; columns.len()];
    step(m, columns, &outputs, 1).logits
}

pub(crate) fn step(
    m: &mut GpuModel,
    columns: &[Column],
    outputs: &[ColumnOutput],
    repeat: u32,
) -> StepOutputs {
    m.send_step(columns, outputs, greedy(repeat)).expect("a step");
    block_on(m.read_step()).expect("its outputs")
}

/// The same on the CPU.
fn run_cpu(m: &mut CpuModel, columns: &[Column]) -> Vec<f32> {
    m.run_step(columns, &vec![ColumnOutput::Logits; columns.len()], 1).expect("a step").logits
}

fn greedy(repeat: u32) -> StepOptions {
    StepOptions { repeat, n_planned: 0, choose: SampleMode::Greedy }
}

/// Embeddings of tokens as they enter the residual stream.
pub(crate) fn embeddings(f: &Fixture, model: &TestModel, tokens: &[u32], is_scaled: bool) -> Vec<f32> {
    let n = model.config().n_embd as usize;
    let table = f.weights_of("token_embd.weight", (n * f.n_vocab) as u64);
    let by = if is_scaled { (n as f32).sqrt() } else { 1.0 };
    tokens.iter().flat_map(|t| &table[*t as usize * n..][..n]).map(|v| v * by).collect()
}

#[test]
fn embeddings_of_tokens_as_rows_give_the_same_bits() {
    let _t = Timed::new("rows, all families");
    let mut failures = Failures::default();
    for (nth, (name, is_scaled)) in FIXTURES.iter().copied().enumerate().filter(|(_, f)| wanted(f.0)) {
        let f = Fixture::load(name);
        let model = opened(&f);
        let tokens = &f.tokens[..20];
        let rows = embeddings(&f, &model, tokens, is_scaled);
        // By default a twelfth of them; others run in `inputs`.
        for set in gpu_sets().iter().filter(|_| full() || nth % 12 == 0) {
            let gpu = shared_gpu(*set, false);
            let mut plain = gpu_model(&model, &gpu, |plan| plan);
            let mut with_rows = gpu_model(&model, &gpu, |plan| PlanConfig { rows: true, ..plan });
            let (without, with) = (plain.dispatches_per_token().1, with_rows.dispatches_per_token().1);
            failures
                .check(with == without + 1, || format!("{name}: {with} dispatches, {without} without rows"));
            with_rows.set_rows(&rows).expect("a chunk has so many rows");
            let token = |(i, t): (u32, &u32)| Column::token(1, *t, i);
            // The token selects the per-layer embeddings.
            let row = |(i, t): (u32, &u32)| Column { row: Some(i), ..Column::token(1, *t, i) };
            let of_tokens: Vec<Column> = (0..).zip(tokens).map(token).collect();
            let expected = bits(&run(&mut plain, &of_tokens[..16]));
            let kinds =
                [("tokens", &[false][..]), ("rows", &[true]), ("tokens and rows", &[true, false, true])];
            for (what, is_row) in kinds {
                let of = |(i, t)| if is_row[i as usize % is_row.len()] { row((i, t)) } else { token((i, t)) };
                let columns: Vec<Column> = (0..).zip(tokens).map(of).collect();
                let found = bits(&run(&mut with_rows, &columns[..16]));
                failures.check(found == expected, || format!("{name}, prompt of {what}: other bits"));
            }
            // One column at a time.
            for i in 16..19 {
                let expected = bits(&run(&mut plain, &of_tokens[i..=i]));
                let found = bits(&run(&mut with_rows, &[row((i as u32, &tokens[i]))]));
                failures.check(found == expected, || format!("{name}, column {i}: other bits"));
            }
            // A row chooses a token, from which the device continues.
            let choice = [ColumnOutput::Choice];
            let expected = step(&mut plain, &of_tokens[19..], &choice, 5).chosen;
            let found = step(&mut with_rows, &[row((19, &tokens[19]))], &choice, 5).chosen;
            failures.check(found == expected, || format!("{name}: {found:?}, not {expected:?}"));
        }
        let mut cpu = cpu_model(&model);
        let token = |(i, t): (u32, &u32)| Column::token(0, *t, i);
        let of_tokens: Vec<Column> = (0..).zip(tokens).map(token).collect();
        let expected = bits(&run_cpu(&mut cpu, &of_tokens));
        cpu.set_rows(&rows).expect("whole rows");
        let row = |c: &Column| Column { row: (c.pos % 3 != 1).then_some(c.pos), ..*c };
        let of_rows: Vec<Column> = of_tokens.iter().map(row).collect();
        let found = bits(&run_cpu(&mut cpu, &of_rows));
        failures.check(found == expected, || format!("{name}, CPU: other bits"));
        say(format!("{name:24} rows are embeddings"));
    }
    failures.conclude();
}

#[test]
fn rows_that_do_not_fit_are_errors() {
    let f = Fixture::load("llama-gqa-rope_freqs");
    let model = opened(&f);
    let n = model.config().n_embd as usize;
    let gpu = shared_gpu(FeatureSet::Sg, false);
    let mut plain = gpu_model(&model, &gpu, |plan| plan);
    let mut m = gpu_model(&model, &gpu, |plan| PlanConfig { rows: true, ..plan });
    let limit = |r: Result<(), RuntimeError>, what: &str, most: u64| match r {
        Err(RuntimeError::Limit { what: w, limit, .. }) => assert_eq!((w, limit), (what, most)),
        other => panic!("{other:?}"),
    };
    limit(plain.set_rows(&vec![0.0; n]), "rows of embeddings", 0);
    limit(m.set_rows(&vec![0.0; 65 * n]), "rows of embeddings", 64);
    let e = m.set_rows(&vec![0.0; n + 1]).expect_err("a part of a row");
    assert_eq!(e.to_string(), format!("values of rows: {}, but must be {}", n + 1, 2 * n));
    m.set_rows(&vec![0.0; 2 * n]).expect("two rows");
    let mut send = |column| m.send_step(&[column], &[ColumnOutput::Nothing], greedy(1));
    limit(send(Column::row(0, 2, 0)), "rows of embeddings", 2);
    limit(send(Column::token(0, 1, 0).at([0, 1, 0])), "components of a position", 1);
    limit(
        plain.send_step(&[Column::row(0, 0, 0)], &[ColumnOutput::Nothing], greedy(1)),
        "rows of embeddings",
        0,
    );
    let mut cpu = cpu_model(&model);
    let e = cpu.set_rows(&vec![0.0; n - 1]).expect_err("a part of a row");
    assert_eq!(e.to_string(), format!("values of rows: {}, but must be {n}", n - 1));
    let e =
        cpu.run_step(&[Column::row(0, 0, 0)], &[ColumnOutput::Nothing], 1).expect_err("there are no rows");
    assert_eq!(e.to_string(), "rows of embeddings: 1, but at most 0");
}

/// Components of an image of 3 by 4 patches between tokens of a text.
pub(crate) fn components() -> Vec<[u32; 3]> {
    let text = |p: u32| [p; 3];
    let picture = (0..12).map(|i| [4, 4 + i / 4, 4 + i % 4]);
    (0..4).map(text).chain(picture).chain((8..12).map(text)).collect()
}

#[test]
fn sections_follow_their_components() {
    let _t = Timed::new("rows, sections");
    let mut failures = Failures::default();
    for (nth, name) in one_in(2, SECTIONS.iter().copied().enumerate()).filter(|(_, n)| wanted(n)) {
        let f = Fixture::load(name);
        let model = opened(&f);
        let components = components();
        let n = components.len();
        let tokens = &f.tokens[..n];
        let gpu = shared_gpu(gpu_sets()[nth % gpu_sets().len()], false);
        let mut cpu = cpu_model(&model);
        let text: Vec<Column> = (0..).zip(tokens).map(|(i, t)| Column::token(0, *t, i)).collect();
        let columns: Vec<Column> = text.iter().zip(&components).map(|(c, at)| c.at(*at)).collect();
        let of_text = run_cpu(&mut cpu, &text);
        let expected = run_cpu(&mut cpu, &columns);
        failures.check(nmse(&expected, &of_text) > 1e-6, || format!("{name}: components change nothing"));
        let mut plain = gpu_model(&model, &gpu, |plan| plan);
        for fusions in in_turns(nth, &[Fusions::ALL, Fusions::NONE]) {
            let mut m = gpu_model(&model, &gpu, |plan| PlanConfig { rows: true, fusions, ..plan });
            let e = nmse(&run(&mut m, &columns), &expected);
            failures.check(e <= 1e-10, || format!("{name}, prompt: {e:.1e}"));
            // A device-chosen token follows the image, and another follows that.
            let mut outputs = vec![ColumnOutput::Nothing; n];
            outputs[n - 1] = ColumnOutput::Choice;
            let chosen = step(&mut m, &columns, &outputs, 1).chosen[0];
            let next = [components[n - 1][0] + 1; 3];
            let found = run(&mut m, &[Column::chosen(0, n as u32).at(next)]);
            run_cpu(&mut cpu, &columns);
            let after = run_cpu(&mut cpu, &[Column::token(0, chosen, n as u32).at(next)]);
            let e = nmse(&found, &after);
            failures.check(e <= 1e-10, || format!("{name}, token: {e:.1e}"));
            // Equal components are a plain position.
            let expected = bits(&run(&mut plain, &text));
            let equal: Vec<Column> = text.iter().map(|c| c.at([c.pos; 3])).collect();
            let same = bits(&run(&mut m, &equal)) == expected;
            failures.check(same || fusions == Fusions::NONE, || format!("{name}: a text has other bits"));
        }
        say(format!("{name:24} sections"));
    }
    failures.conclude();
}

#[test]
fn rows_and_components_are_the_same_over_two_devices() {
    let f = Fixture::load("qwen2vl-dense");
    let model = opened(&f);
    let gpus = gpus(2, FeatureSet::Sg);
    let components = components();
    let n = components.len();
    // The image consists of embeddings of later tokens.
    let picture = embeddings(&f, &model, &f.tokens[n..n + 12], false);
    let column = |(i, (token, at)): (u32, (&u32, &[u32; 3]))| {
        let row = i.checked_sub(4).filter(|row| *row < 12);
        Column { row, ..Column::token(0, *token, i) }.at(*at)
    };
    let columns: Vec<Column> = (0..).zip(f.tokens.iter().zip(&components)).map(column).collect();
    let next = [components[n - 1][0] + 1; 3];
    let all = |m: &mut GpuModel| {
        m.set_rows(&picture).expect("a chunk has so many rows");
        let logits = bits(&run(m, &columns));
        let mut outputs = vec![ColumnOutput::Nothing; n];
        outputs[n - 1] = ColumnOutput::Choice;
        let mut chosen = step(m, &columns, &outputs, 1).chosen;
        let following = [Column::chosen(0, n as u32).at(next)];
        chosen.extend(step(m, &following, &[ColumnOutput::Choice], 6).chosen);
        (logits, chosen)
    };
    let load = |gpus: &[Arc<Gpu>]| gpus_model(&model, gpus, |plan| PlanConfig { rows: true, ..plan });
    let (mut one, mut two) = (load(&gpus[1..]), load(&gpus));
    let expected = all(&mut one);
    assert!(all(&mut two) == expected, "other bits over two devices");
    let tokens: Vec<Column> = columns.iter().map(|c| Column { row: None, ..*c }).collect();
    assert!(bits(&run(&mut one, &tokens)) != expected.0, "rows change nothing");
    // A step over several devices has the rows of the time when it was submitted, wherever it is.
    two.send_step(&columns, &vec![ColumnOutput::Logits; n], greedy(1)).expect("a step");
    let others: Vec<f32> = picture.iter().map(|v| 1.0 - v).collect();
    two.set_rows(&others).expect("rows for the next step");
    assert!(bits(&block_on(two.read_step()).expect("its outputs").logits) == expected.0);
}
