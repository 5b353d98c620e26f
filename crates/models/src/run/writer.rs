//! The text side of an answer: from tokens to pieces of text, and its end.

use web_time::Instant;

use super::ends::Ending;
use super::gate::Gate;
use super::generate::{Finish, GenerateOptions, Piece, Stats};
#[cfg(not(target_arch = "wasm32"))]
use super::reasoning::Thought;
use crate::error::ModelError;
use chaski_text::{Logprobs, Sampler};
use chaski_text::{RenderSpecial, Tokenizer};
use chaski_text::{StopStrings, Stopped, TextStream};

pub(crate) struct Writer {
    pub(crate) options: GenerateOptions,
    gate: Option<Gate>,
    ending: Ending,
    #[cfg(not(target_arch = "wasm32"))]
    thought: Option<Thought>,
    stream: TextStream,
    stop: StopStrings,
    /// Tokens so far.
    pub(crate) accepted: Vec<u32>,
    pub(crate) start: Instant,
    first_at: Option<Instant>,
    pub(crate) finish: Option<Finish>,
    pub(crate) stats: Stats,
}

impl Writer {
    /// # Errors
    /// [`ModelError::Constraint`] for an unusable grammar.
    pub(crate) fn new(tokenizer: &Tokenizer, options: GenerateOptions) -> Result<Self, ModelError> {
        Ok(Writer {
            gate: Gate::new(tokenizer, &options)?,
            ending: Ending::new(tokenizer, &options.ends, options.sampler.ignore_eos),
            #[cfg(not(target_arch = "wasm32"))]
            thought: Thought::new(options.reasoning.as_ref()),
            stop: StopStrings::new(options.stop.iter().cloned()),
            // The text continues a prompt: a leading space is part of it.
            stream: TextStream::new(),
            finish: (options.max_tokens == Some(0)).then_some(Finish::Length),
            options,
            accepted: Vec::new(),
            start: Instant::now(),
            first_at: None,
            stats: Stats::default(),
        })
    }

    pub(crate) fn max_tokens(&self) -> usize {
        self.options.max_tokens.unwrap_or(usize::MAX)
    }

