//! Files that JavaScript reads.

use std::cell::Cell;

use ggml_format::{ByteSource, SourceError};
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;

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

thread_local! {
    /// The last exception of a file.
    static THROWN: Cell<Option<JsValue>> = const { Cell::new(None) };
}

/// The exception of a file that was the reason of an error, if there was one; it is told once.
pub(crate) fn last_thrown() -> Option<JsValue> {
    THROWN.take()
}

/// A file that JavaScript could not read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("it cannot be read")]
    Thrown,
    #[error("expected {expected} bytes, found {found}")]
    Length { expected: usize, found: u32 },
}

/// A file of a folder.
pub(crate) struct JsSource {
    name: String,
    len: u64,
    file: JsFile,
}

impl JsSource {
    pub(crate) fn new(file: JsFile) -> JsSource {
        JsSource { name: file.name(), len: file.size() as u64, file }
    }

    async fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), ReadError> {
        let failed = |thrown| {
            THROWN.set(Some(thrown));
            ReadError::Thrown
        };
        let mut found = self.file.read(offset as f64, buf.len() as f64).map_err(failed)?;
        if let Some(promise) = found.dyn_ref::<Promise>() {
            found = JsFuture::from(promise.clone()).await.map_err(failed)?;
        }
        let bytes = Uint8Array::from(found);
        if bytes.length() as usize != buf.len() {
            return Err(ReadError::Length { expected: buf.len(), found: bytes.length() });
        }
        bytes.copy_to(buf);
        Ok(())
    }
}

impl ByteSource for JsSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        SourceError::check_range(&self.name, self.len, offset, buf.len() as u64)?;
        let other = |e| SourceError::Other { name: self.name.clone(), source: Box::new(e) };
        self.read(offset, buf).await.map_err(other)
    }
}
