//! The weight formats that the backends support.

use chaski_kernels::Format;
use ggml_format::GgmlType;

use crate::graph::{Graph, Weight};

/// A tensor whose type is not a weight format.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("tensor `{tensor}`: the type {ty} is no format of weights that a device reads")]
pub struct FormatError {
    /// The tensor.
    pub tensor: String,
    /// Its type.
    pub ty: GgmlType,
}

/// The format of a weight.
///
/// # Errors
/// [`FormatError`] if its type is not a weight format.
pub(crate) fn format_of(w: &Weight) -> Result<&'static Format, FormatError> {
    Format::of(w.ty).ok_or_else(|| FormatError { tensor: w.name.clone(), ty: w.ty })
}

/// Rejects graphs with tensors in types that are not weight formats, for any device.
///
/// # Errors
/// [`FormatError`] for the first of them.
pub(crate) fn check(graph: &Graph) -> Result<(), FormatError> {
    graph.weights.iter().try_for_each(|w| format_of(w).map(drop))
}
