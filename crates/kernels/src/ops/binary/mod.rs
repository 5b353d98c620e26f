//! `binary`: y = y op x, element-wise.

mod cases;
mod nd;
mod nd_cases;
pub mod reference;

pub use nd::{BinaryNd, FUNCTIONS, NdFunction};

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};

/// The row of this operation.
pub const OP: Op = Op {
    name: "binary",
    template: template!("binary/binary.wgsl.jinja"),
    variants: || Function::ALL.iter().map(|f| vec![("f", Value::Word(f.word()))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &["ADD", "MUL"],
    grid: None,
};

/// The same over tensors of any stride and type.
pub const ND: Op = Op {
    name: "binary_nd",
    template: template!("binary/nd.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for f in FUNCTIONS {
            for ty in nd::TYPES {
                for tb in nd::TYPES {
                    for place in ["new", "in"] {
                        out.push(vec![
                            ("f", Value::Text(f.name, f.wgsl)),
                            ("ty", Value::Word(ty)),
                            ("tb", Value::Word(tb)),
                            ("place", Value::Word(place)),
                        ]);
                    }
                }
            }
        }
        out
    },
    cases: Vec::new,
    ggml: &["ADD", "SUB", "MUL", "DIV"],
    grid: Some(Grid::new(include_str!("grid.txt"), nd_cases::of).random(nd_cases::random)),
};

/// Functions of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Sum.
    Add,
    /// Product.
    Mul,
}

impl Function {
    pub(crate) const ALL: [Function; 2] = [Function::Add, Function::Mul];

    /// The word in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            Function::Add => "add",
            Function::Mul => "mul",
        }
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Binary {
    /// The function.
    pub f: Function,
    /// Values per column.
    pub k: u32,
    /// Column stride of x, in values; 0 broadcasts one column.
    pub ldx: u32,
    /// Column stride of y, in values.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
}

impl Binary {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        dispatch(
            &OP,
            &[Value::Word(self.f.word())],
            vec![("K", self.k.into()), ("LDX", self.ldx.into()), ("LDY", self.ldy.into())],
            [self.k.div_ceil(64), self.n_col, 1],
            "one thread per value".into(),
        )
    }
}
