//! Random texts of the grammars are read back as the calls that were allowed.

mod strict;

use serde_json::{Value, json};

use super::{CallChoice, CallGrammarError};
use crate::answer::{Answer, AnswerParser, AnswerSyntax, ToolCall};
use crate::constraint::{Constraint, Grammar};
use crate::tokenizer::{
    AddSpecial, ParseSpecial, RenderSpecial, TokenKind, Tokenizer, TokenizerSpec, byte_to_char,
};

const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

fn syntax(name: &str) -> &'static AnswerSyntax {
    AnswerSyntax::by_name(name).unwrap_or_else(|| panic!("no syntax {name}"))
}

fn byte_tokenizer(markers: &[String], kind: i32) -> Tokenizer {
    Tokenizer::from_spec(byte_spec(markers, kind)).unwrap()
}

/// A tokenizer of single bytes, `</s>`, and `markers`, which are control tokens or text.
fn byte_spec(markers: &[String], kind: i32) -> TokenizerSpec {
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_to_char(byte).to_string()).collect();
    tokens.push("</s>".to_owned());
    let mut token_types = vec![1; 256];
    token_types.push(CONTROL);
    for marker in markers {
        tokens.push(marker.clone());
        token_types.push(kind);
    }
    // Random single bytes would not come to these ends of texts.
    for end in ["</", "]<]minimax[>[</city>"] {
        if !markers.iter().any(|marker| marker == end) {
            tokens.push(end.to_owned());
            token_types.push(USER_DEFINED);
        }
    }
    TokenizerSpec {
        model: "gpt2".into(),
        tokens,
        token_types,
        merges: vec!["a b".to_owned()],
        eos: Some(256),
        ..TokenizerSpec::default()
    }
}

/// The markers of a syntax: as they are, or for control tokens the parts of them in angle or square brackets.
fn markers(syntax: &AnswerSyntax, kind: i32) -> Vec<String> {
    let mut all = Vec::new();
    for mark in syntax.marks() {
        let mark = mark.replace("{}", "city");
        let mark = mark.as_str();
        if kind == USER_DEFINED {
            all.extend((mark.len() > 2).then(|| mark.to_owned()));
            continue;
        }
        let mut rest = mark;
        while let Some(start) = rest.find(['<', '[']) {
            rest = &rest[start..];
            let Some(end) = rest.find(if rest.starts_with('<') { '>' } else { ']' }) else { break };
            // As in the models: the text beside it belongs to no token.
            match rest[..end].contains("｜DSML｜") {
                true => all.push("｜DSML｜".to_owned()),
                false => all.push(rest[..=end].to_owned()),
            }
            rest = &rest[end + 1..];
        }
    }
    all.sort();
    all.dedup();
    all
}

fn tools() -> Vec<Value> {
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "description": "It does.", "parameters": parameters}});
    vec![
        tool(
            "get_weather",
            json!({"type": "object", "properties": {
                "days": {"type": "integer"},
                "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "\"K\"", "1"]},
                "kind": {"enum": ["a", "b\nc"]},
            }, "required": ["city", "unit"]}),
        ),
        tool(
            "write-file",
            json!({"type": "object", "$defs": {"level": {"type": "number"}}, "properties": {
                "deep": {"type": "object", "properties": {
                    "on": {"type": "boolean"},
                    "level": {"$ref": "#/$defs/level"},
                    "name": {"type": ["string", "null"]},
                }, "required": ["on", "name"], "additionalProperties": false},
                "list": {"type": "array", "items": {"type": "integer", "minimum": -5, "maximum": 500}, "maxItems": 3},
                "words": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
            }, "required": ["list", "deep"], "additionalProperties": false}),
        ),
        json!({"type": "function", "function": {"name": "now"}}),
    ]
}

/// Numbers that follow from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

/// A text of random tokens that the grammar allows; after `n_free` of them, those that close something are preferred.
fn walk(tokenizer: &Tokenizer, grammar: &Grammar, seed: u64, n_free: usize) -> String {
    walk_on(tokenizer, grammar, &[], seed, n_free)
}

