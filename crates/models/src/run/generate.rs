//! Generation: tokens to text, with several tokens under way on the device.

use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use chaski_runtime::gpu::{Choose, GpuModel, Ticket};
use web_time::Instant;

use super::device_chain::device_chain;
use super::runner::{Device, Runner};
use super::shift::shifted;
use super::speculate::{self, Speculation};
use super::suspend::Suspended;
use super::writer::Writer;
use crate::error::ModelError;
use chaski_text::Grammar;
use chaski_text::{Draws, Logprobs, SampleError, Sampler, SamplerParams};
use chaski_text::{RenderSpecial, Tokenizer};

/// How to generate.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// Tokens at most; `None` until the context is full.
    pub max_tokens: Option<usize>,
    /// How tokens are chosen.
    pub sampler: SamplerParams,
    /// Texts that end the answer; they are not part of it.
    pub stop: Vec<String>,
    /// Tokens that run on the device between two readbacks; 0 adapts to the device's speed. Without effect if the
    /// processor chooses the tokens ([`Generation::on_processor`]).
    pub interval: u32,
    /// What the text must be. The processor then chooses the tokens, and each is read back before the next runs.
    pub grammar: Option<Grammar>,
    /// Give the logarithm of every token's probability, and of so many most probable tokens. The processor then
    /// chooses the tokens, one at a time.
    pub logprobs: Option<usize>,
    /// Guess tokens and check several at once, where memory takes most of the time: exact, and faster where the guesses are
    /// good, as in text that repeats itself. The processor then chooses the tokens. Without effect in models with recurrent
    /// state, which cannot be set back by a few tokens.
    pub speculate: Option<Speculation>,
    /// When the context is full, forget the older half of it but for so many tokens at its beginning, and go on; else the
    /// answer ends ([`Finish::Context`]). What is left is run again as a prompt is, so this takes as long as that.
    pub shift: Option<usize>,
    /// How much each adapter of the model counts for this answer; `None`: as the runner says. A sequence that was made
    /// otherwise is forgotten.
    pub lora: Option<Vec<f32>>,
    /// Show special tokens in the text.
    pub special: RenderSpecial,
    /// Special tokens that are shown in any case, such as the marks of tool calls.
    pub shown: Vec<u32>,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        GenerateOptions {
            max_tokens: None,
            sampler: SamplerParams::default(),
            stop: Vec::new(),
            interval: 0,
            grammar: None,
            logprobs: None,
            speculate: None,
            shift: None,
            lora: None,
            special: RenderSpecial::No,
            shown: Vec::new(),
        }
    }
}

/// Why a generation ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its answer.
    Stop,
    /// A stop text came.
    StopText,
    /// As many tokens as were asked for.
    Length,
    /// The context is full.
    Context,
}

/// A piece of the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Text that is certain now; may be empty while a character or a stop text is incomplete.
    pub text: String,
    /// The token that brought it; `None` for text held back until the end, and without any text once the context was shifted.
    pub token: Option<u32>,
    /// How probable the token was, if that was asked for.
    pub logprobs: Option<Logprobs>,
}

/// Counts and times of a generation.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Tokens of the prompt that had to be run.
    pub n_prompt: usize,
    /// Tokens of the prompt that were in the cache already.
    pub n_cached: usize,
    /// Tokens of the answer.
    pub n_token: usize,
    /// Time until the first token.
    pub first: Duration,
    /// Time from the first token to the last.
    pub rest: Duration,
    /// Submissions to the device.
    pub n_group: usize,
    /// Tokens that were guessed ([`GenerateOptions::speculate`]).
    pub n_guessed: usize,
    /// Of these, tokens that were right.
    pub n_right: usize,
    /// Tokens that were forgotten to make room ([`GenerateOptions::shift`]).
    pub n_forgotten: usize,
}

impl Stats {
    /// Prompt tokens a second, the first token's choice included.
    pub fn prompt_rate(&self) -> f64 {
        self.n_prompt as f64 / self.first.as_secs_f64().max(1e-9)
    }

    /// Answer tokens a second, after the first.
    pub fn token_rate(&self) -> f64 {
        self.n_token.saturating_sub(1) as f64 / self.rest.as_secs_f64().max(1e-9)
    }
}

