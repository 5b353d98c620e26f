//! `glu`: y = act(gate) * up.

mod cases;
mod kinds;
mod nd;
mod nd_cases;
pub mod reference;

pub use kinds::{KINDS, Kind};
pub use nd::GluNd;

use chaski_graph::Act;

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value, quads};

/// The row of this operation.
pub const OP: Op = Op {
    name: "glu",
    template: template!("glu/glu.wgsl.jinja"),
    variants: || ["f32", "f32x4", "f16x4"].iter().map(|y| vec![("y", Value::Word(y))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &["SWIGLU", "GEGLU", "REGLU"],
    grid: None,
};

/// The same over tensors of any stride and type.
pub const ND: Op = Op {
    name: "glu_nd",
    template: template!("glu/nd.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for k in KINDS {
            for ty in ["f32", "f16", "bf16"] {
                out.push(vec![("f", Value::Text(k.name, k.wgsl)), ("ty", Value::Word(ty))]);
            }
        }
        out
    },
    cases: Op::cases(nd_cases::by_hand),
    ggml: &["REGLU", "GEGLU", "SWIGLU", "GEGLU_ERF", "GEGLU_QUICK", "SWIGLU_OAI", "SWIGLU_CLAMP"],
    grid: Some(Grid::new(include_str!("grid.txt"), nd_cases::of).random(nd_cases::random)),
};

/// Constants of `shared/glu.wgsl.jinja`.
pub(crate) fn constants(act: Act) -> Vec<(&'static str, f64)> {
    let number = match act {
        Act::Swiglu => 0.0,
        Act::Geglu => 1.0,
        Act::Reglu => 2.0,
        Act::GegluErf => 3.0,
        Act::GegluQuick => 4.0,
        Act::SwigluOai { .. } => 5.0,
        Act::SwigluClamp { .. } => 6.0,
    };
    let [alpha, limit] = act.params();
    vec![("GLU", number), ("GLU_ALPHA", alpha.into()), ("GLU_LIMIT", limit.into())]
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Glu {
    /// The activation.
    pub act: Act,
    /// Values per half.
    pub f: u32,
    /// Offset of the second half in a column of x.
    pub up: u32,
    /// Column stride of x, in values.
    pub ldx: u32,
    /// Column stride of y, in values.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
    /// y is f16, two per word, for a product that rounds it anyway. Sizes must be multiples of four.
    pub y_f16: bool,
}

impl Glu {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered; [`DispatchError::Shape`] for f16 in odd sizes.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let y = quads(OP.name, &[self.f, self.up, self.ldx, self.ldy], self.y_f16)?;
        let n = if y == "f32" { 1 } else { 4 };
        let mut constants = constants(self.act);
        constants.extend([
            ("F", self.f.into()),
            ("UP", self.up.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
        ]);
        let grid = [self.f.div_ceil(64 * n), self.n_col, 1];
        dispatch(&OP, &[Value::Word(y)], constants, grid, format!("{n} values per thread"))
    }
}
