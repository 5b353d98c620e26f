//! Phi 3.5 with experts.
//!
//! Phi 3 with biases, also of norms, and MoE.

use chaski_graph::RopePairing;

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        let experts = Experts::new(b, b.config.n_ff[i]);
        Ok(Layer { attention, feed_forward: FeedForward::Experts(experts), norms: Norms::BEFORE })
    })
}
