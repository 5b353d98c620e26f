//! The driver's record of a request.

use chaski_schedule::{self as schedule, Chooser, Embeddings, RequestId, Salt, Turn};
use chaski_text::{Logprobs, Sampler, Tokenizer};
use futures_channel::mpsc::UnboundedSender;

use super::error::ServeError;
use super::event::Event;
use super::shared::Open;
use crate::error::ModelError;
use crate::exec::Start;
use crate::run::{Finish, Piece, Speculation, Writer, shifted};

/// A request, from its handle to its last event.
pub(super) struct Entry {
    pub(super) id: RequestId,
    /// The prompt; after a context shift, the rest of prompt and answer.
    pub(super) prompt: Vec<u32>,
    /// Rows in place of tokens of the prompt.
    pub(super) embeddings: Vec<(usize, Embeddings)>,
    pub(super) priority: i32,
    pub(super) client: u64,
    pub(super) salt: Salt,
    /// The slot that it asks for, or has.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) slot: Option<u32>,
    pub(super) writer: Writer,
    pub(super) sampler: Sampler,
    pub(super) events: UnboundedSender<Event>,
    pub(super) open: Open,
}

impl Entry {
    /// Sends the last event. The request is no longer open when it arrives.
    pub(super) fn finish(self, finish: Finish) {
        let Entry { mut writer, events, open, .. } = self;
        drop(open);
        writer.stats.is_incomplete = finish != Finish::Stop && writer.is_incomplete();
        send(&events, Event::Finished { finish, stats: writer.stats });
    }

    /// Sends the last event of a failed request.
    pub(super) fn fail(self, error: ServeError) {
        let Entry { events, open, .. } = self;
        drop(open);
        send(&events, Event::Failed { error });
    }
}

/// Tokens of a sequence without those that rows replace.
fn without_rows(placed: &[(usize, Embeddings)], tokens: &[u32]) -> Vec<u32> {
    let is_row = |at: usize| placed.iter().any(|(first, rows)| (*first..first + rows.len()).contains(&at));
    tokens.iter().enumerate().filter(|(at, _)| !is_row(*at)).map(|(_, t)| *t).collect()
}

/// If the caller is gone, the request is about to be cancelled.
fn send(events: &UnboundedSender<Event>, event: Event) {
    let _ = events.unbounded_send(event);
}

/// Group of a request, and who samples its tokens.
pub(super) struct Plan {
    /// Group of equal LoRA scales.
    pub(super) group: u64,
    pub(super) lora: Vec<f32>,
    /// Reason for sampling on the CPU; `None` if the device can sample.
    pub(super) on_cpu: Option<&'static str>,
    /// Its tokens are drafted, and those that it accepts sampled on the CPU.
    pub(super) drafts: bool,
}

impl Plan {
    fn chooser(&self, writer: &Writer) -> Chooser {
        match self.why_on_cpu() {
            Some(_) => Chooser::Caller,
            None if writer.is_constrained() => Chooser::Masked,
            None => Chooser::Device,
        }
    }

    fn why_on_cpu(&self) -> Option<&'static str> {
        self.on_cpu.or(self.drafts.then_some("tokens are drafted"))
    }
}

/// A request in the scheduler.
pub(super) struct Served {
    entry: Entry,
    plan: Plan,
    /// The sampler where the CPU samples, since the start in its slot. That of the entry remains as it was at first.
    sampler: Option<Sampler>,
    turn: Turn,
    /// Tokens of the answer that became part of the prompt by a context shift.
    n_before: usize,
    has_started: bool,
    /// Reported number of submitted prompt tokens.
    n_sent: usize,
    /// The last step that produced something for it.
    last_step: u64,
}

impl Served {
    /// The scheduler's request.
    pub(super) fn request_of(entry: &Entry, plan: &Plan) -> schedule::Request {
        schedule::Request {
            id: entry.id,
            prompt: entry.prompt.clone(),
            embeddings: entry.embeddings.clone(),
            max_tokens: entry.writer.max_tokens().saturating_sub(entry.writer.accepted.len()),
            chooser: plan.chooser(&entry.writer),
            group: plan.group,
            salt: entry.salt,
            priority: entry.priority,
            client: entry.client,
        }
    }

