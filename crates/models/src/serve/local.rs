//! An answer for a caller that has the driver for itself: it works while it is asked.

use std::collections::VecDeque;

use chaski_text::Tokenizer;

use super::driver::Driver;
use super::error::ServeError;
use super::event::Event;
use super::handle::Answer;
use crate::exec::Executor;
use crate::run::{Finish, Piece, Stats};

/// An answer of a model that nobody else uses meanwhile. Work is done in [`Self::next`] and [`Self::prompt`]; natively these
/// block while the device works. Dropping it ends it.
#[derive(Debug)]
pub struct Generation<'a, E> {
    driver: &'a mut Driver<E>,
    answer: Answer,
    /// Pieces that have come and were not given.
    ready: VecDeque<Piece>,
    tokens: Vec<u32>,
    n_sent: usize,
    on_cpu: Option<&'static str>,
    finish: Option<Finish>,
}

impl<'a, E: Executor> Generation<'a, E> {
    /// An answer that a handle of this driver was asked for.
    pub fn new(driver: &'a mut Driver<E>, answer: Answer) -> Self {
        let (ready, tokens) = (VecDeque::new(), Vec::new());
        Generation { driver, answer, ready, tokens, n_sent: 0, on_cpu: None, finish: None }
    }

    /// The next piece of text, or `None` at the end.
    ///
    /// # Errors
    /// The reason why the answer cannot go on.
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

    /// Runs some more of the prompt: a step that takes a fraction of a second. `false` once there is nothing left to send.
    ///
    /// [`Self::next`] does this by itself; callers that want to stop in the middle of a long prompt call this first, until it
    /// returns `false`, and drop the generation to stop.
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

    /// The answer has begun, so all of its prompt has run.
    fn has_begun(&self) -> bool {
        self.finish.is_some() || !(self.ready.is_empty() && self.tokens.is_empty())
    }

    /// Tokens of the prompt that were sent to the device, of those that have to be run.
    pub fn progress(&self) -> (usize, usize) {
        let n = self.stats().n_prompt;
        (if self.has_begun() { n } else { self.n_sent }, n)
    }

    /// Takes the events that have come, or does the next piece of work.
    async fn work(&mut self) -> Result<(), ServeError> {
        let mut has_some = false;
        while let Some(event) = self.answer.try_next() {
            has_some = true;
            self.take(event)?;
        }
        if !has_some && !self.driver.turn().await? {
            // The driver has nothing to do, so it has told the end.
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

    /// The reason of its end, once all pieces were given.
    pub fn finish(&self) -> Option<Finish> {
        self.finish.filter(|_| self.ready.is_empty())
    }

    /// The reason why the CPU samples, with a readback for each token; `None` if the device does.
    pub fn on_cpu(&self) -> Option<&'static str> {
        self.on_cpu
    }

    /// The executor that works on it.
    pub fn executor(&self) -> &E {
        self.driver.executor()
    }

    /// The tokenizer that spells its text.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.answer.tokenizer()
    }

    /// Counts and times so far.
    pub fn stats(&self) -> &Stats {
        self.answer.stats()
    }

    /// Tokens so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }
}
