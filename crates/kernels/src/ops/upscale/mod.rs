//! `upscale`: resizes images, up or down.

mod cases;
pub mod reference;

use crate::call::{A, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// Interpolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nearest value.
    Nearest,
    /// Bilinear interpolation of four values.
    Bilinear,
    /// Bilinear, averaged over all values that one of y covers.
    Antialias,
    /// Bicubic interpolation of sixteen values.
    Bicubic,
}

impl Mode {
    pub(crate) const ALL: [Mode; 4] = [Mode::Nearest, Mode::Bilinear, Mode::Antialias, Mode::Bicubic];

    /// The word in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            Mode::Nearest => "nearest",
            Mode::Bilinear => "bilinear",
            Mode::Antialias => "antialias",
            Mode::Bicubic => "bicubic",
        }
    }
}

/// The row of this operation.
pub const OP: Op = Op {
    name: "upscale",
    template: template!("upscale/upscale.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for m in Mode::ALL {
            for ty in ["f32", "f16", "bf16"] {
                out.push(vec![("mode", Value::Word(m.word())), ("ty", Value::Word(ty))]);
            }
        }
        out
    },
    cases: Vec::new,
    ggml: &["UPSCALE"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Upscale {
    /// Interpolation.
    pub mode: Mode,
    /// Align corners: the first and last values of a and y coincide.
    pub align: bool,
    /// The images.
    pub a: Tensor,
    /// The output, of the same type.
    pub y: Tensor,
}

impl Upscale {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Type`] if types differ; [`DispatchError::Shape`] if a is empty and y is not.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let Upscale { mode, align, a, y } = self;
        a.check_type(OP.name, "a", y.ty)?;
        if a.n_elem() == 0 {
            let expected = "at least one value".into();
            return Err(DispatchError::Shape { op: OP.name, what: "a", expected, found: 0 });
        }
        let variant = &[Value::Word(mode.word()), Value::Word(y.ty.name())];
        let constants = vec![("ALIGN", f64::from(u8::from(*align)))];
        Call { op: &OP, variant, sources: &[(A, a)], y, constants }.values(caps)
    }
}
