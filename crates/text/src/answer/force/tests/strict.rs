//! Answers that may have calls: text is free, and calls of strict tools conform to their schemas.

use super::*;

/// The tools of the other tests, all of them strict.
fn strict_tools() -> Vec<Value> {
    let mut tools = tools();
    tools.iter_mut().for_each(|tool| tool["function"]["strict"] = true.into());
    tools
}

/// A text in tokens: markers are their own tokens, all else is bytes.
fn spell(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let (mut ids, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let starts = |id: &u32| {
            let token = tokenizer.token_text(*id).unwrap_or_default();
            !token.is_empty() && text[at..].starts_with(token)
        };
        let marker = (257..tokenizer.n_vocab() as u32)
            .filter(starts)
            .max_by_key(|id| tokenizer.token_text(*id).map(str::len));
        ids.push(marker.unwrap_or(text.as_bytes()[at].into()));
        at += marker.and_then(|id| tokenizer.token_text(id)).map_or(1, str::len);
    }
    ids
}

/// The text before a call, and the marker that opens it.
fn opening(syntax: &AnswerSyntax) -> (&'static str, &'static str) {
    match syntax.name() {
        "harmony" => (
            "<|channel|>analysis<|message|>Hm to=functions.x.<|end|><|start|>assistant<|channel|>final<|message|>Well.<|end|>",
            "<|start|>assistant<|channel|>commentary to=functions.",
        ),
        // An answer that begins with an object is a call.
        "llama3" => ("", "{"),
        _ => ("Well.\n", syntax.calls.open),
    }
}

fn walk_all_strict(kind: i32) {
    let tools = strict_tools();
    for name in AnswerSyntax::names().filter(|name| !["plain", "object"].contains(name)) {
        let syntax = syntax(name);
        let tokenizer = byte_tokenizer(&markers(syntax, kind), kind);
        let grammar = syntax.strict_grammar(&tokenizer, &tools, "").unwrap().expect("tools are strict");
        let (before, open) = opening(syntax);
        let mut names = std::collections::BTreeSet::new();
        for seed in 0..n_seed() {
            let begun = spell(&tokenizer, &format!("{before}{open}"));
            let text = walk_on(&tokenizer, &grammar, &begun, seed, 40);
            let answer = AnswerParser::new(syntax, "", &tools).parse(&text);
            assert!(!answer.calls.is_empty(), "{name}: {text:?}");
            assert!(
                before.is_empty() || answer.content.starts_with("Well."),
                "{name}: {answer:?} of {text:?}"
            );
            check_calls(syntax, &tools, &answer, &text);
            names.extend(answer.calls.into_iter().map(|call| call.name));
        }
        assert!(names.len() > 1, "{name}: {names:?}");
    }
}

#[test]
fn calls_after_free_text_conform_with_markers_that_are_control_tokens() {
    walk_all_strict(CONTROL);
}

#[test]
fn calls_after_free_text_conform_with_markers_that_are_text() {
    walk_all_strict(USER_DEFINED);
}

/// The grammar's verdict on a text: `None` if some part of it is forbidden, else true if it may end there.
fn verdict(tokenizer: &Tokenizer, grammar: &Grammar, text: &str) -> Option<bool> {
    let mut constraint = Constraint::new(tokenizer, grammar).unwrap_or_else(|e| panic!("{e:?}: {grammar:?}"));
    for id in spell(tokenizer, text) {
        constraint.accept(id).ok()?;
    }
    Some(constraint.is_finished() || constraint.may_end().unwrap())
}

