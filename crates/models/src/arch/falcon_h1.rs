//! Falcon-H1: attention and Mamba-2 in parallel in every layer.
//!
//! h = norm(x); x += attention(h) + mamba2(h); x += feed_forward(norm(x)). The converter folds the family's multipliers
//! into the weights.

use chaski_graph::{Act, NormKind, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention, FeedForward};
use crate::recurrent;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for layer in 0..c.n_layer as usize {
        let block = format!("blk.{layer}");
        let h = b.norm_of(x, &format!("{block}.attn_norm"), NormKind::Rms)?;
        let a = Attention::new(b, layer, Some(rope))?.build(b, &block, h)?;
        x = b.add(x, a);
        let m = recurrent::mamba2(b, &block, h)?;
        x = b.add(x, m);
        let h = b.norm_of(x, &format!("{block}.ffn_norm"), NormKind::Rms)?;
        let f = FeedForward::Gated(Act::Swiglu).build(b, &block, layer, h)?;
        x = b.add(x, f);
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}
