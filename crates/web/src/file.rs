//! Files read by JavaScript: OPFS, a `File`, ranges of a URL.

use std::sync::Arc;

use chaski::Source;
use chaski::gguf::SourceError;
use chaski::source::{Reader, Reading};
use js_sys::{Promise, Uint8Array};
use send_wrapper::SendWrapper;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::error::JsFailure;

#[wasm_bindgen]
extern "C" {
    /// `{ name, size, read(offset, length) }`; `read` returns a `Uint8Array` of `length` bytes or a promise of one.
    pub type JsFile;
    #[wasm_bindgen(method, getter)]
    fn name(this: &JsFile) -> String;
    #[wasm_bindgen(method, getter)]
    fn size(this: &JsFile) -> f64;
    #[wasm_bindgen(method, catch)]
    fn read(this: &JsFile, offset: f64, length: f64) -> Result<JsValue, JsValue>;
}

/// Adapts a JavaScript file to the engine.
pub(crate) struct JsReader {
    name: String,
    len: u64,
    // The engine requires `Send`; there are no threads here.
    file: SendWrapper<JsFile>,
}

impl JsReader {
    pub(crate) fn new(file: JsFile) -> JsReader {
        JsReader { name: file.name(), len: file.size() as u64, file: SendWrapper::new(file) }
    }

    async fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), JsFailure> {
        let mut found = self.file.read(offset as f64, buf.len() as f64)?;
        if let Some(promise) = found.dyn_ref::<Promise>() {
            found = JsFuture::from(promise.clone()).await?;
        }
        let bytes: Uint8Array = found.dyn_into().map_err(|_| JsFailure::short(0, buf.len()))?;
        if bytes.length() as usize != buf.len() {
            return Err(JsFailure::short(bytes.length() as usize, buf.len()));
        }
        bytes.copy_to(buf);
        Ok(())
    }
}

impl std::fmt::Debug for JsReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JsReader({:?}, {} bytes)", self.name, self.len)
    }
}

impl Reader for JsReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> Reading<'a> {
        Box::pin(async move {
            SourceError::check_range(&self.name, self.len, offset, buf.len() as u64)?;
            let other = |e| SourceError::Other { name: self.name.clone(), source: Box::new(e) };
            self.read(offset, buf).await.map_err(other)
        })
    }
}

/// JavaScript files as a source.
pub(crate) fn source(files: Vec<JsFile>) -> Source {
    Source::Readers(files.into_iter().map(|f| Arc::new(JsReader::new(f)) as Arc<dyn Reader>).collect())
}