/// The same after the tokens in `begun`.
fn walk_on(tokenizer: &Tokenizer, grammar: &Grammar, begun: &[u32], seed: u64, n_free: usize) -> String {
    let mut constraint = Constraint::new(tokenizer, grammar).unwrap_or_else(|e| panic!("{e:?}: {grammar:?}"));
    let mut draws = Draws(seed);
    let mut text = Vec::new();
    for id in begun {
        constraint
            .accept(*id)
            .unwrap_or_else(|e| panic!("{e:?}: {grammar:?}: {}", String::from_utf8_lossy(&text)));
        text.extend(spelled(tokenizer, *id));
    }
    for n_token in 0.. {
        assert!(n_token < 2000, "{grammar:?} does not end: {}", String::from_utf8_lossy(&text));
        let is_late = n_token >= n_free;
        if constraint.is_finished() || (constraint.may_end().unwrap() && (is_late || draws.below(2) == 0)) {
            break;
        }
        let mut logits = vec![0.0; tokenizer.n_vocab()];
        let mask = constraint.mask(&mut logits);
        mask.unwrap_or_else(|e| panic!("{e:?}: {grammar:?}: {}", String::from_utf8_lossy(&text)));
        let allowed = |id: &u32| logits[*id as usize] == 0.0 && !tokenizer.is_eog(*id);
        let mut ids: Vec<u32> = (0..tokenizer.n_vocab() as u32).filter(allowed).collect();
        assert!(!ids.is_empty(), "{grammar:?}: {}", String::from_utf8_lossy(&text));
        let closing: Vec<u32> =
            ids.iter().copied().filter(|id| *id > 256 || b"\"'}])".contains(&(*id as u8))).collect();
        if !closing.is_empty() && (is_late || draws.below(4) == 0) {
            ids = closing;
        }
        let id = ids[draws.below(ids.len())];
        constraint.accept(id).unwrap();
        text.extend(spelled(tokenizer, id));
    }
    String::from_utf8(text).unwrap()
}

/// The text of a token, also of a control token.
fn spelled(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    match tokenizer.kind(id) {
        Some(TokenKind::Control) => tokenizer.token_text(id).unwrap().into(),
        _ => tokenizer.token_bytes(id, RenderSpecial::No).into_owned(),
    }
}

/// True if `value` conforms to `schema`, as far as the schemas of these tests go.
fn conforms(value: &Value, schema: &Value) -> bool {
    if schema["$ref"] == "#/$defs/level" {
        return value.is_number();
    }
    let has_type = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => panic!("{name}"),
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect(),
    };
    let is_known = |key: &String| schema["properties"].get(key).is_some();
    (types.is_empty() || types.into_iter().any(has_type))
        && schema["enum"].as_array().is_none_or(|values| values.contains(value))
        && schema["minimum"].as_i64().is_none_or(|min| value.as_i64() >= Some(min))
        && schema["maximum"].as_i64().is_none_or(|max| value.as_i64() <= Some(max))
        && schema["required"]
            .as_array()
            .is_none_or(|keys| keys.iter().all(|key| value.get(key.as_str().unwrap()).is_some()))
        && value.as_object().is_none_or(|fields| {
            fields.iter().all(|(key, value)| is_known(key) && conforms(value, &schema["properties"][key]))
        })
        && value.as_array().is_none_or(|items| {
            let n = items.len() as u64;
            schema["minItems"].as_u64().is_none_or(|min| n >= min)
                && schema["maxItems"].as_u64().is_none_or(|max| n <= max)
                && items.iter().all(|item| conforms(item, &schema["items"]))
        })
}

/// Reads `text` and checks its calls; they are all there is.
fn read(syntax: &'static AnswerSyntax, tools: &[Value], prompt: &str, text: &str) -> Answer {
    let answer = AnswerParser::new(syntax, prompt, tools).parse(text);
    assert_eq!(answer.content, "", "{}: {text:?}", syntax.name());
    check_calls(syntax, tools, &answer, text);
    answer
}

/// Checks that calls conform to their tools.
fn check_calls(syntax: &AnswerSyntax, tools: &[Value], answer: &Answer, text: &str) {
    for call in &answer.calls {
        assert!(call.is_valid, "{}: {text:?}", syntax.name());
        let tool = tools.iter().map(|tool| &tool["function"]).find(|tool| tool["name"] == call.name.as_str());
        let empty = json!({"type": "object", "properties": {}});
        let schema = tool.unwrap_or_else(|| panic!("{}: {text:?}", syntax.name())).get("parameters");
        let is_ok = match serde_json::from_str(&call.arguments) {
            Ok(arguments) => conforms(&arguments, schema.unwrap_or(&empty)),
            // Beyond what a `Value` can hold.
            Err(_) => call.arguments.contains(['e', 'E']) || call.arguments.contains("\\u"),
        };
        assert!(is_ok, "{}: {} of {text:?}", syntax.name(), call.arguments);
    }
}

/// The number of texts for each grammar.
fn n_seed() -> u64 {
    if std::env::var_os("CHASKI_TEST_FULL").is_some_and(|full| full != "0") { 50 } else { 4 }
}

