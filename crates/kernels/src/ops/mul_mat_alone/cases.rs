//! Cases of `mul_mat_alone`: those of the operations whose place it takes.

use crate::case::Case;
use crate::ops::{mul_mat, mul_mat_vec};

pub(super) fn cases() -> Vec<Case> {
    mul_mat_vec::cases::exact().into_iter().chain(mul_mat::cases::plain()).collect()
}
