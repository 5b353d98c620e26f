//! Constrained output with real vocabularies: no allowed token leads to an invalid text.
#![cfg(feature = "constraint")]

mod common;

use std::path::PathBuf;
use std::sync::LazyLock;

use chaski_text::{
    AddSpecial, Constraint, ConstraintError, Grammar, ParseSpecial, RenderSpecial, SampleError, Sampler,
    SamplerParams, Tokenizer,
};
use serde_json::{Value, json};

fn load(path: PathBuf) -> Tokenizer {
    Tokenizer::from_metadata(common::read_gguf(&path).metadata()).unwrap()
}

static STORYTELLER: LazyLock<Tokenizer> = LazyLock::new(|| load(common::storyteller()));

/// The storyteller's vocabulary, and one of each other kind from the golden data.
fn vocabularies() -> Vec<(String, Tokenizer)> {
    let mut all = vec![("storyteller".to_owned(), load(common::storyteller()))];
    if let Some(folder) = common::more_data("vocab", "constraints with vocabularies of real models") {
        for name in ["llama-spm", "qwen2", "gemma-4"] {
            all.push((name.to_owned(), load(folder.join(format!("ggml-vocab-{name}.gguf")))));
        }
    }
    all
}

/// True if `text` is allowed, token by token as the tokenizer encodes it, and complete.
fn takes(tokenizer: &Tokenizer, grammar: &Grammar, text: &str) -> bool {
    let mut constraint = Constraint::new(tokenizer, grammar).unwrap();
    for id in tokenizer.encode(text, AddSpecial::No, ParseSpecial::No).unwrap() {
        match constraint.accept(id) {
            Ok(()) => {}
            Err(ConstraintError::Forbidden { .. }) => return false,
            Err(other) => panic!("{other}"),
        }
    }
    constraint.may_end().unwrap() || constraint.is_finished()
}

/// A text of random allowed tokens, with true if it is complete.
fn random_text(
    tokenizer: &Tokenizer,
    all_logits: &[f32],
    grammar: &Grammar,
    seed: u32,
    max_tokens: usize,
) -> (String, bool) {
    let params = SamplerParams {
        seed: Some(seed),
        temp: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        ..SamplerParams::default()
    };
    let mut sampler = Sampler::new(params, tokenizer);
    let mut constraint = Constraint::new(tokenizer, grammar).unwrap();
    let mut ids = Vec::new();
    while ids.len() < max_tokens && !constraint.is_finished() {
        let mut logits = all_logits.to_vec();
        constraint.mask(&mut logits).unwrap();
        let id = sampler.sample(&logits).unwrap();
        constraint.accept(id).unwrap();
        if tokenizer.is_eog(id) {
            return (tokenizer.decode_lossy(&ids, RenderSpecial::No), true);
        }
        ids.push(id);
    }
    (tokenizer.decode_lossy(&ids, RenderSpecial::No), constraint.is_finished())
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "likes": {"type": "array", "items": {"enum": ["tea", "café", "\"rum\""]}, "maxItems": 3},
        },
        "required": ["name", "age"],
        "additionalProperties": false,
        "x-guidance": {"whitespace_flexible": false},
    })
}

/// The schema of [`person`], checked by hand.
fn is_person(text: &str) -> bool {
    let Ok(Value::Object(object)) = serde_json::from_str(text) else { return false };
    let is_known = object.keys().all(|key| ["name", "age", "likes"].contains(&key.as_str()));
    let likes = |item: &Value| ["tea", "café", "\"rum\""].iter().any(|word| item == word);
    is_known
        && object["name"].as_str().is_some_and(|name| name.chars().count() <= 12)
        && object["age"].as_u64().is_some_and(|age| age <= 120)
        && object
            .get("likes")
            .is_none_or(|list| list.as_array().is_some_and(|list| list.len() <= 3 && list.iter().all(likes)))
}

