//! Embeddings as requests to the scheduler.

use std::ops::Range;
use std::sync::Arc;

use chaski_schedule::{Read, Salt};

use super::driver::Driver;
use super::error::ServeError;
use super::handle::Handle;
use super::readings::{Fold, Readings, Shares};
use crate::exec::Executor;
use crate::heads::{Heads, Pooling};
use crate::run::{EmbedOptions, Embedding, Pooled, VectorNorm};

/// A request for the embeddings of texts.
#[derive(Clone, Debug)]
pub struct EmbedRequest {
    /// The tokens of each text.
    pub texts: Vec<Vec<u32>>,
    /// Pooling and normalisation.
    pub options: EmbedOptions,
    /// LoRA scales; `None`: the default scales.
    pub lora: Option<Vec<f32>>,
    /// Of one client's requests, those of higher priority are served first, and preempted last.
    pub priority: i32,
    /// The client: the one with the fewest tokens served is next.
    pub client: u64,
    /// Only requests with the same salt share cached prefixes.
    pub salt: Salt,
}

impl EmbedRequest {
    /// A request of default priority.
    pub fn new(texts: Vec<Vec<u32>>, options: EmbedOptions) -> Self {
        EmbedRequest { texts, options, lora: None, priority: 0, client: 0, salt: Salt::default() }
    }
}

/// Pools the rows of a text.
struct Text {
    n_token: usize,
    pooled: Pooled,
    /// The pooling that the caller asked for, and the layers after it.
    asked: Pooling,
    heads: Arc<Heads>,
    norm: VectorNorm,
}

impl Fold for Text {
    type Out = Embedding;

    fn row(&mut self, at: usize, values: &[f32]) {
        self.pooled.row(at, values);
    }

    fn end(self) -> Embedding {
        let heads = &self.heads;
        let mut vectors: Vec<Vec<f32>> =
            self.pooled.end().into_iter().map(|v| heads.apply(self.asked, v)).collect();
        vectors.iter_mut().for_each(|v| self.norm.normalize(v));
        Embedding { n_token: self.n_token, vectors }
    }
}

impl Handle {
    /// Queues texts, whose embeddings run in the same steps as answers, pooled in this way, whatever their options say.
    /// If one text is refused, so are the others.
    ///
    /// Only [`Pooling::Last`] uses prefixes in the KV cache, since it needs no other row of the prompt.
    ///
    /// # Errors
    /// [`PoolingError::NoScores`](crate::PoolingError::NoScores) for [`Pooling::Rank`] without a head; otherwise as
    /// [`Handle::generate`].
    pub fn embed(&self, request: EmbedRequest, pooling: Pooling) -> Result<Readings<Embedding>, ServeError> {
        let EmbedRequest { texts, options: EmbedOptions { norm, .. }, lora, priority, client, salt } =
            request;
        let by = self.pooling(pooling)?;
        let heads = &self.shared.heads;
        // Scores are what they are.
        let norm = if pooling == Pooling::Rank { VectorNorm::None } else { norm };
        let text = |mut prompt: Vec<u32>| {
            let n_token = prompt.len();
            if by == Pooling::Cls && !self.shared.sizes.is_encoder {
                // Where attention is causal, nothing after the first token changes it.
                prompt.truncate(1);
            }
            let (pooled, heads) = (Pooled::new(by), heads.clone());
            (prompt, self.rows_of(by, n_token), Text { n_token, pooled, asked: pooling, heads, norm })
        };
        for text in &texts {
            self.check(text)?;
        }
        self.read(texts.into_iter().map(text), Shares { read: Read::Hidden, lora, priority, client, salt })
    }
}

impl Handle {
    /// The rows of a text of `n` tokens that a pooling needs.
    pub(super) fn rows_of(&self, pooling: Pooling, n: usize) -> Range<usize> {
        match pooling {
            Pooling::Cls => 0..1,
            Pooling::Last => n.saturating_sub(1)..n,
            Pooling::None | Pooling::Mean | Pooling::Rank => 0..n,
        }
    }
}

impl<E: Executor> Driver<E> {
    /// Results of [`Handle::embed`] and others for a caller that owns the driver: they are computed while the future is
    /// polled.
    ///
    /// # Errors
    /// As those of the requests.
    pub async fn results<T>(&mut self, mut readings: Readings<T>) -> Result<Vec<T>, ServeError> {
        loop {
            match readings.try_ready() {
                Some(results) => return results,
                None => self.turn().await?,
            };
        }
    }
}
