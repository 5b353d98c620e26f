//! Whole templates: includes, errors with locations, tidying.

use serde_json::json;
use wgsl_pre::{ErrorKind, LoadError, Loader, Renderer, Source};

fn renderer(templates: &[(&'static str, &'static str)]) -> Renderer {
    let mut renderer = Renderer::new();
    for (name, source) in templates {
        renderer.add_template(*name, *source).unwrap();
    }
    renderer
}

#[test]
fn text_is_tidied() {
    let r = renderer(&[("t", "{# head #}\n\n\n  a  \n\t\nb\n\n\n{% if true %}\n  c\n{% endif %}\n\n\n")]);
    assert_eq!(r.render("t", &()).unwrap(), "  a\n\nb\n\n  c\n");
    let r = renderer(&[("t", "a"), ("nothing", "{# #}\n\n")]);
    assert_eq!(r.render("t", &()).unwrap(), "a\n");
    assert_eq!(r.render("nothing", &()).unwrap(), "");
}

#[test]
fn blocks_leave_no_lines_and_loops_can_break() {
    let r = renderer(&[(
        "t",
        "{% for i in range(9) %}\n  {% if i == 1 %}{% continue %}{% endif %}\n  {% if i == 3 %}{% break %}{% endif %}\n  x{{ i }}\n{% endfor %}\n",
    )]);
    assert_eq!(r.render("t", &()).unwrap(), "  x0\n  x2\n");
}

#[test]
fn templates_include_import_and_extend_each_other() {
    let r = renderer(&[
        ("inc", "var<private> {{ name }}: u32;\n"),
        ("lib", "{% macro add(a, b) %}({{ a }} + {{ b }}){% endmacro %}\n"),
        ("base", "// {% block title %}none{% endblock %}\n"),
        ("t", "{% import 'lib' as lib %}\n{% include 'inc' %}\nlet x = {{ lib.add('a', 1) }};\n"),
        ("child", "{% extends 'base' %}{% block title %}child{% endblock %}\n"),
    ]);
    assert_eq!(r.render("t", &json!({ "name": "n" })).unwrap(), "var<private> n: u32;\nlet x = (a + 1);\n");
    assert_eq!(r.render("child", &()).unwrap(), "// child\n");
}

#[test]
fn nothing_is_escaped() {
    let r = renderer(&[("t.html", "{{ x }}")]);
    assert_eq!(r.render("t.html", &json!({ "x": "a < b && c" })).unwrap(), "a < b && c\n");
}

#[test]
fn booleans_are_written_as_in_wgsl_and_none_is_an_error() {
    let r = renderer(&[("t", "const x = {{ x }};\n")]);
    assert_eq!(r.render("t", &json!({ "x": true })).unwrap(), "const x = true;\n");
    let error = r.render("t", &json!({ "x": null })).unwrap_err();
    assert_eq!(error.to_string(), "t:1:14: `none` cannot be written in WGSL");
}

/// A disk with one readable and one unreadable file.
struct Disk;

impl Loader for Disk {
    fn load(&self, path: &str, _: Option<&str>) -> Result<Source, LoadError> {
        match path {
            "x" => Ok(Source { name: path.into(), text: "from the loader".into() }),
            "broken" => Err(LoadError::Unreadable { message: "the disk is on fire".into() }),
            _ => Err(LoadError::NotFound { tried: Vec::new() }),
        }
    }
}

#[test]
fn a_loader_finds_what_was_not_added() {
    let mut r = renderer(&[
        ("t", "{% include 'x' %}\n{% include 'y' ignore missing %}\n"),
        ("u", "{% include 'broken' %}\n"),
    ]);
    r.set_loader(Disk);
    assert_eq!(r.render("t", &()).unwrap(), "from the loader\n");
    let error = r.render("u", &()).unwrap_err();
    assert_eq!(error.to_string(), "u:1:4: cannot load `broken`: the disk is on fire");
}

#[test]
fn errors_say_where_and_through_which_includes() {
    let r = renderer(&[
        ("main", "a\n{% include 'mid' %}\n"),
        ("mid", "\n\n  {% include 'leaf' %}\n"),
        ("leaf", "ok\n  {{ raise('head size ' ~ d ~ ' is odd') }}\n"),
        ("macros", "{% macro m(x) %}\n{{ x | u32 }}\n{% endmacro %}\n"),
        ("caller", "{% import 'macros' as m %}\n\n{{ m.m(-1) }}\n"),
        ("unknown", "{{ 1 | frobnicate }}\n"),
    ]);
    let error = r.render("main", &json!({ "d": 3 })).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Raised { message: "head size 3 is odd".into() });
    assert_eq!(
        error.to_string(),
        "leaf:2:6: head size 3 is odd\n  included from mid:3:6\n  included from main:2:4"
    );
    insta::assert_snapshot!(r.render("caller", &()).unwrap_err(), @"macros:2:8: filter `u32`: expected an integer from 0 to 4294967295, found `-1`");
    insta::assert_snapshot!(r.render("unknown", &()).unwrap_err(), @"unknown:1:8: no filter named 'frobnicate'");
    insta::assert_snapshot!(r.render("missing", &()).unwrap_err(), @r#"template "missing" does not exist"#);
    insta::assert_snapshot!(Renderer::new().add_template("t", "a\n{% if %}").unwrap_err(), @"t:2:7: expected an expression, found 'end of statement block'");
}

#[test]
fn rendering_is_deterministic() {
    let r = renderer(&[("t", "{% for k, v in m | items %}{{ k }}={{ v }} {% endfor %}\n")]);
    let vars = json!({ "m": { "z": 1, "a": 2, "k": 3 } });
    for _ in 0..20 {
        assert_eq!(r.render("t", &vars).unwrap(), "z=1 a=2 k=3\n");
    }
}

#[test]
fn the_readme_shows_what_its_template_gives() {
    let readme = include_str!("../README.md");
    let block = |language: &str| {
        let start = readme.find(&format!("```{language}\n")).expect("the readme has such a block");
        let text = &readme[start + language.len() + 4..];
        text[..text.find("```").expect("the block ends")].to_owned()
    };
    let mut r = Renderer::new();
    r.add_template("load.jinja", "{% macro load(at) %}tile[{{ at }}].x{% endmacro %}").unwrap();
    r.add_template("main", block("jinja")).unwrap();
    let vars = json!({ "scales": [0.5, 1, 2], "type": "f32", "wg": 64, "unroll": 2 });
    assert_eq!(r.render("main", &vars).unwrap(), block("wgsl"));
}