/// Who chooses the next token.
pub(super) enum Chooser {
    /// The device, without waiting for the processor, as the sampler would; random choices take these numbers.
    Device(Choose, Box<Sampler>, Option<Draws>),
    /// The processor, from logits that are read back for every token, and why.
    Processor(Box<Sampler>, &'static str),
}

impl Chooser {
    /// Tells the sampler of tokens that the device chose in its place.
    pub(super) fn catch_up(&mut self, tokens: &[u32]) {
        if let Chooser::Device(_, sampler, _) = self {
            tokens.iter().for_each(|t| sampler.accept(*t));
            sampler.skip_draws(tokens.len());
        }
    }
}

/// An answer in the making; dropping it ends it.
pub struct Generation<'a> {
    pub(super) runner: &'a mut Runner,
    tokenizer: &'a Tokenizer,
    pub(super) writer: Writer,
    pub(super) chooser: Chooser,
    /// Makes the guesses, if there is one.
    draft: Option<&'a mut Runner>,
    /// Of the token that was chosen last.
    logprobs: Option<Logprobs>,
    /// Tokens that were chosen and nobody has looked at.
    pub(super) chosen: VecDeque<(u32, Option<Logprobs>)>,
    /// All tokens before those that are chosen now, how many of them need not be run, and how many of the others were sent.
    pub(super) prompt: Vec<u32>,
    n_cached: usize,
    at: usize,
    /// Tokens of the answer that are part of the prompt, since the context was full or the device was lost.
    pub(super) n_before: usize,
    /// Groups under way on the device.
    tickets: VecDeque<Ticket>,
    /// Tokens sent or to be had, since the prompt.
    n_sent: usize,
    interval: u32,
    last_group: Instant,
}

/// What a group of tokens should take on the device at most, so that text flows.
const GROUP_TIME: Duration = Duration::from_millis(25);
/// Tokens of a group at most; the ring has room for more.
const MAX_GROUP: u32 = 16;

impl<'a> Generation<'a> {
    /// Starts with a prompt: all tokens of the sequence; what the cache has of them is not run again.
    ///
    /// As much of it is sent to the device as can be done soon; [`Self::next`] sends the rest.
    ///
    /// # Errors
    /// [`ModelError`] for unknown tokens, a prompt longer than the context, or a device that fails.
    pub fn start(
        runner: &'a mut Runner,
        tokenizer: &'a Tokenizer,
        prompt: &[u32],
        mut options: GenerateOptions,
    ) -> Result<Self, ModelError> {
        if prompt.is_empty() {
            return Err(ModelError::ShortText { found: 0, what: "a generation", needed: 1 });
        }
        // What would guess nothing shall not cost anything.
        if options.speculate.is_some_and(|s| s.n_max == 0 || runner.has_state()) {
            options.speculate = None;
        }
        // What can be refused is, before the cache loses anything.
        runner.check_prompt(0, prompt)?;
        let writer = Writer::new(tokenizer, options)?;
        let mut sampler = Sampler::new(writer.options.sampler.clone(), tokenizer);
        // Penalties look back on the prompt, too.
        prompt.iter().for_each(|t| sampler.accept(*t));
        let begun = Suspended { tokens: prompt.to_vec(), writer, sampler, chosen: VecDeque::new() };
        let mut g = Self::resume(runner, tokenizer, begun)?;
        let stats = &mut g.writer.stats;
        (stats.n_prompt, stats.n_cached) = (prompt.len() - g.n_cached, g.n_cached);
        Ok(g)
    }

