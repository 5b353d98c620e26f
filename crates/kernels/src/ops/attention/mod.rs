//! `attention`: causal attention over the paged KV cache.

pub(crate) mod cases;
pub mod reference;

use crate::caps::{Caps, FeatureSet};
use crate::dispatch::{Dispatch, DispatchError};
use crate::kv::KvLayout;
use crate::op::{Op, Value, dispatch};
use crate::reduce::Teams;

/// The row of this operation.
pub const OP: Op = Op {
    name: "attention",
    template: include_str!("attention.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for set in [FeatureSet::Base, FeatureSet::Sg] {
            for heads in HEADS {
                out.push(vec![("heads", Value::Int(heads)), ("set", Value::Word(set.word()))]);
            }
        }
        out
    },
    cases: cases::cases,
};

/// How many query heads a workgroup can take at once.
const HEADS: [u32; 4] = [1, 2, 4, 8];

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// Query heads.
    pub n_head: u32,
    /// The cache.
    pub kv: KvLayout,
    /// Multiplies the scores.
    pub scale: f32,
    /// Into how many ranges the keys are split; more than one needs `attention_merge`.
    pub splits: u32,
    /// Values from column to column of q.
    pub ldq: u32,
    /// Values from column to column of y (one split).
    pub ldy: u32,
    /// Columns.
    pub n_col: u32,
}

impl Attention {
    /// f32 values that the parts of one column take.
    pub fn parts_len(&self) -> u32 {
        self.n_head * self.splits * (self.kv.d + 2)
    }

    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if heads do not group or channels are no multiple of 8 or more than 1024.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let shape = |what, expected: &str, found: u32| {
            Err(DispatchError::Shape { op: OP.name, what, expected: expected.into(), found: found.into() })
        };
        let kv = &self.kv;
        if kv.d == 0 || kv.d % 8 != 0 {
            return shape("channels a head", "a multiple of 8", kv.d);
        }
        if kv.n_kv == 0 || self.n_head % kv.n_kv != 0 {
            return shape("query heads", "a multiple of the KV heads", self.n_head);
        }
        let gqa = self.n_head / kv.n_kv;
        // As many heads at once as there are and as fit in workgroup memory.
        // One column has few workgroups and wants them large; many columns fill the device with small ones.
        let least = if self.n_col == 1 { 128 } else { 64 };
        let wg = (kv.d / 4).next_power_of_two().max(least).min(caps.max_threads);
        if kv.d / 4 > wg {
            return shape("channels a head", "at most four a thread", kv.d);
        }
        let bytes = |heads: u32| 4 * heads * (kv.d + 6 * wg);
        let heads = HEADS
            .into_iter()
            .rev()
            .find(|h| (*h < 2 * gqa || *h == 1) && bytes(*h) <= caps.max_workgroup_bytes)
            .unwrap_or(1);
        let teams = Teams::whole(caps, wg);
        let mut constants = teams.constants(caps);
        constants.extend(kv.constants());
        constants.extend([
            ("N_HEAD", self.n_head.into()),
            ("SPLITS", self.splits.into()),
            ("SCALE", self.scale.into()),
            ("LDQ", self.ldq.into()),
            ("LDY", self.ldy.into()),
        ]);
        let grid = [kv.n_kv * gqa.div_ceil(heads), self.splits, self.n_col];
        let why = format!("{heads} of {gqa} query heads on {wg} threads, keys in {} parts", self.splits);
        dispatch(OP.name, &[Value::Int(heads), Value::Word(caps.set().word())], constants, grid, why)
    }
}
