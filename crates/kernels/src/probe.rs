//! A few small cases that check a device's driver for wrong results.
//!
//! Some drivers have wrong subgroup reductions, matrices or byte products. The cases run the kernels that do nearly all
//! of a model's work, in the variants that the device would use; their references take about a millisecond each.

use crate::case::Case;
use crate::format::Format;
use crate::ops::{attention, mul_mat, mul_mat_vec};

/// Formats of the products: integers with scales and minima, and plain values.
const FORMATS: [ggml_format::GgmlType; 2] = [ggml_format::GgmlType::Q4_K, ggml_format::GgmlType::F16];

/// The cases.
pub fn probes() -> Vec<Case> {
    let mut out = Vec::from(attention::cases::probes());
    for f in FORMATS.into_iter().filter_map(Format::of) {
        out.extend(mul_mat_vec::cases::probes(f));
        out.push(mul_mat::cases::probe(f));
    }
    out
}
