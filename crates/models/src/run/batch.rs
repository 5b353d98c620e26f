//! Continuous batching: answers to several prompts in the making, which come and go while others go on.

use std::collections::VecDeque;

use super::generate::{Finish, GenerateOptions, Piece, Stats, common};
use super::runner::Runner;
use super::shift::shifted;
use super::writer::Writer;
use crate::error::ModelError;
use chaski_text::Sampler;
use chaski_text::Tokenizer;

/// Names a request of a [`Batch`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(u64);

/// What became of a request.
#[derive(Debug)]
pub enum BatchEvent {
    /// Its answer goes on.
    Piece {
        /// The request.
        id: RequestId,
        /// Text that is certain now.
        piece: Piece,
    },
    /// Its answer has ended.
    Finished {
        /// The request.
        id: RequestId,
        /// Why.
        finish: Finish,
        /// Counts and times.
        stats: Stats,
    },
    /// It could not go on; the others can.
    Failed {
        /// The request.
        id: RequestId,
        /// Why.
        error: ModelError,
    },
}

/// Answers to several prompts at once, as many as the runner has sequences; others wait for their turn.
///
/// Each step takes a piece of one prompt and a token of every answer, so that neither waits for the other. A prompt that
/// begins like a sequence there is, whether it is in use or not, shares its pages: [`Stats::n_cached`] says how many tokens
/// that saved. The processor chooses tokens, from logits that are read back for all answers together.
pub struct Batch<'a> {
    runner: &'a mut Runner,
    tokenizer: &'a Tokenizer,
    waiting: VecDeque<(RequestId, Vec<u32>, Writer)>,
    /// What each sequence works at.
    places: Vec<Place>,
    n_request: u64,
    /// What ended the last step, after events that had come before.
    trouble: Option<ModelError>,
}

/// A sequence of the runner.
struct Place {
    answer: Option<Answer>,
    /// The request that had it last: the older, the sooner it is taken.
    last: u64,
}

/// A request that has a sequence.
struct Answer {
    id: RequestId,
    prompt: Vec<u32>,
    /// Tokens of the prompt that need not be run.
    n_cached: usize,
    writer: Writer,
    sampler: Sampler,
    /// The token that was chosen and has not been run, once the prompt has.
    next: Option<u32>,
}

impl Answer {
    /// Makes room in the context, which is full, if that was asked for and can be: what is left of it is a prompt.
    fn shift(&mut self, runner: &mut Runner, at: usize, last: u32) -> bool {
        let all: Vec<u32> = runner.history_of(at).iter().copied().chain([last]).collect();
        let Some(left) = self.writer.options.shift.and_then(|keep| shifted(&all, keep)) else { return false };
        self.writer.stats.n_forgotten += all.len() - left.len();
        runner.select(at);
        self.n_cached = runner.reusable(common(&all, &left).min(left.len() - 1));
        runner.truncate(self.n_cached);
        self.prompt = left;
        true
    }
}

impl<'a> Batch<'a> {
    /// Begins with nothing to do.
    pub fn new(runner: &'a mut Runner, tokenizer: &'a Tokenizer) -> Self {
        let places = (0..runner.n_seq()).map(|_| Place { answer: None, last: 0 }).collect();
        Batch { runner, tokenizer, waiting: VecDeque::new(), places, n_request: 0, trouble: None }
    }

    /// Asks for an answer to a prompt: all tokens of the sequence. [`GenerateOptions::interval`] and
    /// [`GenerateOptions::speculate`] are without effect.
    ///
    /// # Errors
    /// [`ModelError`] for unknown tokens, an empty prompt or one longer than the context, or a grammar that cannot be used.
    pub fn submit(&mut self, prompt: &[u32], options: GenerateOptions) -> Result<RequestId, ModelError> {
        if prompt.is_empty() {
            return Err(ModelError::ShortText { found: 0, what: "a generation", needed: 1 });
        }
        self.runner.check_prompt(0, prompt)?;
        if let Some(scales) = &options.lora {
            self.runner.check_scales(scales)?;
        }
        let writer = Writer::new(self.tokenizer, options)?;
        self.n_request += 1;
        let id = RequestId(self.n_request);
        self.waiting.push_back((id, prompt.to_vec(), writer));
        Ok(id)
    }

