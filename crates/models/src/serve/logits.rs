//! Logits after prompts, for scores.

use std::sync::Arc;

use chaski_schedule::{Read, Salt};
use chaski_text::Logprobs;

use super::error::ServeError;
use super::handle::Handle;
use super::readings::{Fold, Readings, Shares};
use crate::error::ModelError;

/// A request for the logits of tokens after prompts.
#[derive(Clone, Debug)]
pub struct LogitsRequest {
    /// The tokens of each prompt.
    pub prompts: Vec<Vec<u32>>,
    /// The tokens whose logits are wanted.
    pub tokens: Vec<u32>,
    /// LoRA scales; `None`: the default scales.
    pub lora: Option<Vec<f32>>,
    /// Of one client's requests, those of higher priority are served first, and preempted last.
    pub priority: i32,
    /// The client: the one with the fewest tokens served is next.
    pub client: u64,
    /// Only requests with the same salt share cached prefixes.
    pub salt: Salt,
}

/// A request for the log probabilities of the tokens of prompts.
#[derive(Clone, Debug)]
pub struct PromptLogprobsRequest {
    /// The tokens of each prompt.
    pub prompts: Vec<Vec<u32>>,
    /// Number of the most probable tokens to tell in each place.
    pub n_top: usize,
    /// LoRA scales; `None`: the default scales.
    pub lora: Option<Vec<f32>>,
    /// Of one client's requests, those of higher priority are served first, and preempted last.
    pub priority: i32,
    /// The client: the one with the fewest tokens served is next.
    pub client: u64,
    /// Only requests with the same salt share cached prefixes.
    pub salt: Salt,
}

/// Picks logits from a row.
struct Picked {
    tokens: Arc<[u32]>,
    logits: Vec<f32>,
}

impl Fold for Picked {
    type Out = Vec<f32>;

    fn row(&mut self, _: usize, values: &[f32]) {
        self.logits = self.tokens.iter().map(|t| values[*t as usize]).collect();
    }

    fn end(self) -> Vec<f32> {
        self.logits
    }
}

/// Computes the log probability of each token after the first.
struct Told {
    prompt: Vec<u32>,
    n_top: usize,
    logprobs: Vec<Logprobs>,
}

impl Fold for Told {
    type Out = Vec<Logprobs>;

    fn row(&mut self, at: usize, values: &[f32]) {
        // Rows may begin anew.
        self.logprobs.truncate(at);
        if let Some(token) = self.prompt.get(at + 1) {
            self.logprobs.push(Logprobs::new(values, *token, self.n_top));
        }
    }

    fn end(self) -> Vec<Logprobs> {
        self.logprobs
    }
}

impl Handle {
    /// Queues prompts for the log probabilities of their own tokens: of all but the first, which nothing precedes.
    ///
    /// # Errors
    /// As [`Handle::generate`].
    pub fn prompt_logprobs(
        &self,
        request: PromptLogprobsRequest,
    ) -> Result<Readings<Vec<Logprobs>>, ServeError> {
        let PromptLogprobsRequest { prompts, n_top, lora, priority, client, salt } = request;
        self.check_decodes()?;
        for prompt in &prompts {
            self.check(prompt)?;
        }
        let prompt =
            |prompt: Vec<u32>| (prompt.clone(), 0..usize::MAX, Told { prompt, n_top, logprobs: Vec::new() });
        self.read(
            prompts.into_iter().map(prompt),
            Shares { read: Read::Logits, lora, priority, client, salt },
        )
    }

    /// Queues prompts for the logits of some tokens as their next, which run in the same steps as answers.
    ///
    /// # Errors
    /// As [`Handle::generate`].
    pub fn logits(&self, request: LogitsRequest) -> Result<Readings<Vec<f32>>, ServeError> {
        let LogitsRequest { prompts, tokens, lora, priority, client, salt } = request;
        self.check_decodes()?;
        let n_vocab = self.shared.sizes.n_vocab;
        if let Some(token) = tokens.iter().copied().find(|t| *t as usize >= n_vocab) {
            return Err(ModelError::Token { token, n_vocab: n_vocab as u32 }.into());
        }
        for prompt in &prompts {
            self.check(prompt)?;
        }
        let tokens: Arc<[u32]> = tokens.into();
        let prompt = |prompt: Vec<u32>| {
            let last = prompt.len() - 1;
            (prompt, last..usize::MAX, Picked { tokens: tokens.clone(), logits: Vec::new() })
        };
        self.read(
            prompts.into_iter().map(prompt),
            Shares { read: Read::Logits, lora, priority, client, salt },
        )
    }
}
