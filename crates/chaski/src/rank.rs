//! Scores of documents for a query.

use chaski_models::serve::{RankBy, RankRequest, Readings, ServeError};
use chaski_models::{Model, ModelError, PoolingError};
use chaski_text::{AddSpecial, ParseSpecial, Rendered, Tokenizer, TokenizerError, Within};
use ggml_format::{ArrayView, ByteSource, Metadata};

use crate::engine::Engine;
use crate::error::Error;
use crate::handle::Handle;

/// Key of a file's template for a query and a document, which are `{query}` and `{document}` in it.
const TEMPLATE: &str = "tokenizer.chat_template.rerank";

/// The template of Qwen3-Reranker, whose files may lack it.
const QWEN3: &str = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the \
    Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a \
    web search query, retrieve relevant passages that answer the query\n<Query>: {query}\n<Document>: \
    {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

/// A model's way of scoring documents for a query: by a head of its own, or by one of two words as its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranker {
    /// Without one, query and document are a pair of texts.
    template: Option<String>,
    by: RankBy,
}

impl Ranker {
    /// The ranker of a file; `None` for a model that was not made for it.
    pub fn of<S: ByteSource>(model: &Model<S>) -> Option<Ranker> {
        let (metadata, tokenizer) = (model.metadata(), model.tokenizer());
        let template = template(metadata);
        let is_head = |name: &str| ["cls.weight", "cls.output.weight"].contains(&name);
        let has_head = model.arch().ranks.is_some() && model.tensors().iter().any(|t| is_head(&t.name));
        if has_head && tokenizer.has_text() {
            return Some(Ranker { template, by: RankBy::Head });
        }
        let by = words(metadata, tokenizer)?;
        template.map(|template| Ranker { template: Some(template), by: RankBy::Words(by) })
    }

    /// Origin of its scores.
    pub fn by(&self) -> RankBy {
        self.by
    }

    /// The tokens for a document. Control tokens in it and in the query are text.
    ///
    /// # Errors
    /// [`TokenizerError::NoText`] for a model without a tokenizer; [`TokenizerError::TooLong`].
    pub fn tokens(
        &self,
        tokenizer: Within<'_>,
        query: &str,
        document: &str,
    ) -> Result<Vec<u32>, TokenizerError> {
        match &self.template {
            Some(template) => tokenizer.encode_traced(&filled(template, query, document), AddSpecial::Yes),
            None => tokenizer.encode_pair(query, document),
        }
    }
}

fn text<'m>(metadata: &'m Metadata, key: &str) -> Option<&'m str> {
    metadata.get(key).and_then(|value| value.to::<&str>())
}

/// The template of a file, or of a model that is known.
fn template(metadata: &Metadata) -> Option<String> {
    let is_reranker = |name: &str| name.to_ascii_lowercase().contains("rerank");
    let is_qwen3 = text(metadata, "general.architecture") == Some("qwen3")
        && text(metadata, "general.name").is_some_and(is_reranker);
    text(metadata, TEMPLATE).or(is_qwen3.then_some(QWEN3)).map(str::to_owned)
}

/// The tokens of its answers: that the document fits, and that it does not.
fn words(metadata: &Metadata, tokenizer: &Tokenizer) -> Option<[u32; 2]> {
    let arch = text(metadata, "general.architecture")?;
    let labels = metadata.get(&format!("{arch}.classifier.output_labels"));
    let labels = labels.and_then(|value| value.to::<ArrayView<'_>>());
    let labels: Vec<&str> = match labels {
        Some(labels) => labels.iter().filter_map(|label| label.to::<&str>()).collect(),
        None => vec!["yes", "no"],
    };
    let word = |word: &str| match tokenizer.encode(word, AddSpecial::No, ParseSpecial::No).ok()?[..] {
        [token] => Some(token),
        _ => None,
    };
    let [fits, not] = labels[..] else { return None };
    Some([word(fits)?, word(not)?])
}

const QUERY: &str = "{query}";
const DOCUMENT: &str = "{document}";

/// A template with a query and a document, which are data.
fn filled(template: &str, query: &str, document: &str) -> Rendered {
    let (mut text, mut data, mut rest) = (String::new(), Vec::new(), template);
    while let Some((before, name, after)) = next(rest) {
        text.push_str(before);
        let start = text.len();
        text.push_str(if name == QUERY { query } else { document });
        data.push(start..text.len());
        rest = after;
    }
    text.push_str(rest);
    Rendered { text, data }
}

/// The next name in a template, and the texts around it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let find = |name: &'static str| text.find(name).map(|at| (at, name));
    let (at, name) = [find(QUERY), find(DOCUMENT)].into_iter().flatten().min()?;
    Some((&text[..at], name, &text[at + name.len()..]))
}

impl Handle {
    /// Queues prompts for their scores, which run in the same steps as answers.
    ///
    /// # Errors
    /// As [`Self::generate_tokens`].
    pub fn rank(&self, request: RankRequest) -> Result<Readings<f64>, ServeError> {
        self.handle.rank(request)
    }
}

impl Engine {
    /// Scores of documents for a query, in order; the higher, the better a document fits. Several run at once on an
    /// engine with several [`sequences`](crate::EngineBuilder::sequences).
    ///
    /// # Errors
    /// [`Error::Model`] with [`PoolingError::NoScores`] for a model that was not made for it, or without a tokenizer;
    /// [`Error::Serve`] for a document that the context has no room for, or if the device fails.
    pub async fn rank(&mut self, query: &str, documents: &[impl AsRef<str>]) -> Result<Vec<f64>, Error> {
        let ranker = Ranker::of(self.model()).ok_or_else(|| ModelError::from(PoolingError::NoScores))?;
        let (handle, driver) = self.service();
        let tokenizer = handle.tokenizer().within(handle.n_ctx());
        let tokens = |document: &str| ranker.tokens(tokenizer, query, document);
        let prompts: Result<Vec<_>, _> = documents.iter().map(|d| tokens(d.as_ref())).collect();
        let request = RankRequest::new(prompts.map_err(ModelError::from)?, ranker.by());
        Ok(driver.results(handle.rank(request)?).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_and_document_are_data_wherever_the_template_has_them() {
        let found = filled("A{document}B{query}C", "q {document}", "dd");
        assert_eq!((&*found.text, found.data), ("AddBq {document}C", vec![1..3, 4..16]));
        let found = filled(QWEN3, "q", "d");
        assert!(
            found.text.contains("answer the query\n<Query>: q\n<Document>: d<|im_end|>\n"),
            "{}",
            found.text
        );
        assert!(found.text.contains("and the Instruct provided. Note that"), "{}", found.text);
    }
}
