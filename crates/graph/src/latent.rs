//! Attention over latents (MLA): all heads share one key and one value a token.
//!
//! A token's latent is the value of all heads, and with a few channels that know the position their key. What a head would
//! make of the latent for its own keys and values is taken in by its query before, and by its result after attention: a
//! product of the head with a matrix of its own each ([`crate::Op::MulHeads`]).

use crate::id::{ValueId, WeightId};

/// The queries, and the key of the batch's tokens, which goes to the cache.
#[derive(Copy, Clone, Debug)]
pub struct Latent {
    /// Queries: heads of plain channels, then rotated ones.
    pub q: ValueId,
    /// The latent before its norm, then the rotated channels of the key.
    pub x: ValueId,
    /// What plain channels go through: `[n_head, n_latent, n_plain]`.
    pub keys: WeightId,
    /// Weights of the latent's RMS norm: `[n_latent]`.
    pub norm: WeightId,
    /// Added to its mean square.
    pub eps: f32,
    /// Which of the graph's rotations.
    pub rope: usize,
    /// Layer of the cache: one head, values in the keys. The result has heads as wide as its keys.
    pub layer: usize,
    /// Query heads.
    pub n_head: u32,
}
