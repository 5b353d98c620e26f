//! Scores of documents for a query, by a model that answers with one of two words.

use chaski::gguf::{ArrayView, Metadata};
use chaski::text::{AddSpecial, ParseSpecial, Rendered, Tokenizer};

/// Key of a file's template for a query and a document, which are `{query}` and `{document}` in it.
const TEMPLATE: &str = "tokenizer.chat_template.rerank";

/// The template of Qwen3-Reranker, whose files may lack it.
const QWEN3: &str = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the \
    Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a \
    web search query, retrieve relevant passages that answer the query\n<Query>: {query}\n<Document>: \
    {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

/// A model that tells whether a document fits a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranker {
    template: String,
    /// The tokens of its answers: that it fits, and that it does not.
    pub(crate) words: [u32; 2],
}

impl Ranker {
    /// The ranker of a file; `None` for a model that was not made for it.
    pub(crate) fn of(metadata: &Metadata, tokenizer: &Tokenizer) -> Option<Ranker> {
        let text = |key: &str| metadata.get(key).and_then(|value| value.to::<&str>());
        let arch = text("general.architecture")?;
        let is_qwen3 = arch == "qwen3" && text("general.name").is_some_and(is_reranker);
        let template = text(TEMPLATE).or(is_qwen3.then_some(QWEN3))?.to_owned();
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
        Some(Ranker { template, words: [word(fits)?, word(not)?] })
    }

    /// The prompt for a document. Control tokens in it and in the query are text.
    pub(crate) fn prompt(&self, query: &str, document: &str) -> Rendered {
        let (mut text, mut data, mut rest) = (String::new(), Vec::new(), &*self.template);
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

    /// The score, from 0 to 1, by the logits of its words.
    pub(crate) fn score(logits: &[f32]) -> f64 {
        let [fits, not] = [0, 1].map(|i| logits.get(i).copied().map_or(f64::NAN, f64::from));
        1.0 / (1.0 + (not - fits).exp())
    }
}

const QUERY: &str = "{query}";
const DOCUMENT: &str = "{document}";

/// The next name in a template, and the texts around it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let find = |name: &'static str| text.find(name).map(|at| (at, name));
    let (at, name) = [find(QUERY), find(DOCUMENT)].into_iter().flatten().min()?;
    Some((&text[..at], name, &text[at + name.len()..]))
}

fn is_reranker(name: &str) -> bool {
    name.to_ascii_lowercase().contains("rerank")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_and_document_are_data_wherever_the_template_has_them() {
        let ranker = |template: &str| Ranker { template: template.into(), words: [1, 2] };
        let found = ranker("A{document}B{query}C").prompt("q {document}", "dd");
        assert_eq!((&*found.text, found.data), ("AddBq {document}C", vec![1..3, 4..16]));
        let found = ranker(QWEN3).prompt("q", "d");
        assert!(
            found.text.contains("answer the query\n<Query>: q\n<Document>: d<|im_end|>\n"),
            "{}",
            found.text
        );
        assert!(found.text.contains("and the Instruct provided. Note that"), "{}", found.text);
    }

    #[test]
    fn scores_are_probabilities_of_the_first_word() {
        assert_eq!(Ranker::score(&[3.0, 3.0]), 0.5);
        assert!((Ranker::score(&[2.0, 0.0]) - 0.880_797_077).abs() < 1e-8);
        assert_eq!(Ranker::score(&[-1000.0, 1000.0]), 0.0);
        assert!(Ranker::score(&[f32::NAN, 1.0]).is_nan());
    }
}