/// All texts of walks in all notations with markers of this kind.
fn walk_all(kind: i32) {
    let tools = tools();
    for name in AnswerSyntax::names().filter(|name| *name != "plain") {
        let syntax = syntax(name);
        let tokenizer = byte_tokenizer(&markers(syntax, kind), kind);
        let walks = |choice: &CallChoice, n_seed: u64| {
            let grammar = syntax.call_grammar(&tokenizer, &tools, choice).unwrap();
            (0..n_seed)
                .map(|seed| read(syntax, &tools, "", &walk(&tokenizer, &grammar, seed, 40)).calls)
                .collect()
        };
        let all: Vec<Vec<ToolCall>> =
            walks(&CallChoice { parallel: true, ..CallChoice::default() }, n_seed());
        assert!(all.iter().all(|calls| !calls.is_empty()), "{name}");
        let all: Vec<Vec<ToolCall>> = walks(&CallChoice::default(), n_seed() / 2);
        assert!(all.iter().all(|calls| calls.len() == 1), "{name}");
        let all =
            walks(&CallChoice { name: Some("get_weather".into()), ..CallChoice::default() }, n_seed() / 4);
        assert!(all.iter().flatten().all(|call| call.name == "get_weather"), "{name}");
    }
}

#[test]
fn texts_with_markers_that_are_control_tokens_are_calls() {
    walk_all(CONTROL);
}

#[test]
fn texts_with_markers_that_are_text_are_calls() {
    walk_all(USER_DEFINED);
}

/// The grammar's verdict on `text`, in bytes: true if it is complete.
fn takes(tokenizer: &Tokenizer, grammar: &Grammar, text: &str) -> bool {
    let mut constraint = Constraint::new(tokenizer, grammar).unwrap_or_else(|e| panic!("{e:?}: {grammar:?}"));
    text.bytes().all(|byte| constraint.accept(byte.into()).is_ok())
        && (constraint.is_finished() || constraint.may_end().unwrap())
}

#[test]
fn several_calls_are_taken_only_if_they_may_be() {
    let tokenizer = byte_tokenizer(&[], CONTROL);
    let now = |open: &str, close: &str| (format!("{open}{close}"), format!("{open}{close}{open}{close}"));
    for (name, (one, two)) in [
        ("hermes", now("<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n", "</tool_call>\n")),
        ("glm", now("\n<tool_call>now", "</tool_call>")),
        ("qwen3-coder", now("<tool_call>\n<function=now>\n</function>", "\n</tool_call>\n")),
        ("mistral", now("[TOOL_CALLS]now[ARGS]", "{}")),
        ("kimi-k2", {
            let call = "<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|>";
            let block =
                |calls: &str| format!("<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>");
            (block(call), block(&format!("{call}{call}")))
        }),
        ("lfm2", {
            let block = |calls: &str| format!("<|tool_call_start|>[{calls}]<|tool_call_end|>");
            (block("now()"), block("now(), now()"))
        }),
        ("llama3", {
            let call = "{\"name\": \"now\", \"parameters\": {}}";
            (call.to_owned(), format!("{call}; {call}"))
        }),
    ] {
        let (one, two) = (one.trim_end(), two.trim_end());
        for parallel in [false, true] {
            let choice = CallChoice { parallel, ..CallChoice::default() };
            let grammar = syntax(name).call_grammar(&tokenizer, &tools(), &choice).unwrap();
            assert!(takes(&tokenizer, &grammar, one), "{name}: {one}");
            assert_eq!(takes(&tokenizer, &grammar, two), parallel, "{name}: {two}");
            assert_eq!(read(syntax(name), &tools(), "", two).calls.len(), 2, "{name}: {two}");
        }
    }
}

#[test]
fn no_name_means_anything_in_a_grammar() {
    let names = [
        "a\"} | \"x",
        "a\nstart: \"x\"",
        "%json {\"type\": 3}",
        "<[7]>",
        "</tool_call>",
        "<|tool_call>",
        "a/ b\\",
        "\u{1F600}é\u{7f}\u{0}",
        "f:0",
        "functions.f",
        "f>",
        "=",
        " f ",
        "|end|>",
    ];
    for name in AnswerSyntax::names().filter(|name| *name != "plain") {
        let syntax = syntax(name);
        let tokenizer = byte_tokenizer(&markers(syntax, CONTROL), CONTROL);
        let mut n_taken = 0;
        for hostile in names {
            let parameters = |key: &str| json!({"properties": {key: {"enum": [hostile]}}, "required": [key]});
            let function = |name: &str, key: &str| {
                vec![json!({"type": "function", "function": {"name": name, "parameters": parameters(key)}})]
            };
            for tools in [function(hostile, "x"), function("f", hostile)] {
                match syntax.call_grammar(&tokenizer, &tools, &CallChoice::default()) {
                    Ok(grammar) => {
                        let answer = read(syntax, &tools, "", &walk(&tokenizer, &grammar, 1, 0));
                        let [call] = &answer.calls[..] else { panic!("{name}: {answer:?}") };
                        let function = &tools[0]["function"];
                        assert_eq!(function["name"], call.name.as_str(), "{name}");
                        n_taken += 1;
                    }
                    Err(
                        CallGrammarError::Name { .. }
                        | CallGrammarError::Argument { .. }
                        | CallGrammarError::Schema { .. },
                    ) => {}
                    Err(other) => panic!("{name}: {other}"),
                }
            }
        }
        // In JSON every name can be written.
        assert!(n_taken >= if name == "hermes" { 2 * names.len() } else { 1 }, "{name}: {n_taken}");
    }
}

