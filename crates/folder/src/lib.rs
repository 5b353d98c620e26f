//! Checkpoints in browsers: a module of its own, which pages load with the first model that is a folder.
//!
//! A folder of Hugging Face or of MLC becomes a file that the engine's module reads as any other: its weights are made
//! from ranges of the folder's files when they are read. What a file throws is thrown again, other errors as texts.
#![cfg(target_arch = "wasm32")]

mod file;

use std::error::Error;

use chaski_checkpoint::hf::OpenOptions;
use chaski_checkpoint::{Folder, VirtualSource};
use ggml_format::ByteSource as _;
use js_sys::Uint8Array;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use file::{JsFile, JsSource};

/// A folder as a GGUF file.
#[wasm_bindgen]
pub struct Checkpoint {
    source: VirtualSource<JsSource>,
    notes: Vec<String>,
}

#[wasm_bindgen]
impl Checkpoint {
    /// Opens a folder of files whose names are their paths in it; `name` is used in messages.
    ///
    /// # Errors
    /// A folder that is no model, or none that is known; damaged or missing files.
    pub async fn open(name: String, files: Vec<JsFile>) -> Result<Checkpoint, JsValue> {
        let files = files.into_iter().map(JsSource::new).map(|file| (file.name().to_owned(), file));
        let opened = chaski_checkpoint::open(Folder::new(name, files), &OpenOptions::default()).await;
        let opened = opened.map_err(|e| thrown(&e))?;
        Ok(Checkpoint { source: opened.source, notes: opened.notes })
    }

    /// Bytes of the file.
    pub fn size(&self) -> f64 {
        self.source.len() as f64
    }

    /// Remarks for the user, such as that weights are converted.
    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Bytes of the file from `offset`.
    ///
    /// # Errors
    /// Those of the folder's files.
    pub async fn read(&self, offset: f64, length: usize) -> Result<Uint8Array, JsValue> {
        let mut bytes = vec![0; length];
        self.source.read_at(offset as u64, &mut bytes).await.map_err(|e| thrown(&e))?;
        Ok(Uint8Array::from(&*bytes))
    }
}

/// An error as what is thrown.
fn thrown(e: &dyn Error) -> JsValue {
    file::last_thrown().unwrap_or_else(|| chain(e).into())
}

/// An error with its causes as one line.
fn chain(e: &dyn Error) -> String {
    let mut text = e.to_string();
    let mut next = e.source();
    while let Some(cause) = next {
        let line = cause.to_string();
        // Transparent errors repeat their cause's text.
        if !text.ends_with(&line) {
            text.push_str(": ");
            text.push_str(&line);
        }
        next = cause.source();
    }
    text
}
