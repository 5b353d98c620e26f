//! Answers in parts: the parser reads back what chat templates teach models to write.

mod common;

use std::collections::BTreeMap;

use chaski_text::{
    Answer, AnswerParser, AnswerSyntax, ChatTemplate, LocalTime, Message, TemplateOptions, Tokenizer,
    TokenizerSpec, ToolCall,
};
#[cfg(feature = "constraint")]
use chaski_text::{CallChoice, Constraint};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The parsed answer, for text in pieces of at most `n_char` characters.
fn parse(syntax: &'static AnswerSyntax, prompt: &str, tools: &[Value], text: &str, n_char: usize) -> Answer {
    parse_with(AnswerParser::new(syntax, prompt, tools), text, n_char)
}

fn parse_with(mut parser: AnswerParser, text: &str, n_char: usize) -> Answer {
    let mut answer = Answer::default();
    let chars: Vec<char> = text.chars().collect();
    for piece in chars.chunks(n_char) {
        answer.extend(parser.push(&piece.iter().collect::<String>()));
    }
    answer.extend(parser.finish());
    answer
}

fn by_name(name: &str) -> &'static AnswerSyntax {
    AnswerSyntax::by_name(name).unwrap_or_else(|| panic!("no syntax {name}"))
}

/// The parsed `text`, whose parts must not depend on the chunking.
fn parts(name: &str, text: &str) -> Answer {
    let whole = parse(by_name(name), "", &[], text, usize::MAX);
    for n_char in [1, 2, 3, 7] {
        assert_eq!(parse(by_name(name), "", &[], text, n_char), whole, "{name}, {n_char}: {text}");
    }
    whole
}

fn call(name: &str, arguments: Value) -> (String, Value) {
    (name.to_owned(), arguments)
}

/// Names and arguments of calls, which must all be valid.
fn calls(calls: &[ToolCall]) -> Vec<(String, Value)> {
    let read = |call: &ToolCall| {
        assert!(call.is_valid, "{call:?}");
        (call.name.clone(), serde_json::from_str(&call.arguments).unwrap())
    };
    calls.iter().map(read).collect()
}

/// Templates whose calls are not read back, with the reason; each is asserted to still fail.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("MiniMax-M3/2", "objects within arguments are tags within tags, which come out as text"),
    ("muse-glimmer/1", "calls are messages to recipients with tags in them; no released model does so"),
    ("muse-glimmer/2", "as above"),
];

/// Fails if there are failures.
fn assert_none(failures: &BTreeMap<String, String>, what: &str) {
    let report: Vec<String> = failures.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    assert!(report.is_empty(), "{} {what}:\n{}", report.len(), report.join("\n"));
}

/// Templates whose calls are read but not in the grammar of calls, with the reason; as above.
#[cfg(feature = "constraint")]
const UNFORCED: &[(&str, &str)] = &[
    ("ByteDance-Seed-OSS/2", "the template writes objects in Python's notation, the grammar in JSON"),
    ("Kimi-K3/1", "the template writes an empty response before the calls"),
    ("Kimi-K3/2", "as above"),
    ("Reka-Edge/2", "the template escapes a letter that needs no escape"),
    ("google-gemma-4-31B-it/2", "the template writes null in Python's notation"),
];

/// A tokenizer of single bytes.
#[cfg(feature = "constraint")]
static BYTES: std::sync::LazyLock<Tokenizer> = std::sync::LazyLock::new(|| {
    let spec = TokenizerSpec {
        model: "gpt2".into(),
        tokens: (0..=255).map(|byte| chaski_text::byte_to_char(byte).to_string()).collect(),
        merges: vec!["a b".to_owned()],
        ..TokenizerSpec::default()
    };
    Tokenizer::from_spec(spec).unwrap()
});

