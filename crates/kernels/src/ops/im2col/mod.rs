//! `im2col`: the windows of a convolution as rows of a matrix.

mod cases;
pub mod reference;

use crate::call::{B, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::ops::conv_2d::Window;
use crate::tensor::Tensor;

const TYPES: [&str; 3] = ["f32", "f16", "bf16"];

/// The row of this operation.
pub const OP: Op = Op {
    name: "im2col",
    template: template!("im2col/im2col.wgsl.jinja"),
    variants: || {
        let pair = |b, y| vec![("tb", Value::Word(b)), ("ty", Value::Word(y))];
        TYPES.iter().flat_map(|b| TYPES.iter().map(move |y| pair(*b, *y))).collect()
    },
    cases: Op::cases(cases::by_hand),
    ggml: &["IM2COL"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Im2col {
    /// The images `[n][ic][y][x]`, or in one dimension `[1][n][ic][x]`.
    pub b: Tensor,
    /// `[n][oy][ox][ic * ky * kx]`, or in one dimension `[1][n][ox][ic * kx]`.
    pub y: Tensor,
    /// Sizes of the window.
    pub k: [u32; 2],
    /// Stride, padding and dilation; in one dimension, only axis 0 counts.
    pub window: Window,
    /// One dimension.
    pub line: bool,
}

impl Im2col {
    /// The sizes of y.
    pub fn size(&self) -> [u32; 4] {
        let Im2col { b, k, window, .. } = self;
        let x = window.places(0, b.ne[0], k[0]);
        if self.line {
            return [b.ne[1].saturating_mul(k[0]), x, b.ne[2], 1];
        }
        [b.ne[2].saturating_mul(k[0]).saturating_mul(k[1]), x, window.places(1, b.ne[1], k[1]), b.ne[3]]
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match; [`DispatchError::NoKernel`] for types that are no floats.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let Im2col { b, y, k, window, line } = self;
        if window.stride.contains(&0) {
            let expected = "at least 1".into();
            return Err(DispatchError::Shape { op: OP.name, what: "the stride", expected, found: 0 });
        }
        y.check_ne(OP.name, "y", self.size())?;
        let kh = if *line { 1 } else { k[1] };
        let mut constants = window.constants();
        if *line {
            constants.retain(|(n, _)| !["S1", "P1", "D1"].contains(n));
        }
        // An empty window makes y empty, but a driver may reject a division by 0 that it can foresee.
        let [kw, kh] = [k[0], kh].map(|n| n.max(1));
        constants.extend([("KW", kw.into()), ("KH", kh.into()), ("LINE", f64::from(u8::from(*line)))]);
        let variant = &[Value::Word(b.ty.name()), Value::Word(y.ty.name())];
        Call { op: &OP, variant, sources: &[(B, b)], y, constants }.values(caps)
    }
}
