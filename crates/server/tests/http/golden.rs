//! Answers of a server to requests that llama-server answered, compared by meaning.
//!
//! The recorded cases are in fixtures/server; their models and templates are outside of the tree (`CHASKI_TEST_DATA`).

use crate::cases::{Case, all};
use crate::compare;
use crate::serve::{Answer, Running, Setup};

/// Cases in which llama-server does something else than the dialect asks for, and what we do.
const DIFFERENT: [(&str, &str); 13] = [
    ("error-context", "its type is invalid_request_error, as OpenAI has it"),
    ("chat-n-2", "the tokens of both answers count, as OpenAI counts them; theirs are those of one"),
    ("chat-prefill", "the content is only what is new"),
    ("completions-oai-echo", "the prompt is echoed"),
    ("completion-native-zero", "0 tokens are none"),
    ("chat-json-schema", "the JSON ends; theirs fills the limit with blanks"),
    ("anthropic-no-max-tokens", "400: the field is required"),
    ("anthropic-stop-sequence", "stop_reason is stop_sequence"),
    ("responses", "an answer that is cut is incomplete"),
    ("responses-stream", "an answer that is cut ends with response.incomplete"),
    ("error-image", "400 instead of 500"),
    ("error-embeddings-empty", "400: there is nothing to embed"),
    ("cors-preflight", "204, and only origins of this machine"),
];

fn check(group: &str) {
    let Some(found) = all(group) else { return };
    assert!(!found.is_empty(), "no case of {group}");
    let running: Running = Setup::of(group).start();
    let mut failures = Vec::new();
    for case in &found {
        let answer = running.ask(case);
        let different = DIFFERENT.iter().find(|(name, _)| *name == case.name);
        let result = match different {
            Some(_) => ours(case, &answer),
            None => compare::compare(case, &answer),
        };
        if let Err(what) = result {
            failures.push(format!("{}: {what}", case.name));
        }
    }
    assert!(failures.is_empty(), "{} of {} differ:\n{}", failures.len(), found.len(), failures.join("\n"));
}

/// Our own answer where the recorded one is wrong.
fn ours(case: &Case, answer: &Answer) -> Result<(), String> {
    let body = &answer.body;
    let text =
        |path: &str| compare::at(body, path).first().and_then(|v| v.as_str()).unwrap_or("?").to_owned();
    let ok = match case.name.as_str() {
        "chat-prefill" => {
            let theirs = &case.response["body"]["choices"][0]["message"]["content"];
            let given = case.request["body"]["messages"][1]["content"].as_str().unwrap_or_default();
            theirs.as_str() == Some(&format!("{given}{}", text("choices.0.message.content")))
        }
        "completions-oai-echo" => {
            let prompt = case.request["body"]["prompt"].as_str().unwrap_or_default();
            let theirs = case.response["body"]["choices"][0]["text"].as_str().unwrap_or_default();
            text("choices.0.text") == format!("{prompt}{theirs}")
        }
        "completion-native-zero" => body["content"] == "" && body["tokens_evaluated"] == 5,
        "chat-n-2" => {
            let same = ["choices.*.message.content", "choices.*.finish_reason", "usage.prompt_tokens"];
            let theirs = &case.response["body"];
            let one = theirs["usage"]["completion_tokens"].as_u64().unwrap_or_default();
            same.iter().all(|path| compare::at(body, path) == compare::at(theirs, path))
                && body["usage"]["completion_tokens"] == 2 * one
        }
        "chat-json-schema" => return compare::content_conforms(case, body),
        "anthropic-stop-sequence" => body["stop_reason"] == "stop_sequence",
        "responses" => body["status"] == "incomplete",
        "responses-stream" => answer.events.last().is_some_and(|(name, _)| name == "response.incomplete"),
        "anthropic-no-max-tokens" | "error-image" | "error-embeddings-empty" => answer.status == 400,
        "error-context" => {
            let error = &body["error"];
            error["code"] == "context_length_exceeded"
                && error["n_ctx"] == 512
                && error["n_prompt_tokens"] == case.response["body"]["error"]["n_prompt_tokens"]
        }
        "cors-preflight" => answer.status == 204,
        other => return Err(format!("no expectation for {other}")),
    };
    if ok { Ok(()) } else { Err(format!("status {}, {body}", answer.status)) }
}

#[test]
fn stories() {
    check("story");
}

/// Tokens and their probabilities, of all entries of a list.
fn probabilities(body: &serde_json::Value) -> (Vec<u64>, Vec<f64>) {
    let list = body["completion_probabilities"].as_array().expect("there are probabilities");
    let top = |one: &serde_json::Value| one["top_probs"].as_array().expect("a token has others").clone();
    let all: Vec<_> = list.iter().flat_map(|one| std::iter::once(one.clone()).chain(top(one))).collect();
    let id = |one: &serde_json::Value| one["id"].as_u64().expect("a token has an id");
    let prob = |one: &serde_json::Value| one["prob"].as_f64().expect("a token has a probability");
    (all.iter().map(id).collect(), all.iter().map(prob).collect())
}

#[test]
fn probabilities_after_sampling_are_those_of_llama_server() {
    let name = "completion-native-post-sampling-probs";
    let Some(cases) = all("story") else { return };
    let case = cases.into_iter().find(|case| case.name == name).expect("the recorded case");
    let running = Setup::of("story").start();
    let answer = running.ask(&case);
    let (ids, probs) = probabilities(&answer.body);
    let (their_ids, theirs) = probabilities(&case.response["body"]);
    assert_eq!((&answer.body["content"], ids), (&case.response["body"]["content"], their_ids));
    for (ours, theirs) in probs.iter().zip(theirs) {
        assert!((ours - theirs).abs() <= 1e-3 * theirs, "{ours} instead of {theirs}");
    }
    assert_eq!(answer.body["generation_settings"]["post_sampling_probs"], true);
    // A stream has the same.
    let mut streamed = case.request["body"].clone();
    streamed["stream"] = true.into();
    let events = running.post("/completion", &streamed).events;
    let pieces = events.iter().filter_map(|(_, event)| event["completion_probabilities"].as_array());
    let found: Vec<_> = pieces.flatten().cloned().collect();
    assert_eq!(answer.body["completion_probabilities"], serde_json::Value::from(found));
}

#[test]
fn embeddings() {
    check("emb");
}

#[test]
fn keys() {
    check("auth");
}

#[test]
fn tools() {
    check("tools");
}

#[test]
fn full_contexts() {
    check("small");
}

#[test]
fn contexts_that_go_on() {
    check("shift");
}
