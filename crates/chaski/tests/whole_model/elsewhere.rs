//! A model elsewhere: an executor whose calls go through a channel, to a thread that owns the model, as over a network.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

use chaski::errors::ModelError;
use chaski::kernels::FeatureSet;
use chaski::serve::{Embeddings, Request};
use chaski::steps::{
    Change, Executor, Input, Limits, Outputs, Row, RowInput, Runner, RunnerConfig, Start, Step, Want,
};
use chaski::{GenerateOptions, KvType, SamplerParams};
use chaski_models::Target;
use chaski_models::serve::{Answer, serve};
use chaski_text::Sampler;
use futures_channel::oneshot;

use crate::archs::Fixture;
use crate::common::{Timed, block_on, full, greedy, shared_gpu};
use crate::rows::{TestModel, embeddings, opened};
use crate::serve::outcome;

type Read = Result<Outputs, ModelError>;

/// A call as plain data.
enum Call {
    Start { seq: u32, sampler: Option<Box<Sampler>>, tokens: Vec<u32>, n_drawn: usize, lora: Vec<f32> },
    Change(Change),
    Submit(Step),
    Mask(Vec<u32>),
    Read(oneshot::Sender<Read>),
    Forget,
}

/// The model's side. An error of a call that nobody waits for is that of the next readback.
fn work(mut runner: Runner, calls: &Receiver<Call>) {
    let mut failed: VecDeque<ModelError> = VecDeque::new();
    while let Ok(call) = calls.recv() {
        let done = match call {
            Call::Start { seq, sampler, tokens, n_drawn, lora } => {
                let (sampler, tokens, lora) = (sampler.as_deref(), &tokens[..], &lora[..]);
                runner.start(Start { seq, sampler, tokens, n_drawn, lora })
            }
            Call::Change(change) => runner.change(&change),
            Call::Submit(step) => runner.submit(&step),
            Call::Mask(masks) => runner.mask(&masks),
            Call::Read(reply) => {
                let found = failed.pop_front().map_or_else(|| block_on(runner.read()), Err);
                // A caller that is gone needs no answer.
                let _ = reply.send(found);
                Ok(())
            }
            Call::Forget => {
                runner.forget();
                Ok(())
            }
        };
        failed.extend(done.err());
    }
}

/// The caller's side: it has no model, only what the other side said about it once.
struct Elsewhere {
    calls: Sender<Call>,
    limits: Limits,
    n_vocab: usize,
    input: RowInput,
    rows: usize,
    /// The device chooses by chains that it knows; the CPU chooses by none.
    is_gpu: bool,
}

impl Elsewhere {
    fn new(runner: Runner) -> Self {
        let (calls, received) = channel();
        let (limits, n_vocab, input) = (runner.limits(), Executor::n_vocab(&runner), runner.row_input());
        let (rows, is_gpu) = (runner.rows(true), runner.gpu().is_some());
        std::thread::spawn(move || work(runner, &received));
        Elsewhere { calls, limits, n_vocab, input, rows, is_gpu }
    }

    fn call(&self, call: Call) -> Result<(), ModelError> {
        self.calls.send(call).expect("the other side lives as long as this one");
        Ok(())
    }
}

impl Executor for Elsewhere {
    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    fn row_input(&self) -> RowInput {
        self.input
    }

    fn lora(&self, asked: Option<&[f32]>) -> Result<Vec<f32>, ModelError> {
        assert!(asked.is_none(), "the model has no LoRA");
        Ok(Vec::new())
    }

    fn can_choose(&self, _: &Sampler) -> Result<(), &'static str> {
        if self.is_gpu { Ok(()) } else { Err("the CPU has no sampler kernels") }
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), ModelError> {
        let Start { seq, sampler, tokens, n_drawn, lora } = start;
        let sampler = sampler.cloned().map(Box::new);
        self.call(Call::Start { seq, sampler, tokens: tokens.to_vec(), n_drawn, lora: lora.to_vec() })
    }

    fn change(&mut self, change: &Change) -> Result<(), ModelError> {
        self.call(Call::Change(change.clone()))
    }

    fn submit(&mut self, step: &Step) -> Result<(), ModelError> {
        self.call(Call::Submit(step.clone()))
    }

    fn mask(&mut self, masks: &[u32]) -> Result<(), ModelError> {
        self.call(Call::Mask(masks.to_vec()))
    }

    async fn read(&mut self) -> Read {
        let (reply, answer) = oneshot::channel();
        self.call(Call::Read(reply))?;
        answer.await.expect("the other side answers")
    }

    fn forget(&mut self) {
        self.call(Call::Forget).expect("a call that cannot fail");
    }

    fn rows(&self, _is_alone: bool) -> usize {
        self.rows
    }

    fn max_under_way(&self) -> usize {
        1
    }
}

