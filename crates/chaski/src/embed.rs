//! Embeddings of texts by an engine.

use chaski_models::{EmbedOptions, Embedding, Pooling};

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// The vectors of texts, one after the other: `[n_embd]` for each, or one for each of its tokens if they are not pooled.
    /// The conversation is forgotten.
    ///
    /// # Errors
    /// [`Error::Model`] if neither the file nor the options say how tokens are pooled, for a text of no tokens or of more
    /// than the context holds, or a device that fails.
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
        runner.truncate(0);
        Ok(out)
    }
}
