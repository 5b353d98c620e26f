//! `mul_mat_join_norm`: reduces the partial sums of a split-K product into a value, and norms it.

mod cases;

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::op::{Op, Value, quads};
use crate::ops::mul_mat_join::MulMatJoin;
use crate::ops::rms_norm::RmsNorm;

/// The row of this operation.
pub const OP: Op = Op {
    name: "mul_mat_join_norm",
    template: template!("mul_mat_join_norm/mul_mat_join_norm.wgsl.jinja"),
    variants: || {
        let all = ["base", "sg"].into_iter().flat_map(|set| ["f32x4", "f16x4"].map(|y| (set, y)));
        all.map(|(set, y)| vec![("set", Value::Word(set)), ("y", Value::Word(y))]).collect()
    },
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// A call: a join whose whole result is the input of a norm.
#[derive(Clone, Copy, Debug)]
pub struct MulMatJoinNorm {
    /// The join; its y is the x of the norm.
    pub join: MulMatJoin,
    /// The norm.
    pub norm: RmsNorm,
}

impl MulMatJoinNorm {
    /// The call, if one kernel can do both with the same result.
    pub fn of(join: MulMatJoin, norm: RmsNorm) -> Option<Self> {
        let is_whole = join.y0 == 0 && join.affine.is_none() && join.ldy == norm.ldx;
        let is_same = [join.n_row, join.n_col] == [norm.k, norm.n_row];
        let sizes = [norm.k, norm.ldx, norm.ldy, join.part, join.ldx];
        (is_whole && is_same && sizes.iter().all(|n| n % 4 == 0)).then_some(Self { join, norm })
    }

    /// Chooses the kernel and its grid, which is that of the norm.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let Self { join, norm } = self;
        let y = quads(OP.name, &[norm.k, norm.ldx, norm.ldy], norm.y_f16)?;
        let (teams, mut constants) = norm.teams(caps);
        constants.extend([
            ("LDP", join.ldx.into()),
            ("PART", join.part.into()),
            ("SPLITS", join.splits.into()),
            ("ADD", f64::from(u8::from(join.add))),
        ]);
        let [gx, gy] = fold(norm.n_row, caps.max_groups);
        let why = format!("{} ranges of K, {} threads per column", join.splits, teams.team);
        dispatch(&OP, &[Value::Word(caps.set().word()), Value::Word(y)], constants, [gx, gy, 1], why)
    }
}
