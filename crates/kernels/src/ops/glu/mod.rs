//! `glu`: y = act(gate) * up.

mod cases;
mod kinds;
mod nd;
mod nd_cases;
pub mod reference;

pub use kinds::{KINDS, Kind};
pub use nd::{GluNd, ND};

use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value, dispatch, quads};

/// The row of this operation.
pub const OP: Op = Op {
    name: "glu",
    template: include_str!("glu.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for act in Act::ALL {
            for y in ["f32", "f32x4", "f16x4"] {
                out.push(vec![("act", Value::Word(act.word())), ("y", Value::Word(y))]);
            }
        }
        out
    },
    cases: cases::cases,
    ggml: &["SWIGLU", "GEGLU", "REGLU"],
    grid: None,
};

/// The gate's activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// x * logistic(x)
    Swiglu,
    /// GELU in its tanh form
    Geglu,
    /// max(x, 0)
    Reglu,
}

impl Act {
    pub(crate) const ALL: [Act; 3] = [Act::Swiglu, Act::Geglu, Act::Reglu];

    /// The word in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            Act::Swiglu => "swiglu",
            Act::Geglu => "geglu",
            Act::Reglu => "reglu",
        }
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Glu {
    /// The activation.
    pub act: Act,
    /// Values a half.
    pub f: u32,
    /// Where the second half starts in a column of x.
    pub up: u32,
    /// Values from column to column of x.
    pub ldx: u32,
    /// Values from column to column of y.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
    /// y is f16, two a word: for a product that rounds it anyway. Sizes are multiples of four then.
    pub y_f16: bool,
}

impl Glu {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered; [`DispatchError::Shape`] for f16 in odd sizes.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let y = quads(OP.name, &[self.f, self.up, self.ldx, self.ldy], self.y_f16)?;
        let n = if y == "f32" { 1 } else { 4 };
        dispatch(
            OP.name,
            &[Value::Word(self.act.word()), Value::Word(y)],
            vec![
                ("F", self.f.into()),
                ("UP", self.up.into()),
                ("LDX", self.ldx.into()),
                ("LDY", self.ldy.into()),
            ],
            [self.f.div_ceil(64 * n), self.n_col, 1],
            format!("{n} values a thread"),
        )
    }
}
