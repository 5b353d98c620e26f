//! `unary`: y = f(x), element-wise, for the functions of [`FUNCTIONS`].

mod cases;
mod functions;
pub mod reference;

pub use functions::{FUNCTIONS, Function};
pub(crate) use functions::{gelu, gelu_erf, gelu_quick};

use crate::call::{A, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "unary",
    template: template!("unary/unary.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for f in FUNCTIONS {
            for ty in ["f32", "f16", "bf16"] {
                for place in ["new", "in"] {
                    out.push(vec![
                        ("f", Value::Text(f.name, f.wgsl)),
                        ("ty", Value::Word(ty)),
                        ("place", Value::Word(place)),
                    ]);
                }
            }
        }
        out
    },
    cases: Op::cases(cases::by_hand),
    ggml: &functions::GGML,
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Unary {
    /// The function.
    pub f: &'static Function,
    /// Parameters of the function; they may be infinite.
    pub params: [f32; 4],
    /// Input; `None` to work on y in place.
    pub a: Option<Tensor>,
    /// Output, of the same type.
    pub y: Tensor,
}

impl Unary {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes differ or values overlap; [`DispatchError::NoKernel`] for other types.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let a = self.a.as_ref();
        if let Some(a) = a {
            a.check_ne(OP.name, "a", self.y.ne)?;
            a.check_type(OP.name, "a", self.y.ty)?;
        }
        let place = if a.is_some() { "new" } else { "in" };
        let sources: Vec<_> = a.map(|a| (A, a)).into_iter().collect();
        let params = ["B0", "B1", "B2", "B3"].into_iter().zip(self.params);
        Call {
            op: &OP,
            variant: &[Value::Word(self.f.name), Value::Word(self.y.ty.name()), Value::Word(place)],
            sources: &sources,
            y: &self.y,
            constants: params.map(|(n, v)| (n, v.to_bits().into())).collect(),
        }
        .values(caps)
    }
}
