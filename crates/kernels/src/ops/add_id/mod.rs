//! `add_id`: adds to each row the row of a table that its id names, such as the bias of an expert.

mod cases;
pub mod reference;

use ggml_format::GgmlType;

use crate::call::{A, B, Call, IDS};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

const TYPES: [GgmlType; 3] = [GgmlType::F32, GgmlType::F16, GgmlType::BF16];

/// The row of this operation.
pub const OP: Op = Op {
    name: "add_id",
    template: template!("add_id/add_id.wgsl.jinja"),
    variants: || {
        let pair =
            |a: GgmlType, b: GgmlType| vec![("ty", Value::Word(a.name())), ("tb", Value::Word(b.name()))];
        TYPES.iter().flat_map(|a| TYPES.iter().map(|b| pair(*a, *b))).collect()
    },
    cases: Vec::new,
    ggml: &["ADD_ID"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct AddId {
    /// `[n_token, n_used, n_embd]`, in ggml's order backwards.
    pub a: Tensor,
    /// `[n_expert, n_embd]`.
    pub b: Tensor,
    /// `[n_token, n_used]` i32; an out-of-range id adds nothing.
    pub ids: Tensor,
    /// The sizes and type of a.
    pub y: Tensor,
}

impl AddId {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] or [`DispatchError::Type`] if sizes or types do not match.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let AddId { a, b, ids, y } = self;
        a.check_ne(OP.name, "a", [y.ne[0], y.ne[1], y.ne[2], 1])?;
        a.check_ne(OP.name, "a", y.ne)?;
        a.check_type(OP.name, "a", y.ty)?;
        b.check_ne(OP.name, "b", [y.ne[0], b.ne[1], 1, 1])?;
        ids.check_ne(OP.name, "ids", [y.ne[1], y.ne[2], 1, 1])?;
        ids.check_type(OP.name, "ids", GgmlType::I32)?;
        Call {
            op: &OP,
            variant: &[Value::Word(y.ty.name()), Value::Word(b.ty.name())],
            sources: &[(A, a), (B, b), (IDS, ids)],
            y,
            constants: vec![],
        }
        .values(caps)
    }
}
