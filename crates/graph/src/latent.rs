//! Latent attention (MLA): all heads share one key and one value per token.
//!
//! A token's latent is the value of all heads; together with a few RoPE channels it is also their key. The per-head
//! projections of the latent to keys and values are absorbed into the query before attention and into the result after
//! it, each as a per-head matrix ([`crate::Op::MulHeads`]).

use crate::id::{ValueId, WeightId};

/// The queries, and the key of the batch's tokens, which goes to the KV cache.
#[derive(Copy, Clone, Debug)]
pub struct Latent {
    /// Queries: heads of channels without RoPE, followed by channels with RoPE.
    pub q: ValueId,
    /// The latent before its norm, followed by the RoPE channels of the key.
    pub x: ValueId,
    /// Projection of channels without RoPE: `[n_head, n_latent, n_plain]`.
    pub keys: WeightId,
    /// Weights of the latent's RMS norm: `[n_latent]`.
    pub norm: WeightId,
    /// Added to its mean square.
    pub eps: f32,
    /// Index in [`crate::Graph::ropes`].
    pub rope: usize,
    /// Layer of the cache: one head, values in the keys. The heads of the result are as wide as the keys.
    pub layer: usize,
    /// Query heads.
    pub n_head: u32,
}