/// Fails unless the grammar of calls takes the calls in `text`, after which comes the end of the turn.
#[cfg(feature = "constraint")]
fn check_forced(
    syntax: &'static AnswerSyntax,
    prompt: &str,
    tools: &[Value],
    n_call: usize,
    text: &str,
) -> Result<(), String> {
    let choice = CallChoice {
        parallel: n_call > 1,
        prompt: prompt.to_owned(),
        may_reason: true,
        ..CallChoice::default()
    };
    let grammar = syntax.call_grammar(&BYTES, tools, &choice).map_err(|e| e.to_string())?;
    let mut constraint = Constraint::new(&BYTES, &grammar).map_err(|e| format!("{e:?}"))?;
    let mut n_complete = 0;
    for (at, byte) in text.bytes().enumerate() {
        if constraint.may_end().unwrap() {
            n_complete = at;
        }
        if constraint.is_finished() || constraint.accept(byte.into()).is_err() {
            let rest = &text.as_bytes()[n_complete..];
            let has_call = rest.windows(5).any(|five| five == b"weath" || five == b"write");
            return match n_complete > 0 && !has_call {
                true => Ok(()),
                false => Err(format!("stops before {:?}", String::from_utf8_lossy(&text.as_bytes()[at..]))),
            };
        }
    }
    match constraint.may_end() {
        Ok(true) => Ok(()),
        _ => Err("is not complete".to_owned()),
    }
}

#[test]
fn calls_that_templates_render_are_read_back() {
    let Some(folder) = common::test_data("templates") else { return };
    let tool = |name: &str, properties: Value| {
        json!({"type": "function", "function": {"name": name, "description": "What it does.",
            "parameters": {"type": "object", "properties": properties, "required": []}}})
    };
    let tools = vec![
        tool(
            "get_weather",
            json!({"city": {"type": "string", "description": "City"}, "days": {"type": "integer", "description": "Days"}}),
        ),
        tool(
            "write-file",
            json!({"text": {"type": "string", "description": "Text"}, "deep": {"type": "object", "description": "Things"}}),
        ),
    ];
    let wanted = [
        call("get_weather", json!({"city": "Paris", "days": 3})),
        call("write-file", json!({"text": "a \"b\" {é} 12", "deep": {"x": [1, true, null]}})),
    ];
    let assistant = |calls: &[(String, Value)]| {
        let calls = calls.iter().enumerate().map(|(index, (name, arguments))| {
            json!({"id": format!("call0000{index}"), "type": "function",
                "function": {"name": name, "arguments": arguments}})
        });
        let calls: Vec<Value> = calls.collect();
        Message::from_json(json!({"role": "assistant", "content": "", "tool_calls": calls})).unwrap()
    };
    let now = LocalTime { year: 2026, month: 11, day: 20, hour: 12, minute: 30, second: 45 };
    let options = |add_generation_prompt| TemplateOptions {
        add_generation_prompt,
        tools: tools.clone(),
        now: Some(now),
        ..TemplateOptions::default()
    };
    let user = Message::new("user", "What is to be done?");
    let (mut failures, mut unforced) = (BTreeMap::new(), BTreeMap::new());
    let (mut n_read, mut n_without) = (0, 0);
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jinja"));
    paths.sort();
    assert!(!paths.is_empty(), "no template in {}", folder.display());
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).unwrap();
        let syntax = AnswerSyntax::of_template(&source);
        let template = ChatTemplate::new(source).unwrap();
        for n_call in [1, 2] {
            let key = format!("{name}/{n_call}");
            let messages = [user.clone(), assistant(&wanted[..n_call])];
            let prompt = template.render(&messages[..1], &options(true));
            let text = template.render(&messages, &options(false));
            let (Ok(prompt), Ok(text)) = (prompt, text) else {
                n_without += 1;
                continue;
            };
            let after_question = &text[text.rfind("done?").unwrap_or(0)..];
            if !after_question.contains(if n_call == 1 { "get_weather" } else { "write-file" }) {
                n_without += 1;
                continue;
            }
            // The model continues where prompt and text diverge.
            let n_common = prompt.chars().zip(text.chars()).take_while(|(a, b)| a == b);
            let n_common = n_common.map(|(c, _)| c.len_utf8()).sum::<usize>();
            let n_common = if n_common == prompt.len() {
                n_common
            } else {
                // Not inside a marker.
                text[..n_common].rfind(['>', ']', '\n', ':']).map_or(0, |at| at + 1)
            };
            let (prompt, text) = (&text[..n_common], &text[n_common..]);
            let whole = parse(syntax, prompt, &tools, text, usize::MAX);
            let is_read = whole.calls.len() == n_call
                && whole.calls.iter().all(|call| call.is_valid)
                && calls(&whole.calls) == wanted[..n_call];
            // The rest is the end of the turn.
            let is_end = |text: &str| {
                let has_marker = text.is_empty() || text.starts_with(['<', '[']);
                has_marker && !text.contains("weather") && !text.contains("write")
            };
            if is_read && is_end(&whole.content) && whole.reasoning.is_empty() {
                n_read += 1;
                #[cfg(feature = "constraint")]
                if let Err(why) = check_forced(syntax, prompt, &tools, n_call, text) {
                    unforced.insert(key.clone(), format!("{}: {text:?}\n   {why}", syntax.name()));
                }
                for n_char in [1, 2, 3, 5] {
                    let cut = parse(syntax, prompt, &tools, text, n_char);
                    assert_eq!(cut, whole, "{key} in pieces of {n_char} characters: {text}");
                }
            } else {
                failures.insert(key, format!("{}: {text:?}\n   {whole:?}", syntax.name()));
            }
        }
    }
    common::say(&format!(
        "{n_read} renderings of calls read back, {n_without} templates or numbers of calls without any"
    ));
    for (name, reason) in EXCEPTIONS {
        assert!(failures.remove(*name).is_some(), "{name} is read back ({reason}): drop its exception");
    }
    assert_none(&failures, "are not read back");
    #[cfg(feature = "constraint")]
    for (name, reason) in UNFORCED {
        assert!(unforced.remove(*name).is_some(), "{name} is in the grammar ({reason}): drop its exception");
    }
    assert_none(&unforced, "are not in the grammar");
}