    /// Goes on with an answer that was interrupted, on a runner of the same model: what comes is what would have come. Where
    /// other hardware chooses the tokens than did before, drawn ones are others.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn resume(
        runner: &'a mut Runner,
        tokenizer: &'a Tokenizer,
        suspended: Suspended,
    ) -> Result<Self, ModelError> {
        let Suspended { tokens: prompt, writer, sampler, chosen } = suspended;
        let scales = writer.options.lora.clone().unwrap_or_else(|| runner.adapter_scales().to_vec());
        runner.check_scales(&scales)?;
        // At least one token is run, for its logits.
        let goes_on = runner.adapter_scales_of(runner.selected()) == scales;
        let begun = if goes_on { common(runner.history(), &prompt) } else { 0 };
        let n_cached = runner.reusable(begun.min(prompt.len() - 1));
        runner.truncate(n_cached);
        runner.adapt(&scales)?;
        let n_before = writer.accepted.len() + chosen.len();
        let chooser = match writer.needs_logits() {
            Some(why) => Chooser::Processor(Box::new(sampler), why),
            None => choose_where(runner, sampler, &prompt)?,
        };
        let is_full = prompt.len() > runner.n_ctx() as usize;
        let mut g = Generation {
            interval: writer.options.interval.clamp(1, MAX_GROUP),
            last_group: Instant::now(),
            // A context that was full when it was interrupted is, still.
            at: if is_full { prompt.len() - n_cached } else { 0 },
            n_sent: usize::from(is_full),
            runner,
            tokenizer,
            writer,
            chooser,
            draft: None,
            logprobs: None,
            chosen,
            prompt,
            n_cached,
            n_before,
            tickets: VecDeque::new(),
        };
        while g.at < g.rest().len() && g.runner.has_room() {
            at_once(g.send_prompt())?;
        }
        Ok(g)
    }

    /// What of the prompt has to be run.
    fn rest(&self) -> &[u32] {
        &self.prompt[self.n_cached..]
    }

    /// Tokens of the answer that are not part of the prompt.
    pub(super) fn answered(&self) -> &[u32] {
        self.writer.accepted.get(self.n_before..).unwrap_or(&[])
    }

    /// Runs some more of the prompt: a piece that takes a fraction of a second. `false` once all of it is under way.
    ///
    /// [`Self::next`] does this by itself; who wants to stop in the middle of a long prompt calls it first, until there
    /// is no more, and drops the generation to stop.
    ///
    /// # Errors
    /// Device errors.
    pub async fn prompt(&mut self) -> Result<bool, ModelError> {
        if self.at < self.rest().len() {
            self.runner.room().await?;
            self.send_prompt().await?;
        }
        Ok(self.at < self.rest().len())
    }

    /// How much of the prompt is under way: tokens sent, of those that have to be run.
    pub fn progress(&self) -> (usize, usize) {
        (self.at, self.rest().len())
    }

    /// Sends a piece of the prompt; after the last one, the choice of the first token.
    async fn send_prompt(&mut self) -> Result<(), ModelError> {
        self.at = self.runner.prefill_piece(&self.prompt[self.n_cached..], self.at).await?;
        let is_whole = self.at == self.rest().len();
        if let (Chooser::Device(choose, _, draws), None, true) =
            (&mut self.chooser, self.writer.finish, is_whole)
        {
            let gpu = self.runner.gpu_mut().expect("the device chooses only on a device");
            let runs_ahead = gpu.runs_ahead();
            feed(gpu, draws, 1);
            self.tickets.push_back(gpu.choose(*choose)?);
            self.n_sent = 1;
            if runs_ahead {
                self.send(self.room()).await?;
            }
        }
        Ok(())
    }

    /// Sends the next group of tokens if there is room for one.
    async fn send(&mut self, room: usize) -> Result<(), ModelError> {
        let Chooser::Device(choose, ..) = self.chooser else { return Ok(()) };
        let max = self.writer.max_tokens().saturating_sub(self.n_before);
        // A token that is run takes a cell of the context; the last one chosen is not run.
        let left = max.saturating_sub(self.n_sent).min((room + 1).saturating_sub(self.n_sent));
        let most = self.runner.gpu().map_or(1, |g| g.max_in_flight());
        let n = (self.interval.min(most) as usize).min(left) as u32;
        if n > 0 {
            let pos = self.prompt.len() + self.n_sent - 1;
            if let (Chooser::Device(_, _, draws), Some(gpu)) = (&mut self.chooser, self.runner.gpu_mut()) {
                feed(gpu, draws, n as usize);
            }
            self.tickets.push_back(self.runner.decode(n, pos, choose).await?);
            self.n_sent += n as usize;
            self.writer.stats.n_group += 1;
        }
        Ok(())
    }

    fn room(&self) -> usize {
        (self.runner.n_ctx() as usize).saturating_sub(self.prompt.len())
    }

    /// The next piece of text, or `None` at the end.
    ///
    /// # Errors
    /// Device errors; logits that are not finite.
    pub async fn next(&mut self) -> Result<Option<Piece>, ModelError> {
        while self.prompt().await? {}
        if self.writer.finish.is_some() {
            return Ok(None);
        }
        // A constraint that is fulfilled may be so by tokens that are still to come.
        let due = if self.chosen.is_empty() { self.writer.due_end() } else { None };
        let piece = match due {
            Some(last) => last,
            None => match self.next_token().await? {
                Some(token) => self.writer.accept(self.tokenizer, token, self.logprobs.take()),
                // The caller may want to stop before what is left is read again.
                None if self.shift() => Piece { text: String::new(), token: None, logprobs: None },
                None => self.writer.end(Finish::Context),
            },
        };
        if self.writer.finish.is_some() {
            self.settle_history();
        }
        Ok(Some(piece))
    }

    /// Makes room in the context, which is full, if that was asked for and can be: what is left of it is a prompt.
    fn shift(&mut self) -> bool {
        let all = [&self.prompt, self.answered()].concat();
        let Some(left) = self.writer.options.shift.and_then(|keep| shifted(&all, keep)) else { return false };
        self.writer.stats.n_forgotten += all.len() - left.len();
        self.settle_history();
        let answered = self.answered().to_vec();
        self.chooser.catch_up(&answered);
        let n_same = common(self.runner.history(), &left).min(left.len() - 1);
        self.n_cached = self.runner.reusable(n_same);
        self.runner.truncate(self.n_cached);
        (self.prompt, self.at, self.n_sent) = (left, 0, 0);
        self.n_before = self.writer.accepted.len();
        true
    }

    async fn next_token(&mut self) -> Result<Option<u32>, ModelError> {
        if let Some(token) = self.next_chosen() {
            return Ok(Some(token));
        }
        if let Chooser::Processor(..) = self.chooser {
            return self.next_on_processor().await;
        }
        if self.tickets.is_empty() {
            self.send(self.room()).await?;
        }
        let Some(ticket) = self.tickets.pop_front() else { return Ok(None) };
        // While this group's tokens are looked at, the device runs the next.
        let runs_ahead = self.runner.gpu().is_some_and(|g| g.runs_ahead());
        if runs_ahead && self.tickets.is_empty() {
            self.send(self.room()).await?;
        }
        let gpu = self.runner.gpu_mut().expect("tickets come from a device");
        let tokens = gpu.tokens(ticket).await?;
        // What no kernel found stands for itself.
        if tokens.iter().any(|t| *t >= self.runner.n_vocab()) {
            return Err(SampleError::NothingLeft.into());
        }
        self.adapt(tokens.len());
        self.chosen.extend(tokens.into_iter().map(|t| (t, None)));
        Ok(self.next_chosen())
    }

    /// Longer groups while they come fast, so that readbacks cost little; shorter ones when they do not.
    fn adapt(&mut self, n: usize) {
        let took = self.last_group.elapsed();
        self.last_group = Instant::now();
        if self.writer.options.interval == 0 && self.writer.stats.n_token > 0 {
            let per_token = took / n.max(1) as u32;
            if per_token * self.interval * 2 <= GROUP_TIME {
                self.interval = (self.interval * 2).min(MAX_GROUP);
            } else if per_token * self.interval > GROUP_TIME * 2 {
                self.interval = (self.interval / 2).max(1);
            }
        }
    }

    /// Guesses tokens by a smaller model with the same vocabulary, if [`GenerateOptions::speculate`] is set.
    ///
    /// # Errors
    /// [`ModelError::Draft`] if the vocabularies differ in size.
    pub fn with_draft(mut self, draft: &'a mut Runner) -> Result<Self, ModelError> {
        let (found, expected) = (draft.n_vocab(), self.runner.n_vocab());
        if found != expected {
            return Err(ModelError::Draft { found, expected });
        }
        self.draft = Some(draft);
        Ok(self)
    }

    /// What may come after the last token.
    async fn guess(&mut self) -> Result<Vec<u32>, ModelError> {
        let Some(Speculation { n_max, n_match }) = self.writer.options.speculate else {
            return Ok(Vec::new());
        };
        // The last token is run beside them, and what comes after the last guess is chosen, too.
        let left = self.writer.max_tokens() - self.writer.accepted.len();
        let room = (self.runner.n_ctx() as usize).saturating_sub(self.runner.history().len() + 1);
        let n = n_max.min(Speculation::MAX).min(room).min(left.saturating_sub(1));
        if n == 0 || self.runner.has_state() {
            return Ok(Vec::new());
        }
        let last = self.writer.accepted.last().copied();
        let tokens: Vec<u32> = self.runner.history().iter().copied().chain(last).collect();
        match &mut self.draft {
            // A draft that finds nothing is no reason to end the answer.
            Some(draft) => match speculate::draft(draft, &tokens, n).await {
                Err(ModelError::Sample(_)) => Ok(Vec::new()),
                found => found,
            },
            None => Ok(speculate::look_up(&tokens, n_match, n)),
        }
    }

    /// Runs the last token and guesses after it, and chooses tokens as far as they were right, and one more.
    async fn check(&mut self, last: u32, guesses: &[u32]) -> Result<(), ModelError> {
        let Chooser::Processor(sampler, _) = &mut self.chooser else { return Ok(()) };
        let n_before = self.runner.history().len();
        let batch: Vec<u32> = std::iter::once(last).chain(guesses.iter().copied()).collect();
        let mut logits = self.runner.eval_all(&batch, batch.len()).await?;
        let mut n_run = 0;
        for (i, row) in logits.chunks_exact_mut(self.runner.n_vocab() as usize).enumerate() {
            let (token, logprobs) = self.writer.choose(sampler, row)?;
            n_run += 1;
            self.chosen.push_back((token, logprobs));
            if guesses.get(i) != Some(&token) || self.writer.is_over(self.tokenizer, token) {
                break;
            }
        }
        self.writer.stats.n_guessed += guesses.len();
        self.writer.stats.n_right += n_run - 1;
        self.runner.truncate(n_before + n_run);
        Ok(())
    }

    async fn next_on_processor(&mut self) -> Result<Option<u32>, ModelError> {
        let n_ctx = self.runner.n_ctx() as usize;
        if self.prompt.len() > n_ctx {
            return Ok(None);
        }
        if let Some(last) = self.answered().last().copied() {
            if self.runner.history().len() >= n_ctx {
                return Ok(None);
            }
            let guesses = self.guess().await?;
            if !guesses.is_empty() {
                self.check(last, &guesses).await?;
                return Ok(self.next_chosen());
            }
            self.runner.prefill(&[last]).await?;
        }
        let mut logits = self.runner.logits().await?;
        let Chooser::Processor(sampler, _) = &mut self.chooser else { return Ok(None) };
        let (token, logprobs) = self.writer.choose(sampler, &mut logits)?;
        self.logprobs = logprobs;
        Ok(Some(token))
    }

    fn next_chosen(&mut self) -> Option<u32> {
        let (token, logprobs) = self.chosen.pop_front()?;
        self.logprobs = logprobs;
        Some(token)
    }

    /// Notes what the cache holds for certain: the prompt and all accepted tokens but the last.
    pub(super) fn settle_history(&mut self) {
        let answered = self.writer.accepted.get(self.n_before..).unwrap_or(&[]);
        self.runner.set_history(self.prompt.len(), &answered[..answered.len().saturating_sub(1)]);
    }

    /// Why it ended, once it has.
    pub fn finish(&self) -> Option<Finish> {
        self.writer.finish
    }

    /// Why tokens are chosen by the processor, which takes a readback for each; `None` if the device does it.
    pub fn on_processor(&self) -> Option<&'static str> {
        match self.chooser {
            Chooser::Device(..) => None,
            Chooser::Processor(_, why) => Some(why),
        }
    }

    /// The tokenizer that spells the text.
    pub fn tokenizer(&self) -> &'a Tokenizer {
        self.tokenizer
    }

    /// Counts and times so far.
    pub fn stats(&self) -> &Stats {
        &self.writer.stats
    }

    /// Tokens accepted so far.
    pub fn tokens(&self) -> &[u32] {
        &self.writer.accepted
    }
}

