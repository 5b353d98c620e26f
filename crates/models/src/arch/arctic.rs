//! Snowflake Arctic.
//!
//! Llama with a feed-forward part as wide as the model, in parallel with experts that read attention's input through
//! their own norm.

use chaski_graph::{Act, NormKind, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention, Experts, FeedForward};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for i in 0..c.n_layer as usize {
        let block = format!("blk.{i}");
        let norm = |b: &mut Builder<'_>, x, stem| b.norm_of(x, &format!("{block}.{stem}"), NormKind::Rms);
        let before = x;
        let h = norm(b, x, "attn_norm")?;
        let a = Attention::new(b, i, Some(rope))?.build(b, &block, h)?;
        x = b.add(x, a);
        let h = norm(b, x, "ffn_norm")?;
        let f = FeedForward::GatedOf(Act::Swiglu, c.n_embd).build(b, &block, i, h)?;
        x = b.add(x, f);
        let h = norm(b, before, "ffn_norm_exps")?;
        for f in Experts::new(b, c.n_ff[i]).addends(b, &block, h)? {
            x = b.add(x, f);
        }
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}
