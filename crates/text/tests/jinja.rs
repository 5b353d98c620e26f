//! Expressions, filters, tests, methods, formats and statements against Jinja2 itself (`jinja/make.py`).

use std::path::Path;

use chaski_text::{ChatTemplate, TemplateError, TemplateOptions};
use serde_json::Value;

/// Templates that differ, with the reason; each is asserted to still differ.
const EXCEPTIONS: &[(&str, &str)] = &[("{{ 'a'.encode()|length }}", "there are no bytes here")];

#[test]
fn templates_give_what_jinja2_gives() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jinja/expressions.json");
    let golden: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let variables = golden["variables"].as_object().unwrap();
    let options = TemplateOptions { extra: variables.clone(), ..TemplateOptions::default() };
    let cases = golden["cases"].as_array().unwrap();
    let mut differences = Vec::new();
    for case in cases {
        let source = case["source"].as_str().unwrap();
        let rendered = ChatTemplate::new(source).and_then(|template| template.render_exact(&[], &options));
        let is_equal = match (&rendered, case["text"].as_str()) {
            (Ok(text), Some(expected)) => text == expected,
            (Err(_), None) => true,
            _ => false,
        };
        let is_exception = EXCEPTIONS.iter().any(|(found, _)| *found == source);
        if is_exception && is_equal {
            differences.push(format!("{source}: no longer differs, drop its exception"));
        }
        if !is_exception && !is_equal {
            let found = rendered.map_err(|e| words(&e));
            differences.push(
                format!("{source}\n  found {found:?}\n  expected {}", case["text"])
                    + &format!(" {}", case["error"]),
            );
        }
    }
    assert!(cases.len() >= 500, "{} cases", cases.len());
    assert!(
        differences.is_empty(),
        "{} of {} differ:\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n")
    );
}

/// The words of an error with its cause.
fn words(error: &TemplateError) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {cause}")
}
