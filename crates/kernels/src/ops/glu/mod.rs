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
    template: template!("glu/glu.wgsl.jinja"),
    variants: || ["f32", "f32x4", "f16x4"].iter().map(|y| vec![("y", Value::Word(y))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &["SWIGLU", "GEGLU", "REGLU"],
    grid: None,
};

/// The gate's activation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// x * logistic(x)
    Swiglu,
    /// GELU in its tanh form, rounded as ggml does
    Geglu,
    /// max(x, 0)
    Reglu,
    /// GELU by the error function
    GegluErf,
    /// x * logistic(1.702 x), rounded as ggml does
    GegluQuick,
    /// As in gpt-oss: g * logistic(alpha g) with g = min(gate, limit), times up + 1 with up within the limit.
    SwigluOai {
        /// Multiplies what goes through the logistic function.
        alpha: f32,
        /// Largest gate and size of up.
        limit: f32,
    },
    /// Swiglu of min(gate, limit), with up within the limit.
    SwigluClamp {
        /// Largest gate and size of up.
        limit: f32,
    },
}

impl Act {
    /// One of each kind.
    pub(crate) const ALL: [Act; 7] = [
        Act::Swiglu,
        Act::Geglu,
        Act::Reglu,
        Act::GegluErf,
        Act::GegluQuick,
        Act::SwigluOai { alpha: 1.702, limit: 7.0 },
        Act::SwigluClamp { limit: 2.0 },
    ];

    /// ggml's word.
    pub const fn word(self) -> &'static str {
        match self {
            Act::Swiglu => "swiglu",
            Act::Geglu => "geglu",
            Act::Reglu => "reglu",
            Act::GegluErf => "geglu_erf",
            Act::GegluQuick => "geglu_quick",
            Act::SwigluOai { .. } => "swiglu_oai",
            Act::SwigluClamp { .. } => "swiglu_clamp",
        }
    }

    /// The row of [`KINDS`] with its formula.
    pub fn kind(self) -> &'static Kind {
        KINDS.iter().find(|k| k.name == self.word()).expect("a row for every activation")
    }

    /// Alpha and limit, for those that have them.
    pub fn params(self) -> [f32; 2] {
        match self {
            Act::SwigluOai { alpha, limit } => [alpha, limit],
            Act::SwigluClamp { limit } => [1.0, limit],
            _ => [1.0, 0.0],
        }
    }

    /// Constants of `shared/glu.wgsl.jinja`.
    pub(crate) fn constants(self) -> Vec<(&'static str, f64)> {
        let number = match self {
            Act::Swiglu => 0.0,
            Act::Geglu => 1.0,
            Act::Reglu => 2.0,
            Act::GegluErf => 3.0,
            Act::GegluQuick => 4.0,
            Act::SwigluOai { .. } => 5.0,
            Act::SwigluClamp { .. } => 6.0,
        };
        let [alpha, limit] = self.params();
        vec![("GLU", number), ("GLU_ALPHA", alpha.into()), ("GLU_LIMIT", limit.into())]
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
        let mut constants = self.act.constants();
        constants.extend([
            ("F", self.f.into()),
            ("UP", self.up.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
        ]);
        let grid = [self.f.div_ceil(64 * n), self.n_col, 1];
        dispatch(OP.name, &[Value::Word(y)], constants, grid, format!("{n} values a thread"))
    }
}
