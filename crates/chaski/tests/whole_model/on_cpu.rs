//! Serving on the CPU backend: it samples from logits, and computes those of no other rows.

use chaski::errors::ModelError;
use chaski::serve::Request;
use chaski::steps::{Change, Executor, Limits, Outputs, Runner, RunnerConfig, Start, Step, Want};
use chaski::{GenerateOptions, Grammar, SamplerParams};
use chaski_models::serve::serve;
use chaski_models::{Model, Target};
use chaski_text::Sampler;

use crate::common::{Timed, block_on, build, default_engine, default_model, greedy, read};
use crate::serve::{Outcome, outcome};

/// A runner, and counts of its rows.
struct Counted {
    runner: Runner,
    n_row: usize,
    /// Rows that want logits, and rows of logits that came.
    n_wanted: usize,
    n_logits: usize,
}

impl Executor for Counted {
    fn limits(&self) -> Limits {
        self.runner.limits()
    }

    fn n_vocab(&self) -> usize {
        Executor::n_vocab(&self.runner)
    }

    fn lora(&self, asked: Option<&[f32]>) -> Result<Vec<f32>, ModelError> {
        self.runner.lora(asked)
    }

    fn can_choose(&self, sampler: &Sampler) -> Result<(), &'static str> {
        self.runner.can_choose(sampler)
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), ModelError> {
        self.runner.start(start)
    }

    fn change(&mut self, change: &Change) -> Result<(), ModelError> {
        self.runner.change(change)
    }

    fn submit(&mut self, step: &Step) -> Result<(), ModelError> {
        self.n_row += step.rows.len();
        self.n_wanted += step.rows.iter().filter(|row| row.want == Want::Logits).count();
        assert!(step.rows.iter().all(|row| matches!(row.want, Want::Logits | Want::Nothing)));
        self.runner.submit(step)
    }

    fn mask(&mut self, masks: &[u32]) -> Result<(), ModelError> {
        self.runner.mask(masks)
    }

    async fn read(&mut self) -> Result<Outputs, ModelError> {
        let outputs = self.runner.read().await?;
        self.n_logits += outputs.logits.len() / Executor::n_vocab(self);
        Ok(outputs)
    }

    fn forget(&mut self) {
        self.runner.forget();
    }

    fn rows(&self, is_alone: bool) -> usize {
        self.runner.rows(is_alone)
    }

    fn max_under_way(&self) -> usize {
        self.runner.max_under_way()
    }
}

/// Several requests at once, with and without grammars, get the texts of a GPU that chooses under masks itself.
#[test]
fn the_cpu_computes_logits_of_the_tokens_that_it_samples_alone() {
    let _t = Timed::new("serving on the CPU");
    let drawn = SamplerParams { seed: Some(5), temp: 1.1, top_k: 30, ..SamplerParams::default() };
    let words = Grammar::Regex("[A-Z][a-z]{2,9}( [a-z]{2,9}){3,9}[.!]".into());
    let requests: Vec<(String, GenerateOptions)> = (0..6)
        .map(|i| {
            let sampler = if i % 2 == 0 { SamplerParams::greedy() } else { drawn.clone() };
            let grammar = (i % 3 != 1).then(|| words.clone());
            let options = GenerateOptions { sampler, grammar, ..greedy(7 + i) };
            (format!("Once upon a time there was a dog number {i} that"), options)
        })
        .collect();
    let gpu = build(default_engine().sequences(3)).spawn().expect("a thread");
    let ask = |(prompt, options): &(String, GenerateOptions)| {
        outcome(gpu.generate(prompt, options.clone()).expect("a request that fits"))
    };
    let expected: Vec<Outcome> = requests.iter().map(ask).collect();
    assert!(expected.iter().all(|e| e.on_cpu.is_none()), "the GPU chooses");

    let source = chaski::gguf::MemorySource::new("storyteller.gguf", read(&default_model()));
    let no_sibling = |name: &str| {
        Err(chaski::gguf::SourceError::Other { name: name.to_owned(), source: "one file".into() })
    };
    let model = block_on(Model::open(source, no_sibling)).expect("a model");
    let config = RunnerConfig { n_seq: 3, n_ctx: 256, ..RunnerConfig::default() };
    let runner = block_on(Runner::load(&model, &Target::Cpu, &config, |_| {})).expect("it fits");
    let counted = Counted { runner, n_row: 0, n_wanted: 0, n_logits: 0 };
    let (handle, mut driver) = serve(counted, model.shared_text().0, 10).expect("a service");
    let encode = |text: &str| {
        let (tokenizer, _) = model.shared_text();
        let (special, parse) = (chaski::text::AddSpecial::Yes, chaski::text::ParseSpecial::Yes);
        tokenizer.encode(text, special, parse).expect("the text is spelled")
    };
    let prompts: Vec<Vec<u32>> = requests.iter().map(|(prompt, _)| encode(prompt)).collect();
    let ask = |(prompt, (_, options)): (&Vec<u32>, &(String, GenerateOptions))| {
        handle.generate(Request::new(prompt.clone(), options.clone())).expect("a request that fits")
    };
    let answers: Vec<_> = prompts.iter().zip(&requests).map(ask).collect();
    while block_on(driver.turn()).expect("the CPU runs") {}
    let mut n_token = 0;
    for (i, (answer, expected)) in answers.into_iter().zip(&expected).enumerate() {
        let found = outcome(answer);
        assert_eq!((&found.text, &found.tokens), (&expected.text, &expected.tokens), "request {i}");
        assert_eq!(found.on_cpu, Some("the model runs on it"), "request {i}");
        n_token += found.tokens.len();
    }
    let Counted { n_row, n_wanted, n_logits, .. } = *driver.executor();
    assert_eq!(n_logits, n_wanted);
    // One more for each answer that ends with a token which is no part of it.
    assert!((n_token..=n_token + requests.len()).contains(&n_wanted), "{n_wanted} of {n_token} tokens");
    assert!(n_row > n_wanted + 30, "{n_row} rows of prompts and answers, {n_wanted} with logits");
}
