//! Scores of documents as requests to the scheduler.

use std::sync::Arc;

use chaski_schedule::{Read, Salt};

use super::error::ServeError;
use super::handle::Handle;
use super::readings::{Fold, Readings, Shares};
use crate::error::{ModelError, PoolingError};
use crate::heads::{Heads, Pooling};
use crate::run::Pooled;

/// Origin of a score.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RankBy {
    /// The first score of the model's head ([`Pooling::Rank`]).
    Head,
    /// The probability of the first token as the next, of these two.
    Words([u32; 2]),
}

/// A request for the scores of prompts, each of a query and a document.
#[derive(Clone, Debug)]
pub struct RankRequest {
    /// The tokens of each prompt.
    pub prompts: Vec<Vec<u32>>,
    /// Origin of the scores.
    pub by: RankBy,
    /// LoRA scales; `None`: the default scales.
    pub lora: Option<Vec<f32>>,
    /// Of one client's requests, those of higher priority are served first, and preempted last.
    pub priority: i32,
    /// The client: the one with the fewest tokens served is next.
    pub client: u64,
    /// Only requests with the same salt share cached prefixes.
    pub salt: Salt,
}

impl RankRequest {
    /// A request of default priority.
    pub fn new(prompts: Vec<Vec<u32>>, by: RankBy) -> Self {
        RankRequest { prompts, by, lora: None, priority: 0, client: 0, salt: Salt::default() }
    }
}

/// Pools the rows of a prompt for the head.
struct Headed {
    pooled: Pooled,
    heads: Arc<Heads>,
}

impl Fold for Headed {
    type Out = f64;

    fn row(&mut self, at: usize, values: &[f32]) {
        self.pooled.row(at, values);
    }

    fn end(self) -> f64 {
        let pooled = self.pooled.end().into_iter().next().unwrap_or_default();
        self.heads.apply(Pooling::Rank, pooled).first().copied().map_or(f64::NAN, f64::from)
    }
}

/// Compares the logits of two words.
struct Worded {
    words: [u32; 2],
    score: f64,
}

impl Fold for Worded {
    type Out = f64;

    fn row(&mut self, _: usize, values: &[f32]) {
        self.score = probability(self.words.map(|word| f64::from(values[word as usize])));
    }

    fn end(self) -> f64 {
        self.score
    }
}

/// The probability of the first of two logits.
fn probability([first, second]: [f64; 2]) -> f64 {
    1.0 / (1.0 + (second - first).exp())
}

impl Handle {
    /// Queues prompts for their scores, which run in the same steps as answers. A score is a probability if it is one
    /// of words or of a model with several labels; otherwise it is any number.
    ///
    /// # Errors
    /// [`PoolingError::NoScores`] without a head; otherwise as [`Handle::generate`].
    pub fn rank(&self, request: RankRequest) -> Result<Readings<f64>, ServeError> {
        let RankRequest { prompts, by, lora, priority, client, salt } = request;
        for prompt in &prompts {
            self.check(prompt)?;
        }
        match by {
            RankBy::Head => {
                let pooling = self.pooling(Pooling::Rank)?;
                let heads = &self.shared.heads;
                let text = |prompt: Vec<u32>| {
                    let rows = self.rows_of(pooling, prompt.len());
                    (prompt, rows, Headed { pooled: Pooled::new(pooling), heads: heads.clone() })
                };
                let shares = Shares { read: Read::Hidden, lora, priority, client, salt };
                self.read(prompts.into_iter().map(text), shares)
            }
            RankBy::Words(words) => {
                self.check_decodes()?;
                let n_vocab = self.shared.sizes.n_vocab;
                if let Some(token) = words.into_iter().find(|t| *t as usize >= n_vocab) {
                    return Err(ModelError::Token { token, n_vocab: n_vocab as u32 }.into());
                }
                let text = |prompt: Vec<u32>| {
                    let rows = self.rows_of(Pooling::Last, prompt.len());
                    (prompt, rows, Worded { words, score: f64::NAN })
                };
                let shares = Shares { read: Read::Logits, lora, priority, client, salt };
                self.read(prompts.into_iter().map(text), shares)
            }
        }
    }

    /// The pooling of rows for vectors that are pooled in this way.
    ///
    /// # Errors
    /// [`PoolingError::NoScores`].
    pub(super) fn pooling(&self, asked: Pooling) -> Result<Pooling, ServeError> {
        let found = self.shared.heads.pooling(asked);
        Ok(found.ok_or_else(|| ModelError::from(PoolingError::NoScores))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_words_are_probabilities_of_the_first() {
        assert_eq!(probability([3.0, 3.0]), 0.5);
        assert!((probability([2.0, 0.0]) - 0.880_797_077).abs() < 1e-8);
        assert_eq!(probability([-1000.0, 1000.0]), 0.0);
        assert!(probability([f64::NAN, 1.0]).is_nan());
    }
}
