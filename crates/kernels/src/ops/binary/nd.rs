//! `binary_nd`: y = a op b over tensors of any stride and type.

use super::ND;
use crate::call::{A, B, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Value;
use crate::tensor::Tensor;

/// One function of two values.
#[derive(Debug)]
pub struct NdFunction {
    /// Name in kernels.
    pub name: &'static str,
    /// ggml's name.
    pub ggml: &'static str,
    /// The WGSL expression of `va` and `vb`.
    pub wgsl: &'static str,
    /// The formula.
    pub formula: fn(f64, f64) -> f64,
}

/// All functions.
pub static FUNCTIONS: &[NdFunction] = &[
    NdFunction { name: "add", ggml: "ADD", wgsl: "va + vb", formula: |a, b| a + b },
    NdFunction { name: "sub", ggml: "SUB", wgsl: "va - vb", formula: |a, b| a - b },
    NdFunction { name: "mul", ggml: "MUL", wgsl: "va * vb", formula: |a, b| a * b },
    NdFunction { name: "div", ggml: "DIV", wgsl: "va / vb", formula: |a, b| a / b },
];

pub(super) const TYPES: [&str; 3] = ["f32", "f16", "bf16"];

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct BinaryNd {
    /// The function.
    pub f: &'static NdFunction,
    /// First operand, of y's sizes; `None` to work on y in place.
    pub a: Option<Tensor>,
    /// Second operand, broadcast to y.
    pub b: Tensor,
    /// Output, of a's type.
    pub y: Tensor,
}

impl BinaryNd {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match or values overlap; [`DispatchError::NoKernel`] for other types.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let a = self.a.as_ref();
        if let Some(a) = a {
            a.check_ne(ND.name, "a", self.y.ne)?;
            a.check_type(ND.name, "a", self.y.ty)?;
        }
        self.b.check_repeats(ND.name, "b", self.y.ne)?;
        let mut sources = vec![(B, &self.b)];
        sources.extend(a.map(|a| (A, a)));
        let words = [self.f.name, self.y.ty.name(), self.b.ty.name(), if a.is_some() { "new" } else { "in" }];
        let variant = words.map(Value::Word);
        Call { op: &ND, variant: &variant, sources: &sources, y: &self.y, constants: vec![] }.values(caps)
    }
}
