//! a, and b added where the view is, in f64.

use super::Acc;
use crate::data::{Data, each};

/// All values of y in ggml's order.
pub fn acc(call: &Acc, a: &Data, b: &Data) -> Vec<f64> {
    let mut values: Vec<f64> = each(&call.a).map(|c| a.at(c)).collect();
    each(&call.view).for_each(|c| values[call.view.index(c)] += b.at(c));
    values
}
