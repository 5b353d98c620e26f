//! An answer for a caller that owns the driver: it is computed while it is polled.

use std::collections::VecDeque;

use chaski_text::Tokenizer;

use super::driver::Driver;
use super::error::ServeError;
use super::event::Event;
use super::handle::Answer;
use crate::exec::Executor;
use crate::run::{Finish, Piece, Stats};

/// An answer of a model that nothing else uses meanwhile. [`Self::next`] and [`Self::prompt`] do the work; natively
/// they block while the device works. Dropping it ends it.
#[derive(Debug)]
pub struct Generation<'a, E> {
    driver: &'a mut Driver<E>,
    answer: Answer,
    /// Pieces not yet delivered.
    ready: VecDeque<Piece>,
    tokens: Vec<u32>,
    n_sent: usize,
    on_cpu: Option<&'static str>,
    finish: Option<Finish>,
}

impl<'a, E: Executor> Generation<'a, E> {
    /// An answer requested from a handle of this driver.
    pub fn new(driver: &'a mut Driver<E>, answer: Answer) -> Self {
        let (ready, tokens) = (VecDeque::new(), Vec::new());
        Generation { driver, answer, ready, tokens, n_sent: 0, on_cpu: None, finish: None }
    }

    /// The next piece of text, or `None` at the end.
    ///
    /// # Errors
    /// Reason for the failure of the answer.
    pub async fn next(&mut self) -> Result<Option<Piece>, ServeError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if self.finish.is_some() {
                return Ok(None);
            }
            self.work().await?;
        }
    }

    /// Runs part of the prompt: a step of a fraction of a second. `false` once everything is submitted.
    ///
    /// [`Self::next`] does this itself; to be able to stop during a long prompt, call this until it returns `false`,
    /// and drop the generation to stop.
    ///
    /// # Errors
    /// As for [`Self::next`].
    pub async fn prompt(&mut self) -> Result<bool, ServeError> {
        if self.has_begun() {
            return Ok(false);
        }
        self.work().await?;
        Ok(!self.has_begun())
    }

    /// True once the answer has begun, so the whole prompt has run.
    fn has_begun(&self) -> bool {
        self.finish.is_some() || !(self.ready.is_empty() && self.tokens.is_empty())
    }

    /// Submitted prompt tokens, and prompt tokens to run.
    pub fn progress(&self) -> (usize, usize) {
        let n = self.stats().n_prompt;
        (if self.has_begun() { n } else { self.n_sent }, n)
    }

    /// Takes available events, or does the next piece of work.
    async fn work(&mut self) -> Result<(), ServeError> {
        let mut has_some = false;
        while let Some(event) = self.answer.try_next() {
            has_some = true;
            self.take(event)?;
        }
        if !has_some && !self.driver.turn().await? {
            // The driver is idle, so it has sent the end.
            while let Some(event) = self.answer.try_next() {
                self.take(event)?;
            }
            self.finish.get_or_insert(Finish::Stop);
        }
        Ok(())
    }

    fn take(&mut self, event: Event) -> Result<(), ServeError> {
        match event {
            Event::Started { on_cpu, .. } => self.on_cpu = on_cpu,
            Event::Prompt { n_sent } => self.n_sent = n_sent,
            Event::Piece(piece) => {
                self.tokens.extend(piece.token);
                self.ready.push_back(piece);
            }
            Event::Finished { finish, .. } => self.finish = Some(finish),
            Event::Failed { error } => return Err(error),
        }
        Ok(())
    }

    /// Reason for its end, once all pieces are delivered.
    pub fn finish(&self) -> Option<Finish> {
        self.finish.filter(|_| self.ready.is_empty())
    }

    /// Reason for sampling on the CPU, with a readback per token; `None` if the device samples.
    pub fn on_cpu(&self) -> Option<&'static str> {
        self.on_cpu
    }

    /// The executor.
    pub fn executor(&self) -> &E {
        self.driver.executor()
    }

    /// The tokenizer of its tokens.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.answer.tokenizer()
    }

    /// Statistics so far.
    pub fn stats(&self) -> &Stats {
        self.answer.stats()
    }

    /// Tokens so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }
}
