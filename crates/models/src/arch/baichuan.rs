//! Baichuan 1 and 2.
//!
//! Llama; models of 40 layers use ALiBi instead of RoPE.

use chaski_graph::{Act, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    // No key gives this.
    let is_13b = b.config.n_layer == 40;
    let rope = if is_13b { None } else { Some(b.rope(RopePairing::Norm)?) };
    let rope = rope.map(|r| b.add_rope(r));
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, rope)?;
        let score = Score { max_bias: if is_13b { 8.0 } else { 0.0 }, ..attention.score };
        let attention = Attention { score, ..attention };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}
