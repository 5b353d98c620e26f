//! One call of a kernel: its constants and its grid.

use crate::kernel::Kernel;

/// A kernel with its constants and grid, all fixed before the first token. Buffers are bound by name.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// The kernel to run.
    pub kernel: &'static Kernel,
    /// Values for the kernel's `override` constants; those not named keep their default.
    pub constants: Vec<(&'static str, f64)>,
    /// Workgroups along x, y and z.
    pub grid: [u32; 3],
    /// Reason for choosing this kernel and these thread counts, for display.
    pub why: String,
}

/// One dispatch of a call that takes several in sequence.
#[derive(Clone, Debug)]
pub struct Step {
    /// The dispatch.
    pub dispatch: Dispatch,
    /// Bindings whose buffer has another name in the call: (binding, buffer).
    pub renamed: Vec<(&'static str, &'static str)>,
}

impl Step {
    /// A step that binds some buffers by other names.
    pub(crate) fn renamed(dispatch: Dispatch, renamed: &[(&'static str, &'static str)]) -> Self {
        Step { dispatch, renamed: renamed.to_vec() }
    }

    /// Name of the buffer for a binding.
    pub fn buffer(&self, binding: &'static str) -> &'static str {
        self.renamed.iter().find(|(b, _)| *b == binding).map_or(binding, |(_, buffer)| buffer)
    }
}

impl From<Dispatch> for Step {
    fn from(dispatch: Dispatch) -> Self {
        Step { dispatch, renamed: Vec::new() }
    }
}

impl From<Dispatch> for Vec<Step> {
    fn from(dispatch: Dispatch) -> Self {
        vec![dispatch.into()]
    }
}

/// Reasons why no kernel fits a request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// No such kernel was rendered.
    #[error("no kernel named `{name}`")]
    NoKernel {
        /// The name that was looked up.
        name: String,
    },
    /// An operation that needs an optional device feature.
    #[error("{op} requires {what}, which the device does not support")]
    Lacks {
        /// The operation.
        op: &'static str,
        /// The missing feature.
        what: &'static str,
    },
    /// A block format that no kernel reads or writes.
    #[error("{op}: no kernel supports tensors of type {format}")]
    Format {
        /// The operation.
        op: &'static str,
        /// The type's name.
        format: &'static str,
    },
    /// An operand of the wrong type.
    #[error("{op}: {what} is {found}, expected {expected}")]
    Type {
        /// The operation.
        op: &'static str,
        /// Which operand.
        what: &'static str,
        /// Name of the expected type.
        expected: &'static str,
        /// Name of the actual type.
        found: &'static str,
    },
    /// An unsupported shape.
    #[error("{op}: {what} is {found}, expected {expected}")]
    Shape {
        /// The operation.
        op: &'static str,
        /// The offending size.
        what: &'static str,
        /// The expected value.
        expected: String,
        /// The actual value.
        found: u64,
    },
}

/// Folds `n` workgroups into a grid whose axes stay within `max`.
///
/// The product may exceed `n`; kernels compare their index with the real count.
pub(crate) fn fold(n: u32, max: u32) -> [u32; 2] {
    if n <= max {
        return [n, 1];
    }
    let y = n.div_ceil(max);
    [n.div_ceil(y), y]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_grid_covers_all_and_fits() {
        for n in [0, 1, 7, 65535, 65536, 128_256, 10_000_000] {
            let [x, y] = fold(n, 65535);
            assert!(x <= 65535 && y <= 65535 && x as u64 * y as u64 >= n as u64, "{n}");
        }
    }
}
