//! The operations of a recipe: each gives rows of a matrix, as f32 or as the bytes of a ggml type.

use super::microscaled::Microscaled;
use super::nvfp4::{MatrixScale, Nvfp4};
use super::quantized::Quantized;
use super::view::View;

/// An operation and what it is applied to.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Elements of a file.
    Plain(View),
    /// Codes of a file.
    Quantized(Box<Quantized>),
    /// Codes of a file that ggml has a type for.
    Microscaled(Box<Microscaled>),
    /// Codes of a file with two levels of scales.
    Nvfp4(Box<Nvfp4>),
    /// The factors of such matrices, one row.
    Factors(Vec<MatrixScale>),
    /// Numbers in memory, a single row or several.
    Numbers { values: Vec<f32>, n_col: u64 },
    /// Some rows of a matrix.
    Rows { of: Box<Node>, map: Strides },
    /// Some columns of a matrix.
    Cols { of: Box<Node>, map: Strides },
    /// Matrices below each other; `ends` has the first row behind each.
    Concat { parts: Vec<Node>, ends: Vec<u64> },
    /// A function of each value.
    Each { of: Box<Node>, f: Function },
    /// Matrices of `n_row` x `n_col` below each other, each transposed.
    Transpose { of: Box<Node>, n_row: u64, n_col: u64 },
    /// The same values in rows of another length.
    Fold { of: Box<Node>, from: u64, to: u64 },
    /// Values as q4_0 with given scales, one per 32 values of a row.
    Blocks { values: Box<Node>, scales: Box<Node> },
}

/// A function of a value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum Function {
    /// x + c
    Add(f32),
    /// x c
    Scale(f32),
    /// -exp(x)
    NegExp,
}

impl Function {
    pub(super) fn of(self, x: f32) -> f32 {
        match self {
            Function::Add(c) => x + c,
            Function::Scale(c) => x * c,
            // Rounded once, on every machine.
            Function::NegExp => -(f64::from(x).exp() as f32),
        }
    }
}

/// Numbers `start + sum of i_k * step_k`, for all i_k below n_k, the last of them fastest.
///
/// As rows of a matrix this is a slice, every other row, or a permutation of dimensions.
///
/// ```
/// use chaski_checkpoint::Strides;
/// let interleaved = Strides::new(0, &[(3, 1), (2, 3)]); // [2, 3] to [3, 2]
/// assert_eq!((0..6).map(|i| interleaved.at(i)).collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strides {
    start: u64,
    /// Size and step of each dimension, outermost first.
    dims: Vec<(u64, u64)>,
}

impl Strides {
    /// Numbers from `start` on; `dims`: size and step of each dimension, outermost first.
    pub fn new(start: u64, dims: &[(u64, u64)]) -> Strides {
        Strides { start, dims: dims.to_vec() }
    }

    /// `n` numbers from `start` on.
    pub fn slice(start: u64, n: u64) -> Strides {
        Strides::new(start, &[(n, 1)])
    }

    /// Swaps dimensions 1 and 2 of `[outer, a, b, inner]`.
    pub fn swapped(outer: u64, a: u64, b: u64, inner: u64) -> Strides {
        Strides::new(0, &[(outer, a * b * inner), (b, inner), (a, b * inner), (inner, 1)])
    }

    /// How many numbers there are, if fewer than 2^63.
    pub fn n(&self) -> Option<u64> {
        let n = self.dims.iter().try_fold(1u64, |n, &(size, _)| n.checked_mul(size));
        n.filter(|&n| n <= i64::MAX as u64)
    }

    /// The largest number and 1; 0 if there is none.
    pub fn end(&self) -> Option<u64> {
        if self.n()? == 0 {
            return Some(0);
        }
        let far = self
            .dims
            .iter()
            .try_fold(self.start, |end, &(n, step)| end.checked_add((n - 1).checked_mul(step)?));
        far?.checked_add(1)
    }

    /// Number `i`.
    pub fn at(&self, mut i: u64) -> u64 {
        let mut at = self.start;
        for &(n, step) in self.dims.iter().rev() {
            at += i % n * step;
            i /= n;
        }
        at
    }
}