    /// Gives a request up; whether it was still there. What it has run stays in the cache.
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let n_waiting = self.waiting.len();
        self.waiting.retain(|w| w.0 != id);
        let place = self.places.iter_mut().find(|p| p.answer.as_ref().is_some_and(|a| a.id == id));
        let had_place = place.map(|p| p.answer = None).is_some();
        had_place || self.waiting.len() < n_waiting
    }

    /// Requests that have not ended.
    pub fn n_open(&self) -> usize {
        self.waiting.len() + self.places.iter().filter(|p| p.answer.is_some()).count()
    }

    /// The runner, whose sequences are those of the answers.
    pub fn runner(&self) -> &Runner {
        self.runner
    }

    /// Works for a fraction of a second: at a piece of a prompt, and at a token of every answer. Without requests it returns
    /// at once.
    ///
    /// # Errors
    /// Device errors; then no request can go on. What came about before is told first.
    pub async fn step(&mut self) -> Result<Vec<BatchEvent>, ModelError> {
        if let Some(e) = self.trouble.take() {
            return Err(e);
        }
        let mut events = Vec::new();
        self.seat(&mut events);
        let worked = match self.prompt_piece(&mut events).await {
            Ok(()) => self.tokens(&mut events).await,
            e => e,
        };
        match worked {
            Err(e) if events.is_empty() => Err(e),
            worked => {
                self.trouble = worked.err();
                Ok(events)
            }
        }
    }

    /// Gives waiting requests the sequences that are free.
    fn seat(&mut self, events: &mut Vec<BatchEvent>) {
        while let Some(at) = self.waiting.front().and_then(|w| self.place_for(&w.1, self.scales_of(&w.2))) {
            let Some((id, prompt, mut writer)) = self.waiting.pop_front() else { return };
            if let Some(finish) = writer.finish {
                events.push(BatchEvent::Finished { id, finish, stats: writer.stats });
                continue;
            }
            // At least one token is run, for its logits.
            let reuse = |history: &[u32]| common(history, &prompt).min(prompt.len() - 1);
            self.runner.select(at);
            let scales = self.scales_of(&writer).to_vec();
            if let Err(error) = self.runner.adapt(&scales) {
                events.push(BatchEvent::Failed { id, error });
                continue;
            }
            let own = self.runner.reusable(reuse(self.runner.history_of(at)));
            let alike = |s: &usize| *s != at && self.runner.adapter_scales_of(*s) == scales;
            let others = (0..self.places.len()).filter(alike);
            let best = others.map(|s| (reuse(self.runner.history_of(s)), s)).max();
            let shared = match best {
                Some((n, other)) if n > own => self.runner.share(other, at, n),
                _ => 0,
            };
            let cached = if shared > 0 { shared } else { own };
            self.runner.truncate(cached);
            (writer.stats.n_prompt, writer.stats.n_cached) = (prompt.len() - cached, cached);
            let mut sampler = Sampler::new(writer.options.sampler.clone(), self.tokenizer);
            // Penalties look back on the prompt, too.
            prompt.iter().for_each(|t| sampler.accept(*t));
            let answer = Answer { id, prompt, n_cached: cached, writer, sampler, next: None };
            self.places[at] = Place { answer: Some(answer), last: id.0 };
        }
    }

    /// How much each adapter counts for a request.
    fn scales_of<'b>(&'b self, writer: &'b Writer) -> &'b [f32] {
        writer.options.lora.as_deref().unwrap_or(self.runner.adapter_scales())
    }

    /// The free sequence that a prompt goes on with, most of which it begins with; else the one that has not been used for
    /// longest, since what it begins with can be shared from others.
    fn place_for(&self, prompt: &[u32], scales: &[f32]) -> Option<usize> {
        let free = self.places.iter().enumerate().filter(|(_, p)| p.answer.is_none());
        let key = |at: usize, p: &Place| {
            let history = self.runner.history_of(at);
            let same = common(history, prompt);
            let goes_on = 2 * same > history.len() && self.runner.adapter_scales_of(at) == scales;
            (if goes_on { same } else { 0 }, std::cmp::Reverse(p.last))
        };
        free.max_by_key(|(at, p)| key(*at, p)).map(|(at, _)| at)
    }

    /// A piece of the oldest prompt that has not been run, and its first token after the last.
    async fn prompt_piece(&mut self, events: &mut Vec<BatchEvent>) -> Result<(), ModelError> {
        let open = self.places.iter().enumerate().filter_map(|(at, p)| Some((at, p.answer.as_ref()?)));
        let Some((at, _)) = open.filter(|(_, a)| a.next.is_none()).min_by_key(|(_, a)| a.id) else {
            return Ok(());
        };
        let Some(answer) = &mut self.places[at].answer else { return Ok(()) };
        self.runner.select(at);
        self.runner.room().await?;
        let done = self.runner.history().len() - answer.n_cached;
        let rest = &answer.prompt[answer.n_cached..];
        if self.runner.prefill_piece(rest, done).await? == rest.len() {
            let logits = self.runner.logits().await?;
            self.choose(at, logits, events);
        }
        Ok(())
    }

    /// A token of every answer.
    async fn tokens(&mut self, events: &mut Vec<BatchEvent>) -> Result<(), ModelError> {
        let n_ctx = self.runner.n_ctx() as usize;
        let mut columns = Vec::new();
        for at in 0..self.places.len() {
            let Some(answer) = &mut self.places[at].answer else { continue };
            let Some(token) = answer.next else { continue };
            if self.runner.history_of(at).len() < n_ctx {
                columns.push((at, token));
            } else if answer.shift(self.runner, at, token) {
                answer.next = None;
            } else {
                let last = answer.writer.end(Finish::Context);
                self.pass(at, last, events);
            }
        }
        let logits = self.runner.eval_columns(&columns).await?;
        let n_vocab = self.runner.n_vocab() as usize;
        for ((at, _), logits) in columns.into_iter().zip(logits.chunks_exact(n_vocab.max(1))) {
            self.choose(at, logits.to_vec(), events);
        }
        Ok(())
    }

    /// Chooses the next token of an answer.
    fn choose(&mut self, at: usize, mut logits: Vec<f32>, events: &mut Vec<BatchEvent>) {
        let Some(answer) = &mut self.places[at].answer else { return };
        match answer.writer.choose(&mut answer.sampler, &mut logits) {
            Ok((token, logprobs)) => {
                answer.next = Some(token);
                let piece = answer.writer.accept(self.tokenizer, token, logprobs);
                self.pass(at, piece, events);
            }
            Err(error) => {
                events.push(BatchEvent::Failed { id: answer.id, error });
                self.places[at].answer = None;
            }
        }
    }

    /// Passes a piece on, and the end if it is there.
    fn pass(&mut self, at: usize, piece: Piece, events: &mut Vec<BatchEvent>) {
        let Some(answer) = &mut self.places[at].answer else { return };
        let id = answer.id;
        events.push(BatchEvent::Piece { id, piece });
        if answer.writer.finish.is_none()
            && let Some(last) = answer.writer.due_end()
        {
            events.push(BatchEvent::Piece { id, piece: last });
        }
        if let Some(finish) = answer.writer.finish {
            events.push(BatchEvent::Finished { id, finish, stats: answer.writer.stats.clone() });
            self.places[at].answer = None;
        }
    }
}
