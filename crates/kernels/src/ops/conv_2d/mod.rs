//! `conv_2d`: two-dimensional convolution, full or depthwise, with channels on any axis.

mod cases;
pub mod reference;

use crate::call::{A, B, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "conv_2d",
    template: template!("conv_2d/conv_2d.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for kind in ["full", "dw"] {
            for ta in ["f32", "f16", "bf16"] {
                for tb in ["f32", "f16"] {
                    out.push(vec![
                        ("kind", Value::Word(kind)),
                        ("ta", Value::Word(ta)),
                        ("tb", Value::Word(tb)),
                    ]);
                }
            }
        }
        out
    },
    cases: Vec::new,
    ggml: &["CONV_2D", "CONV_2D_DW"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// Stride, padding and dilation of a convolution window; the two numbers are for axes 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Distance between window positions.
    pub stride: [u32; 2],
    /// Zero padding on each side.
    pub padding: [u32; 2],
    /// Distance between the values of a window.
    pub dilation: [u32; 2],
}

impl Window {
    /// Number of positions of a window of `k` values over `n` values along an axis.
    pub const fn places(&self, axis: usize, n: u32, k: u32) -> u32 {
        let span = self.dilation[axis].saturating_mul(k.saturating_sub(1)).saturating_add(1);
        match n.saturating_add(self.padding[axis].saturating_mul(2)).checked_sub(span) {
            Some(room) => (room / self.stride[axis]).saturating_add(1),
            None => 0,
        }
    }

    /// `S0` to `D1` of kernels.
    pub(crate) fn constants(&self) -> Vec<(&'static str, f64)> {
        let [s, p, d] = [self.stride, self.padding, self.dilation].map(|v| v.map(f64::from));
        vec![("S0", s[0]), ("S1", s[1]), ("P0", p[0]), ("P1", p[1]), ("D0", d[0]), ("D1", d[1])]
    }

    /// Index of value `k` of the window at `place` among `n` values; `None` in the padding.
    pub(crate) fn at(&self, axis: usize, place: u32, k: u32, n: u32) -> Option<u32> {
        let at = place * self.stride[axis] + k * self.dilation[axis];
        at.checked_sub(self.padding[axis]).filter(|at| *at < n)
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Conv2d {
    /// The kernel: `[oc][ic][ky][kx]`, or `[c][1][ky][kx]` if depthwise.
    pub a: Tensor,
    /// The images, `[n][ic][y][x]`.
    pub b: Tensor,
    /// `[n][oc][y][x]`, of the type of b.
    pub y: Tensor,
    /// Stride, padding and dilation.
    pub window: Window,
    /// Depthwise: one filter per channel.
    pub depthwise: bool,
}

impl Conv2d {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] or [`DispatchError::Type`] if sizes or types do not match.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let Conv2d { a, b, y, window, depthwise } = self;
        b.check_type(OP.name, "b", y.ty)?;
        if window.stride.contains(&0) {
            let expected = "at least 1".into();
            return Err(DispatchError::Shape { op: OP.name, what: "the stride", expected, found: 0 });
        }
        let [ox, oy] = [0, 1].map(|k| window.places(k, b.ne[k], a.ne[k]));
        y.check_ne(OP.name, "y", [ox, oy, a.ne[3], b.ne[3]])?;
        let channels = if *depthwise { [1, b.ne[2]] } else { [b.ne[2], a.ne[3]] };
        a.check_ne(OP.name, "a", [a.ne[0], a.ne[1], channels[0], channels[1]])?;
        let kind = if *depthwise { "dw" } else { "full" };
        Call {
            op: &OP,
            variant: &[Value::Word(kind), Value::Word(a.ty.name()), Value::Word(y.ty.name())],
            sources: &[(A, a), (B, b)],
            y,
            constants: window.constants(),
        }
        .values(caps)
    }
}
