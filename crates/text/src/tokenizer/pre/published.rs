//! The expressions of the table against those that llama.cpp publishes (`published.json`, from
//! `llama-vocab.cpp` as in llama-cpp-python 0.3.36), or, where llama.cpp approximates them, those of the models
//! themselves (`own.json`, with their sources), character by character.

use std::collections::BTreeMap;

use super::{Cut, PreTokenizer};

const PUBLISHED: &str = include_str!("published.json");
const OWN: &str = include_str!("own.json");

/// Names whose expressions are written differently, with the reason.
const DIFFERENT: &[(&str, &str)] = &[
    ("tekken", "llama.cpp has ASCII letters for cases; `own.json` has the model's expression"),
    ("gpt-4o", "likewise"),
    ("llama4", "likewise"),
    ("kanana2", "likewise"),
    ("talkie", "likewise"),
    ("minimax-m2", "likewise"),
    ("kimi-k2", "llama.cpp has code of its own; `own.json` has the model's expression"),
    ("jais-2", "powers of two of spaces are a cut"),
    ("superbpe", "groups of three digits are a cut"),
    ("afmoe", "groups of three digits are a cut"),
    ("tiny_aya", "groups of three digits are a cut"),
    ("cohere2moe", "groups of three digits are a cut"),
];

/// Names that are not known here: their files are refused.
const UNKNOWN: &[(&str, &str)] = &[
    ("chameleon", "the family is not supported"),
    ("gemma4", "the tokenizer is of another kind"),
    ("granite-embed-multi-311m", "the tokenizer is of another kind"),
    ("granite-embed-multi-97m", "the expression has look-ahead within repetitions"),
    ("roberta-bpe", "the family is not supported"),
    ("sarvam-moe", "the tokenizer is of another kind"),
    ("whitespace", "words are not encoded by bytes"),
];

/// A published expression as the table writes it.
fn of_table(published: &str) -> String {
    published
        .replace(r"|\s+(?!\S)|\s+", r"|\s+")
        .replace(r"|\s+(?!\S)", r"|\s+")
        .replace("(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])", "CONTRACTIONS")
        .replace("'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])", "CONTRACTIONS")
        .replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)", "CONTRACTIONS")
        .replace(r"\p{N}{1}", r"\p{N}")
        .replace("\\r", "\r")
        .replace("\\n", "\n")
        // These need no escape in a class.
        .replace("\\\"", "\"")
}

/// An expression of the table with its characters, not their numbers.
fn plain(expression: &str) -> String {
    let mut out = String::new();
    let mut rest = expression;
    while let Some((before, escaped)) = rest.split_once(r"\x{") {
        let (code, behind) = escaped.split_once('}').unwrap();
        out += before;
        out.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        rest = behind;
    }
    (out + rest)
        .replace("(?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))", "CONTRACTIONS")
        .replace("'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])", "CONTRACTIONS")
        .replace("\\r", "\r")
        .replace("\\n", "\n")
}

#[test]
fn expressions_are_those_that_llama_cpp_publishes() {
    let published: BTreeMap<String, Vec<String>> = serde_json::from_str(PUBLISHED).unwrap();
    let mut differences = Vec::new();
    let mut n_equal = 0;
    for (name, expressions) in &published {
        let is_in = |list: &[(&str, &str)]| list.iter().any(|(found, _)| found == name);
        let Some(rule) = PreTokenizer::rule(Some(name)) else {
            if !is_in(UNKNOWN) {
                differences.push(format!("{name} is not known"));
            }
            continue;
        };
        let expected: Vec<String> = expressions.iter().map(|e| of_table(e)).collect();
        let found: Vec<String> = rule.patterns.iter().map(|p| plain(p.regex)).collect();
        let cuts_space = |e: &String| e.contains(r"(?!\S)");
        let cuts = rule.patterns.iter().map(|p| matches!(p.cut, Cut::LastSpace | Cut::LastSpaceInLine));
        let is_equal = found == expected && cuts.eq(expressions.iter().map(cuts_space));
        if is_equal == is_in(DIFFERENT) {
            differences.push(format!("{name}\n  found     {found:?}\n  published {expected:?}"));
        }
        n_equal += usize::from(is_equal);
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    assert!(n_equal >= 70, "{n_equal} are equal");
}

/// An expression of a model in the writing of the table: a class within a class for what an intersection takes.
fn of_model(own: &str) -> String {
    own.replace(r"[\p{Han}]+|", r"\p{Han}+|")
        .replace(r"\p{M}&&", r"\p{M}]&&")
        .replace(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&", r"[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]&&")
        .replace(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&", r"[[\p{Ll}\p{Lm}\p{Lo}\p{M}]&&")
}

#[test]
fn expressions_that_llama_cpp_approximates_are_those_of_the_models() {
    let own: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(OWN).unwrap();
    let excepted = DIFFERENT.iter().filter(|(_, why)| !why.ends_with("are a cut")).map(|(name, _)| *name);
    assert!(excepted.clone().all(|name| own.contains_key(name)) && excepted.count() == own.len());
    for (name, entry) in &own {
        let rule = PreTokenizer::rule(Some(name)).unwrap();
        let [pattern] = rule.patterns else { panic!("{name} has one expression") };
        assert_eq!(
            plain(pattern.regex),
            of_table(&of_model(&entry["expression"])),
            "{name}: {}",
            entry["source"]
        );
        assert!(matches!(pattern.cut, Cut::LastSpace | Cut::LastSpaceInLine), "{name}");
    }
}