    /// A request that the scheduler has accepted.
    pub(super) fn new(entry: Entry, plan: Plan, turn: Turn) -> Self {
        Served { entry, plan, sampler: None, turn, n_before: 0, has_started: false, n_sent: 0, last_step: 0 }
    }

    pub(super) fn into_entry(self) -> Entry {
        self.entry
    }

    /// Its prefixes, LoRA scales, and tokens.
    pub(super) fn session(&self) -> (u64, Vec<f32>, Vec<u32>) {
        (schedule::prefixes(self.plan.group, self.entry.salt), self.plan.lora.clone(), self.tokens())
    }

    /// The slot that it has, or asks for.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn slot(&self) -> Option<u32> {
        self.entry.slot
    }

    /// Records its sequence: that is its slot, unless it asks for another.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn place(&mut self, seq: u32) {
        self.entry.slot = self.entry.slot.or(Some(seq));
    }

    pub(super) fn interval(&self) -> u32 {
        self.entry.writer.options.interval
    }

    /// Records that it got a slot with this many cached prompt tokens.
    pub(super) fn started(&mut self, n_cached: usize) {
        // A request that was preempted, or survived device loss, has already reported this.
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        #[cfg(not(target_arch = "wasm32"))]
        self.entry.writer.started();
        let n_prompt = self.entry.prompt.len() - n_cached;
        let stats = &mut self.entry.writer.stats;
        (stats.n_prompt, stats.n_cached) = (n_prompt, n_cached);
        let on_cpu = self.plan.why_on_cpu();
        send(&self.entry.events, Event::Started { n_prompt, n_cached, on_cpu });
    }

    /// Records the number of submitted tokens, and reports it while part of the prompt remains.
    pub(super) fn sent(&mut self, n: Option<usize>) {
        let stats = &self.entry.writer.stats;
        let n_sent = n.unwrap_or(0).saturating_sub(stats.n_cached);
        if stats.n_token == 0 && n_sent > self.n_sent && n_sent < stats.n_prompt {
            self.n_sent = n_sent;
            send(&self.entry.events, Event::Prompt { n_sent });
        }
    }

    /// Speculation options, if requested.
    pub(super) fn speculation(&self) -> Option<Speculation> {
        self.entry.writer.options.speculate
    }

    /// Begins or ends to draft its tokens; returns who chooses them, if that changes.
    pub(super) fn set_drafts(&mut self, drafts: bool) -> Option<Chooser> {
        let before = self.plan.chooser(&self.entry.writer);
        self.plan.drafts = drafts;
        Some(self.plan.chooser(&self.entry.writer)).filter(|chooser| *chooser != before)
    }

    /// The party that chooses its tokens from now on, once no more masks keep it from its end.
    pub(super) fn opened(&self) -> Option<Chooser> {
        let writer = &self.entry.writer;
        writer.opens().then(|| self.plan.chooser(writer))
    }

    /// Counts a draft of `n` tokens that is verified.
    pub(super) fn drafted(&mut self, n: usize) {
        let stats = &mut self.entry.writer.stats;
        stats.n_draft += usize::from(n > 0);
        stats.n_drafted += n;
    }

    /// Counts accepted drafts.
    pub(super) fn accepted(&mut self, n: usize) {
        self.entry.writer.stats.n_accepted += n;
    }

    /// Tokens of its sequence: prompt and answer.
    pub(super) fn tokens(&self) -> Vec<u32> {
        [&self.entry.prompt, &self.entry.writer.accepted[self.n_before..]].concat()
    }

    /// The same without placeholders of embeddings, for penalties.
    pub(super) fn said(&self) -> Vec<u32> {
        without_rows(&self.entry.embeddings, &self.tokens())
    }

    /// Sets it up in a slot of the executor, with the result of [`Self::said`].
    pub(super) fn start<'a>(&'a mut self, seq: u32, chooser: Chooser, tokens: &'a [u32]) -> Start<'a> {
        let (is_here, n_drawn) = (chooser == Chooser::Caller, self.entry.writer.accepted.len());
        // A sampler that has begun goes on after a preemption: some have more state than their draws.
        self.sampler = self.sampler.take().filter(|_| is_here).or_else(|| {
            is_here.then(|| {
                let mut sampler = self.entry.sampler.clone();
                // Penalties cover the prompt, too.
                tokens.iter().for_each(|t| sampler.accept(*t));
                sampler.skip_draws(n_drawn);
                sampler
            })
        });
        let sampler = (!is_here).then_some(&self.entry.sampler);
        Start { seq, sampler, tokens, n_drawn, lora: &self.plan.lora }
    }

    /// Samples its next token from logits.
    pub(super) fn choose(
        &mut self,
        tokenizer: &Tokenizer,
        logits: &mut [f32],
    ) -> Result<(u32, Option<Logprobs>), ModelError> {
        let sampler = self.sampler.as_mut().expect("it started with a sampler here");
        self.entry.writer.choose(tokenizer, sampler, logits)
    }

    /// The mask of the next token.
    pub(super) fn mask(&mut self, words: &mut [u32]) -> Result<(), ModelError> {
        self.entry.writer.mask(words)
    }

    /// Advances the constraint by a token that the device chose.
    pub(super) fn advance(&mut self, tokenizer: &Tokenizer, token: u32) -> Result<(), ModelError> {
        self.entry.writer.advance(tokenizer, token)
    }

    /// Accepts a token chosen in a step and sends its events; returns the end if it is the last.
    pub(super) fn accept(
        &mut self,
        tokenizer: &Tokenizer,
        token: u32,
        logprobs: Option<Logprobs>,
        step: u64,
    ) -> Option<Finish> {
        let is_new = std::mem::replace(&mut self.last_step, step) != step;
        let writer = &mut self.entry.writer;
        writer.stats.n_submit += usize::from(is_new);
        let piece = writer.accept(tokenizer, token, logprobs);
        let last = if writer.finish.is_none() { writer.due_end() } else { None };
        let finish = writer.finish;
        self.send(piece);
        last.into_iter().for_each(|piece| self.send(piece));
        finish
    }

    /// Sends the text held back.
    pub(super) fn end(&mut self, finish: Finish) {
        let piece = self.entry.writer.end(finish);
        self.send(piece);
    }

    /// Takes note of a token that a caller put into its answer.
    ///
    /// # Errors
    /// As [`Self::advance`].
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn insert(&mut self, tokenizer: &Tokenizer, token: u32) -> Result<(), ModelError> {
        if let Some(sampler) = &mut self.sampler {
            sampler.accept(token);
            // The draws are those of the positions.
            sampler.skip_draws(1);
        }
        self.advance(tokenizer, token)
    }

    /// The text that has to come next, because the reasoning has used up its tokens.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn due_close(&self) -> Option<&'static str> {
        self.entry.writer.due_close()
    }

    /// Records that this text comes next.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn close(&mut self) {
        self.entry.writer.close();
    }

    /// True if the text of these tokens is not part of its answer behind the first `n_known`, of which it may begin
    /// with the last.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn lacks(&self, tokenizer: &Tokenizer, tokens: &[u32], n_known: usize) -> bool {
        let accepted = &self.entry.writer.accepted;
        let from = n_known.saturating_sub(tokens.len()).min(accepted.len());
        let text = |tokens: &[u32]| tokenizer.decode_lossy(tokens, chaski_text::RenderSpecial::Yes);
        !text(&accepted[from..]).contains(&text(tokens))
    }

    /// The request and its turn to go on behind all tokens so far.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn again(&mut self) -> (schedule::Request, Turn) {
        self.entry.prompt = self.tokens();
        self.n_before = self.entry.writer.accepted.len();
        (Self::request_of(&self.entry, &self.plan), self.turn)
    }

    fn send(&self, piece: Piece) {
        send(&self.entry.events, Event::Piece(piece));
    }

    /// Shifts its full context, if requested and possible: returns the continuing request and its turn.
    pub(super) fn shift(&mut self) -> Option<(schedule::Request, Turn)> {
        let tokens = self.tokens();
        // Rows cannot be cut like tokens: an image is whole or meaningless.
        let keep = self.entry.writer.options.shift.filter(|_| self.entry.embeddings.is_empty())?;
        let left = shifted(&tokens, keep)?;
        self.entry.writer.stats.n_dropped += tokens.len() - left.len();
        self.entry.prompt = left;
        self.n_before = self.entry.writer.accepted.len();
        Some((Self::request_of(&self.entry, &self.plan), self.turn))
    }
}
