//! Incremental SHA-256: browsers only hash data that is completely in memory.

use sha2::{Digest as _, Sha256};
use wasm_bindgen::prelude::wasm_bindgen;

/// An incremental hash.
#[wasm_bindgen(js_name = Sha256)]
pub struct WebSha256(Sha256);

#[wasm_bindgen(js_class = Sha256)]
impl WebSha256 {
    /// The initial state.
    #[wasm_bindgen(constructor)]
    #[allow(clippy::new_without_default, reason = "JavaScript has constructors")]
    pub fn new() -> WebSha256 {
        WebSha256(Sha256::new())
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all bytes so far, as 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.clone().finalize().iter().map(|b| format!("{b:02x}")).collect()
    }
}
