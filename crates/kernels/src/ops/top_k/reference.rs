//! Selection by sorting.

use crate::ops::argsort::reference::argsort;

/// The indices of the `k` largest values, in the order of the row; of equals the first ones.
pub fn top_k(row: &[f64], k: usize) -> Vec<u32> {
    let mut out = argsort(row, true);
    out.truncate(k);
    out.sort_unstable();
    out
}
