//! OLMoE.
//!
//! Norms of q and k over all heads, NeoX RoPE, MoE whose weights are not normalised.

use chaski_graph::{RopePairing, Routing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{
    Attention, Decoder, Experts, FeedForward, Layer, Norms, QkNorm, decoder, softmax_routing,
};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention { norm: QkNorm::Whole, ..Attention::new(b, i, Some(rope))? };
        let routing = Routing { norm: None, ..softmax_routing(b) };
        let experts = Experts { routing, ..Experts::new(b, b.config.n_ff[i]) };
        Ok(Layer { attention, feed_forward: FeedForward::Experts(experts), norms: Norms::BEFORE })
    })
}
