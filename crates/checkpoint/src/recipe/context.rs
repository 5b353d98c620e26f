//! The files that recipes read, and panels of transposed matrices.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

use futures_util::lock::Mutex;
use ggml_format::{ByteSource, GgmlType, SourceError};

/// Most bytes of a panel. A panel has at least one row, so recipes limit the rows of transposed matrices.
pub(super) const PANEL_BYTES: u64 = 16 << 20;
/// Panels that are kept at each level.
const N_PANEL: usize = 2;
/// Transposed matrices may be made of transposed matrices, so deep.
pub(super) const N_LEVEL: usize = 3;

/// A future of a recipe.
#[cfg(not(target_arch = "wasm32"))]
pub(super) type Reading<'a> = Pin<Box<dyn Future<Output = Result<(), SourceError>> + Send + 'a>>;

/// A future of a recipe.
#[cfg(target_arch = "wasm32")]
pub(super) type Reading<'a> = Pin<Box<dyn Future<Output = Result<(), SourceError>> + 'a>>;

/// Some rows of a transposed matrix.
pub(super) struct Panel {
    /// Address of the recipe's node, which identifies it as long as the source lives.
    pub(super) node: usize,
    pub(super) form: GgmlType,
    /// Rows of the result.
    pub(super) rows: Range<u64>,
    pub(super) bytes: Vec<u8>,
}

/// The panels of one level, the most recent one last.
pub(super) type Panels = Mutex<Vec<Panel>>;

/// Files and panels.
pub(crate) struct Context<S> {
    pub(crate) files: Vec<S>,
    pub(super) panels: [Panels; N_LEVEL],
}

impl<S: ByteSource> Context<S> {
    pub(crate) fn new(files: Vec<S>) -> Context<S> {
        Context { files, panels: std::array::from_fn(|_| Mutex::new(Vec::new())) }
    }
}

/// Adds a panel in place of the oldest one.
pub(super) fn keep(panels: &mut Vec<Panel>, panel: Panel) {
    if panels.len() == N_PANEL {
        panels.remove(0);
    }
    panels.push(panel);
}

/// An error of data that do not fit a recipe.
pub(super) fn bad_data(file: &str, why: String) -> SourceError {
    SourceError::Other { name: file.to_owned(), source: why.into() }
}
