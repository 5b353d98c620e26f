//! `norm`: layer, RMS, L2 and group norms of strided tensors, fused with a product and a sum.
//!
//! Contiguous rows of a model's activations have a kernel of their own, `rms_norm`.

mod cases;
pub mod reference;

use chaski_graph::NormKind;

use crate::call::{A, B, C, Call, check_f32};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::reduce::Teams;
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "norm",
    template: template!("norm/norm.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for set in ["base", "sg"] {
            for kind in NormKind::ALL {
                for fuse in ["none", "mul", "mul_add"] {
                    for place in ["new", "in"] {
                        out.push(vec![
                            ("set", Value::Word(set)),
                            ("kind", Value::Word(kind.word())),
                            ("fuse", Value::Word(fuse)),
                            ("place", Value::Word(place)),
                        ]);
                    }
                }
            }
        }
        out
    },
    cases: Op::cases(cases::cases),
    ggml: &["NORM", "RMS_NORM", "L2_NORM", "GROUP_NORM"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call; all tensors are f32.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    /// Kind of norm.
    pub kind: NormKind,
    /// Added to the mean square; the minimum length for [`NormKind::L2`].
    pub eps: f32,
    /// Normalise this many groups of channels (axis 2) rather than rows of the first axis.
    pub groups: Option<u32>,
    /// Factor after the norm, broadcast.
    pub mul: Option<Tensor>,
    /// Addend after `mul`, broadcast; requires `mul`.
    pub add: Option<Tensor>,
    /// Final scale.
    pub by: f32,
    /// Input; `None` to work on y in place.
    pub a: Option<Tensor>,
    /// Output.
    pub y: Tensor,
}

/// Values per row, values shared by several rows, and how many rows share them.
struct Rows {
    len: u32,
    outer: u32,
    per: u32,
}

impl Norm {
    fn rows(&self) -> Rows {
        let [ne0, ne1, ne2, _] = self.y.ne;
        match self.groups {
            None => Rows { len: ne0, outer: ne0, per: 1 },
            Some(n) => {
                // The last group has the remaining channels, and may have none.
                let channels = ne2.div_ceil(n.max(1));
                let per = ne2.div_ceil(channels.max(1)).max(1);
                let plane = ne0.saturating_mul(ne1);
                Rows { len: plane.saturating_mul(channels), outer: plane.saturating_mul(ne2), per }
            }
        }
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, values overlap or there is an addend without a factor,
    /// [`DispatchError::Type`] if tensors are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let mut sources = Vec::new();
        if let Some(a) = &self.a {
            a.check_ne(OP.name, "a", self.y.ne)?;
            sources.push((A, a));
        }
        for (name, what, t) in [(B, "b", &self.mul), (C, "c", &self.add)] {
            if let Some(t) = t {
                t.check_repeats(OP.name, what, self.y.ne)?;
                sources.push((name, t));
            }
        }
        check_f32(OP.name, &sources, &self.y)?;
        let fuse = match (&self.mul, &self.add) {
            (None, None) => "none",
            (Some(_), None) => "mul",
            (Some(_), Some(_)) => "mul_add",
            (None, Some(_)) => {
                let expected = "1".into();
                return Err(DispatchError::Shape {
                    op: OP.name,
                    what: "products before a sum",
                    expected,
                    found: 0,
                });
            }
        };
        let Rows { len, outer, per } = self.rows();
        let n = if self.y.n_elem() == 0 { 0 } else { self.y.n_elem() / outer * per };
        let teams = Teams::new(caps, (len / 4).clamp(1, 256), 256);
        let mut constants = teams.rows(caps, n);
        constants.extend([
            ("LEN", len.into()),
            ("OUTER", outer.into()),
            ("PER", per.into()),
            ("EPS", self.eps.into()),
            ("BY", self.by.into()),
        ]);
        Call {
            op: &OP,
            variant: &[
                Value::Word(caps.set().word()),
                Value::Word(self.kind.word()),
                Value::Word(fuse),
                Value::Word(if self.a.is_some() { "new" } else { "in" }),
            ],
            sources: &sources,
            y: &self.y,
            constants,
        }
        .groups(teams.groups(n), format!("{} threads per row", teams.team), caps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggml_format::GgmlType;

    #[test]
    fn a_sum_without_a_product_is_refused() {
        let y = Tensor::new(GgmlType::F32, [4, 1, 1, 1]);
        let call = Norm {
            kind: NormKind::Rms,
            eps: 1e-6,
            groups: None,
            mul: None,
            add: Some(y),
            by: 1.0,
            a: None,
            y,
        };
        let e = call.dispatch(&Caps::base()).expect_err("no product");
        assert_eq!(e.to_string(), "norm: products before a sum is 0, expected 1");
    }
}
