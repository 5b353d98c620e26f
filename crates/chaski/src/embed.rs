//! Text embeddings and logits: requests without an answer.

use chaski_models::serve::{EmbedRequest, LogitsRequest, PromptLogprobsRequest, Readings, ServeError};
use chaski_models::{EmbedOptions, Embedding};
use chaski_text::Logprobs;

use crate::engine::Engine;
use crate::error::Error;
use crate::handle::Handle;

impl Handle {
    /// Queues the embeddings of texts, which run in the same steps as answers. The pooling is the file's, unless the
    /// options have one.
    ///
    /// ```no_run
    /// # async fn example(handle: chaski::Handle) -> Result<(), chaski::Error> {
    /// use chaski::embedding::EmbedRequest;
    ///
    /// let texts = vec![vec![1, 9038, 2501], vec![1, 29871]];
    /// let found = handle.embed(EmbedRequest::new(texts, Default::default()))?.await?;
    /// assert_eq!(found.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ServeError::Model`] if neither the file nor the options specify the pooling; as [`Self::generate_tokens`].
    pub fn embed(&self, request: EmbedRequest) -> Result<Readings<Embedding>, ServeError> {
        let pooling = request.options.pooling.map_or_else(|| self.pooling.clone(), Ok);
        self.handle.embed(request, pooling.map_err(ServeError::Model)?)
    }
}

impl Handle {
    /// Queues prompts for the logits of some tokens as their next, which run in the same steps as answers.
    ///
    /// # Errors
    /// As [`Self::generate_tokens`].
    pub fn logits(&self, request: LogitsRequest) -> Result<Readings<Vec<f32>>, ServeError> {
        self.handle.logits(request)
    }

    /// Queues prompts for the log probabilities of their own tokens: of all but the first, which nothing precedes.
    ///
    /// # Errors
    /// As [`Self::generate_tokens`].
    pub fn prompt_logprobs(
        &self,
        request: PromptLogprobsRequest,
    ) -> Result<Readings<Vec<Logprobs>>, ServeError> {
        self.handle.prompt_logprobs(request)
    }
}

impl Engine {
    /// The embeddings of texts, in order: `[n_embd]` per text, or one per token if they are not pooled. Several texts
    /// run at once on an engine with several [`sequences`](crate::EngineBuilder::sequences).
    ///
    /// # Errors
    /// [`Error::Serve`] if neither the file nor the options specify the pooling, for a text without tokens or longer
    /// than the context, or if the device fails; [`Error::Model`] for a model without a tokenizer.
    pub async fn embed(
        &mut self,
        texts: &[impl AsRef<str>],
        options: &EmbedOptions,
    ) -> Result<Vec<Embedding>, Error> {
        let (handle, driver) = self.service();
        let texts: Result<Vec<_>, _> = texts.iter().map(|text| handle.encode(text.as_ref())).collect();
        let request = EmbedRequest::new(texts?, *options);
        Ok(driver.results(handle.embed(request)?).await?)
    }

    /// The same for tokens, as they are.
    ///
    /// # Errors
    /// As [`Self::embed`], and tokens outside the vocabulary.
    pub async fn embed_tokens(
        &mut self,
        texts: Vec<Vec<u32>>,
        options: &EmbedOptions,
    ) -> Result<Vec<Embedding>, Error> {
        let (handle, driver) = self.service();
        Ok(driver.results(handle.embed(EmbedRequest::new(texts, *options))?).await?)
    }
}
