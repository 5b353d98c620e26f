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
        let pooling = self.pooling(options)?;
        let (tokenizer, runner) = self.parts();
        let mut out = Vec::with_capacity(texts.len());
        for text in texts {
            out.push(chaski_models::embed(runner, tokenizer, text.as_ref(), pooling, options.norm).await?);
        }
        Ok(out)
    }

    /// The same for tokens, as they are.
    ///
    /// # Errors
    /// As [`Self::embed`], and tokens outside the vocabulary.
    pub async fn embed_tokens(&mut self, tokens: &[u32], options: &EmbedOptions) -> Result<Embedding, Error> {
        let pooling = self.pooling(options)?;
        Ok(chaski_models::embed_tokens(self.runner(), tokens, pooling, options.norm).await?)
    }

    fn pooling(&self, options: &EmbedOptions) -> Result<Pooling, Error> {
        match options.pooling {
            Some(pooling) => Ok(pooling),
            None => Ok(Pooling::of(self.model().metadata())?),
        }
    }
}