#[test]
fn families_without_calls_in_their_template_are_read_too() {
    let paris = || vec![call("get_weather", json!({"city": "Paris"}))];
    for (name, text) in [
        ("lfm2", "<|tool_call_start|>[get_weather(city=\"Paris\")]<|tool_call_end|>"),
        (
            "minimax-m2",
            "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris</parameter>\n</invoke>\n</minimax:tool_call>",
        ),
        (
            "phi4-mini",
            "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]<|/tool_call|>",
        ),
        ("granite3", "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]"),
        (
            "mistral-v3",
            "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}, \"id\": \"123456789\"}]",
        ),
        (
            "deepseek-v3.1",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ),
        ("llama3", "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}"),
        (
            "hermes",
            "<tool_call>{\"arguments\": {\"city\": \"Paris\"}, \"name\": \"get_weather\"}</tool_call>",
        ),
        (
            "harmony",
            "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Paris\"}",
        ),
    ] {
        let answer = parts(name, text);
        assert_eq!(calls(&answer.calls), paris(), "{name}: {text}");
        assert_eq!((answer.content.as_str(), answer.reasoning.as_str()), ("", ""), "{name}: {text}");
    }
    let two = parts("lfm2", "Well. <|tool_call_start|>[a(x=1), b()]<|tool_call_end|>Done.");
    assert_eq!(calls(&two.calls), [call("a", json!({"x": 1})), call("b", json!({}))]);
    assert_eq!(two.content, "Well.Done.");
}

