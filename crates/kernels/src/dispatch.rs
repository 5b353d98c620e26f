//! One call of a kernel: its constants and its grid.

use crate::kernel::Kernel;

/// A kernel with everything that is fixed before the first token: constants and grid. Buffers are bound by name.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// The kernel to run.
    pub kernel: &'static Kernel,
    /// Values for the kernel's `override` constants; those not named keep their default.
    pub constants: Vec<(&'static str, f64)>,
    /// Workgroups along x, y and z.
    pub grid: [u32; 3],
    /// Why this kernel and these thread counts were chosen, for people.
    pub why: String,
}

/// A dispatch of a call that takes several, one after the other.
#[derive(Clone, Debug)]
pub struct Step {
    /// What to run.
    pub dispatch: Dispatch,
    /// Bindings of its kernel whose buffer has another name in the call: (binding, buffer).
    pub renamed: Vec<(&'static str, &'static str)>,
}

impl Step {
    /// A step that binds some buffers by other names.
    pub(crate) fn renamed(dispatch: Dispatch, renamed: &[(&'static str, &'static str)]) -> Self {
        Step { dispatch, renamed: renamed.to_vec() }
    }

    /// The buffer that a binding takes.
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

/// Why no kernel fits a request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// No such kernel was rendered.
    #[error("there is no kernel `{name}`")]
    NoKernel {
        /// The name that was looked up.
        name: String,
    },
    /// An operation that only some devices can do, and no other way to do it.
    #[error("{op} needs {what}, which the device lacks")]
    Lacks {
        /// The operation.
        op: &'static str,
        /// What it needs.
        what: &'static str,
    },
    /// A block format that the device does not read or write.
    #[error("{op}: the device knows no tensors of type {format}")]
    Format {
        /// The operation.
        op: &'static str,
        /// The type's name.
        format: &'static str,
    },
    /// An operand of another type than the operation takes.
    #[error("{op}: {what} is {found}, but must be {expected}")]
    Type {
        /// The operation.
        op: &'static str,
        /// Which operand.
        what: &'static str,
        /// Its type's name, as it must be.
        expected: &'static str,
        /// As it is.
        found: &'static str,
    },
    /// A shape that the operation does not take.
    #[error("{op}: {what} is {found}, but must be {expected}")]
    Shape {
        /// The operation.
        op: &'static str,
        /// Which size.
        what: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
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
