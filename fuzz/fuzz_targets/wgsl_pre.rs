//! Any text is processed or refused, by directives and as a template.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use wgsl_pre::{Macros, Options, Preprocessor, Renderer};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let files = BTreeMap::from([("lib.wgsl", "#define N 4\nconst n = N;\n")]);
    let preprocessor = Preprocessor::new(Options::default().loader(files));
    if let Ok(output) = preprocessor.process("main.wgsl", &text, &Macros::new().with("WG", 64)) {
        for line in 1..=output.text.lines().count() as u32 {
            let _ = output.locate(line);
        }
    }
    let mut renderer = Renderer::new();
    if renderer.add_template("main", text.into_owned()).is_ok() {
        let _ = renderer.render("main", &BTreeMap::from([("size", 256)]));
    }
});
