//! Llama Nemotron, a Llama with parts removed.
//!
//! A layer has attention, a single matrix in its place or neither, and then possibly a feed-forward part; without one
//! it has no effect.

use chaski_graph::{Act, NormKind, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention, FeedForward};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    b.needs("feed_forward_length")?;
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for i in (0..c.n_layer as usize).filter(|i| c.n_ff[*i] > 0) {
        let block = format!("blk.{i}");
        if c.n_head[i] > 0 {
            let h = b.norm_of(x, &format!("{block}.attn_norm"), NormKind::Rms)?;
            let a = if c.n_head_kv[i] == 0 {
                let instead = b.linear(&format!("{block}.attn_output"), c.n_embd, c.n_embd)?;
                b.mul(h, instead)
            } else {
                Attention::new(b, i, Some(rope))?.build(b, &block, h)?
            };
            x = b.add(x, a);
        }
        let h = b.norm_of(x, &format!("{block}.ffn_norm"), NormKind::Rms)?;
        let f = FeedForward::Gated(Act::Swiglu).build(b, &block, i, h)?;
        x = b.add(x, f);
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}
