//! Requests, and their outcomes alone and in company.

use std::cell::{Cell, RefCell};

use chaski_models::serve::{Answer, EmbedRequest, Event, Load, Readings, Request, ServeError, serve};
use chaski_models::{Embedding, Finish, GenerateOptions, Pooling};
use chaski_schedule::Limits;
use chaski_text::{Grammar, SamplerParams};

use crate::fake::{Fake, Habits, SCALES, Yield, hidden, tokenizer};
use crate::tasks::run_all;

/// Capacity of the queue where nothing is refused.
pub(crate) const MAX_WAITING: usize = 100;

/// A request, with the time of its arrival and of its caller's departure.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) request: Request,
    /// Turns of its task before it arrives.
    pub(crate) delay: usize,
    /// The caller leaves after this many turns or events; `None`: stays.
    pub(crate) leaves: Option<usize>,
}

pub(crate) fn greedy() -> GenerateOptions {
    GenerateOptions { sampler: SamplerParams::greedy(), ..GenerateOptions::default() }
}

pub(crate) fn seeded(seed: u32) -> GenerateOptions {
    let sampler = SamplerParams { seed: Some(seed), ..SamplerParams::default() };
    GenerateOptions { sampler, ..GenerateOptions::default() }
}

/// Options with a sampler that the fake does not support.
pub(crate) fn on_cpu(seed: u32) -> GenerateOptions {
    let sampler =
        SamplerParams { seed: Some(seed), top_k: 0, penalty_repeat: 1.3, ..SamplerParams::default() };
    GenerateOptions { sampler, ..GenerateOptions::default() }
}

/// A grammar for answers.
pub(crate) const GRAMMAR: &str = "(ab|c[d-h]+i){2,9}";

/// Under masks, on the device.
pub(crate) fn masked(seed: u32) -> GenerateOptions {
    let options = if seed % 2 == 0 { greedy() } else { seeded(seed) };
    GenerateOptions { grammar: Some(Grammar::Regex(GRAMMAR.into())), ..options }
}

/// From logits, by a sampler that the fake lacks.
pub(crate) fn constrained() -> GenerateOptions {
    GenerateOptions { grammar: Some(Grammar::Regex(GRAMMAR.into())), ..on_cpu(3) }
}

/// Texts to embed, with the time of their arrival and of their caller's departure.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    pub(crate) request: EmbedRequest,
    pub(crate) pooling: Pooling,
    pub(crate) delay: usize,
    /// The caller leaves after this many turns; `None`: stays.
    pub(crate) leaves: Option<usize>,
}

impl Texts {
    /// Their embeddings alone.
    fn alone(&self) -> Vec<Embedding> {
        let lora = self.request.lora.as_deref().unwrap_or(&SCALES);
        let embedding = |text: &Vec<u32>| {
            let mut rows = (1..=text.len()).map(|n| hidden(&text[..n], lora).to_vec());
            let n = text.len() as f64;
            let vectors = match self.pooling {
                Pooling::None => rows.collect(),
                Pooling::Cls => vec![rows.next().expect("a row")],
                Pooling::Last => vec![rows.next_back().expect("a row")],
                Pooling::Rank => unreachable!("the model has no head"),
                Pooling::Mean => {
                    let sum = rows.fold([0.0; 2], |s, r| [s[0] + f64::from(r[0]), s[1] + f64::from(r[1])]);
                    vec![sum.map(|s| (s / n) as f32).to_vec()]
                }
                other => unreachable!("no case has {other}"),
            };
            Embedding { n_token: text.len(), vectors }
        };
        self.request.texts.iter().map(embedding).collect()
    }
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) tokens: Vec<u32>,
    pub(crate) finish: Option<Finish>,
    pub(crate) n_forgotten: usize,
    pub(crate) error: Option<String>,
}

impl Text {
    /// Adds an event; `false` after the last.
    fn push(&mut self, event: Event) -> bool {
        assert_eq!((self.finish, &self.error), (None, &None), "nothing follows the end");
        match event {
            Event::Started { .. } => assert_eq!(*self, Text::default(), "the start comes first"),
            Event::Prompt { n_sent } => {
                assert!(n_sent > 0 && *self == Text::default(), "the prompt comes before the answer");
            }
            Event::Piece(piece) => {
                self.text.push_str(&piece.text);
                self.tokens.extend(piece.token);
            }
            Event::Finished { finish, stats } => {
                (self.finish, self.n_forgotten) = (Some(finish), stats.n_dropped);
                // The token that ends an answer is not part of it.
                assert!((0..=1).contains(&(stats.n_token - self.tokens.len())));
                return false;
            }
            Event::Failed { error } => {
                self.error = Some(error.to_string());
                return false;
            }
            other => unreachable!("{other:?}"),
        }
        true
    }
}

/// Reads an answer to its end.
pub(crate) async fn read(mut answer: Answer) -> Text {
    let mut text = Text::default();
    while let Some(event) = answer.next().await {
        if !text.push(event) {
            assert!(answer.next().await.is_none());
        }
    }
    text
}

/// Final state of a service whose callers are gone.
pub(crate) struct Left {
    pub(crate) texts: Vec<Text>,
    /// Embeddings of texts, unless their caller has left.
    pub(crate) embeddings: Vec<Option<Result<Vec<Embedding>, String>>>,
    pub(crate) executor: Result<Fake, ServeError>,
    pub(crate) load: Load,
}

/// Runs all requests on one service.
pub(crate) fn run(seed: u64, limits: Limits, habits: Habits, cases: &[Case]) -> Left {
    run_beside(seed, limits, habits, cases, &[])
}

