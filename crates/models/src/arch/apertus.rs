//! Apertus.
//!
//! Norms of the heads of q and k, NeoX RoPE, and xIELU instead of a gate, with parameters per layer.

use chaski_graph::RopePairing;

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let n = b.config.n_layer as usize;
    let list = |name: &str| b.metadata.per_layer::<f32>(&format!("xielu.{name}"), n);
    let lists = [list("alpha_n")?, list("alpha_p")?, list("beta")?, list("eps")?];
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention { norm: QkNorm::Heads, ..Attention::new(b, i, Some(rope))? };
        let [n, p, beta, eps] = [0, 1, 2, 3].map(|k| lists[k][i]);
        // Makes the first two positive.
        let softplus = |v: f32| v.exp().ln_1p();
        let params = [beta + softplus(n), softplus(p), beta, eps];
        Ok(Layer { attention, feed_forward: FeedForward::plain_of("xielu", params), norms: Norms::BEFORE })
    })
}
