//! The JavaScript functions, as far as they work outside JavaScript: errors are JavaScript objects, results
//! are not.
#![cfg(feature = "wasm")]

use wgsl_pre::{preprocess, render};

#[test]
fn directives_take_their_macros_and_files_from_json() {
    let source = "#include \"lib.wgsl\"\nconst a = A;\n#ifdef B\nconst c = C;\n#endif\n";
    let macros = r#"{ "A": "vec2(1)", "B": null, "C": 7, "D": true }"#;
    let files = r#"{ "lib.wgsl": "\n// D\nconst d = D;\n" }"#;
    let result = preprocess(source, macros, files).expect("the text is right");
    assert_eq!(result.text(), "\n// D\nconst d = true;\nconst a = vec2(1);\nconst c = 7;\n");
    assert_eq!(result.locate(3).as_deref(), Some("lib.wgsl:3"));
    assert_eq!(result.locate(5).as_deref(), Some("main:4"));
    assert_eq!(result.locate(6), None);
    assert_eq!(preprocess("a\n", "", "").ok().map(|result| result.text()).as_deref(), Some("a\n"));
}

#[test]
fn templates_take_their_variables_from_json() {
    let templates = r#"{ "a": "{% include 'b' %}{{ n | f32 }};", "b": "const n = " }"#;
    assert_eq!(render(templates, "a", r#"{ "n": 2 }"#).ok().as_deref(), Some("const n = 2.0f;\n"));
}