/// Runs all requests on one service, and embeds texts beside them.
pub(crate) fn run_beside(seed: u64, limits: Limits, habits: Habits, cases: &[Case], asked: &[Texts]) -> Left {
    let (handle, driver) =
        serve(Fake::new(limits, habits), tokenizer(), MAX_WAITING).expect("sizes that fit");
    let texts = RefCell::new(vec![Text::default(); cases.len()]);
    let (end, load) = (RefCell::new(None), RefCell::new(Load::default()));
    let embeddings = RefCell::new(vec![None; asked.len()]);
    let n_open = Cell::new(cases.len() + asked.len());
    let callers = cases.iter().enumerate().map(|(i, case)| {
        let (handle, texts, n_open) = (handle.clone(), &texts, &n_open);
        async move {
            for _ in 0..case.delay {
                Yield(false).await;
            }
            match handle.generate(case.request.clone()) {
                Err(e) => texts.borrow_mut()[i].error = Some(e.to_string()),
                Ok(answer) => {
                    let mut text = Text::default();
                    read_some(answer, case.leaves, &mut text).await;
                    texts.borrow_mut()[i] = text;
                }
            }
            n_open.set(n_open.get() - 1);
        }
    });
    let embedders = asked.iter().enumerate().map(|(i, asked)| {
        let (handle, embeddings, n_open) = (handle.clone(), &embeddings, &n_open);
        async move {
            for _ in 0..asked.delay {
                Yield(false).await;
            }
            let found = match handle.embed(asked.request.clone(), asked.pooling) {
                Err(e) => Some(Err(e.to_string())),
                Ok(readings) => wait_some(readings, asked.leaves).await,
            };
            embeddings.borrow_mut()[i] = found;
            n_open.set(n_open.get() - 1);
        }
    });
    let mut tasks: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
    for caller in callers {
        tasks.push(Box::pin(caller));
    }
    for embedder in embedders {
        tasks.push(Box::pin(embedder));
    }
    tasks.push(Box::pin(async {
        // The driver notices callers after they have left; a failed one notices nothing.
        let is_busy = |load: Load| load.n_waiting + load.n_running > 0;
        while n_open.get() > 0 || is_busy(handle.load()) && end.borrow().is_none() {
            Yield(false).await;
        }
        *load.borrow_mut() = handle.load();
        drop(handle);
    }));
    tasks.push(Box::pin(async { *end.borrow_mut() = Some(driver.run().await) }));
    run_all(seed, tasks);
    let executor = end.into_inner().expect("the driver ended");
    let (texts, embeddings) = (texts.into_inner(), embeddings.into_inner());
    Left { texts, embeddings, executor, load: load.into_inner() }
}

/// Waits for embeddings until the caller leaves.
async fn wait_some(
    mut readings: Readings<Embedding>,
    leaves: Option<usize>,
) -> Option<Result<Vec<Embedding>, String>> {
    for _ in 0..leaves.unwrap_or(usize::MAX) {
        let mut next = std::pin::pin!(&mut readings);
        let found = std::future::poll_fn(|cx| std::task::Poll::Ready(next.as_mut().poll(cx))).await;
        if let std::task::Poll::Ready(found) = found {
            return Some(found.map_err(|e| e.to_string()));
        }
        Yield(false).await;
    }
    None
}

/// Reads an answer until the caller leaves.
async fn read_some(mut answer: Answer, leaves: Option<usize>, text: &mut Text) {
    let Some(n) = leaves else {
        while let Some(event) = answer.next().await {
            text.push(event);
        }
        return;
    };
    for _ in 0..n {
        // Half of the turns wait for nothing, so that callers also leave in the middle of prompts.
        Yield(false).await;
        let mut next = std::pin::pin!(answer.next());
        let event = std::future::poll_fn(|cx| std::task::Poll::Ready(next.as_mut().poll(cx))).await;
        if let std::task::Poll::Ready(Some(event)) = event {
            text.push(event);
        }
    }
}

/// The answer of a request alone, one step at a time.
pub(crate) fn alone(request: &Request, n_ctx: usize) -> Text {
    let limits =
        Limits { n_seq: 1, n_ctx, page: 8, n_page: n_ctx.div_ceil(8), max_ahead: 0, ..crate::fake::limits() };
    let case = Case { request: request.clone(), delay: 0, leaves: None };
    let mut left = run(0, limits, Habits::default(), &[case]);
    left.texts.remove(0)
}

/// Compares embeddings with those of each text alone.
pub(crate) fn check_texts(asked: &[Texts], left: &Left) {
    for (asked, found) in asked.iter().zip(&left.embeddings) {
        match found {
            Some(found) => assert_eq!(*found, Ok(asked.alone()), "{asked:?}"),
            None => assert!(asked.leaves.is_some(), "{asked:?} has no end"),
        }
    }
}

/// Compares outcomes with those of each request alone, without drafts.
pub(crate) fn check(cases: &[Case], left: &Left, n_ctx: usize) {
    for (case, found) in cases.iter().zip(&left.texts) {
        let mut request = case.request.clone();
        request.options.speculate = None;
        let mut expected = alone(&request, n_ctx);
        let mut found = found.clone();
        if case.request.options.speculate.is_some() {
            // The CPU says more about logits that are not finite.
            for text in [&mut expected, &mut found] {
                text.error = text.error.take().map(|_| "an error".into());
            }
        }
        let has_left = found.finish.is_none() && found.error.is_none() && case.leaves.is_some();
        if has_left {
            assert!(expected.text.starts_with(&found.text), "{case:?}: {found:?} is not {expected:?}");
            assert!(expected.tokens.starts_with(&found.tokens), "{case:?}: {found:?} is not {expected:?}");
        } else {
            assert_eq!(found, expected, "{case:?}");
        }
    }
}
