//! The weight formats that a backend of the runtime computes with.

use chaski_kernels::Format;
use ggml_format::GgmlType;

use crate::graph::{Graph, Weight};

/// A tensor in a type that is no weight format.
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
/// [`FormatError`] if its type is none.
pub(crate) fn format_of(w: &Weight) -> Result<&'static Format, FormatError> {
    Format::of(w.ty).ok_or_else(|| FormatError { tensor: w.name.clone(), ty: w.ty })
}

/// Refuses graphs with tensors in types that are no weight formats, whatever device they are for.
///
/// # Errors
/// [`FormatError`] for the first of them.
pub(crate) fn check(graph: &Graph) -> Result<(), FormatError> {
    graph.weights.iter().try_for_each(|w| format_of(w).map(drop))
}