#[test]
fn reasoning_and_content_are_told_apart() {
    let answer = parts("hermes", "<think>\nHm, <b>?\n</think>\n\nYes.\n");
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("Hm, <b>?", "Yes.\n"));
    // Opened by the prompt.
    let answer =
        parse(by_name("hermes"), "<|im_start|>assistant\n<think>\n", &[], "Hm.\n</think>\n\nYes.", 3);
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("Hm.", "Yes."));
    // Opened and closed by the prompt.
    let answer = parse(by_name("hermes"), "<think>\n\n</think>\n\n", &[], "Yes.", 1);
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("", "Yes."));
    let text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.";
    let answer = parts("harmony", text);
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("Hm.", "Yes."));
    let text = "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>";
    let answer = parts("command-r", text);
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("Hm.", "Yes."));
    let prompt = "<|begin_assistant|>\nHere are my reasoning steps:\n";
    let answer = parse(by_name("apriel"), prompt, &[], "Hm.\n[BEGIN FINAL RESPONSE]\nYes.", 2);
    assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), ("Hm.", "Yes."));
}

#[test]
fn reasoning_that_stays_in_the_content_is_what_the_model_wrote() {
    let read = |name: &str, prompt: &str, text: &str| {
        let tools = [json!({"name": "now"})];
        let in_pieces = |n_char: usize| {
            let parser = AnswerParser::new(by_name(name), prompt, &tools).with_reasoning_in_content();
            parse_with(parser, text, n_char)
        };
        let whole = in_pieces(usize::MAX);
        for n_char in [1, 2, 3, 7] {
            assert_eq!(in_pieces(n_char), whole, "{name}, {n_char}: {text}");
        }
        assert_eq!(whole.reasoning, "", "{name}: {text}");
        whole
    };
    let think =
        "<think>\nHm, <tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>?\n</think>\n\nYes.\n";
    let opened = "Hm.\n</think>\n\nYes.";
    for (name, prompt, text) in [
        ("hermes", "", think),
        ("hermes", "", "Let me see.\n <think>Hm."),
        ("hermes", "<|im_start|>assistant\n<think>\n", opened),
        ("hermes", "<think>\n\n</think>\n\n", "Yes."),
        ("command-r", "", "<|START_THINKING|>Hm. <|END_THINKING|> Yes."),
        ("apriel", "Here are my reasoning steps:\n", "Hm.\n[BEGIN FINAL RESPONSE]\nYes."),
        ("harmony", "", "<|channel|>analysis<|message|>Hm. <|end|>"),
    ] {
        let answer = read(name, prompt, text);
        assert_eq!((answer.content.as_str(), answer.calls.len()), (text, 0), "{name}");
    }
    // Headers of other messages are none of it, and calls after the reasoning are calls.
    let reasoning = "<|channel|>analysis<|message|>Hm.<|end|>";
    let answer =
        read("harmony", "", &format!("{reasoning}<|start|>assistant<|channel|>final<|message|>Yes."));
    assert_eq!(answer.content, format!("{reasoning}Yes."));
    let called = "<think>Hm.</think>\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
    let answer = read("hermes", "", called);
    assert_eq!(answer.content, "<think>Hm.</think>");
    assert_eq!(calls(&answer.calls), [call("now", json!({}))]);
    let object = "<think>Hm.</think>{\"name\": \"now\", \"parameters\": {}}";
    let answer = read("llama3", "", object);
    assert_eq!(
        (answer.content.as_str(), calls(&answer.calls)),
        ("<think>Hm.</think>", vec![call("now", json!({}))])
    );
}