#[test]
fn text_without_calls_is_free() {
    for kind in [CONTROL, USER_DEFINED] {
        for (name, opened, texts) in [
            (
                "hermes",
                "",
                &[
                    "",
                    "Hello. {\"name\": 1} <tool_cal",
                    "<think>I could write <think> or </tool_call>.</think>\n\nDone <b>.",
                    "\n<think>\nUnclosed",
                    "a < b </think> [THINK]",
                ][..],
            ),
            ("hermes", "<think>\n", &["I may say </tool_call></think>Done.", "Unclosed", "</think>"]),
            ("kimi-k2", "", &["Hello.", "<think>Hm.</think>Well. functions.now:0"]),
            (
                "kimi-k3",
                "",
                &[
                    "<|open|>think<|sep|>Hm.<|close|>think<|sep|><|open|>response<|sep|>Well.<|close|>response<|sep|>",
                ],
            ),
            ("deepseek-v3.2", "", &["<think>a < b</think>a <b> c", "Well."]),
            ("llama3", "", &["Hello {}.", " [1] {", "I say <|python_ta"]),
            ("mistral", "", &["[THINK]Hm.[/THINK]Well.", "[1, 2]"]),
            (
                "harmony",
                "",
                &[
                    "<|channel|>analysis<|message|>Use to=functions.now?<|end|><|start|>assistant<|channel|>final<|message|>Well.",
                    "Plain.",
                ],
            ),
        ] {
            let syntax = syntax(name);
            let tokenizer = byte_tokenizer(&markers(syntax, kind), kind);
            let grammar = syntax.strict_grammar(&tokenizer, &strict_tools(), opened).unwrap().unwrap();
            for text in texts {
                assert_eq!(verdict(&tokenizer, &grammar, text), Some(true), "{name}, {kind}: {text:?}");
            }
        }
    }
}

#[test]
fn reasoning_may_mention_the_marker_of_calls() {
    let syntax = syntax("hermes");
    let tokenizer = byte_tokenizer(&markers(syntax, USER_DEFINED), USER_DEFINED);
    for (opened, text) in [
        ("", "<think>I write <tool_call> and {} for calls.</think>Well."),
        ("<think>", "A <tool_call>?</think>Well."),
    ] {
        let grammar = syntax.strict_grammar(&tokenizer, &strict_tools(), opened).unwrap().unwrap();
        assert_eq!(verdict(&tokenizer, &grammar, text), Some(true), "{text}");
        let after = format!("{text} <tool_call>{{\"name\": \"then\"");
        assert_eq!(verdict(&tokenizer, &grammar, &after), None, "{after}");
    }
}

#[test]
fn arguments_of_strict_tools_conform_and_those_of_others_are_objects() {
    let function = |name: &str, strict: Value| {
        let parameters =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        json!({"type": "function", "function": {"name": name, "parameters": parameters, "strict": strict}})
    };
    let tools = [function("f", true.into()), function("g", false.into()), function("h", Value::Null)];
    for kind in [CONTROL, USER_DEFINED] {
        for (name, call) in [
            ("hermes", ["Well. <tool_call>\n{\"name\": \"", "\", \"arguments\": ", "}\n</tool_call>"]),
            ("mistral", ["Well. [TOOL_CALLS]", "[ARGS]", ""]),
            ("llama3", ["{\"name\": \"", "\", \"parameters\": ", "}"]),
            ("harmony", ["<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", ""]),
        ] {
            let syntax = syntax(name);
            let tokenizer = byte_tokenizer(&markers(syntax, kind), kind);
            let grammar = syntax.strict_grammar(&tokenizer, &tools, "").unwrap().unwrap();
            let [open, middle, close] = call;
            let verdict = |tool: &str, arguments: &str| {
                verdict(&tokenizer, &grammar, &format!("{open}{tool}{middle}{arguments}{close}"))
            };
            assert_eq!(verdict("f", "{\"n\": 1}"), Some(true), "{name}, {kind}");
            for wrong in ["{}", "{\"n\": \"1\"}", "{\"n\": 1, \"m\": 2}", "[]", "{\"n\": 1"] {
                assert_ne!(verdict("f", wrong), Some(true), "{name}, {kind}: {wrong}");
            }
            for tool in ["g", "h"] {
                assert_eq!(verdict(tool, "{\"m\": [1], \"n\": {}}"), Some(true), "{name}, {kind}: {tool}");
                assert_eq!(verdict(tool, "[]"), None, "{name}, {kind}: {tool}");
            }
            assert_eq!(verdict("x", "{}"), None, "{name}, {kind}");
        }
    }
}

#[test]
fn tools_that_are_not_strict_need_no_grammar() {
    let tokenizer = byte_tokenizer(&[], CONTROL);
    for (name, tools) in [("hermes", tools()), ("hermes", Vec::new()), ("plain", strict_tools())] {
        assert_eq!(syntax(name).strict_grammar(&tokenizer, &tools, "").unwrap(), None, "{name}");
    }
    let wrong = [json!({"function": {"name": "f", "parameters": {"type": "string"}, "strict": true}})];
    let error = syntax("hermes").strict_grammar(&tokenizer, &wrong, "").unwrap_err().to_string();
    assert_eq!(error, "the schema of the tool `f` does not allow an object, which arguments are");
}
