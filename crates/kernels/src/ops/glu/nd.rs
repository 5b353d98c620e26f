//! `glu_nd`: y = act(a) * b over tensors of any stride and type.

use super::ND;
use super::kinds::Kind;
use crate::call::{A, B, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Value;
use crate::tensor::Tensor;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct GluNd {
    /// The function.
    pub kind: &'static Kind,
    /// The gate.
    pub a: Tensor,
    /// The gated value.
    pub b: Tensor,
    /// Output; all three have the same sizes and type.
    pub y: Tensor,
    /// Factor inside the logistic function, for kinds that have one.
    pub alpha: f32,
    /// Upper limit of gate and value, for kinds that have one.
    pub limit: f32,
}

impl GluNd {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes differ or values overlap; [`DispatchError::NoKernel`] for other types.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        for (what, t) in [("a", &self.a), ("b", &self.b)] {
            t.check_ne(ND.name, what, self.y.ne)?;
            t.check_type(ND.name, what, self.y.ty)?;
        }
        Call {
            op: &ND,
            variant: &[Value::Word(self.kind.name), Value::Word(self.y.ty.name())],
            sources: &[(A, &self.a), (B, &self.b)],
            y: &self.y,
            constants: vec![("ALPHA", self.alpha.into()), ("LIMIT", self.limit.into())],
        }
        .values(caps)
    }
}