#[test]
fn what_is_no_call_is_content_and_broken_calls_say_so() {
    for (name, text) in [
        ("hermes", "<tool_call>hello</tool_call>"),
        ("hermes", "<tool_call>\n{\"name\": 3}\n</tool_call>"),
        ("hermes", "a <tool_call"),
        ("hermes", "a <tool_call>"),
        ("llama3", "{\"title\": \"x\"}"),
        ("llama3", " { }"),
        ("mistral", "[TOOL_CALLS]hello there"),
        ("harmony", "plain text"),
        ("harmony", "<|channel|>commentary"),
        ("glm", "<tool_call></tool_call>"),
        ("gemma4", "<|tool_call>call:<tool_call|>"),
        ("plain", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n"),
    ] {
        let answer = parts(name, text);
        assert_eq!((answer.content.as_str(), answer.calls.len()), (text, 0), "{name}");
    }
    for (name, text) in [
        ("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": [1}"),
        ("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1"),
        ("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {x}}</tool_call>"),
        ("qwen3-coder", "<tool_call><function=f><parameter=x>1"),
        ("lfm2", "<|tool_call_start|>[f(x=1 2)]<|tool_call_end|>"),
        ("harmony", "<|channel|>commentary to=functions.f<|message|>{\"x\": "),
    ] {
        let answer = parts(name, text);
        assert_eq!(answer.calls.len(), 1, "{name}: {text}");
        assert!(!answer.calls[0].is_valid, "{name}: {text}");
        assert_eq!(answer.content, text, "{name}: what is no call was said all the same");
    }
}

#[test]
fn an_object_alone_is_a_call_of_a_tool_that_was_given_and_of_no_other() {
    let tools = [json!({"type": "function", "function": {"name": "get_weather"}}), json!({"name": "now"})];
    let read = |tools: &[Value], text: &str| {
        let whole = parse(by_name("llama3"), "", tools, text, usize::MAX);
        assert_eq!(parse(by_name("llama3"), "", tools, text, 1), whole, "{text}");
        whole
    };
    let weather = r#"{"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}"#;
    assert_eq!(calls(&read(&tools, weather).calls), [call("get_weather", json!({"city": "Paris"}))]);
    let late = r#"{"parameters": {}, "name": "now"}"#;
    assert_eq!(calls(&read(&tools, late).calls), [call("now", json!({}))]);
    let alice = r#"{"name": "Alice", "age": 3}"#;
    let person = r#"{"name": "Alice", "parameters": {}}"#;
    let bare = r#"{"name": "now"}"#;
    for (tools, text) in
        [(&tools[..], alice), (&tools, person), (&tools, bare), (&[], weather), (&[], alice), (&[], late)]
    {
        let answer = read(tools, text);
        assert_eq!((answer.content.as_str(), answer.calls.len()), (text, 0));
    }
    // Without tools nothing waits for the end of the object.
    let mut parser = AnswerParser::new(by_name("llama3"), "", &[]);
    let mut answer = Answer::default();
    answer.extend(parser.push("{\"name\": \"Al"));
    assert_eq!(answer.content, "{\"name\": \"Al");
}

#[test]
fn a_megabyte_of_arguments_is_read_in_seconds() {
    let long = "a)}>]\u{e9} ".repeat(1 << 17);
    assert!(long.len() >= 1 << 20);
    let json = format!("{{\"x\": \"{long}\"}}");
    for (name, text) in [
        ("harmony", format!("<|channel|>commentary to=functions.f<|message|>{json}<|call|>")),
        ("hermes", format!("<tool_call>{{\"name\": \"f\", \"arguments\": {json}}}</tool_call>")),
        ("hermes", format!("<tool_call>{{\"arguments\": {json}, \"name\": \"f\"}}</tool_call>")),
        ("apertus", format!("<|tools_prefix|>[{{\"f\": {json}}}]<|tools_suffix|>")),
        ("lfm2", format!("<|tool_call_start|>[f(x=\"{long}\")]<|tool_call_end|>")),
        ("gemma4", format!("<|tool_call>call:f{{x:<|\"|>{long}<|\"|>}}<tool_call|>")),
        (
            "qwen3-coder",
            format!("<tool_call><function=f><parameter=x>\n{long}\n</parameter></function></tool_call>"),
        ),
    ] {
        let start = std::time::Instant::now();
        let answer = parse(by_name(name), "", &[], &text, 8);
        assert_eq!(calls(&answer.calls), [call("f", json!({"x": long}))], "{name}");
        assert_eq!(answer.content, "", "{name}");
        let seconds = start.elapsed().as_secs_f64();
        assert!(seconds < 10.0, "{name}: {seconds:.1} s");
    }
}

#[test]
fn markers_and_numbers_of_any_size_within_json_are_part_of_it() {
    let tools = [json!({"type": "function", "function": {"name": "f", "parameters": {
        "properties": {"x": {"type": "object"}, "y": {"type": "number"}}}}})];
    let marked = json!({"a": "</parameter>\"}<|end|>]</arg_value>", "b": [1]});
    for (name, text) in [
        ("harmony", format!("<|channel|>commentary to=functions.f<|message|> {{\"x\": {marked}}}<|call|>")),
        (
            "qwen3-coder",
            format!("<tool_call><function=f><parameter=x>\n{marked}\n</parameter></function></tool_call>"),
        ),
        ("glm", format!("<tool_call>f<arg_key>x</arg_key><arg_value>{marked}</arg_value></tool_call>")),
    ] {
        let whole = parse(by_name(name), "", &tools, &text, usize::MAX);
        assert_eq!(calls(&whole.calls), [call("f", json!({"x": marked}))], "{name}");
        for n_char in [1, 3] {
            assert_eq!(parse(by_name(name), "", &tools, &text, n_char), whole, "{name}");
        }
    }
    for (name, text) in [
        ("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"y\":1e999}}</tool_call>"),
        ("apertus", "<|tools_prefix|>[{\"f\": {\"y\":1e999}}]<|tools_suffix|>"),
        ("qwen3-coder", "<tool_call><function=f><parameter=y>1e999</parameter></function></tool_call>"),
    ] {
        let answer = parse(by_name(name), "", &tools, text, usize::MAX);
        assert_eq!(
            (answer.calls[0].arguments.as_str(), answer.calls[0].is_valid),
            ("{\"y\":1e999}", true),
            "{name}"
        );
    }
}

#[test]
fn arguments_come_before_the_call_is_complete() {
    let mut parser = AnswerParser::new(by_name("hermes"), "", &[]);
    let mut answer = Answer::default();
    answer.extend(parser.push("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"text\": \"abc"));
    assert_eq!(answer.calls[0].arguments, "{\"text\": \"abc");
    answer.extend(parser.push("def"));
    assert_eq!(answer.calls[0].arguments, "{\"text\": \"abcdef");
    assert!(!answer.calls[0].is_valid);
}

#[test]
fn schemas_say_which_arguments_are_strings() {
    let tools = [json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object",
        "$defs": {"word": {"enum": ["1", "2"]}},
        "properties": {"zip": {"type": "string"}, "n": {"type": "integer"}, "word": {"$ref": "#/$defs/word"},
            "may": {"type": ["string", "null"]}}}}})];
    let text = "<tool_call><function=f><parameter=zip>\n01234\n</parameter><parameter=n>7</parameter><parameter=word>1</parameter><parameter=may>3</parameter></function></tool_call>";
    let answer = parse(by_name("qwen3-coder"), "", &tools, text, 4);
    assert_eq!(calls(&answer.calls), [call("f", json!({"zip": "01234", "n": 7, "word": "1", "may": "3"}))]);
}

