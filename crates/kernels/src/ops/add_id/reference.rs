//! a plus the row that each id names, in f64.

use super::AddId;
use crate::data::{Data, each};

/// All values of y in ggml's order; an id below 0 names none.
pub fn add_id(call: &AddId, a: &Data, b: &Data, ids: &Data) -> Vec<f64> {
    each(&call.y)
        .map(|c| {
            let row = ids.at([c[1], c[2], 0, 0]);
            a.at(c) + if row < 0.0 { 0.0 } else { b.at([c[0], row as u32, 0, 0]) }
        })
        .collect()
}
