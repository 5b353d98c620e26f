//! Mamba (the first): state spaces whose steps depend on the input.
//!
//! x += mixer(norm(x)); no attention, no feed-forward part, no positions.

use super::Builder;
use crate::error::ModelError;
use crate::recurrent;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for layer in 0..c.n_layer {
        let block = format!("blk.{layer}");
        let w = b.vector(&format!("{block}.attn_norm.weight"), c.n_embd)?;
        let h = b.norm(x, w);
        let y = recurrent::mamba(b, &block, h)?;
        x = b.add(x, y);
    }
    let w = b.vector("output_norm.weight", c.n_embd)?;
    let h = b.norm(x, w);
    b.logits(h, embeddings)
}