#[test]
fn what_cannot_be_forced_is_an_error_that_says_why() {
    let tokenizer = byte_tokenizer(&[], CONTROL);
    let tool = |name: &str, parameters: Value| json!({"function": {"name": name, "parameters": parameters}});
    let error = |name: &str, tools: &[Value], chosen: Option<&str>| {
        let choice = CallChoice { name: chosen.map(str::to_owned), ..CallChoice::default() };
        syntax(name).call_grammar(&tokenizer, tools, &choice).unwrap_err().to_string()
    };
    for (found, expected) in [
        (
            error("plain", &tools(), None),
            "the notation `plain` has no tool calls; `object` can be used instead",
        ),
        (error("hermes", &[], None), "a tool call is required, but there are no tools"),
        (error("hermes", &[json!({"type": "function"})], None), "tool 0 has no name"),
        (
            error("hermes", &tools(), Some("then")),
            "no tool is called `then`; there are `get_weather`, `write-file`, `now`",
        ),
        (
            error("glm", &[tool("a b", Value::Null)], None),
            "the tool name `a b` cannot be written in the notation `glm`",
        ),
        (
            error("qwen3-coder", &[tool("f", json!({"properties": {"a>b": {}}}))], None),
            "the argument `a>b` of the tool `f` cannot be written in the notation `qwen3-coder`",
        ),
        (
            error("hermes", &[tool("f", json!({"type": "string"}))], None),
            "the schema of the tool `f` does not allow an object, which arguments are",
        ),
        (
            error("lfm2", &[tool("f", json!({"properties": {"x": {"$ref": "#/$defs/x"}}}))], None),
            "the schema of the tool `f` refers to `#/$defs/x`, which does not exist",
        ),
        (
            error("glm", &[tool("f", json!({"anyOf": [{"properties": {}}]}))], None),
            "the schema of the tool `f` has a `anyOf` beside its properties, which the notation `glm` does not support",
        ),
    ] {
        assert_eq!(found, expected);
    }
    assert_eq!((syntax("plain").or_object().name(), syntax("glm").or_object().name()), ("object", "glm"));
}

