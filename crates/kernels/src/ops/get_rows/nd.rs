//! `get_rows_nd`: rows of a batch of tables, of any stride and type.

use ggml_format::GgmlType;

use super::ND;
use crate::call::{A, Call, IDS, Unit};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Value;
use crate::tensor::Tensor;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct GetRowsNd {
    /// The tables: rows in axis 1, one table for each index of axes 2 and 3.
    pub a: Tensor,
    /// Row indices, i32, along axis 0; axes 1 and 2 correspond to axes 2 and 3 of a.
    pub ids: Tensor,
    /// The rows, f32 or of the type of a. Rows that do not exist are 0.
    pub y: Tensor,
}

impl GetRowsNd {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] or [`DispatchError::Type`] if sizes or types do not match.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let GetRowsNd { a, ids, y } = self;
        ids.check_type(ND.name, "ids", GgmlType::I32)?;
        y.check_ne(ND.name, "y", [a.ne[0], ids.ne[0], ids.ne[1], ids.ne[2]])?;
        y.check_ne(ND.name, "y", [a.ne[0], ids.ne[0], a.ne[2], a.ne[3]])?;
        if a.ne[1] == 0 {
            let expected = "at least one row".into();
            return Err(DispatchError::Shape { op: ND.name, what: "a", expected, found: 0 });
        }
        let sources = &[(IDS, ids), (A, a)];
        if a.ty == y.ty {
            let variant = &[Value::Word("same"), Value::Word(Unit::of(y.ty).word())];
            return Call { op: &ND, variant, sources, y, constants: vec![] }.moves(caps);
        }
        y.check_type(ND.name, "y", GgmlType::F32)?;
        let variant = &[Value::Word(a.ty.name()), Value::Word("word")];
        Call { op: &ND, variant, sources, y, constants: vec![] }.values(caps)
    }
}
