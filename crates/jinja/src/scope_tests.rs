//! Tests of templates that reach each other: scopes of modules, and cycles.

use serde_json::json;

use super::Environment;

/// Renders `main` of some templates with `n` = 4; the failure as text.
fn render(templates: &[(&str, &str)]) -> Result<String, String> {
    let mut environment = Environment::new();
    for (name, source) in templates {
        environment.add(name, source).expect("a template that parses");
    }
    let variables = json!({ "n": 4 });
    environment.render("main", variables.as_object().expect("an object")).map_err(|fault| fault.to_string())
}

fn ok(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

#[test]
fn a_module_has_its_own_names_and_sees_those_of_the_importer() {
    let lib = ("lib", "{% set a = n %}{% macro m() %}{{ a }}{{ n }}{% endmacro %}");
    let main = "{% set a = 1 %}{% import 'lib' as lib %}{{ lib.a }}{{ lib.m() }}{{ a }}";
    assert_eq!(render(&[lib, ("main", main)]), ok("4441"));
    // Names of the module are not those of the importer, and the reverse.
    let main = "{% import 'lib' as lib %}{% set a = 2 %}{{ lib.m() }}{{ lib.a }}{{ a }}";
    assert_eq!(render(&[lib, ("main", main)]), ok("4442"));
    let main = "{% import 'lib' as lib %}{{ a }}";
    assert_eq!(render(&[lib, ("main", main)]), Err("main:1:29: 'a' is undefined".into()));
    let main = "{% from 'lib' import a as b, m %}{{ b }}{{ m() }}";
    assert_eq!(render(&[lib, ("main", main)]), ok("444"));
    // The text of a module is dropped.
    assert_eq!(
        render(&[("lib", "text{% set a = 3 %}"), ("main", "{% import 'lib' as l %}{{ l.a }}")]),
        ok("3")
    );
}

#[test]
fn each_import_runs_the_module_again() {
    let lib = ("lib", "{% set a = n %}");
    let main = "{% import 'lib' as x %}{% set n = 5 %}{% import 'lib' as y %}{{ x.a }}{{ y.a }}";
    assert_eq!(render(&[lib, ("main", main)]), ok("45"));
}

#[test]
fn an_included_template_sees_names_and_keeps_its_own() {
    let main = "{% set a = 1 %}{% include 'part' %}{{ a }}";
    assert_eq!(render(&[("part", "{{ a }}{% set a = 2 %}{{ a }}"), ("main", main)]), ok("121"));
}

#[test]
fn the_innermost_block_is_printed() {
    let base = ("base", "<{% block a %}base{% endblock %}{% block b %}b{% endblock %}>");
    let middle = ("middle", "{% extends 'base' %}dropped{% block a %}middle{% endblock %}");
    let main = ("main", "{% extends 'middle' %}{% block a %}main{{ n }}{% endblock %}");
    assert_eq!(render(&[base, middle, main]), ok("<main4b>"));
}

#[test]
fn cycles_are_failures_with_a_place() {
    let end = |templates: &[(&str, &str)]| {
        let fault = render(templates).expect_err("a cycle");
        assert!(fault.lines().count() <= 12 && fault.len() < 2000, "{fault}");
        fault.lines().next().unwrap_or_default().to_owned()
    };
    for cycle in ["{% extends 'main' %}", "{% include 'main' %}", "{% import 'main' as m %}"] {
        assert!(
            end(&[("main", cycle)]).contains("exceeded the limit"),
            "{cycle}: {}",
            end(&[("main", cycle)])
        );
        let other = cycle.replace("main", "other");
        let found = end(&[("main", &other), ("other", cycle)]);
        assert!(found.contains("exceeded the limit"), "{cycle}: {found}");
    }
    // Macros that call each other across modules.
    let one = "{% macro a() %}{% import 'two' as two %}{{ two.b() }}{% endmacro %}";
    let two = "{% macro b() %}{% import 'one' as one %}{{ one.a() }}{% endmacro %}";
    let found = end(&[("one", one), ("two", two), ("main", "{% import 'one' as one %}{{ one.a() }}")]);
    assert!(found.contains("exceeded the limit"), "{found}");
}

#[test]
fn text_by_chance_is_refused() {
    let found = render(&[("main", "{{ lipsum(2) }}")]).expect_err("no text");
    assert!(found.contains("lipsum() makes random text"), "{found}");
}
