//! Scores of documents, by a model that is told to have two words for it.

use serde_json::{Value, json};

use crate::openapi::assert_fits;
use crate::serve::{Running, Setup};

/// Tokens of the words.
const TIME: &str = "1784";
const NO: &str = "1886";

/// The built-in model with a template for documents.
fn ranker(n_seq: u32) -> Running {
    let mut setup = Setup::built_in(n_seq);
    let template = "Once upon a time {query} saw a {document}. One day";
    setup.metadata.push(("tokenizer.chat_template.rerank".into(), template.into()));
    setup.metadata.push(("{arch}.classifier.output_labels".into(), vec!["time", "no"].into()));
    setup.start()
}

#[test]
fn pairs_are_as_long_as_a_prompt_may_be() {
    let mut setup = Setup::reranker();
    setup.config.bounds.max_prompt = Some(20);
    let running = setup.start();
    let score = |document: &str| running.post("/v1/score", &json!({"text_1": "fox", "text_2": document}));
    assert_eq!(score("A dog.").status, 200);
    let refused = score(&"dog ".repeat(20));
    assert_eq!((refused.status, &refused.body["error"]["code"]), (400, &json!("context_length_exceeded")));
    assert!(refused.text.contains("> 20 maximum of this server"), "{}", refused.text);
}

#[test]
fn documents_are_ranked_and_each_score_is_that_of_its_pair() {
    let running = ranker(3);
    let documents = ["dog", "big red ball in the park", "fox", "Lily and Tom"];
    let score = |first: Value, second: Value| -> Vec<f64> {
        let answer = running.post("/v1/score", &json!({"text_1": first, "text_2": second}));
        assert_fits(&running, "post", "/v1/score", &answer);
        let data = answer.body["data"].as_array().expect("scores").clone();
        data.iter().map(|row| row["score"].as_f64().expect("a number")).collect()
    };
    let each: Vec<f64> = documents.iter().flat_map(|d| score(json!("a cat"), json!(d))).collect();
    assert_eq!(score(json!("a cat"), json!(documents)), each);
    assert!(each.iter().all(|score| (0.0..=1.0).contains(score)), "{each:?}");
    // By hand: a large bias chooses a word, whose log probability is that without it.
    for (document, score) in documents.iter().zip(&each) {
        let prompt = format!("Once upon a time a cat saw a {document}. One day");
        let logprob = |word: &str| {
            let bias = json!({ word: 60 });
            let body = json!({
                "prompt": prompt, "max_tokens": 1, "temperature": 0, "logit_bias": bias, "logprobs": 1,
            });
            let found = running.post("/v1/completions", &body).body;
            let logprobs = &found["choices"][0]["logprobs"];
            logprobs["token_logprobs"][0].as_f64().unwrap_or_else(|| panic!("{found}"))
        };
        let expected = 1.0 / (1.0 + (logprob(NO) - logprob(TIME)).exp());
        assert!((expected - score).abs() < 1e-5, "{document}: {expected} and {score}");
    }
    for path in ["/v1/rerank", "/v2/rerank", "/rerank", "/reranking"] {
        let body = json!({"query": "a cat", "documents": documents, "return_documents": true});
        let answer = running.post(path, &body);
        assert_fits(&running, "post", path, &answer);
        let found = answer.body;
        let results = found["results"].as_array().expect("results");
        assert_eq!(results.len(), 4, "{found}");
        for pair in results.windows(2) {
            assert!(pair[0]["relevance_score"].as_f64() >= pair[1]["relevance_score"].as_f64(), "{found}");
        }
        for result in results {
            let index = result["index"].as_u64().expect("an index") as usize;
            assert_eq!(result["relevance_score"], each[index]);
            assert_eq!(result["document"]["text"], documents[index]);
        }
        assert_eq!(found["usage"]["prompt_tokens"], found["usage"]["total_tokens"]);
    }
}

/// Pairs of a query and a document, with their scores by llama.cpp.
fn pairs() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/encoders/reranker.txt");
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("a list")
}

#[test]
fn an_encoder_scores_by_its_head_and_does_not_chat() {
    let running = Setup::reranker().start();
    let pairs = pairs();
    let of = |name: &str| -> Vec<Value> { pairs.iter().map(|pair| pair[name].clone()).collect() };
    let answer = running.post("/v1/score", &json!({"text_1": of("query"), "text_2": of("document")}));
    assert_fits(&running, "post", "/v1/score", &answer);
    for (pair, row) in pairs.iter().zip(answer.body["data"].as_array().expect("scores")) {
        let [found, expected] = [&row["score"], &pair["score"]].map(|v| v.as_f64().expect("a number"));
        assert!((found - expected).abs() < 1e-6, "{pair}: {found}");
    }
    let n_token: usize = pairs.iter().map(|pair| pair["tokens"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!(answer.body["usage"]["prompt_tokens"], n_token);
    // Documents of the first query, the best first.
    let body = json!({"query": pairs[0]["query"], "documents": [pairs[1]["document"], pairs[0]["document"]]});
    let found = running.post("/v1/rerank", &body).body;
    assert_eq!(
        (&found["results"][0]["index"], &found["results"][1]["index"]),
        (&json!(1), &json!(0)),
        "{found}"
    );
    // Its pooling is that of scores, so that its embeddings are scores.
    let found = running.post("/v1/embeddings", &json!({"input": ["a cat"]})).body;
    assert_eq!(found["data"][0]["embedding"].as_array().map(Vec::len), Some(1), "{found}");
    let chat = json!({"messages": [{"role": "user", "content": "Hi"}]});
    let answer = running.post("/v1/chat/completions", &chat);
    assert_eq!((answer.status, &answer.body["error"]["type"]), (501, &json!("not_supported_error")));
    let message = answer.body["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("it is an encoder"), "{message}");
    let long = json!({"query": "cat ".repeat(40), "documents": ["dog ".repeat(40)]});
    let answer = running.post("/v1/rerank", &long);
    assert_eq!((answer.status, &answer.body["error"]["code"]), (400, &json!("context_length_exceeded")));
}

#[test]
fn a_model_that_does_not_rank_says_so() {
    let running = Setup::built_in(1).start();
    for (path, body) in [
        ("/v1/rerank", json!({"query": "a", "documents": ["b"]})),
        ("/v1/score", json!({"text_1": "a", "text_2": "b"})),
    ] {
        let answer = running.post(path, &body);
        assert_eq!(
            (answer.status, &answer.body["error"]["type"]),
            (501, &json!("not_supported_error")),
            "{path}"
        );
    }
    let ranker = ranker(1);
    let answer = ranker.post("/v1/rerank", &json!({"query": "a", "documents": []}));
    assert_eq!((answer.status, &answer.body["error"]["param"]), (400, &json!("documents")));
    let long = "dog ".repeat(600);
    let answer = ranker.post("/v1/rerank", &json!({"query": "a", "documents": ["b", long]}));
    assert_eq!((answer.status, &answer.body["error"]["code"]), (400, &json!("context_length_exceeded")));
}
