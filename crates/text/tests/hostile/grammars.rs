//! Grammars, schemas and expressions that would take a stack, the memory or the time of a process.

use chaski_text::Grammar;
use serde_json::{Value, json};

fn gbnf_chain(n: usize) -> String {
    let mut text = "root ::= r0\n".to_owned();
    for i in 0..n {
        text += &format!("r{i} ::= \"a\" r{}\n", i + 1);
    }
    text + &format!("r{n} ::= \"b\"\n")
}

fn lark_chain(n: usize, letter: char) -> String {
    let mut text = format!("start: {letter}0\n");
    for i in 0..n {
        text += &format!("{letter}{i}: \"a\" {letter}{}\n", i + 1);
    }
    text + &format!("{letter}{n}: \"b\"\n")
}

fn alternatives(n: usize) -> String {
    (0..n).map(|i| format!("\"w{i}\"")).collect::<Vec<_>>().join(" | ")
}

fn nested_schema(n: usize, wrap: fn(Value) -> Value) -> Value {
    (0..n).fold(json!({"type": "integer"}), |inner, _| wrap(inner))
}

fn references(n: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    for i in 0..n {
        definitions.insert(format!("d{i}"), json!({"$ref": format!("#/$defs/d{}", i + 1)}));
    }
    definitions.insert(format!("d{n}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

fn object_references(n: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    for i in 0..n {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        definitions.insert(format!("d{i}"), json!({"type": "object", "properties": {"a": next}}));
    }
    definitions.insert(format!("d{n}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

fn properties(n: usize) -> Value {
    let all: serde_json::Map<String, Value> =
        (0..n).map(|i| (format!("p{i}"), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": all})
}

fn words(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("w{i}")).collect()
}

fn variants(n: usize) -> Vec<Value> {
    let variant = |i| {
        let name = format!("p{i}");
        json!({"type": "object", "properties": {&name: {"const": i}}, "required": [&name]})
    };
    (0..n).map(variant).collect()
}

/// The name of a grammar, and a function that makes it.
pub(crate) type Case = (String, Box<dyn Fn() -> Grammar>);

/// All grammars.
pub(crate) fn corpus() -> Vec<Case> {
    let mut all: Vec<Case> = Vec::new();
    /// Grammars are made when they are run: some are large.
    macro_rules! add {
        ($name:expr, $grammar:expr $(,)?) => {
            all.push(($name, Box::new(move || $grammar)))
        };
    }
    for n in [100, 1000, 5000, 20_000] {
        add!(format!("GBNF: chain of {n} rules"), Grammar::Gbnf(gbnf_chain(n)));
        add!(format!("Lark: chain of {n} rules"), Grammar::Lark(lark_chain(n, 'r')));
        add!(format!("Lark: chain of {n} terminals"), Grammar::Lark(lark_chain(n, 'T')));
        add!(format!("GBNF: {n} alternatives"), Grammar::Gbnf(format!("root ::= {}\n", alternatives(n))));
        add!(format!("Lark: {n} alternatives"), Grammar::Lark(format!("start: {}\n", alternatives(n))));
        add!(
            format!("Lark: {n} alternatives of a terminal"),
            Grammar::Lark(format!("start: T\nT: {}\n", alternatives(n))),
        );
        add!(
            format!("expression: {n} alternatives"),
            Grammar::Regex((0..n).map(|i| format!("w{i}")).collect::<Vec<_>>().join("|")),
        );
        add!(format!("expression: {n} groups"), Grammar::Regex("(".repeat(n) + "a" + &")".repeat(n)));
        add!(
            format!("expression: {n} groups with stars"),
            Grammar::Regex("(".repeat(n) + "a" + &")*".repeat(n)),
        );
        add!(format!("expression: {n} open groups"), Grammar::Regex("(".repeat(n)));
        add!(format!("expression: {n} classes"), Grammar::Regex("[a-z]".repeat(n)));
        add!(format!("expression: {n} stars"), Grammar::Regex("a".to_owned() + &"*".repeat(n)));
        add!(
            format!("GBNF: {n} groups"),
            Grammar::Gbnf(format!("root ::= {}\"a\"{}", "(".repeat(n), ")".repeat(n))),
        );
        add!(format!("GBNF: {n} stars"), Grammar::Gbnf(format!("root ::= \"a\"{}", "*".repeat(n))));
        add!(
            format!("Lark: {n} groups"),
            Grammar::Lark(format!("start: {}\"a\"{}", "(".repeat(n), ")".repeat(n))),
        );
        add!(
            format!("Lark: {n} brackets"),
            Grammar::Lark(format!("start: {}\"a\"{}", "[".repeat(n), "]".repeat(n))),
        );
        add!(format!("schema: {n} references"), Grammar::JsonSchema(references(n)));
        add!(format!("schema: {n} references by objects"), Grammar::JsonSchema(object_references(n)));
        add!(format!("schema: {n} properties"), Grammar::JsonSchema(properties(n)));
        add!(format!("schema: {n} words"), Grammar::JsonSchema(json!({"enum": words(n)})));
        add!(format!("schema: any of {n}"), Grammar::JsonSchema(json!({"anyOf": variants(n)})));
        add!(format!("schema: all of {n}"), Grammar::JsonSchema(json!({"allOf": variants(n)})));
        add!(format!("schema: one of {n}"), Grammar::JsonSchema(json!({"oneOf": variants(n)})));
        add!(
            format!("schema: pattern of {n} groups"),
            Grammar::JsonSchema(json!({"type": "string", "pattern": "(".repeat(n) + "a" + &")".repeat(n)})),
        );
    }
    for n in [30, 45, 100, 300] {
        for (name, wrap) in [
            ("arrays", (|inner| json!({"type": "array", "items": inner})) as fn(Value) -> Value),
            ("objects", |inner| json!({"type": "object", "properties": {"a": inner}, "required": ["a"]})),
            ("any of", |inner| json!({"anyOf": [inner, {"type": "null"}]})),
            ("all of", |inner| json!({"allOf": [inner, {"minimum": 1}]})),
            ("not", |inner| json!({"not": inner})),
        ] {
            add!(format!("schema: {n} levels of {name}"), Grammar::JsonSchema(nested_schema(n, wrap)));
        }
    }
    for (name, text) in [
        ("repeated repeats", "root ::= ((\"a\"{1000}){1000}){1000}"),
        ("many repeats", "root ::= \"a\"{0,10000} \"b\"{0,10000} \"c\"{0,10000}"),
        ("itself", "root ::= root"),
        ("itself first", "root ::= root \"a\" | \"b\""),
        ("nothing repeated", "root ::= (\"\")*"),
        ("everything", "root ::= (.* .* .* .*)*"),
        ("no rule", ""),
        ("zero byte", "root ::= \"\\x00\"\0"),
    ] {
        add!(format!("GBNF: {name}"), Grammar::Gbnf(text.to_owned()));
    }
    for (name, text) in [
        ("itself", "start: start"),
        ("itself as a terminal", "start: T\nT: T"),
        ("terminals in turn", "start: T\nT: U\nU: T"),
        ("repeats", "start: \"a\"{1000000}"),
        ("repeated repeats", "start: ((\"a\"{1000}){1000}){1000}"),
        ("expression", "start: /(a{1000}){1000}/"),
        ("JSON", "start: %json {\"type\": \"object\"}"),
        ("JSON that is none", "start: %json {"),
        ("grammar in itself", "start: %lark { start: %lark { start: \"a\" } }"),
        ("open text", "start: \""),
        ("open expression", "start: /a"),
        ("parameters", "start: r::0\nr::_: \"a\" r::incr(0) | \"\""),
    ] {
        add!(format!("Lark: {name}"), Grammar::Lark(text.to_owned()));
    }
    let lark = (0..200).fold("start: \"a\"".to_owned(), |inner, _| format!("start: %lark {{ {inner} }}"));
    add!("Lark: 200 grammars in each other".to_owned(), Grammar::Lark(lark.clone()));
    for (name, text) in [
        ("repeats", "(a{1000}){1000}"),
        ("repeats of repeats", "((a{1000}){1000}){1000}"),
        ("exponential", "(a*)*b(a*)*(a|a)*(a|a)*"),
        ("long", "(?:a|b)*a(?:a|b){60}"),
        ("letters", r"\pL{1000}"),
        ("words", r"(\w+\s+){1,1000}"),
        ("open", "("),
        ("look ahead", "(?=a)b"),
        ("back reference", r"(a)\1"),
    ] {
        add!(format!("expression: {name}"), Grammar::Regex(text.to_owned()));
    }
    for (name, schema) in [
        ("itself", json!({"$ref": "#"})),
        ("itself by all", json!({"allOf": [{"$ref": "#"}]})),
        ("itself by items", json!({"items": {"$ref": "#"}})),
        ("length", json!({"type": "string", "minLength": 1_000_000_000, "maxLength": 2_000_000_000})),
        ("items", json!({"type": "array", "minItems": 1_000_000_000})),
        (
            "few items",
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 5000, "maxItems": 6000}),
        ),
        ("multiples", json!({"type": "integer", "multipleOf": 999_999_937})),
        ("multiples of fractions", json!({"type": "number", "multipleOf": 1e-9})),
        ("range", json!({"type": "number", "minimum": -1e300, "maximum": 1e300})),
        (
            "range of integers",
            json!({"type": "integer", "minimum": -9_000_000_000_000_000_000_i64, "maximum": 9_000_000_000_000_000_000_i64}),
        ),
        ("pattern", json!({"type": "string", "pattern": "(a{1000}){1000}"})),
        ("remote", json!({"$ref": "http://example.com/schema"})),
        ("word", json!("integer")),
        ("false", json!(false)),
    ] {
        add!(format!("schema: {name}"), Grammar::JsonSchema(schema.clone()));
    }
    all
}