fn runner(model: &TestModel, target: &Target) -> Runner {
    let sizes = RunnerConfig { n_ctx: 128, n_seq: 3, chunk: 24, rows: true, ..RunnerConfig::default() };
    let config = RunnerConfig { kv: KvType::F32, ..sizes };
    block_on(Runner::load(model, target, &config, |_| {})).expect("a fixture loads")
}

/// Answers of requests that are all open at once.
fn answers<E: Executor>(executor: E, model: &TestModel, requests: &[Request]) -> Vec<Vec<u32>> {
    let (handle, mut driver) = serve(executor, model.shared_text().0, 20).expect("a service");
    let ask = |request: &Request| handle.generate(request.clone()).expect("a request that fits");
    let answers: Vec<Answer> = requests.iter().map(ask).collect();
    while block_on(driver.turn()).expect("the device runs") {}
    let tokens = |answer| {
        let found = outcome(answer);
        assert_eq!(found.failed, None);
        found.tokens
    };
    answers.into_iter().map(tokens).collect()
}

#[test]
fn a_model_behind_a_channel_gives_the_same_answers() {
    let _t = Timed::new("a model elsewhere");
    let drawn = SamplerParams { seed: Some(4), top_k: 20, ..SamplerParams::default() };
    let penalised = SamplerParams { penalty_repeat: 1.2, ..drawn.clone() };
    // Rows, cache, and state outside pages.
    for name in ["llama-gqa-rope_freqs", "qwen35-dense"] {
        let f = Fixture::load(name);
        let model = opened(&f);
        let image = embeddings(&f, &model, &f.tokens[20..32], false);
        let image = Embeddings::new(image, model.config().n_embd as usize).expect("rows");
        let requests: Vec<Request> = (0..7)
            .map(|i: usize| {
                let sampler = [SamplerParams::greedy(), drawn.clone(), penalised.clone()][i % 3].clone();
                let options = GenerateOptions { sampler, ..greedy(5 + i) };
                let prompt: Vec<u32> =
                    f.tokens.iter().cycle().skip(i / 2).take(9 + 11 * i).copied().collect();
                let embeddings = if i == 3 || i == 5 { vec![(2, image.clone())] } else { Vec::new() };
                Request { embeddings, ..Request::new(prompt, options) }
            })
            .collect();
        // By default the first on a GPU, too.
        let n_device = if full() || name.starts_with("llama") { 2 } else { 1 };
        let targets = [Target::Cpu, Target::Gpu(shared_gpu(FeatureSet::Sg, false))];
        for target in targets.into_iter().take(n_device) {
            let expected = answers(runner(&model, &target), &model, &requests);
            assert!(expected.iter().all(|tokens| !tokens.is_empty()));
            let found = answers(Elsewhere::new(runner(&model, &target)), &model, &requests);
            assert_eq!(found, expected, "{name}");
        }
    }
}

/// A wrong step is an error of its readback, and the other side goes on.
#[test]
fn errors_come_back() {
    let f = Fixture::load("llama-gqa-rope_freqs");
    let mut executor = Elsewhere::new(runner(&opened(&f), &Target::Cpu));
    let step = Step { embeddings: vec![0.0; 3], ..Step::default() };
    executor.submit(&step).expect("it is sent");
    let e = block_on(executor.read()).expect_err("part of a row");
    assert!(e.to_string().starts_with("values of rows: 3, but must be "), "{e}");
    executor.submit(&Step::default()).expect("it is sent");
    assert!(matches!(block_on(executor.read()), Err(ModelError::NoRows)));
    let row = Row { seq: 0, pos: 0, components: None, input: Input::Token(1), want: Want::Choose };
    executor
        .submit(&Step { rows: vec![row], repeat: 1, n_planned: 1, ..Step::default() })
        .expect("it is sent");
    assert_eq!(block_on(executor.read()).expect("a token").chosen.len(), 1);
}
