//! MiniMax M2.
//!
//! Norms of q and k over all heads, NeoX RoPE on the first channels of a head, MoE.

use chaski_graph::{Gate, RopePairing, Routing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Norms, QkNorm, decoder, routing};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let routing = Routing { norm: Some(Routing::CLAMP), ..routing(b, Gate::Sigmoid)? };
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention { norm: QkNorm::Whole, ..Attention::new(b, i, Some(rope))? };
        let experts = Experts { routing, ..Experts::new(b, b.config.n_ff[i]) };
        Ok(Layer { attention, feed_forward: FeedForward::Experts(experts), norms: Norms::BEFORE })
    })
}
