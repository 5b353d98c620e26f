//! Attention of encoders: a token sees those before and after it.

use crate::id::ValueId;

/// Attention among the columns of a text, all of whose tokens are in the step, in order, from position 0. It needs no
/// cache.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Bidirectional {
    /// Queries, after RoPE: `[n_head, d]`
    pub q: ValueId,
    /// Keys, after RoPE: `[n_kv, d]`
    pub k: ValueId,
    /// Values: `[n_kv, d_v]`
    pub v: ValueId,
    /// Query heads, a multiple of the KV heads.
    pub n_head: u32,
    /// KV heads.
    pub n_kv: u32,
    /// Multiplies the product of a query and a key.
    pub scale: f32,
    /// ALiBi: the largest exponent of a head's slope, which multiplies the distance in both directions; 0: none.
    pub max_bias: f32,
    /// Window: keys at most half as many positions away are visible, on each side; 0: all.
    pub window: u32,
}

impl Bidirectional {
    /// The inputs.
    pub(crate) fn inputs(&self) -> Vec<ValueId> {
        vec![self.q, self.k, self.v]
    }

    /// The same operation on other values.
    pub(crate) fn moved(self, to: impl Fn(ValueId) -> ValueId) -> Self {
        Bidirectional { q: to(self.q), k: to(self.k), v: to(self.v), ..self }
    }
}