#[test]
fn random_tokens_make_valid_json() {
    let grammar = Grammar::JsonSchema(person());
    for (name, tokenizer) in vocabularies() {
        // Closing tokens are likely, so that texts end.
        let closes = |id: u32| {
            let bytes = tokenizer.token_bytes(id, RenderSpecial::No);
            tokenizer.is_eog(id) || bytes.iter().any(|byte| b"\"}]".contains(byte))
        };
        let ids = 0..tokenizer.n_vocab() as u32;
        let logits: Vec<f32> = ids.map(|id| if closes(id) { 6.0 } else { 0.0 }).collect();
        let mut n_complete = 0;
        for seed in 0..6 {
            let (text, is_complete) = random_text(&tokenizer, &logits, &grammar, seed, 200);
            assert!(!is_complete || is_person(&text), "{name}: {text}");
            n_complete += usize::from(is_complete);
        }
        assert!(n_complete >= 4, "{name}: {n_complete} of 6 texts are complete");
    }
}

#[test]
fn grammars_take_what_they_say_and_nothing_else() {
    let gbnf = Grammar::from_text(
        "root ::= expr\nexpr ::= term (op term)* # sums\nterm ::= num | \"(\" expr \")\"\nop ::= [-+*/]\nnum ::= [0-9]{1,3} | \"true\" | [a-z]\n",
    );
    assert!(matches!(gbnf, Grammar::Gbnf(_)));
    let lark = Grammar::from_text("start: \"yes\" | \"no\" \" \"? word\nword: /[a-z]+/\n");
    assert!(matches!(lark, Grammar::Lark(_)));
    for text in
        ["start: \"a ::= b\"\n", "// root ::= is GBNF\nstart: \"a\"\n", "start: \"a\" // ::=\n::= x\n"]
    {
        assert!(matches!(Grammar::from_text(text), Grammar::Lark(_)), "{text}");
    }
    for text in ["# sums\n  root::=\"a\"\n", "a-b_1 ::= \"x\"\n"] {
        assert!(matches!(Grammar::from_text(text), Grammar::Gbnf(_)), "{text}");
    }
    let regex = Grammar::Regex(r"\d{4}-\d\d(/[a-zé]+)?".into());
    for (name, tokenizer) in vocabularies() {
        let tokenizer = &tokenizer;
        for (grammar, good, bad) in [
            (
                &gbnf,
                &["1", "12+(3*t)", "true/x", "t", "((7))"][..],
                &["", "1+", "(1", "1234", "tr", "truex", "1 + 2"][..],
            ),
            (&lark, &["yes", "no way", "noway"], &["no", "yes sir", "maybe"]),
            (&regex, &["2026-11", "2026-11/été"], &["2026-1", "26-11", "2026-11/", "x2026-11"]),
        ] {
            for text in good {
                // SPM adds a space at the start, which the grammars do not allow.
                if !tokenizer.adds_space_prefix() {
                    assert!(takes(tokenizer, grammar, text), "{name}: {grammar:?} {text:?}");
                }
            }
            for text in bad {
                assert!(!takes(tokenizer, grammar, text), "{name}: {grammar:?} {text:?}");
            }
        }
    }
}

#[test]
fn the_end_is_the_only_choice_when_the_text_is_complete() {
    let tokenizer = &*STORYTELLER;
    let mut constraint = Constraint::new(tokenizer, &Grammar::Regex("[0-9]".into())).unwrap();
    let digit = tokenizer.token_id("7").unwrap();
    assert!(!constraint.may_end().unwrap() && !constraint.is_finished());
    assert!(matches!(
        constraint.accept(tokenizer.eos().unwrap()),
        Err(ConstraintError::Forbidden { n_token: 0, .. })
    ));
    let mut constraint = Constraint::new(tokenizer, &Grammar::Regex("[0-9]".into())).unwrap();
    constraint.accept(digit).unwrap();
    assert!(constraint.is_finished());
    let mut logits = vec![0.0; tokenizer.n_vocab()];
    constraint.mask(&mut logits).unwrap();
    let left: Vec<usize> = (0..logits.len()).filter(|&id| logits[id] == 0.0).collect();
    assert_eq!(left, [tokenizer.eos().unwrap() as usize]);
}

#[test]
fn suppressing_all_that_is_allowed_is_an_error_of_the_sampler() {
    let tokenizer = &*STORYTELLER;
    let digit = tokenizer.token_id("7").unwrap();
    let params = SamplerParams { logit_bias: vec![(digit, f32::NEG_INFINITY)], ..SamplerParams::greedy() };
    let mut sampler = Sampler::new(params, tokenizer);
    let mut constraint = Constraint::new(tokenizer, &Grammar::Regex("7".into())).unwrap();
    let mut logits = vec![0.0; tokenizer.n_vocab()];
    constraint.mask(&mut logits).unwrap();
    assert_eq!(sampler.sample(&logits), Err(SampleError::NothingLeft));
}

