//! `mul_mat_nd`: batched matrix products of any stride and type.

use ggml_format::GgmlType;

use super::ND;
use crate::call::{A, B, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Value;
use crate::tensor::Tensor;

/// Types of b.
pub(super) const INPUTS: [GgmlType; 3] = [GgmlType::F32, GgmlType::F16, GgmlType::BF16];

/// Rows and columns of a workgroup's tile.
const SIDE: u32 = 32;

/// A call: y = a^T b for every pair of matrices; each matrix of a is shared by consecutive ones of b.
#[derive(Clone, Copy, Debug)]
pub struct MulMatNd {
    /// The first matrices, of any type: rows of K values along axis 1.
    pub a: Tensor,
    /// The second matrices, f32, f16 or bf16: rows of K values along axis 1. Axes 2 and 3 are multiples of those of a.
    pub b: Tensor,
    /// The products, f32: rows of a along axis 0, rows of b along axis 1, matrices as in b.
    pub y: Tensor,
}

impl MulMatNd {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] or [`DispatchError::Type`] if sizes or types do not match.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let MulMatNd { a, b, y } = self;
        let [n, _, n2, n3] = b.ne;
        y.check_type(ND.name, "y", GgmlType::F32)?;
        if !INPUTS.contains(&b.ty) {
            b.check_type(ND.name, "b", GgmlType::F32)?;
        }
        b.check_ne(ND.name, "b", [a.ne[0], b.ne[1], n2, n3])?;
        a.check_repeats(ND.name, "a", [n, a.ne[1], n2, n3])?;
        y.check_ne(ND.name, "y", [a.ne[1], b.ne[1], n2, n3])?;
        let n_group = [y.ne[0].div_ceil(SIDE), y.ne[1].div_ceil(SIDE), n2, n3];
        let n_group = n_group.into_iter().try_fold(1u32, u32::checked_mul).ok_or_else(|| {
            let found = n_group.into_iter().map(u64::from).fold(1, u64::saturating_mul);
            let expected = "of tiles that can be counted".into();
            DispatchError::Shape { op: ND.name, what: "y", expected, found }
        })?;
        let variant = &[Value::Word(a.ty.name()), Value::Word(b.ty.name())];
        let why = format!("tiles of {SIDE} x {SIDE}");
        // An empty call must not divide by 0 either.
        let repeats = |k: usize| f64::from((b.ne[k] / a.ne[k].max(1)).max(1));
        let constants = vec![("R2", repeats(2)), ("R3", repeats(3))];
        let call = Call { op: &ND, variant, sources: &[(A, a), (B, b)], y, constants };
        call.groups(n_group, why, caps)
    }
}