#[test]
fn answers_become_messages_that_templates_take() {
    let text = "<think>Hm.</think>Let me see.<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}</tool_call>\
        <tool_call>{\"name\": \"g\", \"arguments\": {\"x\": 1</tool_call>";
    let message = AnswerParser::new(by_name("hermes"), "", &[]).parse(text).into_message(12);
    assert_eq!(
        serde_json::to_value(&message).unwrap(),
        json!({"role": "assistant",
            "content": "Let me see.<tool_call>{\"name\": \"g\", \"arguments\": {\"x\": 1</tool_call>",
            "reasoning_content": "Hm.", "tool_calls": [{"id": "call00012", "type": "function",
                "function": {"name": "f", "arguments": "{\"x\": 1}"}}]})
    );
}

#[test]
fn marks_that_are_control_tokens_are_found() {
    let tokens = ["<unk>", "<s>", "</s>", "[TOOL_CALLS]", "[ARGS]", "[THINK]", "[INST]", "a"];
    let tokenizer = Tokenizer::from_spec(TokenizerSpec {
        model: "llama".into(),
        tokens: tokens.map(String::from).to_vec(),
        token_types: vec![2, 3, 3, 3, 3, 3, 3, 1],
        ..TokenizerSpec::default()
    });
    let tokenizer = tokenizer.unwrap();
    assert_eq!(by_name("mistral").marker_tokens(&tokenizer), [3, 4, 5]);
    assert_eq!(by_name("hermes").marker_tokens(&tokenizer), [5]);
}