#[test]
fn grammars_that_cannot_be_used_are_refused_with_the_reason() {
    let error = |grammar: Grammar| {
        let error = Constraint::new(&STORYTELLER, &grammar).unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        (error.to_string(), source)
    };
    let (text, source) = error(Grammar::Regex("[a".into()));
    assert_eq!(text, "cannot compile the regular expression");
    assert!(source.contains("unclosed character class"), "{source}");
    let (text, source) = error(Grammar::JsonSchema(json!({"type": "strange"})));
    assert_eq!(text, "cannot compile the JSON schema");
    assert!(source.contains("strange"), "{source}");
    let (text, source) = error(Grammar::Lark("start: nothing".into()));
    assert_eq!(text, "cannot compile the grammar");
    assert!(source.contains("nothing"), "{source}");
    let (text, _) = error(Grammar::Gbnf("root ::= x".into()));
    assert_eq!(text, "GBNF grammar, line 1, column 10: rule `x` is used but not defined");
}

#[test]
fn empty_parts_and_recursion_of_gbnf_are_taken() {
    let takes = |grammar: &str, text: &str| takes(&STORYTELLER, &Grammar::from_text(grammar), text);
    let empty = "root ::= \"\" | \"a\" root | ( \"b\" | ) \"c\"{0} \"d\"";
    for (text, is_taken) in
        [("", true), ("aa", true), ("aabd", true), ("d", true), ("b", false), ("cd", false)]
    {
        assert_eq!(takes(empty, text), is_taken, "{text:?}");
    }
    let left = "root ::= root \"+\" [0-9] | [0-9]";
    for (text, is_taken) in [("1+2+3", true), ("1", true), ("1+", false), ("+1", false)] {
        assert_eq!(takes(left, text), is_taken, "{text:?}");
    }
    let any = "root ::= .{2,3} [^\\x61-z\\u00e9]+";
    for (text, is_taken) in [("é\nA", true), ("abcXY", true), ("abcx", false), ("aé", false), ("abé", false)]
    {
        assert_eq!(takes(any, text), is_taken, "{text:?}");
    }
}

#[test]
fn huge_grammars_are_errors_or_small() {
    for text in [
        "root ::= (((\"a\"{9999}){9999}){9999}){9999}",
        "root ::= ((((\"a\"?){0,9999})?){0,9999} \"b\"?){0,9999}",
        "root ::= root root | \"a\" | \"\"",
    ] {
        // Whatever the result, it comes soon and without a panic.
        let begun = std::time::Instant::now();
        let constraint = Constraint::new(&STORYTELLER, &Grammar::from_text(text));
        if let Ok(mut constraint) = constraint {
            let mut logits = vec![0.0; STORYTELLER.n_vocab()];
            let is_masked = constraint.mask(&mut logits);
            assert!(is_masked.is_err() || logits.contains(&0.0), "{text}");
        }
        assert!(begun.elapsed().as_secs() < 20, "{text}");
    }
}

#[test]
fn constraints_can_be_sent_to_other_threads() {
    fn is_send<T: Send>() {}
    is_send::<Constraint>();
}

#[test]
fn white_space_between_the_parts_of_json_has_two_characters_at_most() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
    let grammar = Grammar::JsonSchema(schema.clone());
    for laid_out in ["{\"a\":1}", "{ \"a\" : 1 }", "{\n \"a\": 1\n}", "{\n\t\"a\": 1\r\n}"] {
        assert!(takes(&STORYTELLER, &grammar, laid_out), "{laid_out:?}");
    }
    for space in ["  ", "\n\n", "\n  ", "\r\n ", " \n", "\t", "\n \n"] {
        for laid_out in
            [format!("{{{space}\"a\": 1}}"), format!("{{\"a\":{space}1}}"), format!("{{\"a\": 1{space}}}")]
        {
            assert!(!takes(&STORYTELLER, &grammar, &laid_out), "{laid_out:?}");
        }
    }
    let long = format!("{{{}\"a\": 1}}", " ".repeat(40));
    let mut free = schema;
    free["x-guidance"] = json!({ "whitespace_flexible": true });
    assert!(takes(&STORYTELLER, &Grammar::JsonSchema(free), &long));
}
