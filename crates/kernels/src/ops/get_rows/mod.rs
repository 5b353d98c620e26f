//! `get_rows`: rows of a table in a weight format, dequantised.

pub(crate) mod cases;
mod nd;
mod nd_cases;
pub mod reference;

pub use nd::GetRowsNd;

use crate::call::{Unit, dispatch};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::format::{FORMATS, Matrix};
use crate::grid::Grid;
use crate::op::{Op, Value};

/// The row of this operation.
pub const OP: Op = Op {
    name: "get_rows",
    template: template!("get_rows/get_rows.wgsl.jinja"),
    variants: || FORMATS.iter().map(|f| vec![("a", Value::Word(f.name))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &["GET_ROWS"],
    grid: None,
};

/// The same over tensors of any stride and type.
pub const ND: Op = Op {
    name: "get_rows_nd",
    template: template!("get_rows/nd.wgsl.jinja"),
    variants: || {
        let to_f32 = FORMATS.iter().filter(|f| f.name != "f32").map(|f| (f.name, "word"));
        let same = Unit::ALL.iter().map(|u| ("same", u.word()));
        to_f32.chain(same).map(|(a, u)| vec![("a", Value::Word(a)), ("unit", Value::Word(u))]).collect()
    },
    cases: Op::cases(nd_cases::cases),
    ggml: &["GET_ROWS"],
    grid: Some(Grid::new(include_str!("grid.txt"), nd_cases::of).random(nd_cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct GetRows {
    /// Rows of the table within the binding.
    pub table: Matrix,
    /// Index of the binding's first row in the whole table; ids outside are ignored.
    pub row0: u32,
    /// Word offset of the first id.
    pub ids: u32,
    /// Words between ids.
    pub id_stride: u32,
    /// Column stride of y, in values.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
}

impl GetRows {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if no kernel reads the format.
    pub fn dispatch(&self, _caps: &Caps) -> Result<Dispatch, DispatchError> {
        let layout = self.table.layout();
        let mut constants = layout.plane_constants(["w_p1", "w_p2", "w_p3", "w_table"]);
        constants.extend([
            ("K", self.table.n_col.into()),
            ("ROW0", self.row0.into()),
            ("ROWS", self.table.n_row.into()),
            ("IDS", self.ids.into()),
            ("ID_STRIDE", self.id_stride.into()),
            ("LDY", self.ldy.into()),
            ("BLOCKS", layout.blocks_per_row.into()),
        ]);
        let grid = [self.table.n_col.div_ceil(256), self.n_col, 1];
        dispatch(
            &OP,
            &[Value::Word(self.table.format.name)],
            constants,
            grid,
            "four values per thread".into(),
        )
    }
}
