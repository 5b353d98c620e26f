//! Chaski in browsers: the functions that the npm package `chaski` calls through wasm-bindgen.
//!
//! Values are exchanged as JSON text, bytes of files through `JsFile`. The package's JavaScript implements everything a
//! page sees (OpenAI-style names, streams, workers, storage); the only state in this crate is `WebEngine`.
#![cfg(target_arch = "wasm32")]

mod answer;
mod engine;
mod error;
mod file;
mod hash;
mod inspect;
mod math;
mod request;
mod rule;
#[cfg(target_feature = "atomics")]
mod threads;

pub use engine::WebEngine;
pub use hash::WebSha256;
pub use inspect::{adapter, inspect};
#[cfg(target_feature = "atomics")]
pub use threads::{failures, gather, work};
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// Called once when the module is loaded: logs panics with their location to the console.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|info| console_error(&info.to_string())));
}

/// Version of the package.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}