#[test]
fn names_are_unique_and_found() {
    let names: Vec<_> = AnswerSyntax::names().collect();
    let unique: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(names.len(), unique.len());
    assert!(names.iter().all(|name| by_name(name).name() == *name));
    assert!(AnswerSyntax::by_name("no such").is_none());
}

/// Random texts of syntax fragments.
fn broken_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<function=",
        "f",
        ">",
        "<parameter=",
        "</parameter>",
        "</function>",
        "{\"name\": \"f\", \"arguments\": ",
        "{\"x\": 1}",
        "}",
        "{",
        "[",
        "]",
        ",",
        "\"",
        "\\",
        " ",
        "\n",
        "é",
        "x",
        "=",
        ":",
        "(",
        ")",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<|python_tag|>",
        "{\"name\": \"g\", \"parameters\": {}}",
        "<|channel|>",
        "analysis",
        "<|message|>",
        "<|end|>",
        "<|start|>",
        " to=functions.f",
        "<|call|>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "<|tool_call>",
        "call:f{",
        "<|\"|>",
        "<tool_call|>",
        "<|tool_call_start|>",
        "<|tool_call_end|>",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        "<",
        "<|",
        "name_end",
        "<tool_",
        "call>",
        ";",
    ]);
    prop::collection::vec(pieces, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_text_gives_the_same_parts_however_it_is_cut(
        text in broken_text(),
        syntax in prop::sample::select(AnswerSyntax::names().collect::<Vec<_>>()),
        n_char in 1usize..6,
        has_tools: bool,
    ) {
        let tools = if has_tools { vec![json!({"name": "f"}), json!({"name": "g"})] } else { Vec::new() };
        let whole = parse(by_name(syntax), "", &tools, &text, usize::MAX);
        prop_assert_eq!(parse(by_name(syntax), "", &tools, &text, n_char), whole);
    }

    #[test]
    fn text_without_markers_is_content(
        text in "[a-zA-Z0-9 .,:;!?'\"(){}\n\téü你😀_-]{0,60}",
        syntax in prop::sample::select(AnswerSyntax::names().collect::<Vec<_>>()),
    ) {
        let answer = parse(by_name(syntax), "", &[], &text, 2);
        prop_assert_eq!((answer.content, answer.calls.len()), (text, 0));
    }

    #[test]
    fn whatever_is_not_a_marker_is_in_some_part(text in broken_text()) {
        // Words that are in no marker.
        let answer = parse(by_name("hermes"), "", &[], &text, 3);
        let all = format!("{}{}{:?}", answer.reasoning, answer.content, answer.calls);
        for word in ["é", "name_end"] {
            let n = |text: &str| text.matches(word).count();
            prop_assert!(n(&all) >= n(&text) || !answer.calls.is_empty(), "{} in {}", word, all);
        }
    }
}
