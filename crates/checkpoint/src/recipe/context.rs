//! The files that recipes read, and panels of transposed matrices.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

use futures_util::lock::Mutex;
use ggml_format::{ByteSource, GgmlType, SourceError};

/// Most bytes of a panel. A panel has at least one row, so recipes limit the rows of transposed matrices.
pub(super) const PANEL_BYTES: u64 = 16 << 20;
/// Bytes of panels that are kept at each level, if these are more than one.
const KEPT_BYTES: usize = 32 << 20;
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

/// The panels of one level, the one that was used last at the end.
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

/// Finds a panel and makes it the last one used.
pub(super) fn find(panels: &mut [Panel], node: usize, form: GgmlType, rows: &Range<u64>) -> bool {
    match panels.iter().position(|p| p.node == node && p.form == form && p.rows == *rows) {
        Some(i) => {
            panels[i..].rotate_left(1);
            true
        }
        None => false,
    }
}

/// Adds a panel; those that were not used for the longest time make room for it.
pub(super) fn keep(panels: &mut Vec<Panel>, panel: Panel) {
    let mut n_byte = panel.bytes.len();
    let n_kept = panels.iter().rev().take_while(|p| {
        n_byte = n_byte.saturating_add(p.bytes.len());
        n_byte <= KEPT_BYTES
    });
    let n_kept = n_kept.count();
    panels.drain(..panels.len() - n_kept);
    panels.push(panel);
}

/// An error of data that do not fit a recipe.
pub(super) fn bad_data(file: &str, why: String) -> SourceError {
    SourceError::Other { name: file.to_owned(), source: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(node: usize, mib: usize) -> Panel {
        Panel { node, form: GgmlType::F32, rows: 0..1, bytes: vec![0; mib << 20] }
    }

    #[test]
    fn panels_used_least_recently_make_room() {
        let nodes = |panels: &[Panel]| panels.iter().map(|p| p.node).collect::<Vec<_>>();
        let mut panels = Vec::new();
        (0..4).for_each(|node| keep(&mut panels, panel(node, 8)));
        assert_eq!(nodes(&panels), [0, 1, 2, 3]);
        assert!(find(&mut panels, 0, GgmlType::F32, &(0..1)));
        assert!(
            !find(&mut panels, 0, GgmlType::F16, &(0..1)) && !find(&mut panels, 0, GgmlType::F32, &(0..2))
        );
        assert_eq!(nodes(&panels), [1, 2, 3, 0]);
        keep(&mut panels, panel(4, 12));
        assert_eq!(nodes(&panels), [3, 0, 4]);
        // One that is larger than all that is kept stays alone.
        keep(&mut panels, panel(5, 33));
        assert_eq!(nodes(&panels), [5]);
        keep(&mut panels, panel(6, 1));
        assert_eq!(nodes(&panels), [6]);
    }
}
