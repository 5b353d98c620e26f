//! `altup`: alternating updates, steps of a residual stream of several rows of which layers process the first.

mod cases;
pub mod reference;

use chaski_graph::altup::Kind;

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value};

/// The row of this operation.
pub const OP: Op = Op {
    name: "altup",
    template: template!("altup/altup.wgsl.jinja"),
    variants: || Kind::ALL.map(|k| vec![("kind", Value::Word(k.word()))]).to_vec(),
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct AltUp {
    /// The step.
    pub kind: Kind,
    /// Rows of the stream.
    pub rows: u32,
    /// Values per row.
    pub n: u32,
    /// Column strides of x, b, router and y, in values.
    pub ld: [u32; 4],
    /// Columns.
    pub n_col: u32,
}

impl AltUp {
    /// Maximum number of rows.
    pub const MAX_ROWS: u32 = 8;

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] for more rows than [`Self::MAX_ROWS`].
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        if self.rows == 0 || self.rows > Self::MAX_ROWS {
            let expected = format!("1 to {}", Self::MAX_ROWS);
            return Err(DispatchError::Shape {
                op: OP.name,
                what: "rows",
                expected,
                found: self.rows.into(),
            });
        }
        let [ldx, ldb, ldr, ldy] = self.ld;
        let mut constants =
            vec![("N", self.n.into()), ("ROWS", self.rows.into()), ("LDX", ldx.into()), ("LDY", ldy.into())];
        if self.kind != Kind::Predict {
            constants.push(("LDB", ldb.into()));
        }
        if self.kind.mixes() {
            constants.push(("LDR", ldr.into()));
        }
        let by_column = matches!(self.kind, Kind::Spread | Kind::Merge);
        let grid = [if by_column { 1 } else { self.n.div_ceil(64) }, self.n_col, 1];
        dispatch(
            &OP,
            &[Value::Word(self.kind.word())],
            constants,
            grid,
            "a value of all rows a thread".into(),
        )
    }
}
