//! `gather`: y is made of values of a at other places, by the rows of [`ROWS`]; bits are moved, of any type.

mod cases;
mod rows;

pub use rows::{Four, ROWS, Row};

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::{A, Call, Tensor, Unit};

/// The row of this operation.
pub const OP: Op = Op {
    name: "gather",
    template: include_str!("gather.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for r in ROWS {
            for unit in Unit::ALL {
                out.push(vec![("f", Value::Text(r.name, r.wgsl)), ("unit", Value::Word(unit.word()))]);
            }
        }
        out
    },
    cases: Vec::new,
    ggml: &["REPEAT", "PAD", "ROLL", "PAD_REFLECT_1D", "DIAG", "TRI", "DIAG_MASK_INF"],
    grid: Some(Grid { text: include_str!("grid.txt"), case: cases::of, random: Some(cases::random) }),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Gather {
    /// From where values come.
    pub row: &'static Row,
    /// Its parameters, those that it has.
    pub params: [i32; 4],
    /// The bits of a value where none comes: 0, or minus infinity in the type of y.
    pub fill: u32,
    /// What it reads.
    pub a: Tensor,
    /// What it writes, of the same type.
    pub y: Tensor,
}

impl Gather {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Type`] if types differ; [`DispatchError::Shape`] if a value of y would come from outside a.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.a.check_type(OP.name, "a", self.y.ty)?;
        self.check_reach()?;
        let mut constants = vec![("FILL", f64::from(self.fill))];
        constants.extend(["Q0", "Q1", "Q2", "Q3"].into_iter().zip(self.params.map(f64::from)));
        Call {
            op: OP.name,
            variant: &[Value::Word(self.row.name), Value::Word(Unit::of(self.y.ty).word())],
            sources: &[(A, &self.a)],
            y: &self.y,
            constants,
        }
        .moves(caps)
    }

    /// Where the corners of y come from; all rows are monotonous, folded or periodic between them.
    fn check_reach(&self) -> Result<(), DispatchError> {
        let (a, y) = (self.a.cells(), self.y.cells());
        if y.n_elem() == 0 {
            return Ok(());
        }
        let na = a.ne.map(i64::from);
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
