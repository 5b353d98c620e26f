//! GPT-NeoX and Pythia.
//!
//! Layer norms, biases throughout, NeoX RoPE on the first channels of a head, no gate; attention and feed-forward part
//! run in parallel, unless the file says otherwise.

use chaski_graph::RopePairing;

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let parallel = b.bool("use_parallel_residual")?.unwrap_or(true);
    decoder(b, &Decoder::LAYER, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        let norms = Norms { parallel, ..Norms::BEFORE };
        Ok(Layer { attention, feed_forward: FeedForward::plain("gelu"), norms })
    })
}