#[test]
fn schemas_may_refer_to_themselves() {
    let tree = json!({"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "value": {"type": "integer"}}});
    let tools = [json!({"type": "function", "function": {"name": "f", "parameters": {
        "$defs": {"tree": tree}, "properties": {"tree": {"$ref": "#/$defs/tree"}}, "required": ["tree"]}}})];
    for (name, text) in [
        (
            "hermes",
            "<tool_call>{\"name\": \"f\", \"arguments\": {\"tree\": {\"left\": {\"value\": 1}}}}</tool_call>",
        ),
        (
            "qwen3-coder",
            "<tool_call><function=f><parameter=tree>{\"left\": {\"value\": 1}}</parameter></function></tool_call>",
        ),
        ("lfm2", "<|tool_call_start|>[f(tree={\"left\": {\"value\": 1}})]<|tool_call_end|>"),
        ("gemma4", "<|tool_call>call:f{tree:{left:{value:1}}}<tool_call|>"),
    ] {
        let tokenizer = byte_tokenizer(&[], CONTROL);
        let grammar = syntax(name).call_grammar(&tokenizer, &tools, &CallChoice::default()).unwrap();
        assert!(takes(&tokenizer, &grammar, text), "{name}: {grammar:?}");
        assert!(!takes(&tokenizer, &grammar, &text.replace('1', "true")), "{name}");
    }
}

#[test]
fn large_schemas_and_many_tools_make_grammars_of_bounded_size() {
    let deep = (0..40).fold(json!({"type": "integer"}), |inner, _| json!({"type": "array", "items": inner}));
    let all: Vec<_> = (0..20).map(|_| json!({"$ref": "#/$defs/all"})).collect();
    let wide = json!({"$defs": {"all": {"anyOf": all}}, "properties": {"x": {"$ref": "#/$defs/all"}}});
    let long = "x".repeat(4000);
    let tool = |n: usize| {
        let property = |n: usize| (format!("p{n}"), json!({"type": "string", "description": long}));
        let properties: serde_json::Map<String, Value> = (0..10).map(property).collect();
        json!({"function": {"name": format!("f{n}"), "parameters": {"properties": properties}}})
    };
    let many: Vec<Value> = (0..128).map(tool).collect();
    let deep = [json!({"function": {"name": "f", "parameters": {"properties": {"x": deep}}}})];
    let wide = [json!({"function": {"name": "f", "parameters": wide}})];
    let tokenizer = byte_tokenizer(&[], CONTROL);
    for name in ["hermes", "qwen3-coder", "lfm2", "gemma4"] {
        for (tools, may_fail) in [(&deep[..], false), (&wide, true), (&many, false)] {
            let grammar = syntax(name).call_grammar(&tokenizer, tools, &CallChoice::default()).unwrap();
            let Grammar::Lark(text) = &grammar else { panic!("{grammar:?}") };
            assert!(text.len() < 200 << 10, "{name}: {}", text.len());
            let constraint = Constraint::new(&tokenizer, &grammar);
            assert!(constraint.is_ok() || may_fail, "{name}: {constraint:?}");
        }
    }
}

#[test]
fn reasoning_comes_before_the_call() {
    let call = "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
    for kind in [CONTROL, USER_DEFINED] {
        let hermes = syntax("hermes");
        let tokenizer = byte_tokenizer(&["<think>".into(), "</think>".into()], kind);
        let grammar = |prompt: &str, may_reason| {
            let choice = CallChoice { prompt: prompt.to_owned(), may_reason, ..CallChoice::default() };
            hermes.call_grammar(&tokenizer, &tools(), &choice).unwrap()
        };
        let takes = |grammar: &Grammar, text: &str| {
            let mut constraint = Constraint::new(&tokenizer, grammar).unwrap();
            let is_allowed = tokenizer
                .encode(text, AddSpecial::No, ParseSpecial::Yes)
                .unwrap()
                .into_iter()
                .all(|id| constraint.accept(id).is_ok());
            is_allowed && (constraint.is_finished() || constraint.may_end().unwrap())
        };
        let opened = grammar("<|im_start|>assistant\n<think>\n", false);
        let free = grammar("", true);
        let closed = grammar("", false);
        let thought = format!("Hm, <b>?\n</think>\n\n{call}");
        for (grammar, text, is_taken) in [
            (&opened, thought.as_str(), true),
            (&opened, &format!("</think>{call}"), true),
            (&opened, call, false),
            (&free, call, true),
            (&free, &format!("<think>{thought}"), true),
            (&free, &thought, false),
            (&closed, &format!("<think>{thought}"), false),
            (&closed, call, true),
        ] {
            assert_eq!(takes(grammar, text), is_taken, "{kind}: {text}: {grammar:?}");
        }
        let answer = read(hermes, &tools(), "<think>\n", &thought);
        assert_eq!((answer.reasoning.as_str(), answer.calls.len()), ("Hm, <b>?", 1));
    }
}

#[test]
fn a_token_that_ends_the_generation_is_no_part_of_the_grammar() {
    let harmony = syntax("harmony");
    let names =
        ["<|channel|>", "<|message|>", "<|call|>", "<|start|>", "<|end|>", "<|constrain|>", "<|return|>"];
    let text = "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}";
    let analysis = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant";
    let choice = CallChoice { may_reason: true, ..CallChoice::default() };
    for kind in [CONTROL, USER_DEFINED] {
        let tokenizer = byte_tokenizer(&names.map(String::from), kind);
        let call = tokenizer.token_id("<|call|>").unwrap();
        assert!(tokenizer.is_eog(call));
        for before in ["", analysis] {
            let grammar = harmony.call_grammar(&tokenizer, &tools(), &choice).unwrap();
            let mut constraint = Constraint::new(&tokenizer, &grammar).unwrap();
            for id in tokenizer.encode(&format!("{before}{text}"), AddSpecial::No, ParseSpecial::Yes).unwrap()
            {
                constraint.accept(id).unwrap();
            }
            assert!(constraint.is_finished() || constraint.may_end().unwrap());
            let mut logits = vec![0.0; tokenizer.n_vocab()];
            constraint.mask(&mut logits).unwrap();
            assert_eq!(logits[call as usize], 0.0);
        }
    }
}