    /// Reason why every token's logits must be read back; `None` if they need not.
    pub(crate) fn needs_logits(&self) -> Option<&'static str> {
        self.options.logprobs.map(|_| "log probabilities are asked for")
    }

    /// True if tokens must be chosen under masks.
    pub(crate) fn is_constrained(&self) -> bool {
        self.gate.is_some() || self.ending.masks(self.accepted.len())
    }

    /// True if the next token is the first that need not be chosen under a mask.
    pub(crate) fn opens(&self) -> bool {
        self.gate.is_none() && self.ending.opens(self.accepted.len())
    }

    /// The mask of the next token, as bits; without a constraint all tokens are allowed.
    ///
    /// # Errors
    /// [`ModelError::Constraint`] if the constraint fails.
    pub(crate) fn mask(&mut self, words: &mut [u32]) -> Result<(), ModelError> {
        match &mut self.gate {
            Some(gate) => gate.allowed(words)?,
            None => words.fill(u32::MAX),
        }
        self.ending.mask(self.accepted.len(), words);
        Ok(())
    }

    /// Advances the constraint by a token that the device chose, before [`Self::accept`].
    ///
    /// # Errors
    /// [`ModelError::Constraint`] if the constraint fails.
    pub(crate) fn advance(&mut self, tokenizer: &Tokenizer, token: u32) -> Result<(), ModelError> {
        self.gate.as_mut().map_or(Ok(()), |gate| gate.accept(tokenizer, token))
    }

    /// The end, if no further token is needed.
    pub(crate) fn due_end(&mut self) -> Option<Piece> {
        if self.gate.as_ref().is_some_and(Gate::is_finished) {
            return Some(self.end(Finish::Stop));
        }
        let is_due = self.ending.is_due() || self.accepted.len() >= self.max_tokens();
        is_due.then(|| self.end(Finish::Length))
    }

    /// True if the text so far is not complete by the grammar.
    pub(crate) fn is_incomplete(&mut self) -> bool {
        self.gate.as_mut().is_some_and(|gate| !gate.is_complete())
    }

    /// Samples the next token from logits, with log probabilities if requested.
    ///
    /// # Errors
    /// Logits that are not finite.
    pub(crate) fn choose(
        &mut self,
        tokenizer: &Tokenizer,
        sampler: &mut Sampler,
        logits: &mut [f32],
    ) -> Result<(u32, Option<Logprobs>), ModelError> {
        // The constraint changes the logits; keep the model's own.
        let is_own = self.options.logprobs.is_some() && !self.options.logprobs_after_sampling;
        let own = is_own.then(|| logits.to_vec());
        if let Some(gate) = &mut self.gate {
            gate.mask(logits)?;
        }
        self.ending.mask_logits(self.accepted.len(), logits);
        let token = sampler.sample(logits)?;
        sampler.accept(token);
        self.advance(tokenizer, token)?;
        let logprobs = |n_top| match &own {
            Some(logits) => Logprobs::new(logits, token, n_top),
            None => Logprobs::of(sampler.candidates(), token, n_top),
        };
        Ok((token, self.options.logprobs.map(logprobs)))
    }

    /// Records that its prompt begins to run.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn started(&mut self) {
        self.stats.queue = self.start.elapsed();
    }

    /// Accepts a chosen token: returns the text that is final, or the end.
    pub(crate) fn accept(&mut self, tokenizer: &Tokenizer, token: u32, logprobs: Option<Logprobs>) -> Piece {
        let now = Instant::now();
        match self.first_at {
            None => {
                self.first_at = Some(now);
                self.stats.ttft = now - self.start;
            }
            Some(first) => self.stats.decode = now - first,
        }
        self.stats.n_token += 1;
        if tokenizer.is_eog(token) && !self.options.sampler.ignore_eos {
            return self.end(Finish::Stop);
        }
        if self.options.ends.stops_at(token) {
            #[cfg(not(target_arch = "wasm32"))]
            {
                self.stats.stop_token = Some(token);
            }
            return self.end(Finish::Stop);
        }
        let is_early = self.ending.is_early(self.accepted.len());
        self.accepted.push(token);
        let is_shown = self.options.shown.contains(&token);
        let special = if is_shown { RenderSpecial::Yes } else { self.options.special };
        let bytes = tokenizer.token_bytes(token, special);
        let text = self.stream.push(&bytes).unwrap_or("").to_owned();
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(thought) = &mut self.thought {
            thought.wrote(&text);
        }
        let (text, stopped) = if is_early { (&*text, Stopped::No) } else { self.stop.push(&text) };
        let text = text.to_owned();
        if let Stopped::Yes { index } = stopped {
            self.finish = Some(Finish::StopText);
            self.stats.stop = Some(index);
        }
        self.ending.wrote(&text, self.stats.decode);
        Piece { text, token: Some(token), logprobs }
    }

    /// The text that has to come next, because the reasoning has used up its tokens.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn due_close(&self) -> Option<&'static str> {
        let is_whole = self.finish.is_none() && !self.stream.is_within_character();
        self.thought.as_ref().filter(|_| is_whole)?.due()
    }

    /// Records that this text comes next.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn close(&mut self) {
        self.thought.iter_mut().for_each(Thought::close);
    }

    /// Ends with the text held back.
    pub(crate) fn end(&mut self, finish: Finish) -> Piece {
        let rest = self.stream.finish().unwrap_or("").to_owned();
        let mut text = self.stop.push(&rest).0.to_owned();
        text.push_str(self.stop.finish());
        self.finish = Some(finish);
        Piece { text, token: None, logprobs: None }
    }
}
