//! `cpy`: copies values between tensors of any type, stride and shape.
//!
//! It implements three of ggml's operations: `DUP` and `CONT` are copies to a contiguous tensor. A copy within a type
//! moves bits (`cpy_same`), blocks included; others convert through f32. Blocks are read in every weight format and
//! written in those of `crate::encode`, both in planes.

mod cases;

use crate::call::{A, Call, Unit};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::encode;
use crate::format::FORMATS;
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// Copies between types.
pub const OP: Op = Op {
    name: "cpy",
    template: template!("cpy/cpy.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for a in FORMATS.iter().map(|f| f.name).chain(["i32"]) {
            let plain = ["f32", "f16", "bf16", "i32"];
            let blocks = encode::written().filter(|_| ["f32", "f16", "bf16"].contains(&a));
            for y in plain.into_iter().chain(blocks).filter(|y| *y != a) {
                out.push(vec![("a", Value::Word(a)), ("y", Value::Word(y))]);
            }
        }
        out
    },
    cases: Op::cases(cases::cases),
    ggml: &["CPY", "DUP", "CONT"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// Copies within a type.
pub const SAME: Op = Op {
    name: "cpy_same",
    template: template!("cpy/same.wgsl.jinja"),
    variants: Unit::variants,
    cases: Vec::new,
    ggml: &[],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Cpy {
    /// Source.
    pub a: Tensor,
    /// Destination: as many values, in the same order.
    pub y: Tensor,
}

impl Cpy {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if y has a different number of values or its values overlap; [`DispatchError::Format`]
    /// for block formats that the device does not read or write.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let Cpy { a, y } = self;
        if a.n_elem() != y.n_elem() {
            let expected = format!("as many as y: {}", y.n_elem());
            return Err(DispatchError::Shape {
                op: OP.name,
                what: "values of a",
                expected,
                found: a.n_elem().into(),
            });
        }
        let constants = vec![("SAME", f64::from(u8::from(a.ne == y.ne)))];
        let sources = &[(A, a)];
        if a.ty == y.ty {
            let variant = &[Value::Word(Unit::of(y.ty).word())];
            return Call { op: &SAME, variant, sources, y, constants }.moves(caps);
        }
        if !encode::can_write(y.ty) {
            return Err(DispatchError::Format { op: OP.name, format: y.ty.name() });
        }
        let variant = &[Value::Word(a.ty.name()), Value::Word(y.ty.name())];
        let call = Call { op: &OP, variant, sources, y, constants };
        match encode::group(y.ty.name()) {
            None => call.values(caps),
            Some(n) => call.threads(y.n_elem() / n, caps),
        }
    }
}
