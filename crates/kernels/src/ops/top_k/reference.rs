//! Selection by sorting.

use crate::ops::argsort::reference::argsort;

/// The indices of the `k` largest values, in row order; the first of equal values win.
pub fn top_k(row: &[f64], k: usize) -> Vec<u32> {
    let mut out = argsort(row, true);
    out.truncate(k);
    out.sort_unstable();
    out
}
