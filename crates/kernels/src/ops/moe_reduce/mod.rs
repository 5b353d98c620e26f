//! `moe_reduce`: weighted sum of the outputs of a column's experts.

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
    /// Values per output.
    pub m: u32,
    /// Pair stride of x, in values.
    pub ldx: u32,
    /// Column stride of y, in values.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
    /// Pairs of x are sorted by expert; otherwise they are in column order.
    pub sorted: bool,
    /// y += sum rather than y = sum.
    pub add: bool,
}

impl MoeReduce {
    /// Chooses the kernel and its grid.
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
