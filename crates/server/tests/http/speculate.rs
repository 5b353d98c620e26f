//! Answers with drafts.

use std::thread;

use chaski::options::Speculation;
use serde_json::{Value, json};

use crate::serve::{Running, Setup};

fn server(drafts: bool) -> Running {
    let mut setup = Setup::built_in(6);
    setup.drafts = drafts;
    setup.options.speculation = Some(Speculation::default());
    setup.start()
}

/// An answer that repeats itself, for lookup, or one that the draft model expects.
fn ask(running: &Running, repeats: bool, i: usize, more: &Value) -> Value {
    let mut body = match repeats {
        true => json!({"prompt": "She saw a", "guided_regex": "( (red|blue) ball){6}[.]", "n_predict": 40}),
        false => json!({"prompt": "Once upon a time", "ignore_eos": true, "n_predict": 24}),
    };
    body["seed"] = i.into();
    if i == 0 {
        body["temperature"] = 0.into();
    }
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let answer = running.post("/completion", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body
}

fn count(answer: &Value, name: &str) -> u64 {
    answer["timings"][name].as_u64().unwrap_or(0)
}

/// A number of the metrics.
fn metric(running: &Running, name: &str) -> f64 {
    let text = running.get("/metrics").text;
    let line = text.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
    line.and_then(|line| line.rsplit(' ').next()).map_or(0.0, |value| value.parse().expect("a number"))
}

#[test]
fn drafts_change_no_text_and_are_counted() {
    for drafts in [false, true] {
        let running = server(drafts);
        let slots = running.get("/slots").body;
        assert_eq!(slots[0]["speculative"], true);
        let none = json!({"speculative.n_max": 0});
        let plain: Vec<Value> = (0..8).map(|i| ask(&running, !drafts, i, &none)).collect();
        assert!(plain.iter().all(|answer| count(answer, "draft_n") == 0));
        assert_eq!(metric(&running, "vllm:spec_decode_num_draft_tokens_total"), 0.0);
        let drafted = ask(&running, !drafts, 0, &json!({}));
        let (n, n_accepted) = (count(&drafted, "draft_n"), count(&drafted, "draft_n_accepted"));
        assert_eq!(drafted["content"], plain[0]["content"]);
        assert!(n > 0 && n_accepted > 0 && n_accepted <= n, "{n_accepted} of {n}");
        let settings = &drafted["generation_settings"];
        assert_eq!(
            (&settings["speculative.n_max"], &settings["speculative.p_min"]),
            (&json!(4), &json!(0.0))
        );
        assert_eq!(metric(&running, "vllm:spec_decode_num_draft_tokens_total"), n as f64);
        assert_eq!(metric(&running, "vllm:spec_decode_num_accepted_tokens_total"), n_accepted as f64);
        let n_draft = metric(&running, "vllm:spec_decode_num_drafts_total");
        assert!(n_draft > 1.0 && n_draft < n as f64, "{n_draft}");
        let longer = ask(&running, !drafts, 0, &json!({"speculative.n_max": 7}));
        assert_eq!(longer["content"], plain[0]["content"]);
        // More at once than may draft.
        thread::scope(|scope| {
            for (i, plain) in plain.iter().enumerate() {
                let running = &running;
                scope.spawn(move || {
                    assert_eq!(ask(running, !drafts, i, &json!({}))["content"], plain["content"], "{i}")
                });
            }
        });
    }
}

#[test]
fn usage_has_the_counts_of_drafts() {
    let running = server(true);
    let body = json!({
        "messages": [{"role": "user", "content": "Once upon a time"}],
        "max_tokens": 16,
        "temperature": 0,
        "ignore_eos": true,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    let answer = running.post("/v1/chat/completions", &body);
    let last = answer.events.iter().rev().find(|(_, data)| data["usage"].is_object()).expect("usage");
    let details = &last.1["usage"]["completion_tokens_details"];
    let timings = &last.1["timings"];
    assert_eq!(details["accepted_prediction_tokens"], timings["draft_n_accepted"], "{}", last.1);
    assert!(timings["draft_n"].as_u64() > Some(0), "{timings}");
    for (name, value) in [("n_max", json!("many")), ("n_min", json!(-1)), ("p_min", json!(2))] {
        let name = format!("speculative.{name}");
        let refused = running.post("/v1/completions", &json!({"prompt": "A", &name: value}));
        assert_eq!((refused.status, &refused.body["error"]["param"]), (400, &json!(name)));
    }
}
