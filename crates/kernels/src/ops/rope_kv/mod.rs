//! `rope_kv`: rotates q and k of many columns and writes k and v to the KV cache.

pub(crate) mod cases;

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::kv::RopeKv;
use crate::op::{Op, dispatch};
use crate::rope::RopePairing;

/// The row of this operation. Its reference is [`crate::rope::Rope::rotate`].
pub const OP: Op = Op {
    name: "rope_kv",
    template: include_str!("rope_kv.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: cases::cases,
    ggml: &["ROPE", "SET_ROWS"],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct RopeKvCols {
    /// Rows and cache.
    pub rows: RopeKv,
    /// Rows of v.
    pub m_v: u32,
    /// Values from column to column of x: q, k, v.
    pub ldx: u32,
    /// Values from column to column of y: q.
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
}

impl RopeKvCols {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn dispatch(&self, _caps: &Caps) -> Result<Dispatch, DispatchError> {
        let r = &self.rows;
        let mut constants = r.kv.constants();
        constants.extend([
            ("M_Q", r.m_q.into()),
            ("M_K", r.m_k.into()),
            ("M_V", self.m_v.into()),
            ("N_ROT", r.n_rot.into()),
            ("ROPE_NEOX", f64::from(u8::from(r.pairing == RopePairing::Neox))),
            ("LDX", self.ldx.into()),
            ("LDY", self.ldy.into()),
        ]);
        let grid = [(r.m_q + r.m_k + self.m_v).div_ceil(256), self.n_col, 1];
        dispatch(OP.name, &[], constants, grid, "four channels a thread".into())
    }
}
