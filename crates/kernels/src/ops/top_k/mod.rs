//! `top_k`: indices of the largest values of a row, without sorting.

mod cases;
pub mod reference;

use ggml_format::GgmlType;

use crate::call::{A, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, Step};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "top_k",
    template: template!("top_k/top_k.wgsl.jinja"),
    variants: || {
        ["row", "clear", "hist", "count", "write"].iter().map(|p| vec![("part", Value::Word(p))]).collect()
    },
    cases: Vec::new,
    ggml: &["TOP_K"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call; the indices are in row order, so ggml's test compares them as sets.
#[derive(Clone, Copy, Debug)]
pub struct TopK {
    /// Input, f32.
    pub a: Tensor,
    /// Output, i32; its first size is k.
    pub y: Tensor,
}

/// Longer rows are divided over several workgroups.
const LONG: u32 = 16384;
/// Values per chunk.
const CHUNK: u32 = 8192;

impl TopK {
    fn n_chunk(&self) -> u32 {
        if self.a.ne[0] > LONG { self.a.ne[0].div_ceil(CHUNK) } else { 1 }
    }

    /// Bytes of the buffers `hist` and `counts`; 0 if it needs none.
    pub fn scratch_bytes(&self) -> [u64; 2] {
        match self.n_chunk() {
            1 => [0, 0],
            n => [u64::from(self.a.n_row()) * 4096, u64::from(self.a.n_row()) * u64::from(n) * 8],
        }
    }

    /// Chooses the kernels, in order.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match or values overlap, [`DispatchError::Type`] for other types.
    pub fn dispatch(&self, caps: &Caps) -> Result<Vec<Step>, DispatchError> {
        let [ne0, ne1, ne2, ne3] = self.a.ne;
        let k = self.y.ne[0];
        self.a.check_type(OP.name, "a", GgmlType::F32)?;
        self.y.check_type(OP.name, "y", GgmlType::I32)?;
        self.y.check_ne(OP.name, "y", [k, ne1, ne2, ne3])?;
        if k == 0 || k > ne0 {
            let expected = format!("from 1 to the {ne0} values of a row");
            return Err(DispatchError::Shape { op: OP.name, what: "k", expected, found: k.into() });
        }
        if self.n_chunk() == 1 {
            return Ok(self.part("row", 0, self.a.n_row(), caps)?.into());
        }
        let groups = self.a.n_row().saturating_mul(self.n_chunk());
        let mut steps: Vec<Step> = self.part("clear", 0, self.a.n_row().saturating_mul(4), caps)?.into();
        for round in 0..4 {
            steps.push(self.part("hist", round, groups, caps)?.into());
        }
        steps.push(self.part("count", 0, groups, caps)?.into());
        steps.push(self.part("write", 0, groups, caps)?.into());
        Ok(steps)
    }

    fn part(
        &self,
        part: &'static str,
        round: u32,
        groups: u32,
        caps: &Caps,
    ) -> Result<Dispatch, DispatchError> {
        let n_chunk = self.n_chunk();
        Call {
            op: &OP,
            variant: &[Value::Word(part)],
            sources: &[(A, &self.a)],
            y: &self.y,
            constants: vec![
                ("K", self.y.ne[0].into()),
                ("N", self.a.ne[0].into()),
                ("CHUNK", (if n_chunk == 1 { self.a.ne[0] } else { CHUNK }).into()),
                ("N_CHUNK", n_chunk.into()),
                ("ROUND", round.into()),
                ("ROWS", self.a.n_row().into()),
            ],
        }
        .groups(groups, format!("{n_chunk} workgroups per row"), caps)
    }
}
