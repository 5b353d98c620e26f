//! `moe_reduce`: the results of a column's experts, weighted and summed.

mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value};
use crate::route::Route;

/// The row of this operation.
pub const OP: Op = Op {
    name: "moe_reduce",
    template: template!("moe_reduce/moe_reduce.wgsl.jinja"),
    variants: || ["store", "add"].iter().map(|e| vec![("epi", Value::Word(e))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct MoeReduce {
    /// The experts and weights of every column.
    pub route: Route,
    /// Values of a result.
    pub m: u32,
    /// Values from pair to pair of x.
    pub ldx: u32,
    /// Values from column to column of y.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
    /// Pairs of x stand sorted by expert, else column by column.
    pub sorted: bool,
    /// y += the sum rather than y = the sum.
    pub add: bool,
}

impl MoeReduce {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if there is none.
    pub fn dispatch(&self) -> Result<Dispatch, DispatchError> {
        let constants = vec![
            ("M", self.m.into()),
            ("USED", self.route.n_used.into()),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
            ("W0", self.route.weights_at().into()),
            ("SORTED", f64::from(u8::from(self.sorted))),
            ("PLACES", self.route.places_at().into()),
        ];
        let epi = if self.add { "add" } else { "store" };
        let grid = [self.m.div_ceil(64), self.n_col, 1];
        dispatch(&OP, &[Value::Word(epi)], constants, grid, "one value a thread".into())
    }
}
