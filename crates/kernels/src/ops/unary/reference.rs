//! y = f(x), in f64.

use super::Function;
use crate::data::{Data, each};

/// Applies `f` element-wise, in ggml's order.
pub fn unary(f: &Function, params: [f32; 4], x: &Data) -> Vec<f64> {
    each(&x.tensor).map(|c| (f.formula)(x.at(c), params.map(f64::from))).collect()
}
