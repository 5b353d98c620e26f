//! Body of the fuzz target: any text is processed or refused, by directives and as a template.

use std::collections::BTreeMap;

use wgsl_pre::{Macros, Options, Preprocessor, Renderer};

/// Any bytes, as text.
pub(crate) fn texts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let files = BTreeMap::from([("lib.wgsl", "#define N 4\nconst n = N;\n")]);
    let preprocessor = Preprocessor::new(Options::default().loader(files));
    if let Ok(output) = preprocessor.process("main.wgsl", &text, &Macros::new().with("WG", 64)) {
        for line in 1..=output.text.lines().count() as u32 {
            assert!(output.locate(line).is_some(), "line {line} has an origin");
        }
    }
    let mut renderer = Renderer::new();
    if renderer.add_template("main", text.into_owned()).is_ok() {
        let _ = renderer.render("main", &BTreeMap::from([("size", 256)]));
    }
}
