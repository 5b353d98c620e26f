//! Text embeddings.

use chaski_models::{EmbedOptions, Embedding, Pooling};

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// The embeddings of texts, in order: `[n_embd]` per text, or one per token if they are not pooled. The
    /// conversation is cleared.
    ///
    /// # Errors
    /// [`Error::Model`] if neither the file nor the options specify the pooling, for a text without tokens or
    /// longer than the context, or if the device fails.
    pub async fn embed(
        &mut self,
        texts: &[impl AsRef<str>],
        options: &EmbedOptions,
    ) -> Result<Vec<Embedding>, Error> {
        let pooling = match options.pooling {
            Some(p) => p,
            None => Pooling::of(self.model().metadata())?,
        };
        let (tokenizer, runner) = self.parts();
        let mut out = Vec::with_capacity(texts.len());
        for text in texts {
            out.push(chaski_models::embed(runner, tokenizer, text.as_ref(), pooling, options.norm).await?);
        }
        Ok(out)
    }
}
