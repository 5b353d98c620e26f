//! `pool`: max or mean pooling, in one or two dimensions.

mod cases;
pub mod reference;

use crate::call::{A, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::ops::conv_2d::Window;
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "pool",
    template: template!("pool/pool.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for kind in ["max", "avg"] {
            for ty in ["f32", "f16", "bf16"] {
                out.push(vec![("kind", Value::Word(kind)), ("ty", Value::Word(ty))]);
            }
        }
        out
    },
    cases: Vec::new,
    ggml: &["POOL_1D", "POOL_2D"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Mean rather than maximum.
    pub mean: bool,
    /// Input.
    pub a: Tensor,
    /// Output, of the same type.
    pub y: Tensor,
    /// Sizes of the window; 1 along axis 1 for one dimension.
    pub k: [u32; 2],
    /// Stride and padding; the dilation is 1.
    pub window: Window,
    /// The mean excludes the padding, as in one dimension; otherwise it includes the zeros, as in two.
    pub inner: bool,
}

impl Pool {
    /// The sizes of y.
    pub fn size(&self) -> [u32; 4] {
        let [x, y] = [0, 1].map(|k| self.window.places(k, self.a.ne[k], self.k[k]));
        [x, y, self.a.ne[2], self.a.ne[3]]
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] or [`DispatchError::Type`] if sizes or types do not match.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let Pool { mean, a, y, k, window, inner } = self;
        a.check_type(OP.name, "a", y.ty)?;
        for (what, found) in
            [("the stride", window.stride), ("the dilation", window.dilation), ("the window", k.to_owned())]
        {
            let wrong = found.into_iter().find(|n| *n == 0 || (what == "the dilation" && *n != 1));
            if let Some(n) = wrong {
                let expected = if what == "the dilation" { "1" } else { "at least 1" }.into();
                return Err(DispatchError::Shape { op: OP.name, what, expected, found: n.into() });
            }
        }
        y.check_ne(OP.name, "y", self.size())?;
        let mut constants = window.constants();
        constants.retain(|(n, _)| !["D0", "D1"].contains(n));
        constants.extend([("K0", k[0].into()), ("K1", k[1].into()), ("INNER", f64::from(u8::from(*inner)))]);
        let variant = &[Value::Word(if *mean { "avg" } else { "max" }), Value::Word(y.ty.name())];
        Call { op: &OP, variant, sources: &[(A, a)], y, constants }.values(caps)
    }
}
