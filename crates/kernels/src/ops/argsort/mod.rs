//! `argsort`: the indices that sort rows of any length.

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
    name: "argsort",
    template: template!("argsort/argsort.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for part in ["block", "merge"] {
            for to in ["pairs", "y"] {
                out.push(vec![("part", Value::Word(part)), ("out", Value::Word(to))]);
            }
        }
        out
    },
    cases: Op::cases(cases::by_hand),
    ggml: &["ARGSORT"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Argsort {
    /// Largest first.
    pub descending: bool,
    /// Input, f32.
    pub a: Tensor,
    /// Output, i32.
    pub y: Tensor,
}

/// Values that one workgroup sorts.
const BLOCK: u32 = 1024;
/// Scratch buffers; each step reads one and writes the other.
const SCRATCH: [&str; 2] = ["pairs", "runs"];

impl Argsort {
    /// Merges after the blocks are sorted.
    fn n_merge(&self) -> u32 {
        self.a.ne[0].div_ceil(BLOCK).max(1).next_power_of_two().ilog2()
    }

    /// Scratch buffers: names, and bytes of each.
    pub fn scratch(&self) -> (&'static [&'static str], u64) {
        let n = (self.n_merge() as usize).min(2);
        (&SCRATCH[..n], u64::from(self.a.n_elem()) * 8)
    }

    /// Chooses the kernels, in order.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes differ or values overlap, [`DispatchError::Type`] for other types.
    pub fn dispatch(&self, caps: &Caps) -> Result<Vec<Step>, DispatchError> {
        self.a.check_type(OP.name, "a", GgmlType::F32)?;
        self.y.check_type(OP.name, "y", GgmlType::I32)?;
        self.a.check_ne(OP.name, "a", self.y.ne)?;
        let (k, n) = (self.a.ne[0], self.n_merge());
        let block = k.clamp(1, BLOCK).next_power_of_two();
        let n_block = k.div_ceil(block).max(1);
        let out = |step: u32| if step == n { "y" } else { "pairs" };
        let groups = self.a.n_row().saturating_mul(n_block).div_ceil(BLOCK / block);
        let constants = vec![("B", block.into()), ("N_BLOCK", n_block.into())];
        let mut steps: Vec<Step> = self.step("block", out(0), constants, groups, caps)?.into();
        for m in 0..n {
            let groups = self.a.n_row().saturating_mul(k.div_ceil(8)).div_ceil(64);
            let length = f64::from(BLOCK << m);
            let merge = self.step("merge", out(m + 1), vec![("L", length)], groups, caps)?;
            let (from, to) = (SCRATCH[m as usize % 2], SCRATCH[(m as usize + 1) % 2]);
            steps.push(Step::renamed(merge, &[("runs", from), ("pairs", to)]));
        }
        Ok(steps)
    }

    fn step(
        &self,
        part: &'static str,
        to: &'static str,
        mut constants: Vec<(&'static str, f64)>,
        groups: u32,
        caps: &Caps,
    ) -> Result<Dispatch, DispatchError> {
        constants.extend([
            ("K", self.a.ne[0].into()),
            ("ROWS", self.a.n_row().into()),
            ("DESC", f64::from(u8::from(self.descending))),
        ]);
        Call {
            op: &OP,
            variant: &[Value::Word(part), Value::Word(to)],
            sources: &[(A, &self.a)],
            y: &self.y,
            constants,
        }
        .groups(groups, "1024 values a block, 8 a thread".into(), caps)
    }
}
