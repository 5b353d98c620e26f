//! Filling in, by a model that is told which tokens stand for the parts.

use serde_json::{Value, json};

use crate::openapi::assert_fits;
use crate::serve::{Running, Setup};

const PREFIX: u32 = 301;
const SUFFIX: u32 = 302;
const MIDDLE: u32 = 303;
const REPO: u32 = 304;
const SEP: u32 = 305;

/// The built-in model with these tokens.
fn server(tokens: &[(&str, u32)], suffix_first: bool) -> Running {
    let mut setup = Setup::built_in(1);
    for (name, id) in tokens {
        setup.metadata.push((format!("tokenizer.ggml.fim_{name}_token_id"), (*id).into()));
    }
    setup.options.suffix_first = suffix_first;
    setup.start()
}

const PARTS: [(&str, u32); 3] = [("pre", PREFIX), ("suf", SUFFIX), ("mid", MIDDLE)];

/// The tokens of a text as it is.
fn tokens(running: &Running, text: &str) -> Vec<Value> {
    let body = json!({"content": text, "add_special": false, "parse_special": false});
    running.post("/tokenize", &body).body["tokens"].as_array().expect("tokens").clone()
}

/// The text and the number of prompt tokens of an answer to `/infill`.
fn fill(running: &Running, mut body: Value) -> (Value, Value) {
    (body["n_predict"], body["temperature"]) = (8.into(), 0.into());
    let answer = running.post("/infill", &body);
    assert_fits(running, "post", "/infill", &answer);
    (answer.body["content"].clone(), answer.body["tokens_evaluated"].clone())
}

/// The same of a prompt.
fn complete(running: &Running, prompt: Vec<Value>) -> (Value, Value) {
    let body = json!({"prompt": prompt, "n_predict": 8, "temperature": 0});
    let answer = running.post("/completion", &body).body;
    (answer["content"].clone(), answer["tokens_evaluated"].clone())
}

#[test]
fn the_prompt_has_the_parts_between_their_tokens() {
    let body = || json!({"input_prefix": "Once upon <s>", "input_suffix": " a dog.", "prompt": " a time"});
    for suffix_first in [false, true] {
        let running = server(&PARTS, suffix_first);
        let text = |text: &str| tokens(&running, text);
        let before = [vec![json!(PREFIX)], text("Once upon <s>"), text(" a time")].concat();
        let after = [vec![json!(SUFFIX)], text(" a dog.")].concat();
        let (first, second) = if suffix_first { (&after, &before) } else { (&before, &after) };
        let prompt = [&[json!(0)], &first[..], &second[..], &[json!(MIDDLE)]].concat();
        assert_eq!(fill(&running, body()), complete(&running, prompt), "suffix first: {suffix_first}");
    }
    let running = server(&PARTS, false);
    let text = |text: &str| tokens(&running, text);
    let prompt = |begin: &str, end: &str| {
        [vec![json!(0), json!(PREFIX)], text(begin), vec![json!(SUFFIX)], text(end), vec![json!(MIDDLE)]]
            .concat()
    };
    let (expected, _) = complete(&running, prompt("Once upon a", " dog."));
    let body = json!({"prompt": "Once upon a", "suffix": " dog.", "max_tokens": 8, "temperature": 0});
    assert_eq!(running.post("/v1/completions", &body).body["choices"][0]["text"], expected);
    let body = json!({
        "model": "x", "prompt": "Once upon a", "suffix": " dog.", "stream": false,
        "options": {"num_predict": 8, "temperature": 0},
    });
    assert_eq!(running.post("/api/generate", &body).body["response"], expected);
    let models = running.get("/v1/models").body;
    assert_eq!(models["data"][0]["capabilities"], json!(["completion", "insert"]));
}

#[test]
fn other_files_come_first() {
    let extra = json!([{"filename": "a.txt", "text": "the cat"}, {"text": "a fox"}]);
    let body = || json!({"input_prefix": "Once", "input_suffix": " dog.", "input_extra": extra});
    let running = server(&[&PARTS[..], &[("rep", REPO), ("sep", SEP)]].concat(), false);
    let text = |text: &str| tokens(&running, text);
    let file = |name, content| [vec![json!(SEP)], text(name), text(content)].concat();
    let prompt = [
        vec![json!(0), json!(REPO)],
        text("myproject\n"),
        file("a.txt\n", "the cat"),
        file("tmp\n", "a fox"),
        [vec![json!(SEP)], text("filename\n"), vec![json!(PREFIX)]].concat(),
        [text("Once"), vec![json!(SUFFIX)], text(" dog."), vec![json!(MIDDLE)]].concat(),
    ]
    .concat();
    assert_eq!(fill(&running, body()), complete(&running, prompt));
}

#[test]
fn what_cannot_be_filled_in_is_refused() {
    let running = Setup::built_in(1).start();
    for (path, body) in [
        ("/infill", json!({"input_prefix": "a", "input_suffix": "b"})),
        ("/v1/completions", json!({"prompt": "a", "suffix": "b"})),
        ("/api/generate", json!({"model": "x", "prompt": "a", "suffix": "b"})),
    ] {
        let answer = running.post(path, &body);
        assert_eq!(answer.status, 501, "{path}: {}", answer.text);
        assert!(answer.text.contains("cannot fill in"), "{path}: {}", answer.text);
    }
    let running = server(&PARTS, false);
    for (path, body, field) in [
        ("/infill", json!({"input_suffix": "b"}), "input_prefix"),
        ("/infill", json!({"input_prefix": "a"}), "input_suffix"),
        (
            "/infill",
            json!({"input_prefix": "a", "input_suffix": "b", "input_extra": [{}]}),
            "input_extra[0].text",
        ),
        ("/v1/completions", json!({"prompt": "a", "suffix": "b", "echo": true}), "echo"),
    ] {
        let answer = running.post(path, &body);
        assert_eq!((answer.status, &answer.body["error"]["param"]), (400, &json!(field)), "{path}");
    }
}
