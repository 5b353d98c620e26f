//! Falcon-H1: attention and Mamba-2 side by side in every layer.
//!
//! h = norm(x); x += attention(h) + mamba2(h); x += feed_forward(norm(x)). The converter has put the family's
//! multipliers into the weights.

use chaski_kernels::ops::glu::Act;
use chaski_kernels::rope::RopePairing;

use super::Builder;
use crate::error::ModelError;
use crate::layers::AttentionKind;
use crate::{layers, recurrent};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let rope = c.rope(b.metadata, RopePairing::Neox, b.rope_factors.take())?;
    b.set_rope(rope);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    let kind = AttentionKind { output_bias: false, ..AttentionKind::plain(b) };
    for layer in 0..c.n_layer as usize {
        let block = format!("blk.{layer}");
        let w = b.vector(&format!("{block}.attn_norm.weight"), c.n_embd)?;
        let h = b.norm(x, w);
        let a = layers::attention_of(b, &block, layer, kind, h)?;
        x = b.add(x, a);
        let m = recurrent::mamba2(b, &block, h)?;
        x = b.add(x, m);
        // Files have this norm with and without the usual end of its name.
        let (with, without) = (format!("{block}.ffn_norm.weight"), format!("{block}.ffn_norm"));
        let w = b.vector(if b.has(&with) { &with } else { &without }, c.n_embd)?;
        let h = b.norm(x, w);
        let f = layers::feed_forward(b, &block, layer, Act::Swiglu, h)?;
        x = b.add(x, f);
    }
    let w = b.vector("output_norm.weight", c.n_embd)?;
    let h = b.norm(x, w);
    b.logits(h, embeddings)
}
