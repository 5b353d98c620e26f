//! `mul_mat_alone`: the barrier-free product of many columns; [`alone`] has the kernels and the product of one column.

use super::{MulMat, cases};
use crate::caps::Caps;
use crate::case::Case;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;
use crate::ops::mul_mat_vec::{self, Epilogue, MulMatVec, alone};

/// The row of this operation, with the cases of the operations that it replaces.
pub const ALONE: Op = Op { cases: Op::cases(cases), ..alone::KERNELS };

/// The product and the columns per step of grid.x, if this kernel applies.
pub(super) fn columns(call: &MulMat, caps: &Caps) -> Option<Result<(Dispatch, u32), DispatchError>> {
    let one = MulMatVec {
        affine: call.affine,
        y0: call.y0,
        ..MulMatVec::new(call.w, if call.add { Epilogue::Add } else { Epilogue::Store })
    };
    let plain = call.experts.is_none() && call.splits == 1 && !call.x_f16 && call.ldx % 4 == 0;
    let constants = [("LDX", call.ldx.into()), ("LDY", call.ldy.into())];
    if plain { alone::columns(&one, caps, call.n_col, &constants) } else { None }
}

fn cases() -> Vec<Case> {
    mul_mat_vec::cases::exact().into_iter().chain(cases::plain()).collect()
}
