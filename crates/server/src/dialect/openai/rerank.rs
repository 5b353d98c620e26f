//! `/v1/rerank` in the dialects of Jina and Cohere, and vLLM's `/v1/score`.

use serde_json::{Value, json};

use super::cache_salt;
use crate::error::ApiError;
use crate::fields::Fields;

/// Most documents in a request.
const MOST: usize = 1000;

/// A request for scores.
#[derive(Debug)]
pub(crate) struct ScoreAsk {
    /// Query and document of each score.
    pub(crate) pairs: Vec<(String, String)>,
    /// Only requests with the same salt share cached prefixes.
    pub(crate) salt: Option<String>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Rerank { top: usize, with_documents: bool },
    Score,
}

/// Reads the body of a request to sort documents.
pub(crate) fn rerank(body: &Value) -> Result<ScoreAsk, ApiError> {
    let fields = Fields::of(body, "")?;
    let salt = cache_salt(&fields)?;
    let query = fields.need("query", fields.text("query")?)?;
    let name = if fields.get("documents").is_some() { "documents" } else { "texts" };
    let list = match fields.list(name)? {
        Some(list) => list,
        None => return Err(fields.need("documents", None::<()>).expect_err("it is missing")),
    };
    if list.is_empty() || list.len() > MOST {
        return Err(fields.wrong(name, format!("a list of 1 to {MOST} documents")));
    }
    let mut pairs = Vec::new();
    for (i, document) in list.iter().enumerate() {
        let text = document.as_str().or_else(|| document["text"].as_str());
        let wrong = || fields.wrong(&format!("{name}[{i}]"), "a string, or an object with a `text`");
        pairs.push((query.to_owned(), text.ok_or_else(wrong)?.to_owned()));
    }
    let top = fields.integer("top_n", 1..=i64::MAX)?.map_or(MOST, |n| usize::try_from(n).unwrap_or(MOST));
    let with_documents = fields.flag("return_documents")?.unwrap_or(false);
    Ok(ScoreAsk { pairs, salt, kind: Kind::Rerank { top, with_documents } })
}

/// Reads the body of a request for scores: of one text with each of others, or of texts in pairs.
pub(crate) fn score(body: &Value) -> Result<ScoreAsk, ApiError> {
    let fields = Fields::of(body, "")?;
    let salt = cache_salt(&fields)?;
    let texts = |name: &str| match fields.texts(name, MOST)? {
        Some(texts) if texts.is_empty() => Err(fields.wrong(name, "a list of at least one text")),
        texts => fields.need(name, texts),
    };
    let (first, second) = (texts("text_1")?, texts("text_2")?);
    if first.len() != 1 && first.len() != second.len() {
        let expected = format!("one text, or as many as `text_2` ({})", second.len());
        return Err(fields.wrong("text_1", expected));
    }
    let pairs = first.iter().cycle().cloned().zip(second.iter().cloned()).collect();
    Ok(ScoreAsk { pairs, salt, kind: Kind::Score })
}

impl ScoreAsk {
    /// The body with these scores, in the order of the pairs.
    pub(crate) fn body(
        &self,
        (id, created, model): (&str, u64, &str),
        scores: &[f64],
        n_token: usize,
    ) -> Value {
        let usage = json!({"prompt_tokens": n_token, "total_tokens": n_token});
        match self.kind {
            Kind::Score => {
                let row = |(index, score)| json!({"index": index, "object": "score", "score": score});
                let data: Vec<Value> = scores.iter().enumerate().map(row).collect();
                json!({
                    "id": id, "object": "list", "created": created, "model": model, "data": data, "usage": usage,
                })
            }
            Kind::Rerank { top, with_documents } => {
                let mut order: Vec<usize> = (0..scores.len()).collect();
                order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
                order.truncate(top);
                let row = |index: usize| {
                    let mut row = json!({"index": index, "relevance_score": scores[index]});
                    if with_documents {
                        row["document"] = json!({"text": self.pairs[index].1});
                    }
                    row
                };
                let results: Vec<Value> = order.into_iter().map(row).collect();
                let meta = json!({"billed_units": {"search_units": 1}, "tokens": {"input_tokens": n_token}});
                json!({
                    "id": id, "object": "list", "model": model, "results": results, "usage": usage, "meta": meta,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_covers, contract};

    #[test]
    fn documents_are_sorted_by_their_scores() {
        let body =
            json!({"query": "q", "documents": ["a", {"text": "b"}], "return_documents": true, "top_n": 5});
        let ask = rerank(&body).unwrap();
        assert_eq!(ask.pairs, [("q", "a"), ("q", "b")].map(|(q, d)| (q.to_owned(), d.to_owned())));
        let found = ask.body(("i", 1, "m"), &[0.1, 0.9], 9);
        assert_covers(&found, &contract("rerank-jina.json")["body"], "body");
        let ask = rerank(&json!({"query": "q", "texts": ["a", "b", "c"], "top_n": 2})).unwrap();
        let found = ask.body(("i", 1, "m"), &[0.5, 0.25, 0.75], 9);
        assert_eq!(found["results"][0], json!({"index": 2, "relevance_score": 0.75}));
        assert_eq!(
            (&found["results"][1]["index"], found["results"].as_array().unwrap().len()),
            (&json!(0), 2)
        );
    }

    #[test]
    fn scores_are_of_one_text_with_many_or_of_pairs() {
        let pairs = |first: Value, second: Value| {
            let ask = score(&json!({"text_1": first, "text_2": second})).map_err(|e| e.message)?;
            Ok(ask.pairs.into_iter().map(|(a, b)| a + &b).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(pairs(json!("a"), json!(["b", "c"])), Ok("ab ac".to_owned()));
        assert_eq!(pairs(json!(["a", "d"]), json!(["b", "c"])), Ok("ab dc".to_owned()));
        let e = "`text_1` must be one text, or as many as `text_2` (1)";
        assert_eq!(pairs(json!(["a", "d"]), json!(["b"])), Err(e.to_owned()));
        let ask = score(&json!({"text_1": "a", "text_2": "b"})).unwrap();
        let found = ask.body(("i", 1, "m"), &[0.25], 3);
        assert_eq!(found["data"], json!([{"index": 0, "object": "score", "score": 0.25}]));
    }

    #[test]
    fn bodies_that_are_wrong_name_the_field() {
        let param = |body: &Value| rerank(body).unwrap_err().param.unwrap();
        assert_eq!(param(&json!({"documents": ["a"]})), "query");
        assert_eq!(param(&json!({"query": "q"})), "documents");
        assert_eq!(param(&json!({"query": "q", "documents": []})), "documents");
        assert_eq!(param(&json!({"query": "q", "documents": ["a", 3]})), "documents[1]");
        assert_eq!(param(&json!({"query": "q", "documents": ["a"], "top_n": 0})), "top_n");
        assert_eq!(score(&json!({"text_1": "a"})).unwrap_err().param.unwrap(), "text_2");
    }
}
