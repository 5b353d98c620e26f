//! Mamba-2, Codestral Mamba: state spaces in heads with one decay each.
//!
//! x += mixer(norm(x)); no attention, no feed-forward part, no positions.

use chaski_graph::NormKind;

use crate::build::Builder;
use crate::error::ModelError;
use crate::recurrent;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for layer in 0..c.n_layer {
        let block = format!("blk.{layer}");
        let h = b.norm_of(x, &format!("{block}.attn_norm"), NormKind::Rms)?;
        let y = recurrent::mamba2(b, &block, h)?;
        x = b.add(x, y);
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}
