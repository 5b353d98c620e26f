//! `gather`: operations that only move values, the rows of [`ROWS`]; bits are copied, of any type.

mod cases;
mod rows;

pub use rows::{Four, ROWS, Row};

use crate::call::{A, Call, Unit};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "gather",
    template: template!("gather/gather.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for r in ROWS {
            for unit in Unit::ALL {
                out.push(vec![("f", Value::Text(r.name, r.wgsl)), ("unit", Value::Word(unit.word()))]);
            }
        }
        out
    },
    cases: Op::cases(cases::by_hand),
    ggml: &["REPEAT", "PAD", "ROLL", "PAD_REFLECT_1D", "DIAG", "TRI", "DIAG_MASK_INF"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Gather {
    /// Row of the table: the source of each value.
    pub row: &'static Row,
    /// Parameters of the row.
    pub params: [i32; 4],
    /// Bits of a value without a source: 0, or minus infinity in the type of y.
    pub fill: u32,
    /// Source.
    pub a: Tensor,
    /// Destination, of the same type.
    pub y: Tensor,
}

impl Gather {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Type`] if types differ; [`DispatchError::Shape`] if a value of y would come from outside a.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.a.check_type(OP.name, "a", self.y.ty)?;
        self.check_sizes()?;
        let mut constants = vec![("FILL", f64::from(self.fill))];
        constants.extend(["Q0", "Q1", "Q2", "Q3"].into_iter().zip(self.params.map(f64::from)));
        Call {
            op: &OP,
            variant: &[Value::Word(self.row.name), Value::Word(Unit::of(self.y.ty).word())],
            sources: &[(if self.row.from_nothing { A.or_empty() } else { A }, &self.a)],
            y: &self.y,
            constants,
        }
        .moves(caps)
    }

    /// Checks the sizes of y and that its corners come from within a; rows that allow any size are folded or periodic
    /// between the corners.
    fn check_sizes(&self) -> Result<(), DispatchError> {
        let (a, y) = (self.a.cells(), self.y.cells());
        if y.n_elem() == 0 {
            return Ok(());
        }
        if !self.row.from_nothing {
            a.check_filled(OP.name, "a")?;
        }
        let na = a.ne.map(i64::from);
        let sizes = (self.row.sizes)(na, y.ne.map(i64::from));
        y.check_ne(OP.name, "y", sizes.map(|n| n as u32))?;
        for corner in 0..16u32 {
            let p = std::array::from_fn(|k| i64::from((y.ne[k] - 1) * (corner >> k & 1)));
            let from = (self.row.formula)(p, na, self.params.map(i64::from));
            let outside = from.and_then(|s| (0..4).find(|k| !(0..na[*k]).contains(&s[*k])));
            if let Some(k) = outside {
                let expected = format!("within reach of {} along axis {k}", na[k]);
                return Err(DispatchError::Shape { op: OP.name, what: "y", expected, found: y.ne[k].into() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggml_format::GgmlType;

    #[test]
    fn sizes_that_a_row_cannot_make_are_refused() {
        for (name, q0, a, y, want) in [
            // The corners of these are filled or within a; values between them are not.
            ("diag", 0, [10, 1, 1, 1], [20, 30, 1, 1], "y is 20, expected 10 along axis 0"),
            ("tri", 0, [10, 20, 1, 1], [30, 20, 1, 1], "y is 30, expected 10 along axis 0"),
            ("diag_mask", 5, [10, 20, 1, 1], [30, 20, 1, 1], "y is 30, expected 10 along axis 0"),
            (
                "pad_reflect_1d",
                3,
                [4, 2, 1, 1],
                [11, 2, 1, 1],
                "y is 11, expected within reach of 4 along axis 0",
            ),
            ("pad_reflect_1d", 3, [4, 2, 1, 1], [9, 3, 1, 1], "y is 3, expected 2 along axis 1"),
            ("repeat", 0, [0, 2, 1, 1], [4, 2, 1, 1], "a is 0, expected at least one value"),
            ("wrap", 0, [0, 2, 1, 1], [4, 2, 1, 1], "a is 0, expected at least one value"),
        ] {
            let [a, y] = [a, y].map(|ne| Tensor::new(GgmlType::F32, ne));
            let row = Row::find(name).expect("a row of the table");
            let call = Gather { row, params: [q0, 0, 0, 0], fill: 0, a, y };
            let found = call.dispatch(&Caps::base()).expect_err(name).to_string();
            assert_eq!(found, format!("gather: {want}"), "{name}");
        }
    }
}
