//! The hostile corpora as a WebAssembly module, which `wasm.mjs` runs. Elsewhere it is empty.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, reason = "only a script uses it")]

#[path = "cases.rs"]
mod cases;

use wasm_bindgen::prelude::wasm_bindgen;

/// The cases as JSON: pairs of `template 0` or `grammar 0` and a name.
#[wasm_bindgen]
pub fn names() -> String {
    let templates = cases::templates::corpus().into_iter().map(|(name, _)| name).enumerate();
    let templates = templates.map(|(i, name)| (format!("template {i}"), name));
    let grammars = cases::grammars::corpus().into_iter().map(|(name, _)| name).enumerate();
    let grammars = grammars.map(|(i, name)| (format!("grammar {i}"), name.to_string()));
    let all: Vec<(String, String)> = templates.chain(grammars).collect();
    serde_json::json!(all).to_string()
}

/// Runs a case; says how it ended.
#[wasm_bindgen]
pub fn run(case: &str) -> String {
    match cases::run(case) {
        Ok(n) => format!("ended: {n}"),
        Err(error) => format!("ended: error: {error}"),
    }
}
