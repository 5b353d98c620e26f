//! `attention_nd`: attention over tensors of any stride, under any mask.

use ggml_format::GgmlType;

use super::ND;
use crate::call::{Call, Names, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::kv::KV_TYPES;
use crate::op::Value;
use crate::tensor::Tensor;

/// Types of keys and values: the cache types, and two more from ggml's test program.
pub(super) fn types() -> impl Iterator<Item = GgmlType> + Clone {
    KV_TYPES.iter().copied().chain([GgmlType::Q2_0, GgmlType::Q1_0])
}

const Q: Names = names!("q");
const K: Names = names!("k");
const V: Names = names!("v");
const MASK: Names = names!("mask");
const SINKS: Names = names!("sinks");

/// Mesa's software driver stops the loops of a kernel after this many iterations in total.
const SOFTWARE_TURNS: u64 = 65_535;

/// A call. Each head of k and v serves a run of consecutive heads of q; likewise for sequences.
#[derive(Clone, Copy, Debug)]
pub struct AttentionNd {
    /// Queries, f32: channels, tokens, heads, sequences.
    pub q: Tensor,
    /// Keys: channels, keys, heads, sequences.
    pub k: Tensor,
    /// Values: channels, keys, heads, sequences.
    pub v: Tensor,
    /// Added to the scores, f16: keys, at least as many rows as tokens, heads, sequences; the last two broadcast. -inf
    /// masks a key.
    pub mask: Option<Tensor>,
    /// One score per head, f32, that contributes to the denominator.
    pub sinks: Option<Tensor>,
    /// Multiplies the products of queries and keys.
    pub scale: f32,
    /// `c * tanh(s / c)` after that; 0: none.
    pub softcap: f32,
    /// ALiBi: the mask of each head is multiplied by a slope derived from this; 0: none.
    pub max_bias: f32,
    /// Output, f32: channels of a value, heads, tokens, sequences.
    pub y: Tensor,
}

impl AttentionNd {
    /// Loop iterations of a workgroup, including the final checks: for every 64 keys the scores, two reductions over
    /// threads, and the values.
    fn n_turn(&self) -> u64 {
        let [d, d_v] = [self.q.ne[0].div_ceil(4), self.v.ne[0].div_ceil(64)].map(u64::from);
        u64::from(self.k.ne[1].div_ceil(64)) * (d + 18 * d_v + 19) + 2 * (d_v + 1)
    }

    /// Chooses the kernel and its grid. `mask` and `sinks` are always bound; where there are none, bind any read-only
    /// buffer, such as q's.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match or values overlap, [`DispatchError::Type`] for types other than
    /// the above, [`DispatchError::Format`] or [`DispatchError::NoKernel`] for unsupported types of keys and values,
    /// [`DispatchError::Lacks`] for so many keys that a software device would stop early.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let op = ND.name;
        let AttentionNd { q, k, v, y, .. } = self;
        let [d, n_token, n_head, n_seq] = q.ne;
        let n_key = k.ne[1];
        q.check_type(op, "q", GgmlType::F32)?;
        y.check_type(op, "y", GgmlType::F32)?;
        k.check_ne(op, "k", [d, n_key, k.ne[2], k.ne[3]])?;
        k.check_repeats(op, "k", [d, n_key, n_head, n_seq])?;
        v.check_ne(op, "v", [v.ne[0], n_key, v.ne[2], v.ne[3]])?;
        v.check_repeats(op, "v", [v.ne[0], n_key, n_head, n_seq])?;
        y.check_ne(op, "y", [v.ne[0], n_head, n_token, n_seq])?;
        if caps.software && self.n_turn() > SOFTWARE_TURNS {
            let what = "loops of more than 65,535 turns for so many keys";
            return Err(DispatchError::Lacks { op, what });
        }
        let mut sources = vec![(Q, q), (K, k), (V, v)];
        if let Some(mask) = &self.mask {
            mask.check_type(op, "mask", GgmlType::F16)?;
            mask.check_ne(op, "mask", [n_key, mask.ne[1].max(n_token), mask.ne[2], mask.ne[3]])?;
            mask.check_repeats(op, "mask", [n_key, mask.ne[1], n_head, n_seq])?;
            sources.push((MASK, mask));
        }
        if let Some(sinks) = &self.sinks {
            sinks.check_type(op, "sinks", GgmlType::F32)?;
            sinks.check_ne(op, "sinks", [n_head, 1, 1, 1])?;
            sources.push((SINKS, sinks));
        }
        // An empty call must not divide by 0 either.
        let repeats = |t: &Tensor, axis: usize| f64::from((q.ne[axis] / t.ne[axis].max(1)).max(1));
        let flag = |on: bool| f64::from(u8::from(on));
        let constants = vec![
            ("SCALE", self.scale.into()),
            ("SOFTCAP", self.softcap.into()),
            ("MAX_BIAS", self.max_bias.into()),
            ("N_LOG2", n_head.checked_ilog2().map_or(1, |n| 1u32 << n).into()),
            ("MASK", flag(self.mask.is_some())),
            ("SINKS", flag(self.sinks.is_some())),
            ("K2", repeats(k, 2)),
            ("K3", repeats(k, 3)),
            ("V2", repeats(v, 2)),
            ("V3", repeats(v, 3)),
        ];
        let variant = [k.ty.name(), v.ty.name()].map(Value::Word);
        let rows = if y.ne[0] == 0 { 0 } else { y.n_row() };
        let why = "64 threads per row".to_owned();
        Call { op: &ND, variant: &variant, sources: &sources, y, constants }.groups(rows, why, caps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_that_do_not_fit_are_named() {
        let f32 = |ne| Tensor::new(GgmlType::F32, ne);
        let mask = |ne| Some(Tensor::new(GgmlType::F16, ne));
        let good = AttentionNd {
            q: f32([65, 3, 4, 1]),
            k: f32([65, 17, 2, 1]),
            v: f32([67, 17, 1, 1]),
            mask: mask([17, 5, 1, 1]),
            sinks: None,
            scale: 1.0,
            softcap: 0.0,
            max_bias: 0.0,
            y: f32([67, 4, 3, 1]),
        };
        let caps = Caps::base();
        assert_eq!(good.dispatch(&caps).expect("sizes that fit").grid, [12, 1, 1]);
        let long = |n| AttentionNd { k: f32([65, n, 2, 1]), v: f32([67, n, 1, 1]), mask: None, ..good };
        let software = Caps { software: true, ..caps.clone() };
        assert!(long(1 << 20).dispatch(&caps).is_ok() && long(50_000).dispatch(&software).is_ok());
        assert!(matches!(long(60_000).dispatch(&software), Err(DispatchError::Lacks { .. })));
        let none = AttentionNd { y: f32([67, 4, 0, 1]), q: f32([65, 0, 4, 1]), ..good };
        assert_eq!(none.dispatch(&caps).expect("nothing to do").grid, [0, 1, 1]);
        for (call, expected) in [
            (AttentionNd { k: f32([64, 17, 2, 1]), ..good }, "k is 64, expected 65 along axis 0"),
            (AttentionNd { k: f32([65, 17, 3, 1]), ..good }, "k is 3, expected a divisor of 4 along axis 2"),
            (AttentionNd { v: f32([67, 16, 1, 1]), ..good }, "v is 16, expected 17 along axis 1"),
            (AttentionNd { mask: mask([17, 2, 1, 1]), ..good }, "mask is 2, expected 3 along axis 1"),
            (AttentionNd { sinks: Some(f32([3, 1, 1, 1])), ..good }, "sinks is 3, expected 4 along axis 0"),
        ] {
            let error = call.dispatch(&caps).expect_err(expected).to_string();
            assert_eq!(error, format!("attention_nd: {expected}"));
        }
    }
}