/// Prepares the device for the choice of tokens after `prompt`, or the processor if the device cannot do it.
fn choose_where(runner: &mut Runner, sampler: Sampler, prompt: &[u32]) -> Result<Chooser, ModelError> {
    let sampler = Box::new(sampler);
    let why = match (runner.gpu_mut(), device_chain(&sampler)) {
        (Some(gpu), Ok(chain)) => {
            if let Some(sample) = &chain.sample {
                gpu.set_sampler(sample);
            }
            match &chain.adjust {
                Some(adjust) => gpu.set_adjust(adjust, prompt)?,
                None => gpu.clear_adjust(),
            }
            let draws = chain.sample.map(|_| sampler.draws());
            return Ok(Chooser::Device(chain.choose, sampler, draws));
        }
        (Some(_), Err(why)) => why,
        (None, _) => "the model runs on it",
    };
    Ok(Chooser::Processor(sampler, why))
}

/// Gives the device the numbers for the next `n` choices, if these are random.
fn feed(gpu: &mut GpuModel, draws: &mut Option<Draws>, n: usize) {
    if let Some(draws) = draws {
        gpu.set_draws(&draws.take(n).collect::<Vec<f32>>());
    }
}

/// What a future comes to that waits for nothing: a device with room takes a piece of a prompt as it is.
fn at_once<T>(f: impl Future<Output = T>) -> T {
    match pin!(f).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("a device with room takes a piece without a wait"),
    }
}

/// Tokens that two sequences begin with both.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Drop for Generation<'_> {
    fn drop(&mut self) {
        if self.writer.finish.is_none() {
            self.settle_history();
        }
        if let Device::Gpu(g) = &mut self.runner.device {
            g.clear_adjust();
            // Tokens sent ahead are dropped; their readbacks must not be taken for later ones.
            for ticket in self.tickets.drain(..) {
                g.discard(ticket);
            }
        }
    }
}
